"""The project's own Kafka clients as state machines: they never block, and run on both clocks.

They send through a Wire (`wire.py`).  Everything they send, read and receive as an error goes into
the ledger (`ledger.py`), from which the verdict is made."""
