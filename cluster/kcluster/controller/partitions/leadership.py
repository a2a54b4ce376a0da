"""A change of a partition, and the events that report it.

Owns: the events of changes of leader, ISR and replicas.  Never: decides a change (elections.py
does), makes its record (partitions.py does). Kafka: the log of PartitionChangeBuilder and
ReplicationControlManager.
"""

from __future__ import annotations

from kcluster.contract import NoteId
from kcluster.controller.partitions.elections import Election
from kcluster.controller.ports import MetadataPort
from kcluster.events.partitions import (
    IsrExpanded,
    IsrShrunk,
    LeaderElected,
    PartitionOffline,
    ReassignmentCompleted,
)
from kcluster.events.reasons import AnyReason
from kcluster.metadata.records import NO_LEADER, PartitionRegistration
from kcluster.structs import FrozenUntracked


class Change(FrozenUntracked, frozen=True):
    """A change of one partition: the partition before and after it, and the reason."""

    topic: str
    before: PartitionRegistration
    election: Election
    """The partition after the change, and the rule that chose its leader."""
    reason: AnyReason
    """The reason for the change."""
    cause: NoteId | None

    @property
    def after(self) -> PartitionRegistration:
        """The partition after the change."""
        return self.election.registration


def note_completed(metadata: MetadataPort, change: Change) -> NoteId:
    """Note that a reassignment is complete."""
    before, after = change.before, change.after
    event = ReassignmentCompleted(
        topic=change.topic,
        partition=after.partition,
        old_replicas=before.replicas,
        replicas=after.replicas,
        partition_epoch=after.partition_epoch,
        added=_without(after.replicas, before.replicas),
        removed=_without(before.replicas, after.replicas),
        reason=change.reason,
    )
    return metadata.note(event, change.cause)


def note_isr(metadata: MetadataPort, change: Change) -> NoteId:
    """Note that the ISR has shrunk or expanded."""
    before, after = change.before, change.after
    removed = _without(before.isr, after.isr)
    event_type = IsrShrunk if removed else IsrExpanded
    event = event_type(
        topic=change.topic,
        partition=after.partition,
        old_isr=before.isr,
        isr=after.isr,
        removed=removed,
        added=_without(after.isr, before.isr),
        elr=after.elr,
        partition_epoch=after.partition_epoch,
        reason=change.reason,
    )
    return metadata.note(event, change.cause)


def note_leader(metadata: MetadataPort, change: Change) -> NoteId:
    """Note that the partition has another leader, or none."""
    if change.after.leader == NO_LEADER:
        return metadata.note(_offline(change), change.cause)
    return metadata.note(_elected(change), change.cause)


def _offline(change: Change) -> PartitionOffline:
    after = change.after
    return PartitionOffline(
        topic=change.topic,
        partition=after.partition,
        old_leader=change.before.leader,
        new_leader=after.leader,
        leader_epoch=after.leader_epoch,
        clean=change.election.clean,
        reason=change.reason,
        isr=after.isr,
        elr=after.elr,
    )


def _elected(change: Change) -> LeaderElected:
    after = change.after
    return LeaderElected(
        topic=change.topic,
        partition=after.partition,
        old_leader=change.before.leader,
        new_leader=after.leader,
        leader_epoch=after.leader_epoch,
        clean=change.election.clean,
        reason=change.reason,
        election=change.election.kind,
    )


def _without(brokers: tuple[int, ...], others: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(broker for broker in brokers if broker not in others)
