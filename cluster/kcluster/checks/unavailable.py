"""The reasons for a partition's unavailability to its clients, one after the other.

Owns: the reasons of a window.  Never: guesses; notes and registrations prove each reason. Kafka: no
counterpart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from kcluster.checks.chain import facts as f
from kcluster.checks.chain.links import Link, condensed, link
from kcluster.clients.ledger import Partition
from kcluster.contract import CONTROLLER_ID, Event, Note
from kcluster.events.brokers import BrokerEvent, BrokerFenced
from kcluster.events.network import LinkCut, LinkHealed, NodeRuleHit, RuleHit
from kcluster.events.partitions import IsrShrunk, LeaderChange, LeaderElected, PartitionEvent
from kcluster.evidence.lookups import CHANGES_OF_STATE, Facts, between
from kcluster.invariants.observed import ObservedPartition
from kcluster.metadata.records import PartitionRegistration

_TURNING_POINTS: Final[tuple[type[Event], ...]] = (
    *CHANGES_OF_STATE,
    BrokerFenced,
    LinkCut,
    LinkHealed,
)
"""Events after which the reason may change."""
_NUMBERS: Final = frozenset(
    ("leader_epoch", "partition_epoch", "connection_id", "correlation_id", "hit")
)
"""Fields that count events, or name a request."""


def reasons_of(
    facts: Facts,
    partition: Partition,
    is_write: bool,
    from_ms: int,
    to_ms: int,
    clients: Sequence[int],
) -> list[Link]:
    """The reasons why a partition was unavailable between two times, oldest first; `clients`: the
    affected clients, as nodes of the fabric."""
    partitions = [
        observed
        for observed in facts.recorder.of_partition(partition)
        if not 0 <= observed.deleted_ms < from_ms
    ]
    if not partitions:
        return []
    observed = partitions[0]
    wanted = (LeaderChange, IsrShrunk) if is_write else (LeaderChange,)
    reasons: dict[object, Link] = {}
    """The reasons by note, so that each appears once; an effect on this partition takes
    precedence."""
    for at_ms in _moments(facts, observed, from_ms, to_ms):
        for reason in _reasons_at(facts, observed, is_write, at_ms, clients):
            reasons.setdefault(reason.note_id or reason.fact, reason)
    for note, change in facts.of_partition(partition, PartitionEvent):
        if from_ms <= note.at_ms <= to_ms and isinstance(change, wanted):
            reasons.setdefault(note.note_id, link(note))
    operations = between(
        facts.notes, from_ms, to_ms, lambda x: _concerns(facts, observed, x, clients)
    )
    for entry in condensed(operations):
        reasons.setdefault(entry.note_id, entry)
    shaped = facts.shaped(from_ms)
    if shaped is not None:
        reasons.setdefault(shaped.note_id, link(shaped))
    if not reasons:
        reasons[""] = _stale_metadata(facts, observed, from_ms)
    return _counted(sorted(reasons.values(), key=lambda entry: entry.at_ms))


def _counted(links: list[Link]) -> list[Link]:
    """Each fact once; if it was found several times, with its count."""
    same: dict[bytes, list[Link]] = {}
    for entry in links:
        assert isinstance(entry.fact, Struct), entry
        same.setdefault(msgspec.msgpack.encode(_unnumbered(entry.fact)), []).append(entry)
    return [
        Link(first.at_ms, f.FoundAgain(first.fact, 1 + len(more)), first.note_id) if more else first
        for first, *more in same.values()
    ]


def _unnumbered(fact: Struct) -> Struct:
    """A fact without the numbers that differ each time it is found."""
    changes: dict[str, object] = dict.fromkeys(_NUMBERS.intersection(fact.__struct_fields__), 0)
    event = getattr(fact, "event", None)
    if isinstance(event, Struct):
        changes["event"] = _unnumbered(event)
    return replace(fact, **changes) if changes else fact


def _concerns(
    facts: Facts, observed: ObservedPartition, note: Note, clients: Sequence[int]
) -> bool:
    """Whether an operation affected this partition's brokers, or links between such a broker and
    these clients."""
    if not facts.is_operation(note):
        return False
    registration = facts.registration(observed, note.at_ms)
    replicas = () if registration is None else registration.replicas
    event = note.event
    if isinstance(event, LinkCut | LinkHealed | NodeRuleHit):
        known = [*replicas, CONTROLLER_ID, *clients]
        return event.source in known and event.destination in known
    if isinstance(event, BrokerEvent | RuleHit):
        return event.broker in replicas or event.broker == CONTROLLER_ID
    return True


def _moments(facts: Facts, observed: ObservedPartition, from_ms: int, to_ms: int) -> list[int]:
    """The moments at which the reason may have changed: the beginning, and each turning point."""
    moments = {from_ms: None}
    for at_ms, _ in observed.registrations:
        if from_ms < at_ms < to_ms:
            moments[at_ms] = None
    for note in facts.notes:
        if from_ms < note.at_ms < to_ms and isinstance(note.event, _TURNING_POINTS):
            moments[note.at_ms] = None
    return sorted(moments)


def _reasons_at(
    facts: Facts, observed: ObservedPartition, is_write: bool, at_ms: int, clients: Sequence[int]
) -> Iterator[Link]:
    registration = facts.registration(observed, at_ms)
    if registration is None:
        return
    leader = registration.leader
    if leader < 0:
        yield _leaderless(facts, observed, at_ms)
        return
    note = facts.away(leader, at_ms)
    if note is not None:
        yield link(note, f.LeaderAway(note.event, leader))
        yield from _not_noticed(facts, leader, at_ms)
        return
    yield from _cut_off(facts, leader, at_ms, clients)
    if not is_write:
        return
    if len(registration.isr) < observed.min_isr:
        yield _too_few(facts, observed, registration, at_ms)
    for broker in registration.isr:
        yield from _holds_back(facts, broker, leader, at_ms)


def _leaderless(facts: Facts, observed: ObservedPartition, at_ms: int) -> Link:
    changes = facts.of_partition((observed.topic, observed.partition), LeaderChange)
    since = [note for note, _ in changes if note.at_ms <= at_ms]
    if not since:
        return Link(at_ms, f.NeverLed(observed.name))
    return link(since[-1], f.Leaderless(since[-1].event))


def _not_noticed(facts: Facts, leader: int, at_ms: int) -> Iterator[Link]:
    """The reason that a dead leader was not yet fenced, or could not be replaced because the
    controller was down."""
    fenced = [note for note, _ in facts.of_broker(leader, BrokerFenced) if note.at_ms >= at_ms]
    if fenced:
        yield link(fenced[0], f.NotNoticed(fenced[0].event))
    note = facts.away(CONTROLLER_ID, at_ms)
    if note is not None:
        yield link(note, f.ControllerAway(note.event))


def _cut_off(facts: Facts, leader: int, at_ms: int, clients: Sequence[int]) -> Iterator[Link]:
    for client in clients:
        for ends in ((client, leader), (leader, client)):
            cut = facts.cut(*ends, at_ms)
            if cut is not None:
                yield link(cut, f.LeaderCutOff(leader, facts.client_name(client)))
                break
    for ends in ((CONTROLLER_ID, leader), (leader, CONTROLLER_ID)):
        cut = facts.cut(*ends, at_ms)
        if cut is not None:
            yield link(cut, f.LeaderCutOff(leader))
            break


def _too_few(
    facts: Facts, observed: ObservedPartition, registration: PartitionRegistration, at_ms: int
) -> Link:
    partition = (observed.topic, observed.partition)
    shrinks = facts.of_partition(partition, IsrShrunk)
    since = [note for note, _ in shrinks if note.at_ms <= at_ms]
    isr = tuple(registration.isr)
    if not since:
        return Link(at_ms, f.TooFewInSync(isr, observed.min_isr))
    return link(since[-1], f.TooFewInSync(isr, observed.min_isr, since[-1].event))


def _holds_back(facts: Facts, broker: int, leader: int, at_ms: int) -> Iterator[Link]:
    """The reason that a member of the ISR did not fetch, so that acks=all had to wait until it left
    the ISR."""
    if broker == leader:
        return
    note = facts.away(broker, at_ms)
    if note is not None:
        yield link(note, f.FollowerAway(note.event, broker))
        yield from _not_noticed(facts, broker, at_ms)
        return
    for ends in ((broker, leader), (leader, broker)):
        cut = facts.cut(*ends, at_ms)
        if cut is not None:
            yield link(cut, f.FollowerCutOff(broker, leader))
            return


def _stale_metadata(facts: Facts, observed: ObservedPartition, at_ms: int) -> Link:
    """The reason that the client did not yet know the leader, while no broker was at fault."""
    elections = facts.of_partition((observed.topic, observed.partition), LeaderElected)
    before = [election for election in elections if election[0].at_ms <= at_ms]
    if not before:
        return Link(at_ms, f.AllHealthy())
    note, elected = before[-1]
    return link(note, f.LeaderUnknown(elected))
