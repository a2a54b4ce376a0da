"""Elections on request or by the clock, apart from elections that follow a broker's arrival or
departure.

Owns: ElectLeaders (API 43, v0-2), the input MoveLeader, and two periodic checks: of partitions not
led by their preferred leader, and of leaderless ones whose topic allows an unclean election.
Never: decides who may lead (elections.py).
Kafka: ReplicationControlManager.electLeaders, maybeBalancePartitionLeaders,
maybeElectUncleanLeaders (KIP-183, KIP-460).

As in Kafka with KRaft, leader.imbalance.per.broker.percentage is ignored: every partition whose
preferred leader is in the ISR gets it back.
"""

from __future__ import annotations

from typing import Final

from kcluster.contract import MoveLeader
from kcluster.controller.outcome import ApiError
from kcluster.controller.partitions import elections
from kcluster.controller.partitions.elections import ElectionMode
from kcluster.controller.partitions.leadership import Change
from kcluster.controller.partitions.partitions import Partitions
from kcluster.controller.ports import MetadataPort
from kcluster.controller.registry import Handler
from kcluster.events.reasons import AnyReason, PeriodicCheck, Requested
from kcluster.metadata.records import (
    NO_LEADER,
    MetadataRecord,
    PartitionRecord,
    PartitionRegistration,
)
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode

_MODES: Final = {0: ElectionMode.PREFERRED, 1: ElectionMode.UNCLEAN}
"""The election mode for each of Kafka's ElectionType codes."""

MAX_ELECTIONS_PER_CHECK: Final = 1000
"""Kafka: QuorumController.MAX_ELECTIONS_PER_IMBALANCE."""

_WORDS: Final = {
    ErrorCode.ELECTION_NOT_NEEDED: "Leader election not needed for topic partition.",
    ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE: "The preferred leader was not available.",
    ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE: "Eligible topic partition leaders are not available.",
}
"""Kafka's messages by error code."""


class LeaderElections:
    """Elections on request and by the clock."""

    def __init__(self, metadata: MetadataPort, partitions: Partitions) -> None:
        self._metadata = metadata
        self._partitions = partitions

    def handlers(self) -> dict[str, Handler]:
        """The handlers of this part; see registry.py."""
        return {"ElectLeadersRequest": self.elect_leaders}

    # ---------------------------------------------------------------------------- on request

    def elect_leaders(self, request: m.ElectLeadersRequest, _now_ms: int) -> m.ElectLeadersResponse:
        """Elect leaders on request.  Null partitions mean all, and then partitions that need no
        election are left out of the answer.  Versions: v1 unclean elections (KIP-460)."""
        mode = _MODES.get(request.election_type)
        everything = request.topic_partitions is None
        topics = self._metadata.image.topics
        wanted = (
            [(name, range(len(topic.partitions))) for name, topic in sorted(topics.items())]
            if request.topic_partitions is None
            else [(topic.topic, topic.partitions) for topic in request.topic_partitions]
        )
        response = m.ElectLeadersResponse(
            error_code=ErrorCode.INVALID_REQUEST if mode is None else ErrorCode.NONE
        )
        text = f"Unknown election type {request.election_type}"
        error = ApiError(ErrorCode.INVALID_REQUEST, text)
        records: dict[tuple[str, int], MetadataRecord] = {}
        for topic, partitions in wanted:
            results = m.ElectLeadersResponse.ReplicaElectionResult(topic=topic)
            response.replica_election_results.append(results)
            for partition in partitions:
                if mode is not None:
                    error = self._elect_one(topic, partition, mode, records)
                if everything and error.code is ErrorCode.ELECTION_NOT_NEEDED:
                    continue
                results.partition_result.append(
                    m.ElectLeadersResponse.PartitionResult(
                        partition_id=partition, error_code=error.code, error_message=error.message
                    )
                )
        self._metadata.commit(list(records.values()))
        return response

    def _elect_one(
        self,
        topic: str,
        partition_id: int,
        mode: ElectionMode,
        records: dict[tuple[str, int], MetadataRecord],
    ) -> ApiError:
        image = self._metadata.image
        if topic not in image.topics:
            return ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {topic}")
        partition = image.partition(topic, partition_id)
        if partition is None:
            text = f"No such partition as {topic}-{partition_id}"
            return ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
        preferred = mode is ElectionMode.PREFERRED
        needed = partition.leader != partition.replicas[0]
        if not preferred:
            needed = partition.leader == NO_LEADER
        if not needed:
            return _plain(ErrorCode.ELECTION_NOT_NEEDED)
        if (topic, partition_id) in records:
            return ApiError(ErrorCode.NONE)  # an earlier row of this request elected the leader
        record = self._elect(topic, partition, mode, Requested(mode.value))
        if record is None:
            return _plain(
                ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
                if preferred
                else ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
            )
        records[topic, partition_id] = record
        return ApiError(ErrorCode.NONE)

    def _elect(
        self, topic: str, partition: PartitionRegistration, mode: ElectionMode, reason: AnyReason
    ) -> PartitionRecord | None:
        """The record of an election; None when it changes nothing."""
        election = self._partitions.elect(topic, partition, mode)
        if election is None:
            return None
        return self._partitions.record_of(Change(topic, partition, election, reason, None))

    def move(self, request: MoveLeader) -> None:
        """Make `asked.leader` the leader if it is an active member of the ISR and not yet the
        leader; otherwise do nothing."""
        image = self._metadata.image
        partition = image.partition(request.topic, request.partition)
        if partition is None:
            return
        election = elections.move_leader(partition, request.leader, image.is_active)
        if election is not None:
            change = Change(request.topic, partition, election, Requested(), None)
            self._metadata.commit([self._partitions.record_of(change)])

    # -------------------------------------------------------------------------- by the clock

    def start(self, now_ms: int) -> None:
        """Set both periodic checks."""
        config = self._metadata.config
        if config.auto_leader_rebalance_enable:
            interval_ms = config.leader_imbalance_check_interval_seconds * 1000
            self._every(now_ms, interval_ms, "preferred leaders", ElectionMode.PREFERRED)
        interval_ms = config.unclean_leader_election_interval_ms
        self._every(now_ms, interval_ms, "unclean elections", ElectionMode.UNCLEAN)

    def _every(self, now_ms: int, interval_ms: int, key: str, mode: ElectionMode) -> None:
        def check(at_ms: int) -> None:
            may_be_more = self._check(mode)
            next_ms = at_ms if may_be_more else at_ms + interval_ms
            self._metadata.timers.set(key, next_ms, check)

        self._metadata.timers.set(key, now_ms + interval_ms, check)

    def _check(self, mode: ElectionMode) -> bool:
        """Elect leaders where an election helps; True if more partitions may need an election than
        one check may do."""
        preferred = mode is ElectionMode.PREFERRED
        image, index = self._metadata.image, self._partitions.index
        records: list[MetadataRecord] = []
        for topic_id, partition_id in list(index.imbalanced if preferred else index.leaderless):
            if len(records) >= MAX_ELECTIONS_PER_CHECK:
                break
            topic = image.topic_names[topic_id]
            if not preferred and not self._partitions.unclean_allowed(topic):
                continue
            partition = image.topics[topic].partitions[partition_id]
            record = self._elect(topic, partition, mode, PeriodicCheck(mode.value))
            if record is not None:
                records.append(record)
        self._metadata.commit(records)
        return len(records) >= MAX_ELECTIONS_PER_CHECK


def _plain(code: ErrorCode) -> ApiError:
    return ApiError(code, _WORDS[code])
