"""Every change of a partition's leader, ISR and ELR: pure functions from one value to the next.

Owns: the rules by which PartitionRegistration.{replicas, leader, isr, elr, last_known_elr,
recovering} and both epochs change; nothing else in the code base builds a changed one.  Never:
knows a cluster (a predicate says who is alive), writes notes, draws randomness.
Kafka: PartitionChangeBuilder (4.3), KIP-841 (who may lead), KIP-966 (ELR), KIP-704 (recovery),
KIP-455 (reassignments: any change completes one that leaves all remaining replicas in the ISR).

Epochs: partition_epoch goes up by one at each change, leader_epoch when the leader changes and when
a replica is removed.

Eligible leader replicas (KIP-966).  While the ISR is smaller than min.insync.replicas no record can
be committed, so a replica that left the ISR since then still has every committed record.  These
replicas are the ELR, and electing one loses nothing.  A broker that restarts uncleanly leaves the
ELR. When ISR and ELR are empty, the last leader may be elected: it has lost the least, but the
election is unclean.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Final

from msgspec.structs import replace

from kcluster.controller.partitions.reassigning import Assignment, assignment_of, completed
from kcluster.events.reasons import ElectionKind
from kcluster.metadata.records import NO_LEADER, PartitionRegistration
from kcluster.structs import FrozenUntracked

_UNCLEAN: Final = (ElectionKind.LAST_KNOWN_LEADER, ElectionKind.UNCLEAN)
"""The rules that may elect a leader that lacks committed records."""


class ElectionMode(Enum):
    """The replicas that an election may choose.  Kafka: PartitionChangeBuilder.Election."""

    ONLINE = "online"
    """The current leader if it may stay, else the first replica that may lead."""
    PREFERRED = "preferred"
    """The first replica if it may lead, else the replica that ONLINE chooses."""
    UNCLEAN = "unclean"
    """The replica that ONLINE chooses, or else any active replica."""


class Election(FrozenUntracked, frozen=True):
    """A partition after a change.  `kind`: the rule that chose its leader, if it has a new one."""

    registration: PartitionRegistration
    kind: ElectionKind = ElectionKind.NONE
    clean: bool = True
    """Whether the new leader has all committed records; if not, the records are lost."""
    completed: bool = False
    """Whether this change completes a reassignment."""


class _Choice(FrozenUntracked, frozen=True):
    leader: int
    kind: ElectionKind = ElectionKind.NONE

    @property
    def clean(self) -> bool:
        """Whether the chosen leader has every committed record."""
        return self.kind not in _UNCLEAN


class _Targets(FrozenUntracked, frozen=True):
    """The aims of a change, before the election."""

    isr: tuple[int, ...]
    elr: tuple[int, ...]
    assignment: Assignment
    completed: bool


def elect(
    partition: PartitionRegistration,
    is_active: Callable[[int], bool],
    min_isr: int,
    mode: ElectionMode = ElectionMode.ONLINE,
    *,
    isr: tuple[int, ...] | None = None,
    assignment: Assignment | None = None,
    unclean_shutdown: int | None = None,
    recovering: bool | None = None,
    elr_enabled: bool = True,
) -> Election | None:
    """The partition with the new `isr` and `assignment` (None: unchanged), after completing a
    reassignment if possible and electing a leader; None if nothing changes.  `is_active(broker)`:
    may lead (unfenced, not shutting down).  `min_isr`: the effective min.insync.replicas, at most
    the number of replicas.  `unclean_shutdown`: a broker that may have lost the end of its log, and
    so is no longer eligible.  `recovering`: the leader's own report of its LeaderRecoveryState
    (AlterPartition)."""
    targets = _targets(partition, isr, assignment, min_isr, unclean_shutdown, elr_enabled)
    choice = _choose(partition, is_active, mode, targets, elr_enabled)
    new_isr, new_elr, replicas = targets.isr, targets.elr, targets.assignment.replicas
    leader, leader_epoch = partition.leader, partition.leader_epoch
    now_recovering = partition.recovering if recovering is None else recovering
    last_known = partition.last_known_elr
    kind = ElectionKind.NONE
    if choice.leader != partition.leader:
        leader, leader_epoch, kind = choice.leader, leader_epoch + 1, choice.kind
        if not choice.clean:
            new_isr, new_elr, now_recovering = (leader,), (), True
        elif leader in new_elr:
            new_isr = (leader,)
            new_elr = tuple(broker for broker in new_elr if broker != leader)
        if elr_enabled:
            last_known = _last_known(partition, leader)
    elif any(broker not in replicas for broker in partition.replicas):
        leader_epoch += 1  # removed replicas must stop fetching as replicas
    if not new_isr and not elr_enabled:
        new_isr = partition.isr  # without ELR the last member stays, because only it may lead
    after = replace(
        partition,
        replicas=replicas,
        adding_replicas=targets.assignment.adding,
        removing_replicas=targets.assignment.removing,
        isr=new_isr,
        elr=new_elr,
        last_known_elr=last_known,
        leader=leader,
        leader_epoch=leader_epoch,
        recovering=now_recovering,
    )
    if after == partition:
        return None
    after = replace(after, partition_epoch=partition.partition_epoch + 1)
    return Election(after, kind, choice.clean, targets.completed)


def move_leader(
    partition: PartitionRegistration, leader: int, is_active: Callable[[int], bool]
) -> Election | None:
    """The partition led by `leader`; None if `leader` is no active member of the ISR, or leads
    already.  Kafka has no such request: its operators reorder the replicas, then elect the
    preferred leader."""
    if leader == partition.leader or leader not in partition.isr or not is_active(leader):
        return None
    after = replace(
        partition,
        leader=leader,
        leader_epoch=partition.leader_epoch + 1,
        partition_epoch=partition.partition_epoch + 1,
        last_known_elr=(),
    )
    return Election(after, ElectionKind.REQUESTED)


def clear_elr(partition: PartitionRegistration) -> Election | None:
    """The partition without ELR and last known leader, for a change of min.insync.replicas: a
    replica that was eligible under the old number may lack records committed under the new one.
    Kafka: ClearElrRecord."""
    if not partition.elr and not partition.last_known_elr:
        return None
    after = replace(
        partition, elr=(), last_known_elr=(), partition_epoch=partition.partition_epoch + 1
    )
    return Election(after)


def new_partition(
    topic_id: bytes, partition: int, replicas: tuple[int, ...], isr: tuple[int, ...]
) -> PartitionRegistration:
    """A new partition: led by the first replica of its ISR, with both epochs 0."""
    assert isr, (topic_id, partition)
    return PartitionRegistration(topic_id, partition, replicas, isr, isr[0], 0, 0)


def _targets(
    partition: PartitionRegistration,
    isr: tuple[int, ...] | None,
    assignment: Assignment | None,
    min_isr: int,
    unclean_shutdown: int | None,
    elr_enabled: bool,
) -> _Targets:
    """The new ISR, and the ELR that follows from it: below min ISR every member of the old ISR
    and ELR stays eligible, except a broker that restarted uncleanly."""
    target = partition.isr if isr is None else isr
    assigned = assignment_of(partition) if assignment is None else assignment
    done = completed(assigned, target)
    if done is not None:
        target, assigned = done.isr, Assignment(done.replicas)
    if not elr_enabled or len(target) >= min_isr:
        return _Targets(target, (), assigned, done is not None)
    candidates = dict.fromkeys((*partition.elr, *partition.isr))
    # As in Kafka, a broker that is no longer a replica may stay in the ELR, but is not elected.
    # DIFFERS: it leaves the ELR when it becomes a replica again: in Kafka it could lead with an
    # empty log.
    newcomers = [broker for broker in assigned.replicas if broker not in partition.replicas]
    excluded = (*target, *newcomers, unclean_shutdown)
    elr = (broker for broker in candidates if broker not in excluded)
    return _Targets(target, tuple(sorted(elr)), assigned, done is not None)


def _choose(
    partition: PartitionRegistration,
    is_active: Callable[[int], bool],
    mode: ElectionMode,
    targets: _Targets,
    elr_enabled: bool,
) -> _Choice:
    """Choose the leader, in Kafka's order of conditions."""
    isr, elr, replicas = targets.isr, targets.elr, targets.assignment.replicas
    eligible = isr or elr
    if mode is ElectionMode.PREFERRED and replicas[0] in eligible and is_active(replicas[0]):
        return _Choice(replicas[0], ElectionKind.PREFERRED)
    if partition.leader in eligible and is_active(partition.leader):
        return _Choice(partition.leader)
    for broker in replicas:
        if broker in eligible and is_active(broker):
            return _Choice(broker, ElectionKind.IN_SYNC if isr else ElectionKind.ELIGIBLE)
    last_known = partition.last_known_elr
    if (
        elr_enabled
        and not eligible
        and len(last_known) == 1
        and is_active(last_known[0])
        and last_known[0] in replicas  # DIFFERS: Kafka elects it even if it is no replica
    ):
        return _Choice(last_known[0], ElectionKind.LAST_KNOWN_LEADER)
    if mode is ElectionMode.UNCLEAN:
        for broker in replicas:
            if is_active(broker):
                return _Choice(broker, ElectionKind.UNCLEAN)
    return _Choice(NO_LEADER)


def _last_known(partition: PartitionRegistration, leader: int) -> tuple[int, ...]:
    """The last leader, remembered from the loss of leadership until the partition has a leader
    again."""
    if leader != NO_LEADER:
        return ()
    return partition.last_known_elr or (partition.leader,)
