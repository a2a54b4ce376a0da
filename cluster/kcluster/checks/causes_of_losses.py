"""How a record came to be lost, or an offset to stand for two: from its append to the last replica
that dropped it.

Owns: the chains of what is gone from a log.  Never: guesses: each link is a note, an append, an
answer or a client's own word.  Kafka: no counterpart; what a person reads out of the logs of all
brokers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kcluster.checks.causes_of_sends import code_of, told_to
from kcluster.clients.ledger import Outcome, Partition, SentRecord
from kcluster.contract import Note
from kcluster.deaths import DeathKind
from kcluster.events.brokers import BrokerDown, BrokerEvent, RecordsLost
from kcluster.events.partitions import (
    BecameLeader,
    IsrShrunk,
    LeaderChange,
    LeaderElected,
    LogTruncated,
)
from kcluster.events.words import election_text
from kcluster.evidence.history import Anomaly, Link, shown
from kcluster.evidence.lookups import Facts, link
from kcluster.invariants.ground import Append, Ground
from kcluster.protocol.errors import error_of

UNCLEAN: Final = "unclean.leader.election.enable=true"
DISK_LOST: Final = "a disk lost"
UNFLUSHED: Final = "power lost before a flush"


def lost_story(facts: Facts, anomaly: Anomaly) -> tuple[list[Link], str]:
    """From the append and its ack to the last replica that dropped it; and what allowed it."""
    partition, value = anomaly.partition, anomaly.values[0]
    places = facts.places(partition, value)
    if not places:
        return list(_never_appended(facts, anomaly)), ""
    ground, append, offset = places[0]
    links = [*_kept(facts, ground, append, offset, offset, facts.send(partition, value))]
    if anomaly.count > 1:
        links = [*_span_of(facts, anomaly, ground, append)] or links
    losses, allowed_by = _losses(facts, ground, append, offset)
    return [*links, *losses], allowed_by


def _span_of(facts: Facts, anomaly: Anomaly, ground: Ground, append: Append) -> Iterator[Link]:
    """Of neighbours the first and the last are told, or all as one if they came in one batch."""
    partition, (first, last) = anomaly.partition, anomaly.values
    places = facts.places(partition, last)
    if not places or anomaly.first < 0:
        return
    send = facts.send(partition, first)
    if places[0][1] is append:
        yield from _kept(facts, ground, append, anomaly.first, anomaly.last, send)
        return
    yield from _kept(facts, ground, append, anomaly.first, anomaly.first, send)
    _, end, offset = places[0]
    yield from _kept(facts, ground, end, offset, offset, facts.send(partition, last))


def _kept(
    facts: Facts, ground: Ground, append: Append, first: int, last: int, send: SentRecord | None
) -> Iterator[Link]:
    """The append, who was in the ISR and why, the ack, and how far the others were then."""
    isr = list(append.isr)
    what = f"offset {first} was" if first == last else f"offsets {first} to {last} were"
    yield Link(
        append.at_ms,
        f"{what} appended by broker {append.broker}, leader in epoch {append.epoch}, ISR {isr}",
    )
    at_ms = append.at_ms
    answer = facts.answer(append.request)
    code = 0 if answer is None else code_of(answer[2].body, (ground.topic, ground.partition))
    if answer is not None and code:
        yield Link(answer[0], f"its producer was told {error_of(code).name}")
    acked = send is not None and send.outcome is Outcome.ACKED
    if send is not None and acked and send.acks != 0:
        answered = answer is not None and not code and answer[2].body is not None
        at_ms = answer[0] if answer is not None and answered else max(at_ms, send.ended_ms)
    registration = facts.registration(ground, at_ms)
    isr = isr if registration is None else list(registration.isr)
    replicas = () if registration is None else registration.replicas
    for broker in replicas:
        if broker not in isr:
            yield from _left_isr(facts, ground, broker, at_ms)
    if send is None or not acked:
        return
    ends = [
        f"broker {broker} ended at {end}"
        for broker in replicas
        if broker != append.broker and (end := facts.log_end(ground, broker, at_ms)) is not None
    ]
    how = _ack(send.acks, append.broker, isr)
    yield Link(at_ms, "; ".join((f"{what} {how}", ", ".join(ends))) if ends else f"{what} {how}")


def _ack(acks: int, leader: int, isr: list[int]) -> str:
    if acks == 0:
        return "sent without asking for an ack (acks=0)"
    if acks == 1:
        return f"acked by broker {leader} alone (acks=1)"
    alone = f" by broker {leader} alone" if isr == [leader] else ""
    return f"acked{alone} (acks=all, ISR {isr})"


def _left_isr(facts: Facts, ground: Ground, broker: int, at_ms: int) -> Iterator[Link]:
    """When a broker left the ISR last, and why."""
    shrinks = facts.of_partition((ground.topic, ground.partition), IsrShrunk)
    before = [note for note, shrunk in shrinks if note.at_ms <= at_ms and broker in shrunk.removed]
    if before:
        yield from facts.with_causes(before[-1])


def _losses(facts: Facts, ground: Ground, append: Append, offset: int) -> tuple[list[Link], str]:
    """Everything that took a record from a replica, and the elections that made it final."""
    partition = (ground.topic, ground.partition)
    links: list[Link] = []
    allowed_by = ""
    after = append.at_ms
    if ground.deleted_ms >= 0:
        links.append(Link(ground.deleted_ms, f"topic {ground.topic} was deleted"))
    registration = facts.registration(ground, after)
    for broker in registration.replicas if registration is not None else (append.broker,):
        for note, taker in facts.of_broker(broker, BrokerEvent):
            if note.at_ms < after or not _takes(taker, partition, offset):
                continue
            reached_ms = facts.reached(ground, append, broker)
            if reached_ms is None or reached_ms > note.at_ms:
                continue
            is_wipe = isinstance(taker, BrokerDown)
            links.append(link(note, f"broker {broker} lost its disk" if is_wipe else None))
            allowed_by = allowed_by or (DISK_LOST if is_wipe else UNFLUSHED)
    elections, unclean = _elections(facts, ground, append, offset)
    truncations = [
        link(note)
        for note, truncated in facts.of_partition(partition, LogTruncated)
        if note.at_ms >= after and truncated.to_offset <= offset < truncated.from_offset
    ]
    return [*links, *elections, *truncations], UNCLEAN if unclean else allowed_by


def _is_of(ground: Ground, note: Note) -> bool:
    """Whether a note about a partition is about it under this topic id."""
    since_ms = ground.registrations[0][0] if ground.registrations else 0
    return since_ms <= note.at_ms and not 0 <= ground.deleted_ms < note.at_ms


def _takes(event: BrokerEvent, partition: Partition, offset: int) -> bool:
    """Whether a broker lost what it had at that offset."""
    match event:
        case BrokerDown(how=DeathKind.WIPE):
            return True
        case RecordsLost(ranges=ranges):
            return any(
                (lost.topic, lost.partition) == partition
                and lost.from_offset <= offset < lost.to_offset
                for lost in ranges
            )
    return False


def _elections(
    facts: Facts, ground: Ground, append: Append, offset: int
) -> tuple[list[Link], bool]:
    """The elections from the append's epoch on up to the leader that began without the record,
    with why; and whether unclean.leader.election.enable allowed one of them."""
    partition = (ground.topic, ground.partition)
    starts = {
        (began.leader_epoch, began.broker): began.start_offset
        for note, began in facts.of_partition(partition, BecameLeader)
        if began.leader_epoch > append.epoch and _is_of(ground, note)
    }
    links: list[Link] = []
    unclean = False
    for note, change in facts.of_partition(partition, LeaderChange):
        # Also one before the append: of its leader's deposition a leader may hear too late.
        if change.leader_epoch <= append.epoch or not _is_of(ground, note):
            continue
        links += facts.with_causes(note)[:-1]
        unclean |= change.is_allowed_by_setting
        end = starts.get((change.leader_epoch, change.new_leader))
        if end is None or not isinstance(change, LeaderElected):
            links.append(link(note))
            continue
        how = "elected" if change.clean else "elected unclean"
        began_with = f"broker {change.new_leader}, log end {end}, {how}"
        text = f"{began_with} in epoch {change.leader_epoch}: {election_text(change)}"
        links.append(link(note, text))
        if end <= offset:
            break
    return links, unclean


def _never_appended(facts: Facts, anomaly: Anomaly) -> Iterator[Link]:
    """No broker ever had it: sent into a dead connection, or refused without a word (acks=0)."""
    send = facts.send(anomaly.partition, anomaly.values[0])
    if send is None:
        return
    yield Link(
        send.sent_ms, f"{shown(send.value)} was sent (acks={send.acks}); no broker has appended it"
    )
    grounds = facts.recorder.of_partition(anomaly.partition)
    registration = facts.registration(grounds[-1], send.sent_ms) if grounds else None
    if registration is None:
        return
    if registration.leader < 0:
        changes = facts.of_partition(anomaly.partition, LeaderChange)
        yield from (link(note) for note, _ in changes if note.at_ms <= send.sent_ms)
        return
    deed = facts.deed_before(registration.leader, send.sent_ms)
    if deed is not None:
        yield link(deed)
    yield from told_to(facts, send.producer, send.sent_ms - 1_000, send.sent_ms + 1_000)


def offset_story(facts: Facts, anomaly: Anomaly) -> tuple[list[Link], str]:
    """Everything that ever stood at an offset, and what took it away."""
    links: list[Link] = []
    allowed_by = ""
    offsets = [offset for offset in (anomaly.first, anomaly.other) if offset >= 0]
    for offset in dict.fromkeys(offsets):
        entries = facts.appends_at(anomaly.partition, offset)
        for number, (ground, append) in enumerate(entries):
            values = [
                value for at, value in facts.recorder.contents.of(append.batch) if at == offset
            ]
            name = shown(values[0]) if values else "a record"
            links.append(
                Link(
                    append.at_ms,
                    f"{name} was appended at offset {offset} by broker {append.broker}, leader in"
                    f" epoch {append.epoch}, ISR {list(append.isr)}",
                )
            )
            answer = facts.answer(append.request)
            code = code_of(answer[2].body, anomaly.partition) if answer is not None else 0
            if answer is not None and code:
                text = f"its producer was told {error_of(code).name}"
                links.append(Link(answer[0], text))
            if number + 1 < len(entries):
                losses, setting = _losses(facts, ground, append, offset)
                links += losses
                allowed_by = allowed_by or setting
    return links, allowed_by
