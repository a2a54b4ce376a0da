"""A change of a partition, and the notes that explain it.

Owns: the wording of changes of leader, ISR and replicas.  Never: decides a change (elections.py
does), makes its record (partitions.py does).
Kafka: what PartitionChangeBuilder and ReplicationControlManager log.
"""

from __future__ import annotations

from msgspec import Struct

from kcluster.contract import NoteId
from kcluster.controller.partitions.elections import Election
from kcluster.controller.ports import MetadataPort
from kcluster.metadata.image import NO_LEADER, PartitionRegistration
from kcluster.trace import kinds


class Change(Struct, frozen=True):
    """A change of one partition: what it was before, what it is to be, and the reason."""

    topic: str
    before: PartitionRegistration
    election: Election
    """The partition after the change, and why this leader."""
    why: str
    """What made the change necessary."""
    cause: NoteId | None

    @property
    def after(self) -> PartitionRegistration:
        """The partition after the change."""
        return self.election.registration

    @property
    def subject(self) -> str:
        """The partition by its usual name: `orders-0`."""
        return f"{self.topic}-{self.before.partition}"


def note_completed(metadata: MetadataPort, change: Change) -> NoteId:
    """A reassignment is complete."""
    before, after = change.before, change.after
    return metadata.note(
        kinds.REASSIGNMENT_COMPLETED,
        change.subject,
        f"replicas {list(before.replicas)} -> {list(after.replicas)}: {change.why}",
        change.cause,
        topic=change.topic,
        partition=after.partition,
        replicas=list(after.replicas),
        added=[broker for broker in after.replicas if broker not in before.replicas],
        removed=[broker for broker in before.replicas if broker not in after.replicas],
        partition_epoch=after.partition_epoch,
    )


def note_isr(metadata: MetadataPort, change: Change) -> NoteId:
    """The ISR has shrunk or expanded."""
    before, after = change.before, change.after
    removed = [broker for broker in before.isr if broker not in after.isr]
    added = [broker for broker in after.isr if broker not in before.isr]
    elr = f", ELR {list(after.elr)}" if after.elr else ""
    return metadata.note(
        kinds.ISR_SHRUNK if removed else kinds.ISR_EXPANDED,
        change.subject,
        f"ISR {list(before.isr)} -> {list(after.isr)}{elr}: {change.why}",
        change.cause,
        topic=change.topic,
        partition=after.partition,
        isr=list(after.isr),
        removed=removed,
        added=added,
        elr=list(after.elr),
        partition_epoch=after.partition_epoch,
    )


def note_leader(metadata: MetadataPort, change: Change) -> NoteId:
    """Another leader, or none."""
    before, after, election = change.before, change.after, change.election
    old = "none" if before.leader == NO_LEADER else str(before.leader)
    because = change.why
    if election.reason != change.why:
        because = f"{change.why}; {election.reason}"
    if after.leader == NO_LEADER:
        kind, text = kinds.PARTITION_OFFLINE, f"leader {old} -> none: {because}"
    else:
        unclean = "" if election.clean else ", UNCLEAN"
        kind = kinds.LEADER_ELECTED
        text = f"leader {old} -> {after.leader}, epoch {after.leader_epoch}{unclean}: {because}"
    return metadata.note(
        kind,
        change.subject,
        text,
        change.cause,
        topic=change.topic,
        partition=after.partition,
        old=before.leader,
        new=after.leader,
        epoch=after.leader_epoch,
        clean=election.clean,
    )
