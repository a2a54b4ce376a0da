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
from kcluster.clients.ledger import Outcome, Partition, Send
from kcluster.contract import Note
from kcluster.controller.partitions.elections import LAST_KNOWN
from kcluster.evidence.history import Anomaly, Link, shown
from kcluster.evidence.lookups import OF_LEADERS, Facts, link
from kcluster.invariants.ground import Append, Ground
from kcluster.protocol.errors import error_of
from kcluster.trace import kinds

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
    losses, let = _losses(facts, ground, append, offset)
    return [*links, *losses], let


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
    facts: Facts, ground: Ground, append: Append, first: int, last: int, send: Send | None
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
    notes = facts.of_partition((ground.topic, ground.partition), kinds.ISR_SHRUNK)
    before = [note for note in notes if note.at_ms <= at_ms and broker in note.data["removed"]]
    if before:
        yield from facts.with_causes(before[-1])


def _losses(facts: Facts, ground: Ground, append: Append, offset: int) -> tuple[list[Link], str]:
    """Everything that took a record from a replica, and the elections that made it final."""
    partition = (ground.topic, ground.partition)
    links: list[Link] = []
    let = ""
    after = append.at_ms
    if ground.deleted_ms >= 0:
        links.append(Link(ground.deleted_ms, f"topic {ground.topic} was deleted"))
    registration = facts.registration(ground, after)
    for broker in registration.replicas if registration is not None else (append.broker,):
        for note in facts.of_broker(broker, kinds.BROKER_DOWN, kinds.RECORDS_LOST):
            if note.at_ms < after or not _takes(note, partition, offset):
                continue
            reached_ms = facts.reached(ground, append, broker)
            if reached_ms is None or reached_ms > note.at_ms:
                continue
            links.append(
                link(
                    note,
                    f"broker {broker} lost its disk" if note.data.get("how") == "wipe" else None,
                )
            )
            let = let or (DISK_LOST if note.data.get("how") == "wipe" else UNFLUSHED)
    elections, unclean = _elections(facts, ground, append, offset)
    truncations = [
        link(note)
        for note in facts.of_partition(partition, kinds.LOG_TRUNCATED)
        if note.at_ms >= after and note.data["to_offset"] <= offset < note.data["from_offset"]
    ]
    return [*links, *elections, *truncations], UNCLEAN if unclean else let


def _is_of(ground: Ground, note: Note) -> bool:
    """Whether a note about a partition is about it under this topic id."""
    since_ms = ground.registrations[0][0] if ground.registrations else 0
    return since_ms <= note.at_ms and not 0 <= ground.deleted_ms < note.at_ms


def _takes(note: Note, partition: Partition, offset: int) -> bool:
    if note.kind == kinds.BROKER_DOWN:
        return note.data.get("how") == "wipe"
    lost = note.data.get("partitions")
    if lost is None:
        return True
    span = lost.get(f"{partition[0]}-{partition[1]}")
    return span is not None and span[0] <= offset < span[1]


def _elections(
    facts: Facts, ground: Ground, append: Append, offset: int
) -> tuple[list[Link], bool]:
    """The elections from the append's epoch on up to the leader that began without the record,
    with why; and whether unclean.leader.election.enable allowed one of them."""
    partition = (ground.topic, ground.partition)
    starts = {
        (note.data["epoch"], note.note_id[0]): note.data["offset"]
        for note in facts.of_partition(partition, kinds.BECAME_LEADER)
        if note.data["epoch"] > append.epoch and _is_of(ground, note)
    }
    links: list[Link] = []
    unclean = False
    for note in facts.of_partition(partition, *OF_LEADERS):
        # Also one before the append: of its leader's deposition a leader may hear too late.
        if note.data["epoch"] <= append.epoch or not _is_of(ground, note):
            continue
        links += facts.with_causes(note)[:-1]
        end = starts.get((note.data["epoch"], note.data["new"]))
        if note.kind == kinds.PARTITION_OFFLINE or end is None:
            links.append(link(note))
            unclean |= _is_by_setting(note)
            continue
        how = "elected unclean" if not note.data["clean"] else "elected"
        why = note.text.partition(": ")[2]
        links.append(
            Link(
                note.at_ms,
                f"broker {note.data['new']}, log end {end}, {how} in epoch"
                f" {note.data['epoch']}: {why}",
                note.note_id,
            )
        )  # fmt: skip
        unclean |= _is_by_setting(note)
        if end <= offset:
            break
    return links, unclean


def _is_by_setting(note: Note) -> bool:
    """Whether only unclean.leader.election.enable allows it: the last known leader is elected
    without."""
    return not note.data["clean"] and LAST_KNOWN not in note.text


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
        notes = facts.of_partition(anomaly.partition, *OF_LEADERS)
        yield from (link(note) for note in notes if note.at_ms <= send.sent_ms)
        return
    deed = facts.deed_before(registration.leader, send.sent_ms)
    if deed is not None:
        yield link(deed)
    yield from told_to(facts, send.producer, send.sent_ms - 1_000, send.sent_ms + 1_000)


def offset_story(facts: Facts, anomaly: Anomaly) -> tuple[list[Link], str]:
    """Everything that ever stood at an offset, and what took it away."""
    links: list[Link] = []
    let = ""
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
            )  # fmt: skip
            answer = facts.answer(append.request)
            code = code_of(answer[2].body, anomaly.partition) if answer is not None else 0
            if answer is not None and code:
                text = f"its producer was told {error_of(code).name}"
                links.append(Link(answer[0], text))
            if number + 1 < len(entries):
                losses, allowed = _losses(facts, ground, append, offset)
                links += losses
                let = let or allowed
    return links, let
