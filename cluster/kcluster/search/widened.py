"""What a search adds to the random faults of a scenario, by what its clients use.

Owns: moves of the leaders and replicas of its partitions, deaths and pauses of its clients, rules
on their requests and between its nodes, the moments inside brokers at which a fault may come.
Never: draws one of them (schedule.py, vary.py).  Kafka: no counterpart.

A broker's request to another node is lost or late in a way that no fault of a link brings about:
one API alone, or only its answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import structs

from kcluster.actions.admin import Reassign
from kcluster.actions.brokers import KillBrokers, PauseBrokers, StopBrokers
from kcluster.actions.leaders import MoveLeaderAction
from kcluster.actions.network import Isolate, Lose, Slow
from kcluster.actions.node_rules import AddNodeRule
from kcluster.actions.rules import AddRule
from kcluster.config.topology.model import Topology
from kcluster.events.rule_effects import Half
from kcluster.operations.conditions import MomentCondition
from kcluster.operations.moments import NthMoment
from kcluster.operations.targets import targets
from kcluster.operations.written import (
    APPEND,
    COMMIT_WRITTEN,
    GROUP_WRITTEN,
    MARKER_WRITTEN,
    SHARE_WRITTEN,
    TRANSACTION_WRITTEN,
)
from kcluster.protocol.names import (
    CLUSTER_METADATA_TOPIC,
    GROUP_METADATA_TOPIC,
    TRANSACTION_STATE_TOPIC,
)
from kcluster.scenario.language.model import WorkloadSpec
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.nemesis import FaultKind, Profile

MOVE_WEIGHT: Final = 2
OTHERS_PER_RULE: Final = 7
"""At least this many faults of the profile are drawn for each rule between nodes."""
OTHERS_PER_CLIENT: Final = 5
"""At least this many faults of the profile are drawn for each fault of a client."""
OTHERS_PER_CLIENT_RULE: Final = 4
OTHERS_PER_REASSIGNMENT: Final = 10
RULE_SHARE: Final = 0.4
"""The share of the matching requests of clients to which a rule applies."""
LATE_REQUEST_MS: Final = 700
LATE_MS: Final = 300
LATE_METADATA_MS: Final = 1_000
_ANY: Final = targets("any broker")
_CLIENT: Final = targets("any clients")
_OF_CLIENTS: Final = (
    FaultKind("kill", KillBrokers(_CLIENT), weight=2),
    FaultKind("pause", PauseBrokers(_CLIENT), weight=2),
    FaultKind("stop", StopBrokers(_CLIENT)),
)
_HEARTBEATS: Final = ("Heartbeat", "ConsumerGroupHeartbeat", "StreamsGroupHeartbeat")
_NETWORK: Final = (Isolate, Lose, Slow)


def movable_partitions(scenario: Scenario) -> Iterator[tuple[str, int]]:
    """The partitions of the topology's topics, and the first one of each internal topic that the
    workload uses."""
    for name, topic in scenario.topology.topics.items():
        for number in range(len(topic.assignment or ()) or topic.partitions):
            yield name, number
    if has_groups(scenario.workload):
        yield GROUP_METADATA_TOPIC, 0
    if has_transactions(scenario.workload):
        yield TRANSACTION_STATE_TOPIC, 0


def with_moves(profile: Profile, scenario: Scenario) -> Profile:
    """A profile whose moves of leaders are those that the scenario's partitions allow, with moves
    of replicas."""
    kinds = [kind for kind in profile.kinds if not isinstance(kind.action, MoveLeaderAction)]
    kinds += [
        FaultKind("move", MoveLeaderAction(partition, _ANY), MOVE_WEIGHT)
        for partition in movable_partitions(scenario)
    ]
    moved = structs.replace(profile, kinds=tuple(kinds))
    replicas = [FaultKind("reassign", one) for one in _reassignments(scenario.topology)]
    return _with_some(moved, replicas, OTHERS_PER_REASSIGNMENT) if replicas else moved


def _reassignments(topology: Topology) -> Iterator[Reassign]:
    """A move of each partition with several replicas to as many brokers, in any order."""
    for name, topic in topology.topics.items():
        assigned = topic.assignment or ((),) * topic.partitions
        for number, replicas in enumerate(assigned):
            count = len(replicas) or topic.replication_factor
            if 1 < count <= len(topology.brokers):
                yield Reassign((name, number), _ANY * count)


def with_clients(profile: Profile) -> Profile:
    """A profile in which also clients of the workload are killed, paused and stopped, as far as
    brokers are, with the bounds and durations of these."""
    kinds = {kind.verb: kind for kind in reversed(profile.kinds)}
    added = [
        structs.replace(own, only_if=kind.only_if, repair=kind.repair)
        for own in _OF_CLIENTS
        if (kind := kinds.get(own.verb)) is not None
    ]
    return _with_some(profile, added, OTHERS_PER_CLIENT) if added else profile


def with_client_rules(profile: Profile, workload: WorkloadSpec) -> Profile:
    """A profile with rules on clients' requests, if it has faults of the network at all."""
    rules = [FaultKind("rule", rule) for rule in client_rules(workload)]
    is_of_network = any(isinstance(kind.action, _NETWORK) for kind in profile.kinds)
    return _with_some(profile, rules, OTHERS_PER_CLIENT_RULE) if is_of_network else profile


def client_rules(workload: WorkloadSpec) -> Iterator[AddRule]:
    """The rules on clients' requests that may matter to these clients.  A delayed commit is not
    among them: it may undo a later one, on any cluster."""
    yield _lost_answers("Produce")
    yield AddRule(api=("Metadata",), delay_ms=LATE_METADATA_MS)
    if has_groups(workload):
        yield _late_requests(*_HEARTBEATS)
        yield _late_requests("JoinGroup", "SyncGroup", "LeaveGroup")
        yield _lost_answers(*_HEARTBEATS, "JoinGroup", "SyncGroup", "LeaveGroup")
        yield _lost_answers("OffsetCommit", "OffsetFetch")
    if has_transactions(workload):
        yield _lost_answers("InitProducerId", "EndTxn")
        yield _lost_answers("AddPartitionsToTxn", "AddOffsetsToTxn", "TxnOffsetCommit")
    if has_share_groups(workload):
        yield _lost_answers("ShareFetch", "ShareAcknowledge")
        yield _late_requests("ShareFetch", "ShareAcknowledge", "ShareGroupHeartbeat")


def _lost_answers(*apis: str) -> AddRule:
    return AddRule(api=apis, probability=RULE_SHARE, drop="reply", close="true")


def _late_requests(*apis: str) -> AddRule:
    late_ms = LATE_REQUEST_MS
    return AddRule(
        api=apis, probability=RULE_SHARE, delay_ms=late_ms, jitter_ms=2 * late_ms, of="request"
    )


def with_node_rules(profile: Profile, workload: WorkloadSpec) -> Profile:
    """A profile with rules between nodes, if it has faults of the network at all."""
    if not any(isinstance(kind.action, _NETWORK) for kind in profile.kinds):
        return profile
    rules = [FaultKind("node_rule", rule) for rule in node_rules(workload)]
    return _with_some(profile, rules, OTHERS_PER_RULE)


def _with_some(profile: Profile, some: Sequence[FaultKind], others_per: int) -> Profile:
    """A profile with more kinds of faults.  `others_per`: at least how many of its other faults are
    drawn for each of them."""
    total = sum(kind.weight for kind in profile.kinds)
    factor = -(-sum(kind.weight for kind in some) * others_per // total)
    kinds = [structs.replace(kind, weight=kind.weight * factor) for kind in profile.kinds]
    return structs.replace(profile, kinds=(*kinds, *some))


def node_rules(workload: WorkloadSpec) -> Iterator[AddNodeRule]:
    """The rules between nodes that may matter to these clients."""
    yield AddNodeRule(api=("AlterPartition",), sources=_ANY, drop=Half.REPLY)
    yield AddNodeRule(api=("AlterPartition",), sources=_ANY, delay_ms=LATE_MS, jitter_ms=LATE_MS)
    yield AddNodeRule(api=("BrokerHeartbeat",), sources=_ANY, drop=Half.REQUEST)
    yield AddNodeRule(sources=_ANY, topic=CLUSTER_METADATA_TOPIC, delay_ms=LATE_METADATA_MS)
    yield AddNodeRule(api=("Fetch",), sources=_ANY, destinations=_ANY, drop=Half.REPLY)
    if has_transactions(workload):
        yield AddNodeRule(api=("WriteTxnMarkers",), destinations=_ANY, drop=Half.REPLY)
        yield AddNodeRule(api=("WriteTxnMarkers",), destinations=_ANY, delay_ms=LATE_MS)
        yield AddNodeRule(api=("AddPartitionsToTxn",), sources=_ANY, drop=Half.REPLY)
        yield AddNodeRule(api=("AddPartitionsToTxn",), sources=_ANY, delay_ms=LATE_MS)
    if has_share_groups(workload):
        yield AddNodeRule(api=("WriteShareGroupState",), sources=_ANY, drop=Half.REPLY)
        yield AddNodeRule(api=("ReadShareGroupState",), sources=_ANY, delay_ms=LATE_MS)


def moments_inside(workload: WorkloadSpec) -> tuple[MomentCondition, ...]:
    """The moments inside brokers that these clients bring about."""
    kinds = [APPEND] if workload.producers or workload.processors else []
    if has_groups(workload):
        kinds += [COMMIT_WRITTEN, GROUP_WRITTEN]
    if has_transactions(workload):
        kinds += [TRANSACTION_WRITTEN, MARKER_WRITTEN]
    if has_share_groups(workload):
        kinds += [SHARE_WRITTEN]
    return tuple(MomentCondition(shown=kind, moment=NthMoment(1, kind)) for kind in kinds)


def has_groups(workload: WorkloadSpec) -> bool:
    """Whether a client is a member of a group."""
    return bool(workload.processors) or any(each.group for each in workload.consumers)


def has_transactions(workload: WorkloadSpec) -> bool:
    """Whether a client writes in transactions."""
    return bool(workload.processors) or any(each.transactions for each in workload.producers)


def has_share_groups(workload: WorkloadSpec) -> bool:
    """Whether a client is a member of a share group."""
    return any(each.share for each in workload.consumers)
