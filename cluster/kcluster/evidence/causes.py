"""The causes of anomalies as values: settings of topics and producers, and events.

Owns: the enumeration with its meanings, the causes that an event stands for, and the causes of
findings about sends.  Never: finds the
causes of an anomaly (checks/ does).  Kafka: the names of its configs and metrics, where there is
one.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Final

from kcluster.contract import Event
from kcluster.deaths import DeathKind
from kcluster.events.brokers import (
    BrokerDown,
    BrokerFenced,
    BrokerPaused,
    ControlledShutdown,
    ControllerDown,
    DiskFull,
    DiskReplaced,
    RecordsLost,
)
from kcluster.events.network import (
    LinkCut,
    NetworkCut,
    NetworkShaped,
    NodeRuleAdded,
    NodeRuleHit,
    RuleAdded,
    RuleHit,
)
from kcluster.events.partitions import (
    IsrShrunk,
    LeaderChange,
    LeaderElected,
    LogTruncated,
    PartitionOffline,
    ReassignmentEvent,
)
from kcluster.events.reasons import (
    ElectionKind,
    ReassignmentDone,
    ReassignmentReverted,
    Requested,
    ShuttingDown,
)


class Cause(StrEnum):
    """The cause of an anomaly, by its name in `checks: {causes: ...}` of scenario files."""

    UNCLEAN_ENABLED = "unclean.leader.election.enable=true"
    MIN_INSYNC_ONE = "min.insync.replicas=1"
    ACKS_0 = "acks=0"
    ACKS_1 = "acks=1"
    NOT_IDEMPOTENT = "enable.idempotence=false"
    LEADER_ELECTION = "leader-election"
    UNCLEAN_ELECTION = "unclean-election"
    LAST_KNOWN_LEADER = "last-known-leader-election"
    REQUESTED_ELECTION = "requested-election"
    PARTITION_OFFLINE = "partition-offline"
    ISR_SHRINK = "isr-shrink"
    TRUNCATION = "truncation"
    TRUNCATION_BELOW_HIGH_WATERMARK = "truncation-below-high-watermark"
    REASSIGNMENT = "reassignment"
    CONTROLLED_SHUTDOWN = "controlled-shutdown"
    BROKER_CRASH = "broker-crash"
    POWER_LOSS = "power-loss"
    DISK_LOSS = "disk-loss"
    DISK_FULL = "disk-full"
    BROKER_PAUSE = "broker-pause"
    BROKER_FENCED = "broker-fenced"
    CONTROLLER_DOWN = "controller-down"
    NETWORK_PARTITION = "network-partition"
    SLOW_NETWORK = "slow-network"
    MESSAGE_LOSS = "message-loss"
    SLOW_DISK = "slow-disk"
    FAULT_RULE = "fault-rule"
    LOST_RESPONSE = "lost-response"
    EARLY_COMMIT = "early-commit"
    UNVERIFIED = "transaction.partition.verification.enable=false"
    BEFORE_KIP_101 = "before KIP-101"
    TRANSACTIONS_V1 = "transactions-v1"
    EPOCH_BUMP = "producer-epoch-bump"
    SHARE_RESET = "share.auto.offset.reset=latest"
    DELIVERY_LIMIT = "group.share.delivery.count.limit"
    TASKS_SENT_ONCE = "streams-tasks-sent-once"
    DEPOSED_COORDINATOR = "deposed-coordinator"
    MADE_CLASSIC = "group-made-classic"
    TOO_FEW_BROKERS = "too-few-brokers"
    REMOVED_IN_ELR = "removed-replica-in-elr"
    ELR_CLEARED = "elr-cleared"
    OFFSETS_RESET = "offsets-reset"
    GROUP_DELETED = "group-deleted"
    RECREATED = "recreated-topic"
    OVERTAKEN = "overtaken-request"
    REVIVED = "revived-records"


MEANINGS: Final[dict[Cause, str]] = {
    Cause.UNCLEAN_ENABLED: "only this setting of the topic allowed the election",
    Cause.MIN_INSYNC_ONE: "the leader acked an acks=all write alone, as the ISR was down to it",
    Cause.ACKS_0: "the producer did not wait for an ack",
    Cause.ACKS_1: "the producer waited for the leader's ack alone",
    Cause.NOT_IDEMPOTENT: "the leader could not recognise the producer's retry",
    Cause.LEADER_ELECTION: "another leader was elected, clean or unclean",
    Cause.UNCLEAN_ELECTION: "a replica that was out of sync was elected",
    Cause.LAST_KNOWN_LEADER: "ISR and ELR were empty; the last known leader was elected",
    Cause.REQUESTED_ELECTION: "an operator requested the election",
    Cause.PARTITION_OFFLINE: "the partition was left without a leader",
    Cause.ISR_SHRINK: "a replica left the ISR",
    Cause.TRUNCATION: "a follower truncated its log to match its leader's",
    Cause.TRUNCATION_BELOW_HIGH_WATERMARK: "a follower truncated records that were committed",
    Cause.REASSIGNMENT: "replicas of the partition were reassigned",
    Cause.CONTROLLED_SHUTDOWN: "a broker shut down cleanly and moved its leaders away",
    Cause.BROKER_CRASH: "a broker's process was killed; what it had written survived",
    Cause.POWER_LOSS: "a broker lost power, and with it unflushed records",
    Cause.DISK_LOSS: "a broker lost its disk",
    Cause.DISK_FULL: "a broker halted because its disk was full",
    Cause.BROKER_PAUSE: "a broker's process was paused",
    Cause.BROKER_FENCED: "the controller fenced a broker",
    Cause.CONTROLLER_DOWN: "the active controller's process ended",
    Cause.NETWORK_PARTITION: "links between nodes were cut",
    Cause.SLOW_NETWORK: "links had added latency or a bandwidth limit",
    Cause.MESSAGE_LOSS: "links lost messages",
    Cause.SLOW_DISK: "a broker's disk was slow",
    Cause.FAULT_RULE: "a fault rule applied to a request",
    Cause.LOST_RESPONSE: "a broker appended a batch, and its producer did not get the ack",
    Cause.EARLY_COMMIT: "a group committed an offset beyond a record that nobody had read",
    Cause.UNVERIFIED: "leaders appended a batch without asking its coordinator for the transaction",
    Cause.BEFORE_KIP_101: "followers truncated to their own high watermarks",
    Cause.TRANSACTIONS_V1: "the client's epoch was the same in one transaction and the next",
    Cause.EPOCH_BUMP: "a producer sent a batch again in a new epoch, as if it were another batch",
    Cause.SHARE_RESET: "a share group had stored nothing, and began at the end of the log again",
    Cause.DELIVERY_LIMIT: "a record was delivered as often as it may be; answers with it were lost",
    Cause.TASKS_SENT_ONCE: "the answer with a streams member's tasks was lost; it is not repeated",
    Cause.DEPOSED_COORDINATOR: "a group's coordinator did not know of its successor, and answered",
    Cause.MADE_CLASSIC: "a classic group began with the target, not with what members still had",
    Cause.TOO_FEW_BROKERS: "an internal topic was not created: it needs more replicas than brokers",
    Cause.REMOVED_IN_ELR: "the ELR had only replicas that a reassignment had removed",
    Cause.ELR_CLEARED: "a change of min.insync.replicas cleared the ELR, with no replica in sync",
    Cause.OFFSETS_RESET: "an administrator gave a group other offsets",
    Cause.GROUP_DELETED: "an administrator deleted a group, and its offsets with it",
    Cause.RECREATED: "a client used a deleted topic after another one had got its name",
    Cause.OVERTAKEN: "a request arrived after the client's next one, which had a new connection",
    Cause.REVIVED: "a leader came back before it had truncated what no other replica had, and led",
}

_DEATHS: Final = {
    DeathKind.CLEAN: Cause.CONTROLLED_SHUTDOWN,
    DeathKind.KILL: Cause.BROKER_CRASH,
    DeathKind.POWER: Cause.POWER_LOSS,
    DeathKind.WIPE: Cause.DISK_LOSS,
}
_BY_TYPE: Final[tuple[tuple[type[Event], Cause], ...]] = (
    (BrokerFenced, Cause.BROKER_FENCED),
    (BrokerPaused, Cause.BROKER_PAUSE),
    (ControlledShutdown, Cause.CONTROLLED_SHUTDOWN),
    (ControllerDown, Cause.CONTROLLER_DOWN),
    (DiskFull, Cause.DISK_FULL),
    (DiskReplaced, Cause.DISK_LOSS),
    (RecordsLost, Cause.POWER_LOSS),
    (LinkCut, Cause.NETWORK_PARTITION),
    (NetworkCut, Cause.NETWORK_PARTITION),
    (RuleAdded, Cause.FAULT_RULE),
    (RuleHit, Cause.FAULT_RULE),
    (NodeRuleAdded, Cause.FAULT_RULE),
    (NodeRuleHit, Cause.FAULT_RULE),
    (IsrShrunk, Cause.ISR_SHRINK),
    (ReassignmentEvent, Cause.REASSIGNMENT),
)


def causes_of(event: Event) -> tuple[Cause, ...]:
    """The causes that an event in the chain of an anomaly stands for; none for most events."""
    return tuple(_causes_of(event))


def _causes_of(event: Event) -> Iterator[Cause]:
    match event:
        case LeaderChange():
            yield from _of_leader_change(event)
        case LogTruncated():
            yield Cause.TRUNCATION
            if event.is_below_high_watermark:
                yield Cause.TRUNCATION_BELOW_HIGH_WATERMARK
        case BrokerDown(how=how):
            yield _DEATHS[how]
        case NetworkShaped(undone=False):
            yield from _of_shape(event)
        case _:
            yield from (cause for kind, cause in _BY_TYPE if isinstance(event, kind))


def _of_leader_change(event: LeaderChange) -> Iterator[Cause]:
    match event:
        case PartitionOffline():
            yield Cause.PARTITION_OFFLINE
        case LeaderElected(election=ElectionKind.LAST_KNOWN_LEADER):
            yield from (Cause.LEADER_ELECTION, Cause.LAST_KNOWN_LEADER)
        case LeaderElected(clean=clean):
            yield Cause.LEADER_ELECTION
            if not clean:
                yield Cause.UNCLEAN_ELECTION
    match event.reason:
        case Requested():
            yield Cause.REQUESTED_ELECTION
        case ShuttingDown():
            yield Cause.CONTROLLED_SHUTDOWN
        case ReassignmentDone() | ReassignmentReverted():
            yield Cause.REASSIGNMENT


def _of_shape(event: NetworkShaped) -> Iterator[Cause]:
    if event.of_disk:
        yield Cause.SLOW_DISK
    elif event.latency_us or event.jitter_us or event.bytes_per_s:
        yield Cause.SLOW_NETWORK
    if event.loss:
        yield Cause.MESSAGE_LOSS


class Unexplained(StrEnum):
    """The reason why the cause of a finding is not known."""

    NO_ERROR = "no error was reported"
    NEVER_APPENDED = "no broker has appended it"
    APPENDS_NOT_SEEN = "the brokers' appends were not seen"
    NO_LATER_LEADER = "no later leader is known"


SendCause = LeaderChange | RuleHit | Unexplained | str
"""The cause of a finding about a send: an election, a fault rule, or the error that a client got,
by Kafka's name."""
