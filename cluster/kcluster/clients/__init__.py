"""The project's own Kafka clients as state machines: they never wait, and run on both clocks.

`wire.py` is what they are given to talk with; `ledger.py` is where they write down what they sent
and were told, for the verdict."""
