"""From an election to records and notes: what changed, why, and whose fault it was.

Owns: the wording of leader and ISR changes, and going over the partitions that one broker's coming
or going touches.  Never: decides a leader or an ISR (elections.py does).
Kafka: ReplicationControlManager.generateLeaderAndIsrUpdates.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kcluster.contract import NoteId
from kcluster.controller.partitions import elections
from kcluster.controller.partitions.elections import Election, ElectionMode
from kcluster.controller.partitions.partition_index import PartitionKey
from kcluster.metadata.image import (
    NO_LEADER,
    MetadataRecord,
    PartitionRecord,
    PartitionRegistration,
)
from kcluster.trace import kinds

if TYPE_CHECKING:
    from kcluster.controller.node import ControllerNode


def change_partitions(
    node: ControllerNode,
    keys: Iterable[PartitionKey],
    why: str,
    cause: NoteId | None,
    *,
    leaving: int | None = None,
    joining: int | None = None,
    unclean_shutdown: int | None = None,
) -> list[MetadataRecord]:
    """Records for those of `keys` that change.  `leaving` and `unclean_shutdown` leave every ISR
    and may not lead, whatever their registration still says; `joining` may lead already."""
    gone = (leaving, unclean_shutdown)

    def is_active(broker: int) -> bool:
        return broker not in gone and (broker == joining or node.is_active(broker))

    records: list[MetadataRecord] = []
    for topic, partition in _in_order(node, keys):
        isr = tuple(broker for broker in partition.isr if broker not in gone)
        election = elections.elect(
            partition,
            is_active,
            node.min_isr(topic),
            ElectionMode.UNCLEAN if node.unclean_allowed(topic) else ElectionMode.ONLINE,
            isr=isr,
            unclean_shutdown=unclean_shutdown,
            elr_enabled=node.elr_enabled,
        )
        if election is not None:
            records.append(record_of(node, topic, partition, election, why, cause))
    return records


def record_of(
    node: ControllerNode,
    topic: str,
    before: PartitionRegistration,
    election: Election,
    why: str,
    cause: NoteId | None,
) -> PartitionRecord:
    """The record of one election, its notes written; the record's cause is the last of them."""
    after = election.registration
    subject = f"{topic}-{after.partition}"
    if election.completed:
        cause = _note_completed(node, subject, topic, before, after, why, cause)
        why = "the reassignment is complete"
    if after.isr != before.isr:
        cause_of_leader = cause
        cause = _note_isr(node, subject, topic, before, after, why, cause)
        if after.leader != before.leader:
            cause = _note_leader(node, subject, topic, before, election, why, cause_of_leader)
    elif after.leader != before.leader:
        cause = _note_leader(node, subject, topic, before, election, why, cause)
    return PartitionRecord(after, cause)


def _in_order(
    node: ControllerNode, keys: Iterable[PartitionKey]
) -> list[tuple[str, PartitionRegistration]]:
    """By topic name and partition, as a person would list them."""
    image = node.image
    found = [(image.topic_names[topic_id], partition) for topic_id, partition in keys]
    found.sort()
    return [(topic, image.topics[topic].partitions[partition]) for topic, partition in found]


def _note_completed(
    node: ControllerNode,
    subject: str,
    topic: str,
    before: PartitionRegistration,
    after: PartitionRegistration,
    why: str,
    cause: NoteId | None,
) -> NoteId:
    node.reassignments.pop((after.topic_id, after.partition), None)
    return node.note(
        kinds.REASSIGNMENT_COMPLETED,
        subject,
        f"replicas {list(before.replicas)} -> {list(after.replicas)}: {why}",
        cause,
        topic=topic,
        partition=after.partition,
        replicas=list(after.replicas),
        added=[broker for broker in after.replicas if broker not in before.replicas],
        removed=[broker for broker in before.replicas if broker not in after.replicas],
        partition_epoch=after.partition_epoch,
    )


def _note_isr(
    node: ControllerNode,
    subject: str,
    topic: str,
    before: PartitionRegistration,
    after: PartitionRegistration,
    why: str,
    cause: NoteId | None,
) -> NoteId:
    removed = [broker for broker in before.isr if broker not in after.isr]
    added = [broker for broker in after.isr if broker not in before.isr]
    elr = f", ELR {list(after.elr)}" if after.elr else ""
    return node.note(
        kinds.ISR_SHRUNK if removed else kinds.ISR_EXPANDED,
        subject,
        f"ISR {list(before.isr)} -> {list(after.isr)}{elr}: {why}",
        cause,
        topic=topic,
        partition=after.partition,
        isr=list(after.isr),
        removed=removed,
        added=added,
        elr=list(after.elr),
        partition_epoch=after.partition_epoch,
    )


def _note_leader(
    node: ControllerNode,
    subject: str,
    topic: str,
    before: PartitionRegistration,
    election: Election,
    why: str,
    cause: NoteId | None,
) -> NoteId:
    after = election.registration
    old = "none" if before.leader == NO_LEADER else str(before.leader)
    because = f"{why}; {election.reason}" if election.reason != why else why
    if after.leader == NO_LEADER:
        kind, text = kinds.PARTITION_OFFLINE, f"leader {old} -> none: {because}"
    else:
        unclean = "" if election.clean else ", UNCLEAN"
        kind = kinds.LEADER_ELECTED
        text = f"leader {old} -> {after.leader}, epoch {after.leader_epoch}{unclean}: {because}"
    return node.note(
        kind,
        subject,
        text,
        cause,
        topic=topic,
        partition=after.partition,
        old=before.leader,
        new=after.leader,
        epoch=after.leader_epoch,
        clean=election.clean,
    )
