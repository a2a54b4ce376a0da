"""The project's own Kafka clients as state machines: they never block, and run on both clocks.

They send through a Wire (`wire.py`).  The ledger (`ledger.py`) records everything that they send
and read and every error that they receive; the verdict is made from it."""
