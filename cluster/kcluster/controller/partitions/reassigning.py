"""What a reassignment makes of a partition's replicas: pure functions on values.

Owns: which replicas a partition has while it is moved, when it has been moved, what giving it up
brings back.  Never: chooses leaders or an ISR's order (elections.py), knows a cluster.
Kafka: PartitionReassignmentReplicas, PartitionReassignmentRevert; KIP-455.

    replicas 1 2 3, to 2 3 4   -> replicas 2 3 4 1, adding 4, removing 1
    4 is in the ISR            -> replicas 2 3 4: done, and 1 deletes its log (2 and 3 may lag)
    given up before            -> replicas 2 3 1: done, and 4 deletes its log
"""

from __future__ import annotations

from msgspec import Struct

from kcluster.metadata.image import PartitionRegistration


class Assignment(Struct, frozen=True):
    """Who is to have a partition: all replicas, and those of them on their way in and out."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()

    @property
    def in_progress(self) -> bool:
        """Whether somebody is still to come or to go."""
        return bool(self.adding or self.removing)


class Completed(Struct, frozen=True):
    """A reassignment that is over: the replicas and the ISR without those who leave."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]


class Reverted(Struct, frozen=True):
    """A reassignment given up.  `clean` False: nobody of the ISR stays, so the first of those who
    were there before is trusted instead, and records may be lost."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    clean: bool


def assignment_of(partition: PartitionRegistration) -> Assignment:
    """The partition's assignment as it is."""
    return Assignment(partition.replicas, partition.adding_replicas, partition.removing_replicas)


def is_reassigning(partition: PartitionRegistration) -> bool:
    """Whether a reassignment of it is under way."""
    return bool(partition.adding_replicas or partition.removing_replicas)


def towards(partition: PartitionRegistration, target: tuple[int, ...]) -> Assignment:
    """The assignment while `partition` moves to the brokers of `target`, whatever moved before.

    As in Kafka those added or removed by a reassignment under way stay named as such when the new
    one adds or removes nobody itself; so one back to the replicas of before may name a broker as
    both, and does not end until it is cancelled.
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
    """What remains once all who come are in the ISR; None before, or if nothing moves.

    Where more leave than come, all who stay must be in the ISR too, so that none of the replicas
    in sync is given away.
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
    """The partition without those that its reassignment adds; those that it removes stay."""
    adding = partition.adding_replicas
    replicas = tuple(broker for broker in partition.replicas if broker not in adding)
    isr = tuple(broker for broker in partition.isr if broker not in adding)
    assert replicas, partition
    return Reverted(replicas, isr or replicas[:1], bool(isr))
