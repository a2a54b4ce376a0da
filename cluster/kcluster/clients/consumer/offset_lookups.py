"""A consumer asks leaders where a log begins and ends, and whether it was cut off.

Owns: ListOffsets for positions that are reset, OffsetForLeaderEpoch for those that are validated.
Never: decides when (positions.py does), asks for committed offsets (commits.py).
Kafka: OffsetFetcher, OffsetFetcherUtils, OffsetsForLeaderEpochClient; KIP-320.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from kcluster.clients.connections import InFlightRequest, NetworkClient
from kcluster.clients.consumer.positions import Position, Positions, State
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
"""What the Java client raises when a log was cut off and there is no reset policy."""

_CONSUMER: Final = -1
_LIST_OFFSETS: Final = int(ApiKey.LIST_OFFSETS)
_OFFSET_FOR_LEADER_EPOCH: Final = int(ApiKey.OFFSET_FOR_LEADER_EPOCH)


class OffsetLookups:
    """Of one consumer.  `fatal`: the error that its application gets, "" for none.
    `retry_ms`: when `work` has something to do again; NEVER_MS if only an answer changes that."""

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

    def work(self, now_ms: int) -> None:
        """Ask what there is to ask now."""
        self.retry_ms = NEVER_MS
        resets: dict[int, list[Position]] = {}
        checks: dict[int, list[Position]] = {}
        for position in self._positions.values():
            if position.state is State.AWAIT_RESET:
                leader = self._metadata.leader(position.topic, position.index)
                self._sort(resets, leader, position, now_ms)
            elif position.state is State.AWAIT_VALIDATION:
                self._sort(checks, position.leader, position, now_ms)
        for leader, group in resets.items():
            self._ask_offsets(leader, group, now_ms)
        for leader, group in checks.items():
            self._ask_epochs(leader, group, now_ms)

    def _sort(
        self, asked: dict[int, list[Position]], leader: int, position: Position, now_ms: int
    ) -> None:
        if position.retry_at_ms > now_ms:
            self.retry_ms = min(self.retry_ms, position.retry_at_ms)
        elif leader < 0:
            self._metadata.request_update()
        elif self._network.is_ready(leader, now_ms):
            asked.setdefault(leader, []).append(position)

    def _fail(self, positions: Iterable[Position], now_ms: int) -> None:
        self._metadata.request_update()
        for position in positions:
            position.retry_at_ms = now_ms + self._settings.retry_backoff_ms

    # ------------------------------------------------------------------------ where it begins

    def _ask_offsets(self, leader: int, positions: list[Position], now_ms: int) -> None:
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

    def _on_offsets(self, asked: InFlightRequest, body: Any, failure: str, now_ms: int) -> None:
        waiting: dict[Partition, Position] = asked.context
        if failure:
            self._network.tell(now_ms, _LIST_OFFSETS, failure)
            self._fail(waiting.values(), now_ms)
            return
        for topic in body.topics:
            for told in topic.partitions:
                key = (topic.name, told.partition_index)
                position = waiting.get(key)
                if position is None or position.state is not State.AWAIT_RESET:
                    continue
                if told.error_code:
                    self._refused(_LIST_OFFSETS, position, error_of(told.error_code), now_ms)
                elif told.offset >= 0:
                    # Without an epoch: what was just told needs no validation.
                    leader = self._metadata.leader(*key), self._metadata.leader_epoch(*key)
                    position.seek(told.offset, NO_EPOCH, *leader)

    def _refused(self, api_key: int, position: Position, error: ErrorCode, now_ms: int) -> None:
        self._network.tell(now_ms, api_key, error.name, position.key)
        if error is ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            self.fatal = error.name
        self._fail((position,), now_ms)

    # -------------------------------------------------------------------- whether it was cut off

    def _ask_epochs(self, leader: int, positions: list[Position], now_ms: int) -> None:
        if self._network.version(leader, _OFFSET_FOR_LEADER_EPOCH) < 3:
            # Before 2.3 a broker asks more rights for this than for reading.
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

    def _on_epochs(self, asked: InFlightRequest, body: Any, failure: str, now_ms: int) -> None:
        waiting: dict[Partition, tuple[Position, tuple[int, ...]]] = asked.context
        if failure:
            self._network.tell(now_ms, _OFFSET_FOR_LEADER_EPOCH, failure)
            self._fail((position for position, _ in waiting.values()), now_ms)
            return
        for topic in body.topics:
            for told in topic.partitions:
                position, stood = waiting.get((topic.topic, told.partition), (None, ()))
                if position is None or position.state is not State.AWAIT_VALIDATION:
                    continue
                if stood != (
                    position.offset,
                    position.offset_epoch,
                    position.leader,
                    position.leader_epoch,
                ):
                    continue
                if told.error_code:
                    error = error_of(told.error_code)
                    self._refused(_OFFSET_FOR_LEADER_EPOCH, position, error, now_ms)
                else:
                    self._validate(position, told.end_offset, told.leader_epoch, now_ms)

    def _validate(self, position: Position, end_offset: int, epoch: int, now_ms: int) -> None:
        if end_offset >= position.offset and epoch >= 0:
            position.validated()
            return
        if not self._settings.may_reset:
            self._network.tell(now_ms, _OFFSET_FOR_LEADER_EPOCH, LOG_TRUNCATION, position.key)
            self.fatal = LOG_TRUNCATION
        elif end_offset < 0 or epoch < 0:
            position.reset()
        else:
            # Kafka writes a line into its log; no error reaches the application.
            position.truncated(end_offset, epoch)
