"""unseen: an acked record that no consumer has read.

Owns: the check and the story: the reads before and after it.  Never: guesses: each link
is a note, an answer or an entry of a client's ledger.  Kafka: no counterpart; jepsen.tests.kafka.
"""

from __future__ import annotations

from collections.abc import Iterator

from kcluster.checks.anomalies.base import (
    Anomaly,
    Explanation,
    PartitionAnomaly,
    PartitionHistory,
    anomaly,
)
from kcluster.checks.anomalies.facts import Finding
from kcluster.checks.chain.facts import ErrorOfClient, GroupCommitted, RecordAcked
from kcluster.checks.chain.links import Link, link
from kcluster.checks.settings import Setting
from kcluster.checks.stories.administered import OffsetChange, offset_changes
from kcluster.checks.stories.commits import commit_ms
from kcluster.checks.stories.reads import changes_between, errors_between, read_link, reads_of
from kcluster.contract import Note
from kcluster.events.topics import TopicDeleted
from kcluster.evidence.lookups import Facts, of_type
from kcluster.protocol.errors import ErrorCode


@anomaly("unseen", "an acked record is in the log, and no consumer has read it")
class Unseen(PartitionAnomaly):
    """An acked record is in the log and no consumer of its partition has ever read it, though a
    consumer has read beyond it: the consumer began after the record, or a commit was ahead of the
    reads.  If consumers had the time to read to the end (`drained`), unread records there count
    too.  A record of an aborted transaction need not be read.

        unseen: orders-0: b, acked at offset 1, was read by no consumer
    """

    def find(self, history: PartitionHistory) -> Iterator[Finding]:
        if not history.reads:
            return
        names = history.log.names
        offsets = {read.offset for read in history.reads}
        seen = {names.get(read.offset, read.value) for read in history.reads}
        # Records that compaction may have removed at one leader may be left at another.
        begin, end = max(min(offsets), history.log.clean_offset - 1), max(offsets)
        unread = [one for one in history.sends if one.is_promised and one.value not in seen]
        if not unread:
            return
        sent = {send.value for send in history.sends}
        altered = {read.offset for read in history.reads if read.value not in sent}
        for send in unread:
            at = history.visible(send.value)
            if not at or not altered.isdisjoint(at):
                continue
            if at[0] > begin and (history.drained or at[0] < end):
                yield Finding(self.NAME, send.partition, "", at[0], send.value, at_ms=send.sent_ms)

    def explain(self, facts: Facts, anomaly: Anomaly) -> Explanation:
        links = [*_around(facts, anomaly)]
        failed = [entry for entry in links if isinstance(entry.fact, ErrorOfClient)]
        for entry in failed:
            assert isinstance(entry.fact, ErrorOfClient)
            altered = facts.altered_fetch(entry.fact.client, entry.at_ms)
            if altered is not None and entry.fact.error == ErrorCode.CORRUPT_MESSAGE.name:
                return Explanation([link(altered), *links], Setting.ALTERED)
        change = _changed(facts, anomaly)
        if change is not None:
            return Explanation([link(change.note), *links], change.setting)
        deleted = _predecessor(facts, anomaly)
        if deleted is not None:
            return Explanation([link(deleted), *links], Setting.RECREATED)
        return Explanation(links)


def _changed(facts: Facts, anomaly: Anomaly) -> OffsetChange | None:
    """The administrator's change of a group's offset after which a consumer went on beyond the
    records: to an offset behind them, or of a group that was deleted and began at the end."""
    reads = reads_of(facts, anomaly)
    above = [read for read in reads if read.offset > anomaly.last]
    first = min(above, key=lambda read: read.offset, default=None)
    if first is None or not first.restarted:
        return None
    below = [read.at_ms for read in reads if read.offset < anomaly.first]
    for change in offset_changes(facts, anomaly.partition):
        is_between = max(below, default=0) <= change.note.at_ms <= first.at_ms
        if is_between and (change.offset is None or change.begins_after(anomaly.last)):
            return change
    return None


def _predecessor(facts: Facts, anomaly: Anomaly) -> Note | None:
    """The deletion of a topic of the same name, if a group has committed an offset since that the
    deleted log had, and the present one had not yet.  Kafka's coordinators delete the offsets of
    deleted topics, but take later commits of members that do not know yet; from such an offset a
    member goes on at the end of the present log."""
    present = facts.recorder.present().get(anomaly.partition)
    topic = anomaly.partition[0]
    deletions = [note for note, gone in of_type(facts.notes, TopicDeleted) if gone.topic == topic]
    if not deletions:
        return None
    appends = () if present is None else present.appends
    is_taken = any(
        one.partition == anomaly.partition
        and (at_ms := commit_ms(facts, one.group, one.partition, one.offset)) >= deletions[-1].at_ms
        and all(each.last_offset + 1 < one.offset for each in appends if each.at_ms <= at_ms)
        for one in facts.ledger.commits
    )
    return deletions[-1] if is_taken else None


def _around(facts: Facts, anomaly: Anomaly) -> Iterator[Link]:
    """The last reads before the unread records, and the first reads after them."""
    send = facts.send(anomaly.partition, anomaly.values[0])
    if send is not None:
        yield Link(max(send.ended_ms, send.sent_ms), RecordAcked(send.value))
    reads = reads_of(facts, anomaly)
    below = [read for read in reads if read.offset < anomaly.first]
    above = [read for read in reads if read.offset > anomaly.last]
    if below:
        last = max(below, key=lambda read: read.offset)
        yield from read_link(facts, last)
        if not above:
            now_ms = facts.recorder.dispatcher.now_ms
            yield from errors_between(facts, last.consumer, last.at_ms, now_ms)
    if above:
        first = min(above, key=lambda read: read.offset)
        yield from read_link(facts, first, first.restarted)
        if below:
            yield from errors_between(facts, first.consumer, last.at_ms, first.at_ms)
            yield from changes_between(facts, anomaly.partition, last.at_ms, first.at_ms)
    for one in facts.ledger.commits:
        if one.partition == anomaly.partition and one.is_commit and one.offset > anomaly.first:
            at_ms = commit_ms(facts, one.group, one.partition, one.offset)
            yield Link(at_ms, GroupCommitted(one.group, one.offset))
            return
