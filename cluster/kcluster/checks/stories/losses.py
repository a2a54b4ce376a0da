"""The loss of a record: the replicas that lost it, the elections without it, the truncations.

Owns: the links of a loss, and the setting that allowed it.  Never: guesses: each link is a note.
Kafka: no counterpart; what a person reads in the logs of all brokers.
"""

from __future__ import annotations

from collections.abc import Iterator

from kcluster.checks.chain.facts import DiskLost, ElectedFrom, TopicRemoved
from kcluster.checks.chain.links import Link, link, with_causes
from kcluster.checks.settings import Setting
from kcluster.clients.ledger import Partition
from kcluster.contract import Note
from kcluster.events.brokers import BrokerEvent, RecordsLost
from kcluster.events.partitions import BecameLeader, LeaderChange, LeaderElected, LogTruncated
from kcluster.evidence.lookups import Facts
from kcluster.invariants.observed import Append, ObservedPartition


def losses(
    facts: Facts, observed: ObservedPartition, append: Append, offset: int
) -> tuple[list[Link], Setting]:
    """Every event that removed a record from a replica, and the elections that made the loss final;
    and the setting that allowed it."""
    partition = (observed.topic, observed.partition)
    links: list[Link] = []
    allowed_by = Setting.NONE
    after = append.at_ms
    if observed.deleted_ms >= 0:
        links.append(Link(observed.deleted_ms, TopicRemoved(observed.topic)))
    registration = facts.registration(observed, after)
    for broker in registration.replicas if registration is not None else (append.broker,):
        for note, event in facts.of_broker(broker, BrokerEvent):
            if note.at_ms < after or not _removes(event, partition, offset):
                continue
            reached_ms = facts.reached(observed, append, broker)
            if reached_ms is None or reached_ms > note.at_ms:
                continue
            is_wipe = event.loses_disk
            links.append(link(note, DiskLost(event, broker) if is_wipe else None))
            allowed_by = allowed_by or (Setting.DISK_LOST if is_wipe else Setting.UNFLUSHED)
    elections, by_election = _elections(facts, observed, append, offset)
    truncations = []
    for note, truncated in facts.of_partition(partition, LogTruncated):
        if note.at_ms >= after and truncated.to_offset <= offset < truncated.from_offset:
            truncations.append(link(note))
            if truncated.is_unasked:
                allowed_by = allowed_by or Setting.BEFORE_KIP_101
    return [*links, *elections, *truncations], by_election or allowed_by


def _is_of(observed: ObservedPartition, note: Note) -> bool:
    """Whether a note about a partition concerns the partition with this topic id."""
    since_ms = observed.registrations[0][0] if observed.registrations else 0
    return since_ms <= note.at_ms and not 0 <= observed.deleted_ms < note.at_ms


def _removes(event: BrokerEvent, partition: Partition, offset: int) -> bool:
    """Whether a broker lost its record at this offset in this event."""
    if isinstance(event, RecordsLost):
        return any(
            (lost.topic, lost.partition) == partition
            and lost.from_offset <= offset < lost.to_offset
            for lost in event.ranges
        )
    return event.loses_disk


def _elections(
    facts: Facts, observed: ObservedPartition, append: Append, offset: int
) -> tuple[list[Link], Setting]:
    """The elections after the append's epoch, up to the leader that began without the record, with
    their causes; and the permission of an unclean one: the setting in force at the time, or the
    operator's request."""
    links: list[Link] = []
    allowed_by = Setting.NONE
    for note, change, end in later_elections(facts, observed, append, offset):
        links += with_causes(facts, note)[:-1]
        allowed_by = allowed_by or _allowed_by(facts, note, change)
        if end is None or not isinstance(change, LeaderElected):
            links.append(link(note))
            continue
        links.append(link(note, ElectedFrom(change, end)))
    return links, allowed_by


def later_elections(
    facts: Facts, observed: ObservedPartition, append: Append, offset: int
) -> Iterator[tuple[Note, LeaderChange, int | None]]:
    """The elections after the append's epoch, up to the leader that began without the record, each
    with the log end with which its leader began; None if no broker began to lead."""
    partition = (observed.topic, observed.partition)
    starts = {
        (began.leader_epoch, began.broker): began.start_offset
        for note, began in facts.of_partition(partition, BecameLeader)
        if began.leader_epoch > append.epoch and _is_of(observed, note)
    }
    for note, change in facts.of_partition(partition, LeaderChange):
        # The election may precede the append: a deposed leader may learn of it too late.
        if change.leader_epoch <= append.epoch or not _is_of(observed, note):
            continue
        end = starts.get((change.leader_epoch, change.new_leader))
        yield note, change, end
        if end is not None and end <= offset:
            return


def _allowed_by(facts: Facts, note: Note, change: LeaderChange) -> Setting:
    """The setting that allowed an unclean election; none if no setting allowed it.  Another setting
    allows the election of the last known leader, which loses the records that its disk has lost."""
    if change.clean or note.note_id in facts.recorder.invariants.forbidden_elections:
        return Setting.NONE
    if change.is_requested_unclean:
        return Setting.UNCLEAN_REQUESTED
    return Setting.UNCLEAN if change.is_allowed_by_setting else Setting.NONE
