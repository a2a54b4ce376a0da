"""Why a partition was not there for its clients during a time: what was the matter, one after the
other.

Owns: the reasons of a window.  Never: guesses: each is a state that notes and registrations prove.
Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from kcluster.clients.ledger import Partition
from kcluster.contract import CONTROLLER_ID, Note
from kcluster.evidence.history import Link
from kcluster.evidence.lookups import (
    CHANGES_OF_STATE,
    OF_LEADERS,
    Facts,
    between,
    link,
    told_once,
)
from kcluster.invariants.ground import Ground
from kcluster.metadata.image import PartitionRegistration
from kcluster.trace import kinds

_KINDS: Final = (*CHANGES_OF_STATE, kinds.BROKER_FENCED, kinds.LINK_CUT, kinds.LINK_HEALED)


def reasons_of(
    facts: Facts, partition: Partition, is_write: bool, from_ms: int, to_ms: int,
    clients: Sequence[int],
) -> list[Link]:  # fmt: skip
    """What was the matter with a partition between these times, oldest first; `clients`: those
    concerned, as nodes of the fabric."""
    grounds = [
        ground
        for ground in facts.recorder.of_partition(partition)
        if not 0 <= ground.deleted_ms < from_ms
    ]
    if not grounds:
        return []
    ground = grounds[0]
    found: dict[object, Link] = {}
    """By note, so that one is told once: as what it did to this partition, where that is known."""
    for at_ms in _moments(facts, ground, from_ms, to_ms):
        for reason in _matters(facts, ground, is_write, at_ms, clients):
            found.setdefault(reason.note_id or reason.text, reason)
    for note in facts.of_partition(partition, *OF_LEADERS, kinds.ISR_SHRUNK):
        if from_ms <= note.at_ms <= to_ms and (is_write or note.kind != kinds.ISR_SHRUNK):
            found.setdefault(note.note_id, link(note))
    deeds = between(facts.notes, from_ms, to_ms, lambda x: _concerns(facts, ground, x, clients))
    for entry in told_once(deeds):
        found.setdefault(entry.note_id, entry)
    shaped = facts.shaped(from_ms)
    if shaped is not None:
        found.setdefault(shaped.note_id, link(shaped))
    if not found:
        found[""] = _nothing_but_news(facts, ground, from_ms)
    return _counted(sorted(found.values(), key=lambda entry: entry.at_ms))


def _counted(links: list[Link]) -> list[Link]:
    """What happened again and again is told once, with how often."""
    times: dict[str, int] = {}
    for entry in links:
        times[entry.text] = times.get(entry.text, 0) + 1
    once = {entry.text: entry for entry in reversed(links)}
    return [
        Link(entry.at_ms, f"{entry.text} ({times[entry.text]} times)", entry.note_id)
        if times[entry.text] > 1
        else entry
        for entry in reversed(once.values())
    ]


def _concerns(facts: Facts, ground: Ground, note: Note, clients: Sequence[int]) -> bool:
    """Whether something that was done to the cluster was done to this partition's brokers, or
    between one of them and these clients."""
    if not facts.is_deed(note):
        return False
    registration = facts.registration(ground, note.at_ms)
    replicas = () if registration is None else registration.replicas
    if note.kind in (kinds.LINK_CUT, kinds.LINK_HEALED):
        ends = (note.data.get("source"), note.data.get("to"))
        known = (*replicas, CONTROLLER_ID, *clients)
        return ends[0] in known and ends[1] in known
    broker = note.data.get("broker")
    return broker is None or broker in (*replicas, CONTROLLER_ID)


def _moments(facts: Facts, ground: Ground, from_ms: int, to_ms: int) -> list[int]:
    """When something may have become the matter: at the beginning, and after each change."""
    moments = {from_ms: None}
    for at_ms, _ in ground.registrations:
        if from_ms < at_ms < to_ms:
            moments[at_ms] = None
    for note in facts.notes:
        if from_ms < note.at_ms < to_ms and note.kind in _KINDS:
            moments[note.at_ms] = None
    return sorted(moments)


def _matters(
    facts: Facts, ground: Ground, is_write: bool, at_ms: int, clients: Sequence[int]
) -> Iterator[Link]:
    registration = facts.registration(ground, at_ms)
    if registration is None:
        return
    leader = registration.leader
    if leader < 0:
        yield _leaderless(facts, ground, at_ms)
        return
    state, note = facts.state(leader, at_ms)
    if note is not None and state != "up":
        yield Link(note.at_ms, f"leader {leader} {_gone(note)}", note.note_id)
        yield from _not_noticed(facts, leader, at_ms)
        return
    yield from _cut_off(facts, leader, at_ms, clients)
    if not is_write:
        return
    if len(registration.isr) < ground.min_isr:
        yield _too_few(facts, ground, registration, at_ms)
    for broker in registration.isr:
        yield from _holds_back(facts, broker, leader, at_ms)


def _gone(note: Note) -> str:
    return "was paused" if note.kind == kinds.BROKER_PAUSED else f"went down: {note.text}"


def _leaderless(facts: Facts, ground: Ground, at_ms: int) -> Link:
    notes = facts.of_partition((ground.topic, ground.partition), *OF_LEADERS)
    since = [note for note in notes if note.at_ms <= at_ms]
    if not since:
        return Link(at_ms, f"{ground.name} has no leader yet")
    return Link(since[-1].at_ms, f"no leader since: {since[-1].text}", since[-1].note_id)


def _not_noticed(facts: Facts, leader: int, at_ms: int) -> Iterator[Link]:
    """A dead leader is one until it is fenced; nobody is elected while the controller is away."""
    fenced = [note for note in facts.of_broker(leader, kinds.BROKER_FENCED) if note.at_ms >= at_ms]
    if fenced:
        text = f"not noticed until: {fenced[0].text}"
        yield Link(fenced[0].at_ms, text, fenced[0].note_id)
    state, note = facts.state(CONTROLLER_ID, at_ms)
    if note is not None and state != "up":
        yield Link(note.at_ms, f"the controller is away: {note.text}", note.note_id)


def _cut_off(facts: Facts, leader: int, at_ms: int, clients: Sequence[int]) -> Iterator[Link]:
    for client in clients:
        for ends in ((client, leader), (leader, client)):
            cut = facts.cut(*ends, at_ms)
            if cut is not None:
                text = f"leader {leader} is cut off from {facts.client_name(client)}"
                yield Link(cut.at_ms, text, cut.note_id)
                break
    for ends in ((CONTROLLER_ID, leader), (leader, CONTROLLER_ID)):
        cut = facts.cut(*ends, at_ms)
        if cut is not None:
            text = f"leader {leader} is cut off from the controller"
            yield Link(cut.at_ms, text, cut.note_id)
            break


def _too_few(facts: Facts, ground: Ground, registration: PartitionRegistration, at_ms: int) -> Link:
    partition = (ground.topic, ground.partition)
    shrinks = facts.of_partition(partition, kinds.ISR_SHRUNK)
    since = [note for note in shrinks if note.at_ms <= at_ms]
    text = f"ISR {list(registration.isr)} below min.insync.replicas {ground.min_isr}"
    if not since:
        return Link(at_ms, text)
    return Link(since[-1].at_ms, f"{text} since: {since[-1].text}", since[-1].note_id)


def _holds_back(facts: Facts, broker: int, leader: int, at_ms: int) -> Iterator[Link]:
    """A member of the ISR that does not fetch: acks=all waits until it has left."""
    if broker == leader:
        return
    state, note = facts.state(broker, at_ms)
    if note is not None and state != "up":
        text = f"broker {broker}, in the ISR, {_gone(note)}; acks=all waits until it has left"
        yield Link(note.at_ms, text, note.note_id)
        yield from _not_noticed(facts, broker, at_ms)
        return
    for ends in ((broker, leader), (leader, broker)):
        cut = facts.cut(*ends, at_ms)
        if cut is not None:
            text = f"broker {broker}, in the ISR, is cut off from leader {leader}"
            yield Link(cut.at_ms, f"{text}; acks=all waits until it has left", cut.note_id)
            return


def _nothing_but_news(facts: Facts, ground: Ground, at_ms: int) -> Link:
    """The brokers were well: the client did not know yet who leads."""
    elected = facts.of_partition((ground.topic, ground.partition), kinds.LEADER_ELECTED)
    before = [note for note in elected if note.at_ms <= at_ms]
    if not before:
        return Link(at_ms, "every broker concerned was well")
    note = before[-1]
    text = f"broker {note.data['new']} led already; its clients had yet to learn it: {note.text}"
    return Link(note.at_ms, text, note.note_id)
