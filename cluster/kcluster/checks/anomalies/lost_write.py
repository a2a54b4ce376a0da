"""lost-write: from the append and its ack to the last replica that dropped the record.

Owns: the check and the story of lost records (stories/losses.py has their removal).
Never: guesses: each link is a note, an append, an answer or an entry of a client's ledger. Kafka:
no counterpart; what a person reads in the logs of all brokers and clients.
"""

from __future__ import annotations

from collections.abc import Iterator

from kcluster.checks.anomalies.base import (
    Anomaly,
    Explanation,
    LogAnomaly,
    PartitionHistory,
    anomaly,
    is_next_offset,
)
from kcluster.checks.anomalies.facts import Acked, AckedInEpoch, Finding
from kcluster.checks.chain import facts as f
from kcluster.checks.chain.links import Link, link, with_causes
from kcluster.checks.settings import ACKS_ALL, acks_setting
from kcluster.checks.stories.losses import later_elections, losses
from kcluster.checks.stories.sends import code_of, error_answered, errors_of
from kcluster.checks.stories.transactions import follows_in_epoch, joined, joined_later
from kcluster.clients.ledger import Outcome, Partition, SentRecord
from kcluster.clients.producer.settings import TRANSACTIONS_V1
from kcluster.events.partitions import IsrShrunk, LeaderChange
from kcluster.evidence.causes import SendCause, Unexplained
from kcluster.evidence.lookups import Facts
from kcluster.evidence.recorder import Missing
from kcluster.invariants.observed import Append, ObservedPartition
from kcluster.protocol.apis import ApiKey


@anomaly("lost-write", "a record was acked, or read by a consumer, and is not in the log")
class LostWrite(LogAnomaly):
    """A record was acked, or read by a consumer, and is not in the log at the end.

    The acks do not matter.  With acks=1 only the leader has acked the record; with acks=0 no broker
    has, but its producer assumes that it was sent; `allowed` names these settings.  A record that
    was deleted on purpose (below the log start, or compacted) is not lost.  Neither is a record of
    a transaction that was not committed.  A late batch of a client with transactions of version 1
    may stand in its place (`allowed`).

        lost-write: orders-0: b, acked (acks=all) at offset 1, is not in the log
    """

    def find(self, history: PartitionHistory) -> Iterator[Finding]:
        log, places = history.log, history.places
        gone: dict[bytes, None] = {}
        kept_from = max(log.start_offset, log.clean_offset)
        counts: dict[str, int] = {}
        for send in history.sends:
            counts[send.producer] = number = counts.get(send.producer, 0) + 1
            if not send.is_promised or send.value in places:
                continue
            if 0 <= send.offset < kept_from:
                continue
            gone[send.value] = None
            acked, allowed = Acked(send.acks), acks_setting(send.acks)
            yield self.about(send, send.offset, acked, other=number, allowed=allowed)
        if not history.reads:
            return
        held = dict(log.records)
        values = set(held.values())
        sent = {send.value for send in history.sends} if not log.names else None
        for read in history.reads:
            if sent and read.value not in sent and read.offset in held:
                continue  # it was never there: inconsistent-offsets reports it
            if read.offset < kept_from or read.value in gone or read.value in values:
                continue
            assert read.value is not None or None not in values
            gone[read.value or b""] = None
            yield self.about(read, read.offset)

    def follows(self, finding: Finding, before: Finding) -> bool:
        """Whether a finding without an offset directly follows another in the order of sending."""
        if finding.offset == before.offset == -1:
            return finding.other - before.other == 1
        return is_next_offset(finding, before)

    def causes(self, facts: Facts, anomaly: Anomaly) -> Iterator[SendCause]:
        """The election that made the loss final; it is equal for all records of a batch."""
        known: dict[tuple[int, int, int], SendCause] = {}
        for finding in anomaly.findings:
            place = _final_place(facts, anomaly.partition, finding.value)
            if place is None:
                sees = facts.recorder.sees_appends
                yield Unexplained.NEVER_APPENDED if sees else Unexplained.APPENDS_NOT_SEEN
                continue
            observed, append, offset = place
            batch = (append.at_ms, append.epoch, append.base_offset)
            if batch not in known:
                known[batch] = _final_election(facts, observed, append, offset)
            yield known[batch]

    def explain(self, facts: Facts, anomaly: Anomaly) -> Explanation:
        partition, value = anomaly.partition, anomaly.values[0]
        place = _final_place(facts, partition, value)
        if place is None:
            sees = facts.recorder.sees_appends
            story = (_never_appended if sees else _not_seen)(facts, anomaly)
            joining = _taken_for_a_copy(facts, anomaly)
            return Explanation([*story, *joining.links], joining.allowed)
        observed, append, offset = place
        links = [*_append_and_ack(facts, observed, append, offset, offset, value)]
        if anomaly.count > 1:
            links = [*_first_and_last(facts, anomaly, observed, append)] or links
        removed, allowed_by = losses(facts, observed, append, offset)
        return Explanation([*links, *removed], allowed_by)


def _final_place(
    facts: Facts, partition: Partition, value: bytes | None
) -> tuple[ObservedPartition, Append, int] | None:
    """The place that a record had when it was acked, or else its last one; None if it was never
    appended.

    It had others before if it was truncated and sent again.  The last one is of the highest epoch:
    a deposed leader may get a late attempt, in an older epoch.
    """
    places, send = facts.places(partition, value), facts.send(partition, value)
    if send is not None and send.outcome is Outcome.ACKED:
        acked = [
            place for place in places if place[2] == send.offset and place[1].at_ms <= send.ended_ms
        ]
        places = acked or places
    newest = [place for place in places if place[0] is places[-1][0]]
    return max(newest, key=lambda place: place[1].epoch, default=None)


def _final_election(
    facts: Facts, observed: ObservedPartition, append: Append, offset: int
) -> SendCause:
    for _, change, end in later_elections(facts, observed, append, offset):
        if end is not None and end <= offset:
            return change
    return Unexplained.NO_LATER_LEADER


def _first_and_last(
    facts: Facts, anomaly: Anomaly, observed: ObservedPartition, append: Append
) -> Iterator[Link]:
    """The appends of the first and the last of neighbouring records; a single one for all if one
    batch had them."""
    partition, (first, last) = anomaly.partition, anomaly.values
    place = _final_place(facts, partition, last)
    if place is None or anomaly.first < 0:
        return
    if place[1] is append:
        yield from _append_and_ack(facts, observed, append, anomaly.first, anomaly.last, first)
        return
    yield from _append_and_ack(facts, observed, append, anomaly.first, anomaly.first, first)
    _, end, offset = place
    yield from _append_and_ack(facts, observed, end, offset, offset, last)


def _append_and_ack(
    facts: Facts,
    observed: ObservedPartition,
    append: Append,
    first: int,
    last: int,
    value: bytes | None,
) -> Iterator[Link]:
    """The append, the ISR at that time with its reason, the ack, and the ends of the other logs.
    `value`: the first record's."""
    partition = (observed.topic, observed.partition)
    isr = tuple(append.isr)
    yield Link(append.at_ms, f.RangeAppended(first, last, append.broker, append.epoch, isr))
    yield from error_answered(facts, append, partition)
    send = facts.send(partition, value)
    is_acked = send is not None and send.outcome is Outcome.ACKED
    at_ms, by = append.at_ms, append.broker
    if send is not None and is_acked and send.acks != 0:
        at_ms, by = _acked(facts, append, send)
    registration = facts.registration(observed, at_ms)
    isr = isr if registration is None else tuple(registration.isr)
    replicas = () if registration is None else registration.replicas
    for broker in replicas:
        if broker not in isr:
            yield from _left_isr(facts, observed, broker, at_ms)
    if send is None or not is_acked:
        return
    ends = tuple(
        (broker, end)
        for broker in replicas
        if broker != append.broker and (end := facts.log_end(observed, broker, at_ms)) is not None
    )
    is_alone = isr == (append.broker,) and len(replicas) > 1
    is_enough = is_alone and send.acks == ACKS_ALL and observed.min_isr == 1
    acked = f.AckedAlone if is_enough else f.RangeAcked
    yield Link(at_ms, acked(first, last, send.acks, by, append.broker, isr, ends))


def _acked(facts: Facts, append: Append, send: SentRecord) -> tuple[int, int]:
    """The time of the ack, and the broker that sent it: the ack of the record's own request, or of
    a later attempt that was answered with its offset, as a duplicate.  If neither is known: (the
    time at which the producer got the ack, -1)."""
    answer = facts.answer(append.request)
    body = None if answer is None else answer[2].body
    if answer is not None and body is not None and not code_of(facts, body, send.partition):
        return answer[0], answer[1]
    request = append.request
    client = None if request is None else request.client_id
    until_ms = max(append.at_ms, send.ended_ms)
    for entry in facts.recorder.partition_answers(
        ApiKey.PRODUCE,
        lambda at: append.at_ms <= at[0] <= until_ms and at[2].request.client_id == client,
    ):
        is_same = entry.partition == send.partition and entry.base_offset == append.base_offset
        if is_same and not entry.error_code:
            return entry.at_ms, entry.broker
    return until_ms, -1


def _left_isr(facts: Facts, observed: ObservedPartition, broker: int, at_ms: int) -> Iterator[Link]:
    """The time and the reason of a broker's last departure from the ISR."""
    shrinks = facts.of_partition((observed.topic, observed.partition), IsrShrunk)
    before = [note for note, shrunk in shrinks if note.at_ms <= at_ms and broker in shrunk.removed]
    if before:
        yield from with_causes(facts, before[-1])


def _never_appended(facts: Facts, anomaly: Anomaly) -> Iterator[Link]:
    """The story of a record that no broker ever had: sent over a dead connection, or refused
    without an answer (acks=0)."""
    send = facts.send(anomaly.partition, anomaly.values[0])
    if send is None:
        return
    yield Link(send.sent_ms, f.NeverAppended(send.value, send.acks))
    partitions = facts.recorder.of_partition(anomaly.partition)
    registration = facts.registration(partitions[-1], send.sent_ms) if partitions else None
    if registration is None:
        return
    if registration.leader < 0:
        changes = facts.of_partition(anomaly.partition, LeaderChange)
        yield from (link(note) for note, _ in changes if note.at_ms <= send.sent_ms)
        return
    operation = facts.fault_of(registration.leader, send.sent_ms)
    if operation is not None:
        yield link(operation)
    yield from errors_of(facts, send.producer, send.sent_ms - 1_000, send.sent_ms + 1_000)


def _taken_for_a_copy(facts: Facts, anomaly: Anomaly) -> Explanation:
    """The explanation of a record whose batch was answered as a copy of an earlier batch with the
    same sequence and epoch: of a late one that had joined the record's transaction, or of one in a
    transaction that was aborted though the batch was appended (transactions of version 1)."""
    partition, offset = anomaly.partition, anomaly.first
    lost = facts.send(partition, anomaly.values[0])
    own = None if lost is None else lost.transaction
    for _, append in facts.appends_at(partition, offset) if own is not None else ():
        for at, name in facts.recorder.contents.of(append.batch):
            there = facts.send(partition, name) if at == offset else None
            if own is None or there is None or there.transaction is None:
                continue
            is_repeated = own.version == TRANSACTIONS_V1 and follows_in_epoch(
                own, there.transaction
            )
            if is_repeated or joined_later(facts, there) is own:
                return joined(own)
    return Explanation(())


def _not_seen(facts: Facts, anomaly: Anomaly) -> Iterator[Link]:
    """The story of a record where brokers' appends are not seen, as on a real Kafka: its send, its
    ack, and the next change of the leader."""
    send = facts.send(anomaly.partition, anomaly.values[0])
    if send is None:
        return
    yield Link(send.sent_ms, f.RecordSent(send.value))
    if send.outcome is Outcome.ACKED and send.acks != 0:
        yield Link(send.ended_ms, f.RecordAcked(send.value))
    changes = facts.of_partition(anomaly.partition, LeaderChange)
    later = [note for note, _ in changes if note.at_ms >= send.sent_ms]
    if later:
        yield from with_causes(facts, later[0])


def lost_range(missing: Missing) -> Anomaly:
    """The anomaly of acked records of which only the offsets are known."""
    return Anomaly(
        name=LostWrite.NAME,
        partition=missing.partition,
        count=missing.last - missing.first + 1,
        first=missing.first,
        last=missing.last,
        at_ms=missing.at_ms,
        fact=AckedInEpoch(missing.epoch),
    )
