"""kafka-python's clients with a history.

Owns: their methods that send, read, or set a position.  Never: is imported before one of the
library's clients is wrapped.  Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Protocol, Self

from kafka import ConsumerRebalanceListener

from kcluster.judge.history import Isolation
from kcluster.record.client import (
    ACKS,
    AckedRecord,
    PendingSend,
    ReceivedRecord,
    RecordedConsumerBase,
    RecordedProducerBase,
    TopicPartition,
)
from kcluster.record.history_file import HistoryFile, now_ms


class _PythonFuture(Protocol):
    def add_callback(self, callback: object) -> object: ...
    def add_errback(self, callback: object) -> object: ...


class _PythonProducer(Protocol):
    config: Mapping[str, object]

    def send(self, topic: str, value: object, **others: object) -> _PythonFuture: ...
    def begin_transaction(self) -> None: ...
    def commit_transaction(self) -> None: ...
    def abort_transaction(self) -> None: ...


class _PythonConsumer(Protocol):
    config: Mapping[str, object]

    def poll(self, **settings: object) -> Mapping[TopicPartition, Sequence[ReceivedRecord]]: ...
    def __next__(self) -> ReceivedRecord: ...
    def subscription(self) -> Collection[str] | None: ...
    def subscribe(self, topics: Collection[str], **settings: object) -> None: ...
    def assign(self, partitions: Collection[TopicPartition]) -> None: ...
    def seek(self, partition: TopicPartition, offset: int) -> None: ...
    def seek_to_beginning(self, *partitions: TopicPartition) -> None: ...
    def seek_to_end(self, *partitions: TopicPartition) -> None: ...
    def position(self, partition: TopicPartition, **settings: object) -> int | None: ...
    def end_offsets(
        self, partitions: Collection[TopicPartition], **settings: object
    ) -> Mapping[TopicPartition, int]: ...


class RecordedProducer(RecordedProducerBase):
    """A KafkaProducer."""

    def __init__(
        self, client: _PythonProducer, history: HistoryFile, name: str, isolation: str
    ) -> None:
        super().__init__(client, history, name, isolation)
        self._producer = client
        self.acks = ACKS.get(client.config["acks"], -1)

    def send(self, topic: str, value: object = None, **others: object) -> _PythonFuture:
        partition = others.get("partition")
        pending = PendingSend(self, topic, partition if isinstance(partition, int) else None, value)
        with pending:
            future = self._producer.send(topic, value, **others)

        def on_ack(metadata: AckedRecord) -> None:
            pending.acked(metadata.partition, metadata.offset)

        future.add_callback(on_ack)
        future.add_errback(pending.ended)
        return future

    def begin_transaction(self) -> None:
        self._producer.begin_transaction()
        self.began()

    def commit_transaction(self) -> None:
        with self.committing():
            self._producer.commit_transaction()

    def abort_transaction(self) -> None:
        self._producer.abort_transaction()
        self.aborted()


class RecordedConsumer(RecordedConsumerBase):
    """A KafkaConsumer."""

    def __init__(
        self, client: _PythonConsumer, history: HistoryFile, name: str, isolation: str
    ) -> None:
        self._consumer = client
        super().__init__(client, history, name, isolation)
        topics = client.subscription()
        if topics:
            self.subscribe(list(topics))

    def _own_isolation(self) -> Isolation:
        return Isolation(str(self._consumer.config["isolation_level"]))

    def poll(
        self, *args: object, **settings: object
    ) -> Mapping[TopicPartition, Sequence[ReceivedRecord]]:
        if args:
            settings |= dict(
                zip(("timeout_ms", "max_records", "update_offsets"), args, strict=False)
            )
        found = self._consumer.poll(**settings)
        self.write_reads(record for records in found.values() for record in records)
        return found

    def __iter__(self) -> Iterator[ReceivedRecord]:
        return self

    def __next__(self) -> ReceivedRecord:
        record = next(self._consumer)
        self.write_reads([record])
        return record

    def __enter__(self) -> Self:
        return self

    def subscribe(
        self, topics: Collection[str] = (), pattern: str | None = None, listener: object = None
    ) -> None:
        told = _PythonListener(self, listener)
        self._consumer.subscribe(topics, pattern=pattern, listener=told)

    def assign(self, partitions: Collection[TopicPartition]) -> None:
        self._consumer.assign(partitions)
        self.moved()

    def seek(self, partition: TopicPartition, offset: int) -> None:
        self._consumer.seek(partition, offset)
        self.moved([partition])

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        self._consumer.seek_to_beginning(*partitions)
        self.moved(partitions)

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        self._consumer.seek_to_end(*partitions)
        self.moved(partitions)

    def position(self, partition: TopicPartition, **settings: object) -> int | None:
        offset = self._consumer.position(partition, **settings)
        self.write_position(partition, offset)
        return offset

    def end_offsets(
        self, partitions: Collection[TopicPartition], **settings: object
    ) -> Mapping[TopicPartition, int]:
        asked_ms = now_ms()
        ends = self._consumer.end_offsets(partitions, **settings)
        self.write_ends(ends, asked_ms)
        return ends


class _PythonListener(ConsumerRebalanceListener):  # type: ignore[misc]  # the library has no types
    """Takes note of assignments, and tells the application's own listener."""

    def __init__(self, consumer: RecordedConsumer, own: object) -> None:
        self._consumer = consumer
        self._own = own

    def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        if isinstance(self._own, ConsumerRebalanceListener):
            self._own.on_partitions_revoked(revoked)

    def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        if assigned:
            self._consumer.moved(assigned)
        if isinstance(self._own, ConsumerRebalanceListener):
            self._own.on_partitions_assigned(assigned)
