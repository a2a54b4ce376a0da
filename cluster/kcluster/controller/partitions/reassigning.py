"""The effect of a reassignment on a partition's replicas: pure functions on values.

Owns: a partition's replicas during a move, the completion of the move, the result of cancelling it.
Never: chooses leaders or an ISR's order (elections.py), knows a cluster. Kafka:
PartitionReassignmentReplicas, PartitionReassignmentRevert; KIP-455.

    replicas 1 2 3, to 2 3 4   -> replicas 2 3 4 1, adding 4, removing 1
    4 is in the ISR            -> replicas 2 3 4: done, and 1 deletes its log (2 and 3 may lag)
    cancelled before that      -> replicas 2 3 1: done, and 4 deletes its log
"""

from __future__ import annotations

from kcluster.metadata.records import PartitionRegistration
from kcluster.structs import FrozenUntracked


class Assignment(FrozenUntracked, frozen=True):
    """The assignment of a partition: all its replicas, and which of them are being added or
    removed."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()

    @property
    def in_progress(self) -> bool:
        """Whether replicas must still be added or removed."""
        return bool(self.adding or self.removing)


class Completed(FrozenUntracked, frozen=True):
    """A complete reassignment: the replicas and the ISR without the removed replicas."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]


class Reverted(FrozenUntracked, frozen=True):
    """A cancelled reassignment.  `clean` False: no member of the ISR stays, so the ISR is the first
    of the original replicas, and records may be lost."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    clean: bool


def assignment_of(partition: PartitionRegistration) -> Assignment:
    """The partition's current assignment."""
    return Assignment(partition.replicas, partition.adding_replicas, partition.removing_replicas)


def is_reassigning(partition: PartitionRegistration) -> bool:
    """Whether a reassignment of the partition is in progress."""
    return bool(partition.adding_replicas or partition.removing_replicas)


def towards(partition: PartitionRegistration, target: tuple[int, ...]) -> Assignment:
    """The assignment while `partition` moves to the brokers of `target`, even if it was already
    moving.

    As in Kafka, the brokers added or removed by the reassignment in progress stay listed as such if
    the new reassignment adds or removes none.  So a reassignment back to the original replicas may
    list a broker as both added and removed, and then ends only by cancelling.
    """
    current = partition.replicas
    removing = tuple(sorted(broker for broker in current if broker not in target))
    adding = tuple(sorted(broker for broker in target if broker not in current))
    return Assignment(
        (*target, *removing),
        adding or partition.adding_replicas,
        removing or partition.removing_replicas,
    )


def completed(assignment: Assignment, isr: tuple[int, ...]) -> Completed | None:
    """The partition after its reassignment, once all added replicas are in the ISR; None before
    that, or if nothing moves.

    If more replicas are removed than added, all remaining replicas must be in the ISR too, so that
    no in-sync replica is given away.
    """
    if not assignment.in_progress:
        return None
    adding, leaving = assignment.adding, assignment.removing
    staying = tuple(broker for broker in assignment.replicas if broker not in leaving)
    in_sync = tuple(broker for broker in isr if broker not in leaving)
    if not staying or (leaving and not in_sync):
        return None
    needed = staying if len(adding) < len(leaving) else adding
    if any(broker not in in_sync for broker in (*adding, *needed)):
        return None
    return Completed(staying, in_sync)


def reverted(partition: PartitionRegistration) -> Reverted:
    """The partition without the replicas that its reassignment adds, and with the replicas that it
    removes."""
    adding = partition.adding_replicas
    replicas = tuple(broker for broker in partition.replicas if broker not in adding)
    isr = tuple(broker for broker in partition.isr if broker not in adding)
    assert replicas, partition
    return Reverted(replicas, isr or replicas[:1], bool(isr))
