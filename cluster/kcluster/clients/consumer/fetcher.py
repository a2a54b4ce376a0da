"""A consumer fetches: one request at a time to each broker, for all partitions it reads there.

Owns: Fetch requests, what their errors mean, records that have come and are not given out.
Never: opens batches (fetched.py), asks for offsets (offset_lookups.py).
Kafka: AbstractFetch, FetchCollector; KIP-320 (leader epochs), KIP-392 (nearest replica), KIP-516
(topic ids), KIP-951 (errors name the leader).

DIFFERS: no fetch sessions (KIP-227): each request names all partitions, which a broker answers the
same.  As in Kafka, consumers send no last_fetched_epoch: what was cut off they learn from
OffsetForLeaderEpoch when the leader changes.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Final

from kcluster.clients.connections import InFlightRequest, NetworkClient
from kcluster.clients.consumer.fetched import Fetched, open_records
from kcluster.clients.consumer.positions import Position, Positions, State
from kcluster.clients.consumer.settings import READ_COMMITTED, ConsumerSettings
from kcluster.clients.ledger import Partition
from kcluster.clients.metadata import NOBODY, Metadata
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.codec.schema import ZERO_UUID
from kcluster.protocol.errors import ErrorCode, error_of
from kcluster.protocol.records.batches import InvalidRecords
from kcluster.protocol.records.records import Record
from kcluster.timers import NEVER_MS

ERROR_PAUSE_MS: Final = 10
"""DIFFERS: the Java client fetches again at once after an error, as often as the network lets it,
until new metadata has come.  Virtual links may have no delay at all."""
LAST_VERSION_WITHOUT_TOPIC_IDS: Final = 12

_FETCH: Final = int(ApiKey.FETCH)
_FETCHING: Final = State.FETCHING
_CONSUMER: Final = -1
_NO_SESSION: Final = -1
_Request: Final = m.FetchRequest
_Topic: Final = m.FetchRequest.FetchTopic
_Asked: Final = m.FetchRequest.FetchPartition
_WITHOUT_METADATA: Final = (ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.UNKNOWN_SERVER_ERROR)
"""Errors that are waited out; all other retriable ones have metadata asked for."""
_FATAL: Final = (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.CORRUPT_MESSAGE)


class Fetcher:
    """Of one consumer.  `fatal`: the error that its application gets, "" for none.
    `retry_ms`: when `send` has something to do that no answer will bring about."""

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
        """Of each request, what comes before its topics."""
        self._pending: dict[int, None] = {}
        """Brokers that owe an answer."""
        self.buffer: deque[Fetched] = deque()
        """What has come and is not given out."""

    # --------------------------------------------------------------------------- asking

    def send(self, now_ms: int) -> None:
        """Ask every broker that owes nothing for what is read there."""
        self.retry_ms = NEVER_MS
        pending, network = self._pending, self._network
        wanted: dict[int, list[Position]] = {}
        for position in self._positions.values():
            if position.state is not _FETCHING or position.is_buffered or position.will_be_revoked:
                continue
            node = position.leader
            if position.preferred_replica != NOBODY:
                node = self._nearest(position, now_ms)
            if node in pending:
                continue
            if position.fetch_at_ms > now_ms:
                self.retry_ms = min(self.retry_ms, position.fetch_at_ms)
            elif node == NOBODY:
                self._metadata.request_update()
            elif node in wanted:
                wanted[node].append(position)
            else:
                wanted[node] = [position]
        # What a broker sent before is given out first: it is asked for all that is read there.
        busy = [fetched.node for fetched in self.buffer]
        for node, positions in wanted.items():
            if node not in busy and network.is_ready(node, now_ms):
                self._ask(node, positions, now_ms)

    def _nearest(self, position: Position, now_ms: int) -> int:
        """The replica that the leader said to fetch from, or the leader again."""
        replica = position.preferred_replica
        view = self._metadata.topics.get(position.topic)
        if now_ms > position.preferred_until_ms:
            position.preferred_replica = NOBODY
        elif (
            replica not in self._metadata.brokers
            or view is None
            or position.index >= len(view.partitions)
            or replica in view.partitions[position.index].offline
        ):
            position.preferred_replica = NOBODY
            self._metadata.request_update()
        return position.leader if position.preferred_replica == NOBODY else replica

    def _ask(self, node: int, positions: list[Position], now_ms: int) -> None:
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
                _Asked(position.index, position.leader_epoch, offset, -1, -1, max_bytes)
            )
        body = _Request(*self._head, [*topics.values()], [], self._settings.client_rack)
        self._pending[node] = None
        self._network.send(
            node, _FETCH, body, now_ms, self._on_answer, context=context, version=version
        )

    # -------------------------------------------------------------------------- answers

    def _on_answer(self, asked: InFlightRequest, body: Any, failure: str, now_ms: int) -> None:
        node = asked.broker_id
        del self._pending[node]
        context: dict[Partition, tuple[Position, int]] = asked.context
        if failure:
            self._network.tell(now_ms, _FETCH, failure)
            for position, _ in context.values():
                position.preferred_replica = NOBODY
            return
        if body.error_code:
            self._network.tell(now_ms, _FETCH, error_of(body.error_code).name)
            self._metadata.request_update()
            for position, _ in context.values():
                position.fetch_at_ms = now_ms + ERROR_PAUSE_MS
            return
        for topic in body.responses:
            name = topic.topic or self._metadata.topic_name(topic.topic_id)
            for told in topic.partitions:
                wanted = context.get((name or "", told.partition_index))
                if wanted is not None:
                    self._take(*wanted, told, asked, now_ms)

    def _take(
        self, position: Position, offset: int, told: Any, asked: InFlightRequest, now_ms: int
    ) -> None:
        if told.error_code:
            self._refused(position, offset, told, error_of(told.error_code), now_ms)
            return
        if position.state is not _FETCHING or position.offset != offset:
            return  # it was moved while this was under way
        position.high_watermark = told.high_watermark
        position.last_stable_offset = told.last_stable_offset
        position.log_start_offset = told.log_start_offset
        if told.preferred_read_replica >= 0:
            until_ms = now_ms + self._settings.metadata_max_age_ms
            position.prefer(told.preferred_read_replica, until_ms)
        if not told.records:
            if asked.sent_ms == now_ms:
                position.fetch_at_ms = now_ms + 1  # neither the broker nor the link takes any time
            return
        try:
            segments = open_records(told, offset, self._is_committed, self._settings.check_crcs)
        except InvalidRecords as problem:
            self._network.tell(now_ms, _FETCH, problem.error.name, position.key)
            self.fatal = problem.error.name
            self._positions.need_care = True
            return
        if segments:
            position.is_buffered = True
            self.buffer.append(Fetched(position, asked.broker_id, segments))

    def _refused(
        self, position: Position, offset: int, told: Any, error: ErrorCode, now_ms: int
    ) -> None:
        """Kafka: FetchCollector.handleInitializeErrors."""
        self._network.tell(now_ms, _FETCH, error.name, position.key)
        self._positions.need_care = True
        metadata = self._metadata
        if error in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH):
            leader = told.current_leader
            metadata.told_leader(
                position.topic, position.index, leader.leader_id, leader.leader_epoch
            )
        if position.state is not _FETCHING:
            return
        position.fetch_at_ms = now_ms + ERROR_PAUSE_MS
        self._positions.move_to_end(position)
        if error is ErrorCode.OFFSET_OUT_OF_RANGE:
            if position.preferred_replica != NOBODY:
                position.preferred_replica = NOBODY
            elif offset == position.offset and self._settings.may_reset:
                position.reset()
            elif offset == position.offset:
                self.fatal = error.name
        elif error in _FATAL:
            self.fatal = error.name
        elif error not in _WITHOUT_METADATA:
            position.preferred_replica = NOBODY
            metadata.request_update()

    # ------------------------------------------------------------------------ giving out

    def collect(self, limit: int) -> list[tuple[Position, list[Record]]]:
        """Up to `limit` records for the application, by partition; positions are behind them."""
        found: list[tuple[Position, list[Record]]] = []
        buffer, positions = self.buffer, self._positions
        while buffer and limit:
            fetched = buffer[0]
            position = fetched.position
            if (
                positions.get(position.key) is not position
                or position.state is not _FETCHING
                or position.will_be_revoked
                or not fetched.is_next
            ):
                # Moved, or taken away, since it was asked for.
                buffer.popleft()
                position.is_buffered = False
                continue
            records = fetched.take(limit)
            limit -= len(records)
            if records:
                found.append((position, records))
            if fetched.is_empty:
                buffer.popleft()
                position.is_buffered = False
                positions.move_to_end(position)
        return found
