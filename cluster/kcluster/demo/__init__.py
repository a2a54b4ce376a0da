"""The demo: real clients under load while a leader dies, and an exact count of the records.

Owns: the orders, clients, story and ledger of the demo.  Never: reads a command line
(cli/work/demo.py does). Kafka: kafka-verifiable-producer and -consumer.
"""
