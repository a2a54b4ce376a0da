"""One task of a read: it fetches a range of a partition, across changes of the leader.

Owns: fetching until the range is read, retries, batches hidden from a read_committed reader, the
reports of losses.  Never: decodes records (columns.py), decides what is lost (losses.py), plans.
Kafka: Fetcher, CompletedFetch; of Spark's connector KafkaDataConsumer.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from kcluster.clients.consumer.completed_fetch import AbortedTransactions
from kcluster.pipeline.source.client import BlockingClient, BlockingConnection, Deadline
from kcluster.pipeline.source.columns import Columns
from kcluster.pipeline.source.errors import DataLoss, SourceError
from kcluster.pipeline.source.lookups import Lookups
from kcluster.pipeline.source.losses import Lost, Wanted, decide
from kcluster.pipeline.source.options import ReadSettings, SourceClientSettings
from kcluster.pipeline.source.planning import Range
from kcluster.pipeline.workers import spare_modules
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode, ProtocolError, error_of
from kcluster.protocol.records.batches import Batch, InvalidRecords, parse_batches

if TYPE_CHECKING:
    import pyarrow as pa

_CONSUMER: Final = -1
_NO_SESSION: Final = -1
_VERSION_OF_NAMES: Final = 12
"""The last version of Fetch with topic names; later ones have topic ids."""

_clients: dict[SourceClientSettings, BlockingClient] = {}


def client_of(settings: SourceClientSettings) -> BlockingClient:
    """This process's client for these brokers; Spark runs one task after the other in a worker."""
    client = _clients.get(settings)
    if client is None:
        client = _clients[settings] = BlockingClient(settings)
    return client


def close_clients() -> None:
    """Close this process's clients.  A worker of Spark keeps them until it ends."""
    while _clients:
        _clients.popitem()[1].close()


def report(settings: ReadSettings, lost: Iterable[Lost]) -> None:
    """Raise DataLoss, or report each range as a line on stderr and a file in `kcluster.losses`.

    A range has one file, even if its batch is repeated."""
    lost = tuple(lost)
    if not lost:
        return
    if settings.fail_on_data_loss:
        raise DataLoss(lost)
    for one in lost:
        print(f"kcluster: {one}", file=sys.stderr)
        if settings.losses:
            place = Path(settings.losses)
            place.mkdir(parents=True, exist_ok=True)
            last = "on" if one.last is None else one.last
            name = f"{one.topic}-{one.partition}-{one.first}-{last}.json"
            (place / name).write_bytes(msgspec.json.encode(one))


def load(settings: ReadSettings, wanted: Range) -> Iterator[pa.RecordBatch]:
    """Yield the records of a range.  Raises DataLoss, Unreachable, SourceError."""
    return _Load(client_of(settings.client), settings, wanted).batches()


class _Load:
    """One range being read."""

    def __init__(self, client: BlockingClient, settings: ReadSettings, wanted: Range) -> None:
        self._client = client
        self._settings = settings
        self._range = wanted
        self._at = wanted.start
        """Offset of the next record."""
        self._epoch = wanted.epoch
        """The leader epoch in which `_at` was last validated."""
        self._name = f"{wanted.topic}-{wanted.partition}"
        self._lookups = Lookups(client, settings)
        self._connection: BlockingConnection | None = None
        self._node = -1

    def batches(self) -> Iterator[pa.RecordBatch]:
        settings, until = self._settings, self._range.until
        columns = Columns(
            self._range.topic, self._range.partition, settings.include_headers, settings.check_crcs
        )
        deadline = Deadline(settings.poll_timeout_ms)
        try:
            while self._at < until:
                data = self._fetched(deadline)
                if data is None or self._is_refused(data, deadline):
                    continue
                try:
                    start, visible = self._at, self._visible(data)
                    if self._at == start:
                        deadline.wait(0, f"{self._name}: no records at {self._at}")
                        continue
                    # The broker prepares the next answer while this one is decoded.
                    if self._at < until:
                        self._ask()
                    arrow_batch = columns.of(visible, start, until) if visible else None
                except InvalidRecords as error:
                    raise SourceError(f"{self._name} at offset {start}: {error}") from None
                if arrow_batch is not None:
                    yield arrow_batch
                deadline = Deadline(settings.poll_timeout_ms)
        finally:
            # If a reader stops early, its outstanding answer must not reach the next reader.
            if self._connection is not None and self._connection.is_waiting:
                self._client.drop(self._node)
        spare_modules()

    # -------------------------------------------------------------------------- fetching

    def _ask(self) -> None:
        """Send the next fetch.  After a failure `_fetched` connects again."""
        assert self._connection is not None
        try:
            self._connection.send(ApiKey.FETCH, self._request(self._connection), self._most())
        except OSError:
            self._leave()

    def _fetched(self, deadline: Deadline) -> m.FetchResponse.PartitionData | None:
        """A partition's answer, or None after a failure that may be retried."""
        try:
            if self._connection is None:
                self._find(deadline)
            connection = self._connection
            if connection is None:
                return None
            if not connection.is_waiting:
                connection.send(ApiKey.FETCH, self._request(connection), self._most())
            answer: m.FetchResponse = connection.take()
        except (OSError, ProtocolError) as error:
            node = self._node
            self._leave()
            deadline.wait(
                self._settings.client.retry_backoff_ms,
                f"{self._name}: broker {node}: {str(error) or type(error).__name__}",
            )
            return None
        if answer.error_code:
            self._leave()
            error_ = error_of(answer.error_code)
            self._check_retriable(error_)
            self._wait(deadline, error_.name)
            return None
        if not answer.responses:
            self._wait(deadline, "the answer does not have the partition")
            return None
        return answer.responses[0].partitions[0]

    def _find(self, deadline: Deadline) -> None:
        """Connect to the leader, and check that its log is still the log that was read.  If nothing
        is left to read, do not connect."""
        wanted = self._range
        while True:
            self._client.refresh([wanted.topic])
            topic = self._client.topics.get(wanted.topic)
            leader = self._client.leader(wanted.topic, wanted.partition)
            same = topic is not None and wanted.topic_id in ("", topic.id)
            if not same or (leader.node >= 0 and leader.epoch != self._epoch):
                self._validate()
                if self._at >= wanted.until:
                    return
                leader = self._client.leader(wanted.topic, wanted.partition)
            if leader.node >= 0:
                break
            self._wait(deadline, "it has no leader")
        self._epoch, self._node = leader.epoch, leader.node
        self._connection = self._client.connection(leader.node)
        if self._connection.is_waiting:
            self._client.drop(leader.node)
            self._connection = self._client.connection(leader.node)

    def _validate(self) -> None:
        """Compare the position and the rest of the range with the current log."""
        one = self._range
        wanted = Wanted(one.topic, one.partition, self._at, one.until, self._epoch, one.topic_id)
        log = self._lookups.log_now(wanted)
        decision = decide(wanted, log)
        report(self._settings, decision.lost)
        is_other = log is None or (one.topic_id and log.topic_id not in ("", one.topic_id))
        if is_other or decision.start is None:
            # Offsets of a deleted topic mean nothing in a new topic of its name.
            self._at = one.until
            return
        assert log is not None
        self._at = decision.start
        self._range = msgspec.structs.replace(one, until=min(one.until, max(log.end, self._at)))

    def _leave(self) -> None:
        if self._node >= 0:
            self._client.drop(self._node)
        self._connection, self._node = None, -1

    def _wait(self, deadline: Deadline, reason: str) -> None:
        backoff_ms = self._settings.client.retry_backoff_ms
        deadline.wait(backoff_ms, f"{self._name}: {reason}")

    def _most(self) -> int:
        return 1 << 15 if self._range.topic_id else _VERSION_OF_NAMES

    def _request(self, connection: BlockingConnection) -> m.FetchRequest:
        settings, one = self._settings, self._range
        request = m.FetchRequest
        topic_id = bytes.fromhex(one.topic_id) if one.topic_id else bytes(16)
        partition = request.FetchPartition(
            one.partition, self._epoch, self._at, partition_max_bytes=settings.partition_max_bytes
        )
        return request(
            replica_id=_CONSUMER,
            max_wait_ms=settings.fetch_wait_ms,
            min_bytes=settings.fetch_min_bytes,
            max_bytes=settings.fetch_max_bytes,
            isolation_level=int(settings.is_read_committed),
            session_id=0,
            session_epoch=_NO_SESSION,
            topics=[request.FetchTopic(one.topic, topic_id, [partition])],
        )

    # --------------------------------------------------------------------------- answers

    def _is_refused(self, data: m.FetchResponse.PartitionData, deadline: Deadline) -> bool:
        """Handle an answer with an error; returns whether it was one."""
        if not data.error_code:
            return False
        error = error_of(data.error_code)
        self._leave_leader()
        if error is ErrorCode.OFFSET_OUT_OF_RANGE:
            before = self._at, self._range.until
            self._validate()
            if (self._at, self._range.until) == before:
                # A new leader may not know the high watermark yet.
                self._wait(deadline, f"offset {self._at}: {error.name}")
            return True
        self._check_retriable(error)
        self._wait(deadline, error.name)
        return True

    def _leave_leader(self) -> None:
        """Look up the leader again; connections stay open."""
        self._connection, self._node = None, -1

    def _check_retriable(self, error: ErrorCode) -> None:
        if not error.retriable:
            raise SourceError(f"{self._name}: {error.name}: {error.text}")

    def _visible(self, data: m.FetchResponse.PartitionData) -> list[Batch]:
        """The batches that this reader may see; moves the position past all batches."""
        until = self._range.until
        hidden = (
            AbortedTransactions(data.aborted_transactions)
            if self._settings.is_read_committed
            else None
        )
        visible: list[Batch] = []
        for batch in parse_batches(data.records) if data.records is not None else ():
            if batch.last_offset < self._at:
                continue
            if batch.base_offset >= until:
                self._at = until
                break
            self._at = batch.last_offset + 1
            if batch.is_control:
                if hidden is not None:
                    hidden.pass_marker(batch)
            elif batch.record_count and (hidden is None or not hidden.hides(batch)):
                visible.append(batch)
        return visible
