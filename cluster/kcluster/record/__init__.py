"""Histories of a program's own clients, for `kcluster judge`.

Owns: `recorded`, which wraps a client of kafka-python, aiokafka or confluent-kafka.  Never: judges
(judge/), changes what the client does.  Kafka: no counterpart; producer and consumer interceptors.

    from kcluster.record import HistoryFile, recorded

    with HistoryFile("history.jsonl") as history:
        producer = recorded(KafkaProducer(...), history, "shop")
        consumer = recorded(KafkaConsumer(...), history, "billing")
        ...
    # kcluster judge history.jsonl
"""

from __future__ import annotations

from importlib import import_module
from typing import TypeVar, cast

from kcluster.config.files.problems import show
from kcluster.record.client import WrappedClient
from kcluster.record.history_file import HistoryFile

__all__ = ["HistoryFile", "recorded"]

C = TypeVar("C")

_WRAPPERS = {
    ("kafka.producer.kafka", "KafkaProducer"): ("kafka_python", "RecordedProducer"),
    ("kafka.consumer.group", "KafkaConsumer"): ("kafka_python", "RecordedConsumer"),
    ("aiokafka.producer.producer", "AIOKafkaProducer"): ("aiokafka", "RecordedAsyncProducer"),
    ("aiokafka.consumer.consumer", "AIOKafkaConsumer"): ("aiokafka", "RecordedAsyncConsumer"),
    ("cimpl", "Producer"): ("confluent", "RecordedConfluentProducer"),
    ("cimpl", "Consumer"): ("confluent", "RecordedConfluentConsumer"),
}
"""The wrapper of each class, by its module and name; found without importing a library."""


def recorded(client: C, history: HistoryFile, name: str, isolation: str = "") -> C:
    """The client, with its sends, reads and transactions written to a history.

    `name`: the client's name in the history, its own among all clients.  `isolation`: the
    consumer's isolation.level; without it, as the client's settings say, read_uncommitted for
    confluent-kafka, which does not tell.  The result behaves like the client.  TypeError for an
    object of another class."""
    for cls in type(client).__mro__:
        home = _WRAPPERS.get((cls.__module__, cls.__name__))
        if home is not None:
            module = import_module(f"kcluster.record.{home[0]}")
            wrapper: type[WrappedClient] = getattr(module, home[1])
            return cast("C", wrapper(client, history, name, isolation))
    known = ", ".join(sorted({cls for _, cls in _WRAPPERS}))
    raise TypeError(f"recorded takes a client ({known}), not {show(type(client).__name__)}")
