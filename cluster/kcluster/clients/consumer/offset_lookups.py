"""A consumer's lookups of offsets at the leaders, to reset and to validate its positions.

Owns: ListOffsets for positions that are reset, OffsetForLeaderEpoch for positions that are
validated.  Never: decides when (positions.py does), fetches committed offsets (commits.py).
Kafka: OffsetFetcher, OffsetFetcherUtils, OffsetsForLeaderEpochClient; KIP-320.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kcluster.clients.connections import ClientRequest, NetworkClient
from kcluster.clients.consumer.positions import FetchState, Position, Positions
from kcluster.clients.consumer.settings import EARLIEST, READ_COMMITTED, ConsumerSettings
from kcluster.clients.ledger import Partition
from kcluster.clients.metadata import NO_EPOCH, Metadata
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode, error_of
from kcluster.timers import NEVER_MS

EARLIEST_TIMESTAMP: Final = -2
LATEST_TIMESTAMP: Final = -1
LOG_TRUNCATION: Final = "LOG_TRUNCATION"
"""The ledger's name for LogTruncationException: a log was truncated below the position, and there
is no reset policy."""

_CONSUMER: Final = -1
_LIST_OFFSETS: Final = int(ApiKey.LIST_OFFSETS)
_OFFSET_FOR_LEADER_EPOCH: Final = int(ApiKey.OFFSET_FOR_LEADER_EPOCH)


class OffsetLookups:
    """The offset lookups of one consumer.  `fatal`: the error that poll() throws, "" for none.
    `retry_ms`: the time at which `run` must be called without a response; NEVER_MS for never."""

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

    def run(self, now_ms: int) -> None:
        """Send the requests that can be sent now."""
        self.retry_ms = NEVER_MS
        resets: dict[int, list[Position]] = {}
        checks: dict[int, list[Position]] = {}
        for position in self._positions.values():
            if position.state is FetchState.AWAIT_RESET:
                leader = self._metadata.leader(position.topic, position.index)
                self._add_if_sendable(resets, leader, position, now_ms)
            elif position.state is FetchState.AWAIT_VALIDATION:
                self._add_if_sendable(checks, position.leader, position, now_ms)
        for leader, group in resets.items():
            self._send_list_offsets(leader, group, now_ms)
        for leader, group in checks.items():
            self._send_epochs(leader, group, now_ms)

    def _add_if_sendable(
        self, request: dict[int, list[Position]], leader: int, position: Position, now_ms: int
    ) -> None:
        if position.retry_at_ms > now_ms:
            self.retry_ms = min(self.retry_ms, position.retry_at_ms)
        elif leader < 0:
            self._metadata.request_update()
        elif self._network.is_ready(leader, now_ms):
            request.setdefault(leader, []).append(position)

    def _fail(self, positions: Iterable[Position], now_ms: int) -> None:
        self._metadata.request_update()
        for position in positions:
            position.retry_at_ms = now_ms + self._settings.retry_backoff_ms

    # ----------------------------------------------------------------------------- resetting

    def _send_list_offsets(self, leader: int, positions: list[Position], now_ms: int) -> None:
        settings = self._settings
        is_earliest = settings.auto_offset_reset == EARLIEST
        entry = m.ListOffsetsRequest.ListOffsetsPartition
        topics: dict[str, m.ListOffsetsRequest.ListOffsetsTopic] = {}
        for position in positions:
            position.retry_at_ms = now_ms + settings.request_timeout_ms
            topic = topics.get(position.topic)
            if topic is None:
                topic = m.ListOffsetsRequest.ListOffsetsTopic(position.topic)
                topics[position.topic] = topic
            topic.partitions.append(
                entry(
                    position.index,
                    self._metadata.leader_epoch(position.topic, position.index),
                    EARLIEST_TIMESTAMP if is_earliest else LATEST_TIMESTAMP,
                )
            )
        body = m.ListOffsetsRequest(
            _CONSUMER,
            int(settings.isolation_level == READ_COMMITTED),
            list(topics.values()),
            settings.request_timeout_ms,
        )
        context = {position.key: position for position in positions}
        self._network.send(leader, _LIST_OFFSETS, body, now_ms, self._on_offsets, context=context)

    def _on_offsets(self, request: ClientRequest, now_ms: int) -> None:
        waiting: dict[Partition, Position] = request.context
        if request.failure:
            self._fail(waiting.values(), now_ms)
            return
        for topic in request.response.topics:
            for partition_response in topic.partitions:
                key = (topic.name, partition_response.partition_index)
                position = waiting.get(key)
                if position is None or position.state is not FetchState.AWAIT_RESET:
                    continue
                if partition_response.error_code:
                    self._handle_error(
                        _LIST_OFFSETS, position, error_of(partition_response.error_code), now_ms
                    )
                elif partition_response.offset >= 0:
                    # The position is set without an epoch, because an offset from the leader itself
                    # needs no validation.
                    leader = self._metadata.leader(*key), self._metadata.leader_epoch(*key)
                    position.seek(partition_response.offset, NO_EPOCH, *leader)

    def _handle_error(
        self, api_key: int, position: Position, error: ErrorCode, now_ms: int
    ) -> None:
        self._network.record_error(now_ms, api_key, error.name, position.key)
        if error is ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            self.fatal = error.name
        self._fail((position,), now_ms)

    # ---------------------------------------------------------------------------- validation

    def _send_epochs(self, leader: int, positions: list[Position], now_ms: int) -> None:
        if self._network.version(leader, _OFFSET_FOR_LEADER_EPOCH) < 3:
            # Before 2.3, brokers require CLUSTER_ACTION for this API.
            for position in positions:
                position.validated()
            return
        entry = m.OffsetForLeaderEpochRequest.OffsetForLeaderPartition
        topics: dict[str, m.OffsetForLeaderEpochRequest.OffsetForLeaderTopic] = {}
        for position in positions:
            position.retry_at_ms = now_ms + self._settings.request_timeout_ms
            topic = topics.get(position.topic)
            if topic is None:
                topic = m.OffsetForLeaderEpochRequest.OffsetForLeaderTopic(position.topic)
                topics[position.topic] = topic
            topic.partitions.append(
                entry(position.index, position.leader_epoch, position.offset_epoch)
            )
        body = m.OffsetForLeaderEpochRequest(_CONSUMER, list(topics.values()))
        context = {
            x.key: (x, (x.offset, x.offset_epoch, x.leader, x.leader_epoch)) for x in positions
        }
        self._network.send(
            leader, _OFFSET_FOR_LEADER_EPOCH, body, now_ms, self._on_epochs, context=context
        )

    def _on_epochs(self, request: ClientRequest, now_ms: int) -> None:
        waiting: dict[Partition, tuple[Position, tuple[int, ...]]] = request.context
        if request.failure:
            self._fail((position for position, _ in waiting.values()), now_ms)
            return
        for topic in request.response.topics:
            for partition_response in topic.partitions:
                position, sent_position = waiting.get(
                    (topic.topic, partition_response.partition), (None, ())
                )
                if position is None or position.state is not FetchState.AWAIT_VALIDATION:
                    continue
                if sent_position != (
                    position.offset,
                    position.offset_epoch,
                    position.leader,
                    position.leader_epoch,
                ):
                    continue
                if partition_response.error_code:
                    error = error_of(partition_response.error_code)
                    self._handle_error(_OFFSET_FOR_LEADER_EPOCH, position, error, now_ms)
                else:
                    self._validate(
                        position,
                        partition_response.end_offset,
                        partition_response.leader_epoch,
                        now_ms,
                    )

    def _validate(self, position: Position, end_offset: int, epoch: int, now_ms: int) -> None:
        if end_offset >= position.offset and epoch >= 0:
            position.validated()
            return
        if not self._settings.may_reset:
            self._network.record_error(
                now_ms, _OFFSET_FOR_LEADER_EPOCH, LOG_TRUNCATION, position.key
            )
            self.fatal = LOG_TRUNCATION
        elif end_offset < 0 or epoch < 0:
            position.reset()
        else:
            # Kafka only logs this error; poll() does not throw.
            position.truncated(end_offset, epoch)
