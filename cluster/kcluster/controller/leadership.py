"""From an election to records and notes: what changed, why, and by which cause.

Owns: the events of leader and ISR changes, and going over the partitions that one broker's coming
or going touches.  Never: decides a leader or an ISR (elections.py does).
Kafka: ReplicationControlManager.generateLeaderAndIsrUpdates.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kcluster.contract import NoteId
from kcluster.controller import elections
from kcluster.controller.elections import Election, ElectionMode
from kcluster.controller.partition_index import PartitionKey
from kcluster.events.partitions import (
    IsrExpanded,
    IsrShrunk,
    LeaderElected,
    PartitionOffline,
    ReassignmentCompleted,
)
from kcluster.events.reasons import AnyReason, ReassignmentDone
from kcluster.metadata.image import (
    NO_LEADER,
    MetadataRecord,
    PartitionRecord,
    PartitionRegistration,
)

if TYPE_CHECKING:
    from kcluster.controller.node import ControllerNode


def change_partitions(
    node: ControllerNode,
    keys: Iterable[PartitionKey],
    reason: AnyReason,
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
            records.append(record_of(node, topic, partition, election, reason, cause))
    return records


def record_of(
    node: ControllerNode,
    topic: str,
    before: PartitionRegistration,
    election: Election,
    reason: AnyReason,
    cause: NoteId | None,
) -> PartitionRecord:
    """The record of one election, its events noted; the record's cause is the last of them."""
    after = election.registration
    if election.completed:
        node.reassignments.pop((after.topic_id, after.partition), None)
        cause = node.note(_completed(topic, before, after, reason), cause)
        reason = ReassignmentDone()
    cause_of_leader = cause
    if after.isr != before.isr:
        cause = node.note(_isr_change(topic, before, after, reason), cause)
    if after.leader != before.leader:
        cause = node.note(_leader_change(topic, before, election, reason), cause_of_leader)
    return PartitionRecord(after, cause)


def _in_order(
    node: ControllerNode, keys: Iterable[PartitionKey]
) -> list[tuple[str, PartitionRegistration]]:
    """By topic name and partition, as a person would list them."""
    image = node.image
    found = [(image.topic_names[topic_id], partition) for topic_id, partition in keys]
    found.sort()
    return [(topic, image.topics[topic].partitions[partition]) for topic, partition in found]


def _completed(
    topic: str, before: PartitionRegistration, after: PartitionRegistration, reason: AnyReason
) -> ReassignmentCompleted:
    return ReassignmentCompleted(
        topic=topic,
        partition=after.partition,
        old_replicas=before.replicas,
        replicas=after.replicas,
        partition_epoch=after.partition_epoch,
        added=_without(after.replicas, before.replicas),
        removed=_without(before.replicas, after.replicas),
        reason=reason,
    )


def _isr_change(
    topic: str, before: PartitionRegistration, after: PartitionRegistration, reason: AnyReason
) -> IsrShrunk | IsrExpanded:
    removed = _without(before.isr, after.isr)
    change = IsrShrunk if removed else IsrExpanded
    return change(
        topic=topic,
        partition=after.partition,
        old_isr=before.isr,
        isr=after.isr,
        removed=removed,
        added=_without(after.isr, before.isr),
        elr=after.elr,
        partition_epoch=after.partition_epoch,
        reason=reason,
    )


def _leader_change(
    topic: str, before: PartitionRegistration, election: Election, reason: AnyReason
) -> LeaderElected | PartitionOffline:
    after = election.registration
    if after.leader == NO_LEADER:
        return PartitionOffline(
            topic=topic,
            partition=after.partition,
            old_leader=before.leader,
            new_leader=after.leader,
            leader_epoch=after.leader_epoch,
            clean=election.clean,
            reason=reason,
            isr=after.isr,
            elr=after.elr,
        )
    return LeaderElected(
        topic=topic,
        partition=after.partition,
        old_leader=before.leader,
        new_leader=after.leader,
        leader_epoch=after.leader_epoch,
        clean=election.clean,
        reason=reason,
        election=election.kind,
    )


def _without(brokers: tuple[int, ...], others: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(broker for broker in brokers if broker not in others)
