"""passed-over: a share group settled without settling one of its records.

Owns: the check and the story.  Never: looks into a node.
Kafka: no counterpart; KAFKA-18494 and KAFKA-19953 report such records.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from kcluster.checks.anomalies.base import (
    Anomaly,
    Explanation,
    PartitionAnomaly,
    PartitionHistory,
    anomaly,
)
from kcluster.checks.anomalies.facts import Finding
from kcluster.checks.chain.facts import Archived
from kcluster.checks.chain.links import Link, link
from kcluster.checks.settings import Setting
from kcluster.checks.stories.administered import OffsetChange, offset_changes
from kcluster.checks.stories.reads import changes_between
from kcluster.clients.ledger import UNCHANGED_LIMITS, SharedRecord
from kcluster.contract import Note
from kcluster.events.share_groups import (
    DeadLettersDropped,
    DeadLettersWritten,
    SharePartitionLoaded,
)
from kcluster.evidence.group_history import archived_records
from kcluster.evidence.lookups import Facts


@anomaly("passed-over", "a share group came to rest without a record that no member has accepted")
class PassedOver(PartitionAnomaly):
    """An acked record is in the log, after a record that was delivered to the group.  The group had
    members, and they had the time; but no member sent an acceptance of the record, and the limit on
    its deliveries is not reached.  The group has lost it, or it is locked for a member that is
    gone.

        passed-over: orders-0: b, acked at offset 1, was settled by no member of group g

    The record may be allowed to be missed: a group that begins at the end of the log (`allowed`)
    stores this position with its first acknowledgement.  If the leader changes before that, its
    successor begins at the end again.  A record is also archived (`allowed`) when it reaches the
    limit on its deliveries, even if every answer with it was lost; and an administrator may have
    reset the group's offsets beyond it, or deleted the group, which then begins at the end again.
    """

    def find(self, history: PartitionHistory) -> Iterator[Finding]:
        groups: dict[str, dict[int, list[SharedRecord]]] = {}
        for delivery in history.deliveries if history.drained else ():
            group = groups.setdefault(delivery.group, {})
            group.setdefault(delivery.offset, []).append(delivery)
        for name, offsets in groups.items():
            if name not in history.present_share_groups:
                continue
            begin = max(min(offsets), history.log.deleted_before)
            for send in history.sends:
                at = history.visible(send.value) if send.is_promised else ()
                for offset in at:
                    some = offsets.get(offset, [])
                    if offset >= begin and not history.is_settled(some):
                        found = self.about(send, offset)
                        yield replace(found, client=name)

    def explain(self, facts: Facts, anomaly: Anomaly) -> Explanation:
        now_ms = facts.recorder.dispatcher.now_ms
        links = [*changes_between(facts, anomaly.partition, anomaly.at_ms, now_ms)]
        if exhausted := _exhausted(facts, anomaly):
            return Explanation(
                [*links, exhausted, *_dead_letters(facts, anomaly)], Setting.DELIVERY_LIMIT
            )
        if change := _changed(facts, anomaly):
            return Explanation([*links, link(change.note)], change.setting)
        reset = _reset(facts, anomaly)
        if reset is None:
            return Explanation(links)
        return Explanation([*links, link(reset)], Setting.SHARE_RESET)


def _changed(facts: Facts, anomaly: Anomaly) -> OffsetChange | None:
    """The administrator's last change of the group's offset after which the group began behind the
    records; None if there is none."""
    loads = _loads(facts, anomaly)
    for change in reversed([*offset_changes(facts, anomaly.partition, anomaly.client)]):
        starts = [loaded.start_offset for note, loaded in loads if note.at_ms >= change.note.at_ms]
        is_behind = starts[0] > anomaly.last if starts else change.begins_after(anomaly.last)
        if is_behind:
            return change
    return None


def _exhausted(facts: Facts, anomaly: Anomaly) -> Link | None:
    """The time at which the last of the records was archived, if each reached the limit on
    deliveries although its members received it less often."""
    limit = facts.ledger.delivery_limits.get(anomaly.client, UNCHANGED_LIMITS).lowest
    left = set(range(anomaly.first, anomaly.last + 1))
    for one in archived_records(facts.recorder, anomaly.client, anomaly.partition):
        if one.count >= limit:
            left.difference_update(range(one.first_offset, one.last_offset + 1))
        if not left:
            return Link(one.at_ms, Archived(anomaly.client, one.count))
    return None


def _dead_letters(facts: Facts, anomaly: Anomaly) -> Iterator[Link]:
    """The events of the group's dead letter queue about these records."""
    for note in facts.notes:
        letters = note.event
        if (
            isinstance(letters, DeadLettersWritten | DeadLettersDropped)
            and letters.group == anomaly.client
            and (letters.topic, letters.partition) == anomaly.partition
            and letters.first_offset <= anomaly.last
            and letters.last_offset >= anomaly.first
        ):
            yield link(note)


def _reset(facts: Facts, anomaly: Anomaly) -> Note | None:
    """The time at which a leader began behind the records although nothing had been stored; None
    for never."""
    loads = _loads(facts, anomaly)
    taken = [
        one.ended_ms
        for one in facts.ledger.deliveries
        if one.group == anomaly.client
        and one.partition == anomaly.partition
        and (one.is_acknowledged or one.is_released)
        and not _is_behind(one, loads)
    ]
    first_ms = min(taken, default=facts.recorder.dispatcher.now_ms)
    for note, loaded in loads:
        if anomaly.at_ms <= note.at_ms <= first_ms and loaded.start_offset > anomaly.last:
            return note
    return None


def _loads(facts: Facts, anomaly: Anomaly) -> list[tuple[Note, SharePartitionLoaded]]:
    """The times at which leaders loaded the state of the group's share partition."""
    return [
        (note, note.event)
        for note in facts.notes
        if isinstance(note.event, SharePartitionLoaded)
        and note.event.group == anomaly.client
        and (note.event.topic, note.event.partition) == anomaly.partition
    ]


def _is_behind(delivery: SharedRecord, loads: list[tuple[Note, SharePartitionLoaded]]) -> bool:
    """Whether the leader that confirmed an acknowledgement had begun behind its record: then it
    stored nothing."""
    starts = [
        loaded.start_offset
        for note, loaded in loads
        if loaded.broker == delivery.broker and note.at_ms <= delivery.ended_ms
    ]
    return bool(starts) and delivery.offset < starts[-1]
