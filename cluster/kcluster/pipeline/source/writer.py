"""Rows of a DataFrame as records of topics: at least once, by default with acks=all.

Owns: the columns of a DataFrame, the partition of a row, batches until they are acked.  Never: uses
transactions (a task that Spark repeats writes its rows again).
Kafka: KafkaProducer, BuiltInPartitioner, Sender; KIP-98 (sequences, so that a retry of a request
writes nothing twice); of Spark's connector KafkaWriter and KafkaWriteTask.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from kcluster.clients.producer.partitioning import partition_of_key
from kcluster.config.files.problems import unknown
from kcluster.pipeline.source.client import BlockingClient, BlockingConnection, Deadline
from kcluster.pipeline.source.errors import OptionError, SourceError
from kcluster.pipeline.source.loading import client_of
from kcluster.pipeline.source.offsets import Key
from kcluster.pipeline.source.options import WriteSettings
from kcluster.pipeline.workers import spare_modules
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode, ProtocolError, error_of
from kcluster.protocol.records.batches import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE
from kcluster.protocol.records.records import Record, build_batch

if TYPE_CHECKING:
    import pyarrow as pa

HEADERS_TYPE: Final = "array<struct<key:string,value:binary>>"
_BYTES: Final = ("string", "binary")
_TYPES: Final = {
    "key": _BYTES, "value": _BYTES, "topic": ("string",), "partition": ("int",),
    "headers": (HEADERS_TYPE,),
}  # fmt: skip
_RECORD_OVERHEAD_BYTES: Final = 24
_BATCH_OVERHEAD_BYTES: Final = 61
_TOO_LARGE: Final = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)
_BUFFER_BATCHES: Final = 8
"""The size of the buffer at which it is flushed, in batches."""
_SEQUENCES: Final = 1 << 31
_VERSION_OF_NAMES: Final = 12
"""The last version of Produce with topic names: with names, a record also reaches a topic that was
created again."""


def check_columns(types: Mapping[str, str], settings: WriteSettings) -> None:
    """OptionError if records cannot be made from these columns; `types` as in DDL."""
    if "value" not in types:
        text = unknown("column", "value", list(types)).replace("no such column", "it is missing")
        raise OptionError(f"column value is needed: {text}")
    if not settings.topic and "topic" not in types:
        raise OptionError("option topic or a column topic is needed")
    for name, kinds in _TYPES.items():
        if name == "headers" and not settings.include_headers:
            continue
        if name in types and types[name] not in kinds:
            raise OptionError(f"column {name} must be {' or '.join(kinds)}, not {types[name]}")


def write(settings: WriteSettings, batches: Iterable[pa.RecordBatch]) -> int:
    """Write the rows of one task; returns their number.  Raises SourceError, Unreachable."""
    writer = _Writer(client_of(settings.client), settings)
    count = 0
    for batch in batches:
        count += batch.num_rows
        writer.add(batch)
    writer.flush()
    spare_modules()
    return count


class _Batch(Struct):
    """Records for one partition, and their encoded bytes with a base sequence."""

    records: list[Record]
    size_bytes: int = _BATCH_OVERHEAD_BYTES
    encoded: bytes = b""
    base_sequence: int = NO_SEQUENCE


class _Writer:
    """The writer of one task."""

    def __init__(self, client: BlockingClient, settings: WriteSettings) -> None:
        self._client = client
        self._settings = settings
        self._open: dict[Key, _Batch] = {}
        self._full: dict[Key, list[_Batch]] = {}
        self._waiting_bytes = 0
        self._sticky: dict[str, int] = {}
        self._sequences: dict[Key, int] = {}
        self._producer = NO_PRODUCER_ID, NO_PRODUCER_EPOCH
        self._limit_bytes = min(settings.batch_bytes, settings.request_bytes)
        self._partition_of_key = lru_cache(1 << 14)(partition_of_key)

    # ------------------------------------------------------------------------------------- rows

    def add(self, batch: pa.RecordBatch) -> None:
        """Buffer rows; sends some when the buffer is full."""
        import pyarrow as pa

        def column(name: str) -> list[Any]:
            if name not in batch.schema.names:
                return [None] * batch.num_rows
            array = batch.column(name)
            return list(
                (array.cast(pa.binary()) if name in ("key", "value") else array).to_pylist()
            )

        with_headers = self._settings.include_headers
        headers = column("headers") if with_headers else [None] * batch.num_rows
        topics = [self._settings.topic] * batch.num_rows
        if not self._settings.topic:
            topics = column("topic")
        now_ms = time.time_ns() // 1_000_000
        for key, value, topic, partition, header in zip(
            column("key"), column("value"), topics, column("partition"), headers, strict=True
        ):
            if topic is None:
                raise SourceError(
                    "a row has no topic: column topic is null, and there is no option"
                )
            record_headers = tuple((one["key"], one["value"]) for one in header or ())
            self._take(topic, partition, Record(0, now_ms, key, value, record_headers))

    def _take(self, topic: str, partition: int | None, record: Record) -> None:
        size = _RECORD_OVERHEAD_BYTES + len(record.key or b"") + len(record.value or b"")
        size += sum(8 + len(name) + len(value or b"") for name, value in record.headers)
        if size > self._settings.request_bytes:
            raise SourceError(
                f"a record of {size} bytes for {topic} is more than kafka.max.request.size"
                f" ({self._settings.request_bytes})"
            )
        where = topic, self._partition(topic, record.key) if partition is None else partition
        self._check_partition(*where)
        batch = self._open.get(where)
        if batch is not None and batch.size_bytes + size > self._limit_bytes:
            self._full.setdefault(where, []).append(self._open.pop(where))
            batch = None
            if record.key is None and partition is None:
                self._sticky.pop(topic)
                where = topic, self._partition(topic, None)
                batch = self._open.get(where)
        if batch is None:
            batch = self._open[where] = _Batch([])
        batch.records.append(record)
        batch.size_bytes += size
        self._waiting_bytes += size
        if self._waiting_bytes > _BUFFER_BATCHES * self._limit_bytes:
            self.flush()

    def _partition(self, topic: str, key: bytes | None) -> int:
        if key is not None:
            return self._partition_of_key(key, self._count(topic))
        sticky = self._sticky.get(topic)
        if sticky is None:
            # Any choice will do that uses all partitions.
            sticky = self._sticky[topic] = random.randrange(self._count(topic))
        return sticky

    def _check_partition(self, topic: str, partition: int) -> None:
        count = self._count(topic)
        if not 0 <= partition < count:
            raise SourceError(f"{topic} has {count} partitions; there is no partition {partition}")

    def _count(self, topic: str) -> int:
        known = self._client.topics.get(topic)
        if known is None:
            known = self._found(topic)
        return len(known.partitions)

    def _found(self, topic: str) -> Any:
        """Find a topic that has no Metadata yet, or that the brokers are about to create."""
        deadline = self._client.deadline()
        names = {*self._client.topics, topic}
        while True:
            self._client.refresh(names, may_create=True)
            known = self._client.topics.get(topic)
            if known is not None and known.partitions:
                return known
            backoff_ms = self._settings.client.retry_backoff_ms
            deadline.wait(backoff_ms, f"no topic {topic} at {self._client.bootstrap}")

    # ---------------------------------------------------------------------------------- sending

    def flush(self) -> None:
        """Send all buffered rows; returns when they are acked."""
        for where, batch in self._open.items():
            self._full.setdefault(where, []).append(batch)
        self._open.clear()
        if self._settings.is_idempotent and self._full and self._producer[0] < 0:
            self._producer = self._new_producer()
        deadline = Deadline(self._settings.delivery_timeout_ms)
        while self._full:
            before = sum(map(len, self._full.values()))
            reason = self._round()
            if reason and sum(map(len, self._full.values())) >= before:
                deadline.wait(self._settings.client.retry_backoff_ms, reason)
            else:
                deadline = Deadline(self._settings.delivery_timeout_ms)
            if reason:
                self._client.refresh({*self._client.topics, *(topic for topic, _ in self._full)})
        self._waiting_bytes = 0

    def _round(self) -> str:
        """Send one request to each leader with the first batch of each partition.  Returns the
        reason if a batch failed, else ""."""
        reason = ""
        by_leader: dict[int, list[Key]] = {}
        for where in self._full:
            node = self._client.leader(*where).node
            if node < 0:
                reason = f"{where[0]}-{where[1]}: it has no leader"
            else:
                by_leader.setdefault(node, []).append(where)
        requests: list[tuple[int, BlockingConnection, list[Key]]] = []
        for node, keys in by_leader.items():
            try:
                connection = self._client.connection(node)
                self._send(connection, keys)
                requests.append((node, connection, keys))
            except (OSError, ProtocolError) as error:
                self._client.drop(node)
                reason = f"broker {node}: {str(error) or type(error).__name__}"
        for node, connection, keys in requests:
            if not self._settings.acks:
                for where in keys:
                    self._done(where)
                continue
            try:
                answer = connection.take()
            except (OSError, ProtocolError) as error:
                self._client.drop(node)
                reason = f"broker {node}: {str(error) or type(error).__name__}"
                continue
            for topic in answer.responses:
                for row in topic.partition_responses:
                    reason = self._answered((topic.name, row.index), row) or reason
        return reason

    def _send(self, connection: BlockingConnection, keys: list[Key]) -> None:
        request = m.ProduceRequest
        topics: dict[str, m.ProduceRequest.TopicProduceData] = {}
        room = self._settings.request_bytes
        sent: list[Key] = []
        for where in keys:
            batch = self._encoded(where)
            if sent and len(batch) > room:
                continue  # in the next round
            room -= len(batch)
            sent.append(where)
            topic = topics.setdefault(where[0], request.TopicProduceData(where[0]))
            topic.partition_data.append(request.PartitionProduceData(where[1], batch))
        keys[:] = sent
        settings = self._settings
        body = request(None, settings.acks, settings.client.request_timeout_ms, [*topics.values()])
        connection.send(ApiKey.PRODUCE, body, _VERSION_OF_NAMES, answered=settings.acks != 0)

    def _encoded(self, where: Key) -> bytes:
        """The encoded first batch of a partition: the same bytes and sequence at each attempt."""
        batch = self._full[where][0]
        if not batch.encoded:
            if self._producer[0] >= 0:
                batch.base_sequence = self._sequences.get(where, 0)
                end = batch.base_sequence + len(batch.records)
                self._sequences[where] = end % _SEQUENCES
            batch.encoded = bytes(
                build_batch(
                    batch.records,
                    compression=self._settings.compression,
                    producer_id=self._producer[0],
                    producer_epoch=self._producer[1],
                    base_sequence=batch.base_sequence,
                )
            )
        return batch.encoded

    def _answered(self, where: Key, row: m.ProduceResponse.PartitionProduceResponse) -> str:
        """Handle the answer for the first batch.  Returns the reason if it must be retried, else
        ""."""
        error = error_of(row.error_code)
        if error in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
            self._done(where)
            return ""
        batch = self._full[where][0]
        name = f"{where[0]}-{where[1]}"
        if error in _TOO_LARGE and len(batch.records) > 1:
            self._split(where, batch)
            return ""
        if not error.retriable:
            reason = row.error_message or error.text
            raise SourceError(f"{name}: {error.name}: {reason}")
        return f"{name}: {error.name}"

    def _split(self, where: Key, batch: _Batch) -> None:
        """Split a batch that the broker refused as too large; its sequence is free again."""
        if batch.base_sequence != NO_SEQUENCE:
            self._sequences[where] = batch.base_sequence
        half = len(batch.records) // 2
        self._full[where][:1] = [_Batch(batch.records[:half]), _Batch(batch.records[half:])]

    def _done(self, where: Key) -> None:
        batches = self._full[where]
        batches.pop(0)
        if not batches:
            del self._full[where]

    def _new_producer(self) -> tuple[int, int]:
        deadline = self._client.deadline()
        while True:
            node = next(
                (
                    one.node
                    for topic in self._client.topics.values()
                    for one in topic.partitions.values()
                    if one.node >= 0
                ),
                -1,
            )
            reason = "no broker is available for a producer id"
            if node >= 0:
                body = m.InitProducerIdRequest(None, self._settings.client.request_timeout_ms)
                answer = self._client.ask(node, ApiKey.INIT_PRODUCER_ID, body)
                if answer is not None and not answer.error_code:
                    return answer.producer_id, answer.producer_epoch
                if answer is not None:
                    error = error_of(answer.error_code)
                    reason = f"broker {node}: {error.name}"
                    if not error.retriable:
                        raise SourceError(reason)
            deadline.wait(self._settings.client.retry_backoff_ms, reason)
            self._client.refresh({*self._client.topics})
