"""The origin of an outage: the operations on the cluster at one moment, as a value.

Owns: `Origin`, and the search for the operation behind a note.  Never: words (verdict_words.py).
Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct

from kcluster.config.topology.specs import BrokerSpec
from kcluster.contract import Event, Note
from kcluster.deaths import DeathKind
from kcluster.events.brokers import (
    BrokerDown,
    BrokerFenced,
    BrokerPaused,
    ControlledShutdown,
    ControllerDown,
    DiskFull,
    DiskReplaced,
)
from kcluster.events.network import LinkCut, NetworkCut, NetworkShaped, NodeRuleHit, RuleHit
from kcluster.events.partitions import IsrShrunk, LeaderChange, ReassignmentEvent
from kcluster.events.reasons import OutOfSync, PeriodicCheck, Requested
from kcluster.evidence.lookups import Facts


class OriginKind(StrEnum):
    """The operations that begin outages, the most explanatory first."""

    KILLED = "killed"
    LOST_POWER = "lost_power"
    WIPED = "wiped"
    DISK_FULL = "disk_full"
    STOPPED = "stopped"
    PAUSED = "paused"
    CUT_OFF = "cut_off"
    CONTROLLER_DOWN = "controller_down"
    ELECTION = "election"
    REASSIGNMENT = "reassignment"
    RULE = "rule"
    SHAPED = "shaped"


class Origin(Struct, frozen=True):
    """The operation that began an outage, at `at_ms` of the cluster's clock.  `nodes`: the brokers
    on which it acted; `rack`: the rack, if these are all of its brokers; `noticed_ms`: the time at
    which the controller fenced the first of them, -1 if it did not, or need not."""

    kind: OriginKind
    at_ms: int
    nodes: tuple[int, ...] = ()
    rack: str = ""
    noticed_ms: int = -1


_DEATHS: Final = {
    DeathKind.KILL: OriginKind.KILLED,
    DeathKind.POWER: OriginKind.LOST_POWER,
    DeathKind.WIPE: OriginKind.WIPED,
    DeathKind.CLEAN: OriginKind.STOPPED,
}
_NEEDS_NO_NOTICE: Final = (OriginKind.STOPPED, OriginKind.ELECTION, OriginKind.REASSIGNMENT)
_ORDER: Final = {kind: place for place, kind in enumerate(OriginKind)}


def origin_of(facts: Facts, notes: Iterable[Note], until_ms: int) -> Origin | None:
    """The operation behind these notes, before `until_ms`: the first one on a broker's process or
    links; without one, the first that moved a leader, matched a rule or shaped links."""
    found: dict[OriginKind, Note] = {}
    for note in notes:
        for each in (note, *facts.causes_of(note), *_behind(facts, note)):
            kind = _kind_of(each.event)
            if kind is None or each.at_ms > until_ms:
                continue
            before = found.get(kind)
            if before is None or each.at_ms < before.at_ms:
                found[kind] = each
    if not found:
        return None
    strong = [kind for kind in found if _ORDER[kind] < _ORDER[OriginKind.ELECTION]]
    if strong:
        kind = min(strong, key=lambda each: (found[each].at_ms, _ORDER[each]))
    else:
        kind = min(found, key=lambda each: _ORDER[each])
    return _origin(facts, kind, found[kind].at_ms)


def _behind(facts: Facts, note: Note) -> Iterable[Note]:
    """The faults of the replicas that a leader reports out of sync."""
    event = note.event
    if isinstance(event, IsrShrunk) and isinstance(event.reason, OutOfSync):
        for broker in event.removed:
            fault = facts.fault_of(broker, note.at_ms)
            if fault is not None:
                yield fault
        shaped = facts.shaped(note.at_ms)
        if shaped is not None:
            yield shaped


def _kind_of(event: Event) -> OriginKind | None:
    match event:
        case BrokerDown(how=how):
            return _DEATHS[how]
        case DiskFull():
            return OriginKind.DISK_FULL
        case DiskReplaced():
            return OriginKind.WIPED
        case ControlledShutdown():
            return OriginKind.STOPPED
        case BrokerPaused():
            return OriginKind.PAUSED
        case LinkCut() | NetworkCut():
            return OriginKind.CUT_OFF
        case ControllerDown():
            return OriginKind.CONTROLLER_DOWN
        case NetworkShaped(undone=False):
            return OriginKind.SHAPED
        case RuleHit() | NodeRuleHit():
            return OriginKind.RULE
        case LeaderChange(reason=Requested() | PeriodicCheck()):
            return OriginKind.ELECTION
        case ReassignmentEvent():
            return OriginKind.REASSIGNMENT
    return None


def _origin(facts: Facts, kind: OriginKind, at_ms: int) -> Origin:
    """The origin that covers all brokers on which one fault acted at one time."""
    same = [note.event for note in facts.notes_at(at_ms) if _kind_of(note.event) is kind]
    sides = [event for event in same if isinstance(event, NetworkCut)]
    specs = facts.recorder.plan.topology.brokers
    known = {spec.id for spec in specs}
    nodes = tuple(sorted({node for event in sides or same for node in _nodes_of(event)} & known))
    noticed_ms = -1
    if kind not in _NEEDS_NO_NOTICE:
        fenced = (
            note.at_ms
            for node in nodes
            for note, _ in facts.of_broker(node, BrokerFenced)
            if note.at_ms >= at_ms
        )
        noticed_ms = min(fenced, default=-1)
    return Origin(kind, at_ms, nodes, _rack_of(specs, nodes), noticed_ms)


def _rack_of(specs: Sequence[BrokerSpec], nodes: tuple[int, ...]) -> str:
    """The rack that has exactly these brokers; "" if there is none, or no other rack."""
    racks = {spec.rack for spec in specs if spec.id in nodes}
    rack = racks.pop() if len(racks) == 1 else None
    members = tuple(sorted(spec.id for spec in specs if spec.rack == rack))
    return rack if rack and members == nodes and 1 < len(nodes) < len(specs) else ""


def _nodes_of(event: Event) -> Iterable[int]:
    match event:
        case BrokerDown(broker=broker) | BrokerPaused(broker=broker) | DiskFull(broker=broker):
            return (broker,)
        case DiskReplaced(broker=broker):
            return (broker,)
        case ControlledShutdown(broker=broker) | RuleHit(broker=broker):
            return (broker,)
        case NetworkCut(nodes=nodes) | NetworkShaped(nodes=nodes):
            return nodes
        case LinkCut(source=source, destination=destination):
            return (source, destination)
        case NodeRuleHit(source=source, destination=destination):
            return (source, destination)
    return ()
