"""Leaders chosen on request or by the clock, not because a broker came or went.

Owns: ElectLeaders (API 43, v0-2), the input MoveLeader, and two periodic looks: at partitions not
led by their preferred leader, and at leaderless ones whose topic allows an unclean election.
Never: decides who may lead (elections.py).
Kafka: ReplicationControlManager.electLeaders, maybeBalancePartitionLeaders,
maybeElectUncleanLeaders (KIP-183, KIP-460).

As in Kafka with KRaft, leader.imbalance.per.broker.percentage plays no part: every partition whose
preferred leader is in the ISR gets it back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kcluster.contract import MoveLeader
from kcluster.controller import elections
from kcluster.controller.elections import ElectionMode
from kcluster.controller.leadership import record_of
from kcluster.controller.outcome import ApiError
from kcluster.controller.registry import answers
from kcluster.events.reasons import PeriodicCheck, Requested
from kcluster.metadata.image import NO_LEADER, MetadataRecord
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from kcluster.controller.node import ControllerNode

_MODES: Final = {0: ElectionMode.PREFERRED, 1: ElectionMode.UNCLEAN}
"""Kafka's ElectionType codes."""

MAX_ELECTIONS_PER_LOOK: Final = 1000
"""Kafka: QuorumController.MAX_ELECTIONS_PER_IMBALANCE."""

_WORDS: Final = {
    ErrorCode.ELECTION_NOT_NEEDED: "Leader election not needed for topic partition.",
    ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE: "The preferred leader was not available.",
    ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE: "Eligible topic partition leaders are not available.",
}
"""As Kafka's broker words them."""


# -------------------------------------------------------------------------------- on request


@answers("ElectLeadersRequest")
def elect_leaders(node: ControllerNode, request: Any, _now_ms: int) -> Any:
    """Behaviour: null partitions mean all, and then partitions that need no election are left out
    of the answer.  Versions: v1 unclean elections (KIP-460)."""
    mode = _MODES.get(request.election_type)
    everything = request.topic_partitions is None
    wanted = (
        [(name, range(len(topic.partitions))) for name, topic in sorted(node.image.topics.items())]
        if everything
        else [(topic.topic, topic.partitions) for topic in request.topic_partitions]
    )
    response = m.ElectLeadersResponse(
        error_code=ErrorCode.INVALID_REQUEST if mode is None else ErrorCode.NONE
    )
    unknown = ApiError(ErrorCode.INVALID_REQUEST, f"Unknown election type {request.election_type}")
    records: dict[tuple[str, int], MetadataRecord] = {}
    for topic, partitions in wanted:
        results = m.ElectLeadersResponse.ReplicaElectionResult(topic=topic)
        response.replica_election_results.append(results)
        for partition in partitions:
            error = unknown if mode is None else _elect_one(node, topic, partition, mode, records)
            if everything and error.code is ErrorCode.ELECTION_NOT_NEEDED:
                continue
            results.partition_result.append(
                m.ElectLeadersResponse.PartitionResult(
                    partition_id=partition, error_code=error.code, error_message=error.message
                )
            )
    node.commit(list(records.values()))
    return response


def _elect_one(
    node: ControllerNode,
    topic: str,
    partition_id: int,
    mode: ElectionMode,
    records: dict[tuple[str, int], MetadataRecord],
) -> ApiError:
    if topic not in node.image.topics:
        return ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {topic}")
    partition = node.image.partition(topic, partition_id)
    if partition is None:
        return ApiError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {topic}-{partition_id}"
        )
    preferred = mode is ElectionMode.PREFERRED
    if partition.leader == partition.replicas[0] if preferred else partition.leader != NO_LEADER:
        return _plain(ErrorCode.ELECTION_NOT_NEEDED)
    if (topic, partition_id) in records:
        return ApiError(ErrorCode.NONE)  # named twice in one request
    election = elections.elect(
        partition,
        node.is_active,
        node.min_isr(topic),
        mode,
        elr_enabled=node.elr_enabled,
    )
    if election is None:
        return _plain(
            ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
            if preferred
            else ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
        )
    reason = Requested(mode.value)
    records[topic, partition_id] = record_of(node, topic, partition, election, reason, None)
    return ApiError(ErrorCode.NONE)


def _plain(code: ErrorCode) -> ApiError:
    return ApiError(code, _WORDS[code])


def move(node: ControllerNode, event: MoveLeader) -> None:
    """Nothing happens unless `event.leader` is an active member of the ISR and not yet leader."""
    partition = node.image.partition(event.topic, event.partition)
    if partition is None:
        return
    election = elections.move_leader(partition, event.leader, node.is_active)
    if election is not None:
        node.commit([record_of(node, event.topic, partition, election, Requested(), None)])


# ------------------------------------------------------------------------------ by the clock


def start(node: ControllerNode, now_ms: int) -> None:
    """Set both periodic looks."""
    config = node.config
    if config.auto_leader_rebalance_enable:
        _every(node, now_ms, _interval_ms(node), "preferred leaders", ElectionMode.PREFERRED)
    _every(
        node, now_ms, config.unclean_leader_election_interval_ms, "unclean elections",
        ElectionMode.UNCLEAN,
    )  # fmt: skip


def _interval_ms(node: ControllerNode) -> int:
    return node.config.leader_imbalance_check_interval_seconds * 1000


def _every(
    node: ControllerNode, now_ms: int, interval_ms: int, key: str, mode: ElectionMode
) -> None:
    def look(at_ms: int) -> None:
        full = _look(node, mode)
        _every(node, at_ms, 0 if full else interval_ms, key, mode)

    node.timers.set(key, now_ms + interval_ms, look)


def _look(node: ControllerNode, mode: ElectionMode) -> bool:
    """Elect where it helps; True when there may be more than one look does."""
    preferred = mode is ElectionMode.PREFERRED
    reason = PeriodicCheck(mode.value)
    records: list[MetadataRecord] = []
    for topic_id, partition_id in list(
        node.index.imbalanced if preferred else node.index.leaderless
    ):
        if len(records) >= MAX_ELECTIONS_PER_LOOK:
            break
        topic = node.image.topic_names[topic_id]
        if not preferred and not node.unclean_allowed(topic):
            continue
        partition = node.image.topics[topic].partitions[partition_id]
        election = elections.elect(
            partition,
            node.is_active,
            node.min_isr(topic),
            mode,
            elr_enabled=node.elr_enabled,
        )
        if election is not None:
            records.append(record_of(node, topic, partition, election, reason, None))
    node.commit(records)
    return len(records) >= MAX_ELECTIONS_PER_LOOK
