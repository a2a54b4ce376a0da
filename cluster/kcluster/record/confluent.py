"""confluent-kafka's clients with a history.

Owns: their methods that send, read, or set a position.  Never: is imported before one of the
library's clients is wrapped.  Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple, Protocol

from kcluster.record.client import (
    PendingSend,
    RecordedConsumerBase,
    RecordedProducerBase,
    TopicPartition,
)
from kcluster.record.history_file import HistoryFile


class _ConfluentMessage(Protocol):
    def error(self) -> object | None: ...
    def topic(self) -> str: ...
    def partition(self) -> int: ...
    def offset(self) -> int: ...
    def value(self) -> object: ...


class _ConfluentProducer(Protocol):
    def produce(self, topic: str, value: object, **others: object) -> None: ...
    def begin_transaction(self) -> None: ...
    def commit_transaction(self, *timeout: float) -> None: ...
    def abort_transaction(self, *timeout: float) -> None: ...


class _ConfluentConsumer(Protocol):
    def poll(self, *timeout: float | None) -> _ConfluentMessage | None: ...
    def consume(self, *args: object, **settings: object) -> list[_ConfluentMessage]: ...
    def subscribe(self, topics: Collection[str], **callbacks: object) -> None: ...
    def assign(self, partitions: Collection[TopicPartition]) -> None: ...
    def seek(self, partition: TopicPartition) -> None: ...


class _ConfluentRead(NamedTuple):
    """A record that was read."""

    topic: str
    partition: int
    offset: int
    value: object


class RecordedConfluentProducer(RecordedProducerBase):
    """A Producer.  Outcomes are written by its delivery reports, so call its poll and flush."""

    def __init__(
        self, client: _ConfluentProducer, history: HistoryFile, name: str, isolation: str
    ) -> None:
        super().__init__(client, history, name, isolation)
        self._producer = client

    def __len__(self) -> int:
        return len(self._client)  # type: ignore[arg-type]  # a Producer has a length

    def produce(self, topic: str, value: object = None, **others: object) -> None:
        """Send a record; the arguments after the value have names."""
        own = others.pop("on_delivery", others.pop("callback", None))
        partition = others.get("partition")
        pending = PendingSend(self, topic, partition if isinstance(partition, int) else None, value)

        def on_delivery(error: object, message: _ConfluentMessage) -> None:
            if error is None:
                pending.acked(message.partition(), message.offset())
            else:
                pending.ended(error)
            if callable(own):
                own(error, message)

        with pending:
            self._producer.produce(topic, value, on_delivery=on_delivery, **others)

    def begin_transaction(self) -> None:
        self._producer.begin_transaction()
        self.began()

    def commit_transaction(self, *timeout: float) -> None:
        with self.committing():
            self._producer.commit_transaction(*timeout)

    def abort_transaction(self, *timeout: float) -> None:
        self._producer.abort_transaction(*timeout)
        self.aborted()


class RecordedConfluentConsumer(RecordedConsumerBase):
    """A Consumer.  Wrap it before it subscribes: the library does not tell of assignments later."""

    def __init__(
        self, client: _ConfluentConsumer, history: HistoryFile, name: str, isolation: str
    ) -> None:
        super().__init__(client, history, name, isolation)
        self._consumer = client

    def poll(self, *timeout: float | None) -> _ConfluentMessage | None:
        message = self._consumer.poll(*timeout)
        self._write([] if message is None else [message])
        return message

    def consume(self, *args: object, **settings: object) -> list[_ConfluentMessage]:
        messages = self._consumer.consume(*args, **settings)
        self._write(messages)
        return messages

    def _write(self, messages: Sequence[_ConfluentMessage]) -> None:
        self.write_reads(
            _ConfluentRead(each.topic(), each.partition(), each.offset(), each.value())
            for each in messages
            if each.error() is None
        )

    def subscribe(self, topics: Collection[str], **callbacks: object) -> None:
        own = callbacks.pop("on_assign", None)

        def on_assign(consumer: object, partitions: Sequence[TopicPartition]) -> None:
            if partitions:
                self.moved(partitions)
            if callable(own):
                own(consumer, partitions)

        self._consumer.subscribe(topics, on_assign=on_assign, **callbacks)

    def assign(self, partitions: Collection[TopicPartition]) -> None:
        self._consumer.assign(partitions)
        self.moved()

    def seek(self, partition: TopicPartition) -> None:
        self._consumer.seek(partition)
        self.moved([partition])
