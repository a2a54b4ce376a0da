"""aiokafka's clients with a history.

Owns: their methods that send, read, or set a position.  Never: is imported before one of the
library's clients is wrapped.  Kafka: no counterpart.
"""

from __future__ import annotations

from asyncio import Future
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from inspect import isawaitable
from typing import Protocol, Self

from aiokafka.abc import ConsumerRebalanceListener

from kcluster.judge.history import Isolation
from kcluster.record.client import (
    AckedRecord,
    PendingSend,
    ReceivedRecord,
    RecordedConsumerBase,
    RecordedProducerBase,
    TopicPartition,
)
from kcluster.record.history_file import HistoryFile, now_ms


class _AsyncProducer(Protocol):
    async def start(self) -> None: ...
    async def stop(self) -> None: ...
    async def send(self, topic: str, value: object, **others: object) -> Future[AckedRecord]: ...
    async def begin_transaction(self) -> None: ...
    async def commit_transaction(self) -> None: ...
    async def abort_transaction(self) -> None: ...


class _AsyncConsumer(Protocol):
    async def start(self) -> None: ...
    async def stop(self) -> None: ...
    async def getone(self, *partitions: TopicPartition) -> ReceivedRecord: ...
    async def getmany(
        self, *partitions: TopicPartition, **settings: object
    ) -> Mapping[TopicPartition, Sequence[ReceivedRecord]]: ...
    async def __anext__(self) -> ReceivedRecord: ...
    def subscription(self) -> Collection[str] | None: ...
    def subscribe(self, topics: Collection[str], **settings: object) -> None: ...
    def assign(self, partitions: Collection[TopicPartition]) -> None: ...
    def seek(self, partition: TopicPartition, offset: int) -> None: ...
    async def seek_to_beginning(self, *partitions: TopicPartition) -> bool: ...
    async def seek_to_end(self, *partitions: TopicPartition) -> bool: ...
    async def seek_to_committed(
        self, *partitions: TopicPartition
    ) -> Mapping[TopicPartition, int | None]: ...
    async def position(self, partition: TopicPartition) -> int: ...
    async def end_offsets(
        self, partitions: Collection[TopicPartition]
    ) -> Mapping[TopicPartition, int]: ...


class RecordedAsyncProducer(RecordedProducerBase):
    """An AIOKafkaProducer."""

    def __init__(
        self, client: _AsyncProducer, history: HistoryFile, name: str, isolation: str
    ) -> None:
        super().__init__(client, history, name, isolation)
        self._producer = client

    async def __aenter__(self) -> Self:
        await self._producer.start()
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self._producer.stop()

    async def send(self, topic: str, value: object = None, **others: object) -> Future[AckedRecord]:
        partition = others.get("partition")
        pending = PendingSend(self, topic, partition if isinstance(partition, int) else None, value)
        with pending:
            future = await self._producer.send(topic, value, **others)

        def on_end(done: Future[AckedRecord]) -> None:
            error = None if done.cancelled() else done.exception()
            if done.cancelled() or error is not None:
                pending.ended(error)
            else:
                pending.acked(done.result().partition, done.result().offset)

        future.add_done_callback(on_end)
        return future

    async def send_and_wait(
        self, topic: str, value: object = None, **others: object
    ) -> AckedRecord:
        return await (await self.send(topic, value, **others))

    async def begin_transaction(self) -> None:
        await self._producer.begin_transaction()
        self.began()

    async def commit_transaction(self) -> None:
        with self.committing():
            await self._producer.commit_transaction()

    async def abort_transaction(self) -> None:
        await self._producer.abort_transaction()
        self.aborted()

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        """Begin a transaction; commit it at the end, or abort it after an exception."""
        await self.begin_transaction()
        is_whole = False
        try:
            yield
            is_whole = True
        finally:
            await (self.commit_transaction() if is_whole else self.abort_transaction())


class RecordedAsyncConsumer(RecordedConsumerBase):
    """An AIOKafkaConsumer."""

    def __init__(
        self, client: _AsyncConsumer, history: HistoryFile, name: str, isolation: str
    ) -> None:
        self._consumer = client
        super().__init__(client, history, name, isolation)
        topics = client.subscription()
        if topics:
            self.subscribe(list(topics))

    def _own_isolation(self) -> Isolation:
        return Isolation(str(getattr(self._consumer, "_isolation_level", "read_uncommitted")))

    async def __aenter__(self) -> Self:
        await self._consumer.start()
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self._consumer.stop()

    async def getone(self, *partitions: TopicPartition) -> ReceivedRecord:
        record = await self._consumer.getone(*partitions)
        self.write_reads([record])
        return record

    async def getmany(
        self, *partitions: TopicPartition, **settings: object
    ) -> Mapping[TopicPartition, Sequence[ReceivedRecord]]:
        found = await self._consumer.getmany(*partitions, **settings)
        self.write_reads(record for records in found.values() for record in records)
        return found

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ReceivedRecord:
        record = await self._consumer.__anext__()
        self.write_reads([record])
        return record

    def subscribe(
        self, topics: Collection[str] = (), pattern: str | None = None, listener: object = None
    ) -> None:
        told = _AsyncListener(self, listener)
        self._consumer.subscribe(topics, pattern=pattern, listener=told)

    def assign(self, partitions: Collection[TopicPartition]) -> None:
        self._consumer.assign(partitions)
        self.moved()

    def seek(self, partition: TopicPartition, offset: int) -> None:
        self._consumer.seek(partition, offset)
        self.moved([partition])

    async def seek_to_beginning(self, *partitions: TopicPartition) -> bool:
        done = await self._consumer.seek_to_beginning(*partitions)
        self.moved(partitions)
        return done

    async def seek_to_end(self, *partitions: TopicPartition) -> bool:
        done = await self._consumer.seek_to_end(*partitions)
        self.moved(partitions)
        return done

    async def seek_to_committed(
        self, *partitions: TopicPartition
    ) -> Mapping[TopicPartition, int | None]:
        offsets = await self._consumer.seek_to_committed(*partitions)
        self.moved(partitions)
        return offsets

    async def position(self, partition: TopicPartition) -> int:
        offset = await self._consumer.position(partition)
        self.write_position(partition, offset)
        return offset

    async def end_offsets(
        self, partitions: Collection[TopicPartition]
    ) -> Mapping[TopicPartition, int]:
        asked_ms = now_ms()
        ends = await self._consumer.end_offsets(partitions)
        self.write_ends(ends, asked_ms)
        return ends


class _AsyncListener(ConsumerRebalanceListener):  # type: ignore[misc]  # the library has no types
    """Takes note of assignments, and tells the application's own listener."""

    def __init__(self, consumer: RecordedAsyncConsumer, own: object) -> None:
        self._consumer = consumer
        self._own = own

    async def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        if isinstance(self._own, ConsumerRebalanceListener):
            await _done(self._own.on_partitions_revoked(revoked))

    async def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        if assigned:
            self._consumer.moved(assigned)
        if isinstance(self._own, ConsumerRebalanceListener):
            await _done(self._own.on_partitions_assigned(assigned))


async def _done(result: object) -> None:
    """Wait for a listener's method that is a coroutine; others have ended."""
    if isawaitable(result):
        await result
