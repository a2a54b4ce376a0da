"""The state of brokers, controller, links and rules at one time, from the events up to that time.

Owns: the sum of these events. Never: knows partitions; makes words.
Kafka: no counterpart.

Without an event, a state is as it was when the run began: brokers up, links whole.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kcluster.deaths import DeathKind, ProcessState
from kcluster.events import AnyEvent
from kcluster.events.brokers import (
    BrokerDown,
    BrokerEvent,
    BrokerFenced,
    BrokerPaused,
    BrokerResumed,
    BrokerStarted,
    BrokerUnfenced,
    ControllerDown,
    ControllerEvent,
    DiskReplaced,
)
from kcluster.events.network import (
    LinkCut,
    LinkEvent,
    LinkHealed,
    NetworkCut,
    NetworkEvent,
    NetworkHealed,
    NetworkShaped,
    NodeRuleAdded,
    RuleAdded,
    RuleEvent,
    RuleRemoved,
)
from kcluster.events.rule_effects import AnyEffect
from kcluster.events.topics import TopicDeleted, TopicEvent
from kcluster.runs.record import NoteRow

Link = tuple[int, int]
STATE_EVENTS: Final = (
    BrokerEvent, ControllerEvent, LinkEvent, NetworkEvent, RuleEvent, TopicEvent,
)  # fmt: skip
"""The events that change the state of a node, a link or a rule."""


class NodeStates:
    """The states of the nodes after the events until `at_ms`.  `cuts`: (source, destination);
    `sides`: sets of nodes that reached each other; `impaired`: each impairment, by link;
    `clients`: names of the nodes that are clients."""

    def __init__(self, notes: Iterable[NoteRow], at_ms: int) -> None:
        self.controller_is_active = True
        self.cuts: dict[Link, None] = {}
        self.sides: tuple[tuple[int, ...], ...] = ()
        self.impaired: dict[Link, list[NetworkShaped]] = {}
        self.clients: dict[int, str] = {}
        self.rules: dict[str, AnyEffect] = {}
        self.deleted_ms: dict[str, int] = {}
        """The time of a topic's last deletion, by name."""
        self.started_later: dict[int, None] = {}
        """The brokers that were started for the first time after `at_ms`."""
        self._processes: dict[int, tuple[ProcessState, DeathKind | None]] = {}
        self._fenced: dict[int, bool] = {}
        for note in notes:
            if note.at_ms <= at_ms:
                self._take(note.at_ms, note.event)
            elif isinstance(note.event, BrokerStarted) and not note.event.restarted:
                self.started_later[note.event.broker] = None

    def process_of(self, broker: int) -> ProcessState:
        """The state of a broker's process."""
        return self._processes.get(broker, (ProcessState.UP, None))[0]

    def death_of(self, broker: int) -> DeathKind | None:
        """The way in which a broker's process ended; None if it has not."""
        return self._processes.get(broker, (ProcessState.UP, None))[1]

    def is_fenced(self, broker: int) -> bool:
        """Whether the controller had fenced the broker."""
        return self._fenced.get(broker, False)

    def _take(self, at_ms: int, event: AnyEvent) -> None:
        if isinstance(event, BrokerEvent):
            self._take_broker(event)
        elif isinstance(event, ControllerEvent):
            self.controller_is_active = not isinstance(event, ControllerDown)
        elif isinstance(event, LinkEvent | NetworkEvent):
            self._take_network(event)
        elif isinstance(event, RuleAdded | NodeRuleAdded):
            self.rules[event.rule] = event.effect
        elif isinstance(event, RuleRemoved):
            self.rules.pop(event.rule, None)
        elif isinstance(event, TopicDeleted):
            self.deleted_ms[event.topic] = at_ms

    def _take_broker(self, event: BrokerEvent) -> None:
        broker = event.broker
        match event:
            case BrokerStarted() | BrokerResumed():
                self._processes[broker] = (ProcessState.UP, None)
            case BrokerPaused():
                self._processes[broker] = (ProcessState.PAUSED, None)
            case BrokerDown(how=how):
                self._processes[broker] = (ProcessState.DOWN, how)
            case DiskReplaced():
                self._processes[broker] = (ProcessState.DOWN, DeathKind.WIPE)
            case BrokerFenced():
                self._fenced[broker] = True
            case BrokerUnfenced():
                self._fenced[broker] = False

    def _take_network(self, event: LinkEvent | NetworkEvent) -> None:
        match event:
            case LinkCut():
                self.cuts[event.source, event.destination] = None
            case LinkHealed():
                self.cuts.pop((event.source, event.destination), None)
            case NetworkCut() | NetworkHealed():
                self.sides = event.sides
                self.clients.update(event.clients)
            case NetworkShaped():
                self.clients.update(event.clients)
                for link in event.links:
                    if not event.undone:
                        self.impaired.setdefault(link, []).append(event)
                    elif link not in event.remaining:
                        self.impaired.pop(link, None)
