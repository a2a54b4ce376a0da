"""A consumer's fetches: one request at a time to each broker, for all partitions that are read from
it.

Owns: Fetch requests, the handling of their errors, the buffer of completed fetches.
Never: decodes batches (completed_fetch.py), looks up offsets (offset_lookups.py).
Kafka: AbstractFetch, FetchCollector; KIP-320 (leader epochs), KIP-392 (nearest replica), KIP-516
(topic ids), KIP-951 (errors name the leader).

DIFFERS: no fetch sessions (KIP-227): each request names all partitions; the responses are the same.
As in Kafka, consumers send no last_fetched_epoch: they detect a truncated log by
OffsetForLeaderEpoch when the leader changes.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Final

from kcluster.clients.connections import ClientRequest, NetworkClient
from kcluster.clients.consumer.completed_fetch import CompletedFetch, open_records
from kcluster.clients.consumer.positions import FetchState, Position, Positions
from kcluster.clients.consumer.settings import READ_COMMITTED, ConsumerSettings
from kcluster.clients.ledger import Partition
from kcluster.clients.metadata import NO_BROKER, Metadata, at_once_ms
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.codec.schema import ZERO_UUID
from kcluster.protocol.errors import ErrorCode, error_of
from kcluster.protocol.records.batches import InvalidRecords
from kcluster.protocol.records.records import Record
from kcluster.timers import NEVER_MS

ERROR_PAUSE_MS: Final = 10
"""DIFFERS: after an error, the Java client fetches again without a pause until new metadata has
arrived.  Over virtual links without latency, the client could then fetch in an endless loop."""
LAST_VERSION_WITHOUT_TOPIC_IDS: Final = 12

_FETCH: Final = int(ApiKey.FETCH)
_FETCHING: Final = FetchState.FETCHING
_CONSUMER: Final = -1
_NO_SESSION: Final = -1
_Request: Final = m.FetchRequest
_Topic: Final = m.FetchRequest.FetchTopic
_Partition: Final = m.FetchRequest.FetchPartition
_NO_METADATA_UPDATE: Final = (ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.UNKNOWN_SERVER_ERROR)
"""Errors that need no new metadata; all others request it."""
_FATAL: Final = (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.CORRUPT_MESSAGE)


class Fetcher:
    """The fetches of one consumer.  `fatal`: the error that poll() throws, "" for none.
    `retry_ms`: the time at which `send` must be called without a response; NEVER_MS for never."""

    def __init__(
        self,
        settings: ConsumerSettings,
        metadata: Metadata,
        network: NetworkClient,
        positions: Positions,
    ) -> None:
        self.fatal = ""
        self.retry_ms = NEVER_MS
        self._settings = settings
        self._metadata = metadata
        self._network = network
        self._positions = positions
        self._is_committed = settings.isolation_level == READ_COMMITTED
        self._head = (
            None,
            _CONSUMER,
            m.FetchRequest.ReplicaState(),
            settings.fetch_max_wait_ms,
            settings.fetch_min_bytes,
            settings.fetch_max_bytes,
            int(self._is_committed),
            0,
            _NO_SESSION,
        )
        """The fields before the topics, equal in all requests."""
        self._pending: dict[int, None] = {}
        """Brokers with a fetch in flight."""
        self.buffer: deque[CompletedFetch] = deque()
        """Records that have not been returned to the application."""

    # --------------------------------------------------------------------------- sending

    def send(self, now_ms: int) -> None:
        """Send a fetch to every broker to which none is in flight."""
        self.retry_ms = NEVER_MS
        pending, network = self._pending, self._network
        fetchable: dict[int, list[Position]] = {}
        for position in self._positions.values():
            if (
                position.state is not _FETCHING
                or position.is_buffered
                or position.pending_revocation
            ):
                continue
            node = position.leader
            if position.preferred_replica != NO_BROKER:
                node = self._select_read_replica(position, now_ms)
            if node in pending:
                continue
            if position.fetch_at_ms > now_ms:
                self.retry_ms = min(self.retry_ms, position.fetch_at_ms)
            elif node == NO_BROKER:
                self._metadata.request_update()
            elif node in fetchable:
                fetchable[node].append(position)
            else:
                fetchable[node] = [position]
        # No fetch to a broker with buffered records: its next fetch covers all partitions that are
        # read from it.
        buffered_nodes = [completed_fetch.node for completed_fetch in self.buffer]
        for node, positions in fetchable.items():
            if node not in buffered_nodes and network.is_ready(node, now_ms):
                self._send_fetch(node, positions, now_ms)

    def _select_read_replica(self, position: Position, now_ms: int) -> int:
        """The preferred read replica, or the leader if the preference has expired."""
        replica = position.preferred_replica
        view = self._metadata.topics.get(position.topic)
        if now_ms > position.preferred_until_ms:
            position.preferred_replica = NO_BROKER
        elif (
            replica not in self._metadata.brokers
            or view is None
            or position.index >= len(view.partitions)
            or replica in view.partitions[position.index].offline
        ):
            position.preferred_replica = NO_BROKER
            self._metadata.request_update()
        return position.leader if position.preferred_replica == NO_BROKER else replica

    def _send_fetch(self, node: int, positions: list[Position], now_ms: int) -> None:
        metadata = self._metadata
        topics: dict[str, m.FetchRequest.FetchTopic] = {}
        context: dict[Partition, tuple[Position, int]] = {}
        version = self._network.version(node, _FETCH)
        max_bytes = self._settings.max_partition_fetch_bytes
        for position in positions:
            name, offset = position.topic, position.offset
            context[position.key] = position, offset
            topic = topics.get(name)
            if topic is None:
                topic_id = metadata.topic_id(name)
                if topic_id == ZERO_UUID:
                    version = min(version, LAST_VERSION_WITHOUT_TOPIC_IDS)
                topic = topics[name] = _Topic(name, topic_id)
            topic.partitions.append(
                _Partition(position.index, position.leader_epoch, offset, -1, -1, max_bytes)
            )
        body = _Request(*self._head, [*topics.values()], [], self._settings.client_rack)
        self._pending[node] = None
        self._network.send(
            node, _FETCH, body, now_ms, self._on_response, context=context, version=version
        )

    # -------------------------------------------------------------------------- responses

    def _on_response(self, request: ClientRequest, now_ms: int) -> None:
        del self._pending[request.broker_id]
        context: dict[Partition, tuple[Position, int]] = request.context
        if request.failure:
            for position, _ in context.values():
                position.preferred_replica = NO_BROKER
            return
        if self._network.refusal(request, now_ms):
            self._metadata.request_update()
            for position, _ in context.values():
                position.fetch_at_ms = now_ms + ERROR_PAUSE_MS
            return
        for topic in request.response.responses:
            name = topic.topic or self._metadata.topic_name(topic.topic_id)
            for partition_response in topic.partitions:
                fetchable = context.get((name or "", partition_response.partition_index))
                if fetchable is not None:
                    self._handle_partition(*fetchable, partition_response, request, now_ms)

    def _handle_partition(
        self,
        position: Position,
        offset: int,
        partition_response: Any,
        request: ClientRequest,
        now_ms: int,
    ) -> None:
        if partition_response.error_code:
            self._handle_error(
                position,
                offset,
                partition_response,
                error_of(partition_response.error_code),
                now_ms,
            )
            return
        if position.state is not _FETCHING or position.offset != offset:
            return  # the position has moved while the fetch was in flight
        position.high_watermark = partition_response.high_watermark
        position.last_stable_offset = partition_response.last_stable_offset
        position.log_start_offset = partition_response.log_start_offset
        if partition_response.preferred_read_replica >= 0:
            until_ms = now_ms + self._settings.metadata_max_age_ms
            position.prefer(partition_response.preferred_read_replica, until_ms)
        if not partition_response.records:
            position.fetch_at_ms = at_once_ms(request.sent_ms, now_ms)
            return
        try:
            segments = open_records(
                partition_response, offset, self._is_committed, self._settings.check_crcs
            )
        except InvalidRecords as problem:
            self._network.record_error(now_ms, _FETCH, problem.error.name, position.key)
            self.fatal = problem.error.name
            self._positions.needs_update = True
            return
        if segments:
            position.is_buffered = True
            self.buffer.append(CompletedFetch(position, request.broker_id, segments))

    def _handle_error(
        self,
        position: Position,
        offset: int,
        partition_response: Any,
        error: ErrorCode,
        now_ms: int,
    ) -> None:
        """Handle a partition's error.  Kafka: FetchCollector.handleInitializeErrors."""
        self._network.record_error(now_ms, _FETCH, error.name, position.key)
        self._positions.needs_update = True
        metadata = self._metadata
        if error in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH):
            leader = partition_response.current_leader
            metadata.update_leader(
                position.topic, position.index, leader.leader_id, leader.leader_epoch
            )
        if position.state is not _FETCHING:
            return
        position.fetch_at_ms = now_ms + ERROR_PAUSE_MS
        self._positions.move_to_end(position)
        if error is ErrorCode.OFFSET_OUT_OF_RANGE:
            if position.preferred_replica != NO_BROKER:
                position.preferred_replica = NO_BROKER
            elif offset == position.offset and self._settings.may_reset:
                position.reset()
            elif offset == position.offset:
                self.fatal = error.name
        elif error in _FATAL:
            self.fatal = error.name
        elif error not in _NO_METADATA_UPDATE:
            position.preferred_replica = NO_BROKER
            metadata.request_update()

    # ------------------------------------------------------------------------- collecting

    def collect(self, limit: int) -> list[tuple[Position, list[Record]]]:
        """Up to `limit` records for the application, by partition; advances their positions.
        Kafka: FetchCollector.collectFetch."""
        collected: list[tuple[Position, list[Record]]] = []
        buffer, positions = self.buffer, self._positions
        while buffer and limit:
            completed_fetch = buffer[0]
            position = completed_fetch.position
            if (
                positions.get(position.key) is not position
                or position.state is not _FETCHING
                or position.pending_revocation
                or not completed_fetch.is_next
            ):
                # The partition's position has moved, or the partition was revoked, since the fetch
                # was sent.
                buffer.popleft()
                position.is_buffered = False
                continue
            records = completed_fetch.take(limit)
            limit -= len(records)
            if records:
                collected.append((position, records))
            if completed_fetch.is_empty:
                buffer.popleft()
                position.is_buffered = False
                positions.move_to_end(position)
        return collected
