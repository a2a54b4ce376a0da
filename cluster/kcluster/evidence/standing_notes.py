"""The old events that still describe a present state, and are kept longer than others for that
reason.

Owns: this choice.  Never: drops an event (sampling.py does).
Kafka: no counterpart.

Without the event of its death an hour ago, a reader could not know that a broker is down.
"""

from __future__ import annotations

from collections.abc import Iterable

from kcluster.contract import Event, Note
from kcluster.events.brokers import (
    BrokerDown,
    BrokerFenced,
    BrokerPaused,
    BrokerResumed,
    BrokerStarted,
    BrokerUnfenced,
    ControllerDown,
    ControllerElected,
)
from kcluster.events.network import (
    LinkCut,
    LinkHealed,
    NetworkCut,
    NetworkHealed,
    NetworkShaped,
    NodeRuleAdded,
    RuleAdded,
    RuleRemoved,
)
from kcluster.events.topics import TopicDeleted

_STANDING: frozenset[type[Event]] = frozenset((
    BrokerStarted, BrokerResumed, BrokerPaused, BrokerDown, BrokerFenced, BrokerUnfenced,
    ControllerDown, ControllerElected, NetworkCut, NetworkHealed, LinkCut, LinkHealed,
    NetworkShaped, RuleAdded, NodeRuleAdded, RuleRemoved, TopicDeleted,
))  # fmt: skip
_NETWORK_SIDES = ("sides",)
_CONTROLLER = ("controller",)


def standing_notes(notes: Iterable[Note]) -> list[Note]:
    """The notes that still describe the state of a broker, a link or a rule."""
    found: dict[tuple[object, ...], Note] = {}
    # Most notes concern partitions, and there may be 50,000 of them at once.
    for note in [note for note in notes if type(note.event) in _STANDING]:
        match note.event:
            case (
                BrokerStarted(broker=broker)
                | BrokerResumed(broker=broker)
                | BrokerPaused(broker=broker)
                | BrokerDown(broker=broker)
            ):
                _put(found, ("process", broker), note)
            case BrokerFenced(broker=broker) | BrokerUnfenced(broker=broker):
                _put(found, ("fenced", broker), note)
            case ControllerDown() | ControllerElected():
                _put(found, _CONTROLLER, note)
            case NetworkCut() | NetworkHealed():
                _put(found, _NETWORK_SIDES, note)
            case LinkCut(source=source, destination=destination):
                _put(found, ("link", source, destination), note)
            case LinkHealed(source=source, destination=destination):
                found.pop(("link", source, destination), None)
            case NetworkShaped(restored=True):
                found = {key: one for key, one in found.items() if key[0] != "shape"}
            case NetworkShaped():
                _put(found, ("shape", note.note_id), note)
            case RuleAdded(rule=rule) | NodeRuleAdded(rule=rule):
                _put(found, ("rule", rule), note)
            case RuleRemoved(rule=rule):
                found.pop(("rule", rule), None)
            case TopicDeleted(topic=topic):
                _put(found, ("topic", topic), note)
    return list(found.values())


def _put(found: dict[tuple[object, ...], Note], key: tuple[object, ...], note: Note) -> None:
    """Move a key to the end, with a new value."""
    found.pop(key, None)
    found[key] = note
