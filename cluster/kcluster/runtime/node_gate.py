"""Rules at work between nodes: requests and answers that are delayed or dropped.

Owns: delayed messages and their order, the answers that a rule awaits, the notes about both.
Never: decides which rule applies (faults/rules.py), waits (the dispatcher calls back).
Kafka: between NetworkClient and the Processor of another node.

A gate exists only while there are rules between nodes.  In Kafka, a node has a connection of its
own for each kind of request to another node.  So a delayed message holds up the later ones of its
kind, and no others.  It is sent when its time has come; if the link is cut by then, it is lost.  A
dropped message vanishes: the exchange ends by the timeout of the node that asked, or when the rule
is removed, which resets the connections between the two nodes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, Protocol

from msgspec import Struct

from kcluster.contract import Event, Input, NoteId, PeerDisconnected, PeerRequest, PeerResponse
from kcluster.events.network import RuleRemoved
from kcluster.events.rule_effects import Delay, Drop, Half
from kcluster.faults import reports
from kcluster.faults.altering import drawn_us
from kcluster.faults.brokers import KnownByBroker
from kcluster.faults.calls import KnownCluster
from kcluster.faults.node_calls import KnownByController, node_call_of
from kcluster.faults.rules import ActiveRule, Call, Rule, RuleBook
from kcluster.runtime.process import Process
from kcluster.structs import Frozen

Message = PeerRequest | PeerResponse
Lane = tuple[int, int, type]
"""(source, destination, type of the body): messages that do not overtake each other."""
Exchange = tuple[int, int, int, int]
"""(the node that asks, its life, its request's number, the node that answers)."""
_AT_ONCE: Final = 0
_RECOVERY_US: Final = 60_000_000
"""The longest time in which nodes notice that a message was dropped: Kafka's default timeouts are
half of it."""


class NodeDelivery(Protocol):
    """A gate's interface to its dispatcher."""

    @property
    def now_us(self) -> int:
        """The current time."""

    @property
    def now_ms(self) -> int:
        """The current time, as nodes see it."""

    @property
    def processes(self) -> Mapping[int, Process]:
        """The processes of the cluster, by node id."""

    def post(self, source: int, process: Process, event: Input) -> None:
        """Send an event over the link from `source`."""

    def run(self) -> None:
        """Deliver the messages between nodes until none is left for the current time."""

    def later(self, at_us: int, callback: Callable[[], object]) -> None:
        """Call back at that time."""

    def note(self, event: Event, cause: NoteId | None = None) -> NoteId:
        """Record an action of a rule; returns the note's id, for later notes that it causes."""


class _Delayed(Struct):
    """A message on its way.  `rule`: the rule that delays it; "" for one behind such a message."""

    due_us: int
    rule: str
    source: int
    process: Process
    life: int
    message: Message


class _Awaited(Frozen, frozen=True):
    """An answer to which a rule applies when it comes."""

    rule: str
    entry: ActiveRule
    call: Call


class NodeGate:
    """All rules between the nodes of a cluster, with the messages that they delay."""

    def __init__(self, delivery: NodeDelivery, book: RuleBook) -> None:
        self.book = book
        self._delivery = delivery
        self._notes: dict[str, NoteId] = {}
        """The note of each rule's addition, by rule."""
        self._lanes: dict[Lane, deque[_Delayed]] = {}
        self._awaited: dict[Exchange, _Awaited] = {}
        self._dropped: dict[str, dict[tuple[int, int], None]] = {}
        """The (source, destination) of dropped messages, by rule."""
        self._impaired_until_us: dict[tuple[int, int], int] = {}
        self.acts = 0
        """The number of messages that rules have delayed or dropped."""

    def add(self, rule: Rule) -> str:
        """Add a rule after the others; returns its name."""
        name = self.book.add(rule, self._delivery.now_ms)
        self._notes[name] = self._delivery.note(reports.node_rule_added(name, rule))
        return name

    def remove(self, name: str) -> None:
        """Remove a rule, and send the messages that it delays."""
        entry = self.book.entries.pop(name)
        self._awaited = {key: one for key, one in self._awaited.items() if one.rule != name}
        self._delivery.note(RuleRemoved(name, entry.hits, entry.calls), self._notes.pop(name))
        for lane, delayed in list(self._lanes.items()):
            for one in delayed:
                if one.rule == name:
                    one.due_us = _AT_ONCE
            self._send_due(lane)
        for link in self._dropped.pop(name, ()):
            self._reset(*link)
        self._delivery.run()

    @property
    def is_idle(self) -> bool:
        """Whether there are no rules, and no message is delayed."""
        return not self.book.entries and not self._lanes

    @property
    def is_delaying(self) -> bool:
        """Whether a message is delayed at this moment."""
        return bool(self._lanes)

    def impairs(self, a: int, b: int) -> bool:
        """Whether two nodes may still wait for a message between them that a rule has delayed or
        dropped."""
        now_us, until_us = self._delivery.now_us, self._impaired_until_us
        return any(until_us.get(link, 0) > now_us for link in ((a, b), (b, a)))

    def passes(self, source: Process, process: Process, message: Message) -> bool:
        """Whether a message is sent to another process now; if not, the gate handles it."""
        lane = source.node_id, process.node_id, type(message.body)
        if isinstance(message, PeerRequest):
            rule, delay_us = self._asked(source, process, message)
        else:
            rule, delay_us = self._answered(source, process, message)
        if delay_us is None:
            return False
        if not delay_us and lane not in self._lanes:
            return True
        due_us = self._delivery.now_us + delay_us
        delayed = _Delayed(due_us, rule, source.node_id, process, process.life, message)
        self._lanes.setdefault(lane, deque()).append(delayed)
        self._delivery.later(due_us, partial(self._send_due, lane))
        return False

    def _asked(
        self, source: Process, process: Process, message: PeerRequest
    ) -> tuple[str, int | None]:
        """The rule that acts on a request now, and the delay; None: it is dropped."""
        known = _known(process)
        call = None if known is None else node_call_of(known, message)
        decided = None if call is None else self.book.decide(call, self._delivery.now_ms)
        if call is None or decided is None:
            return "", 0
        name, entry = decided
        if _is_of_answer(entry.rule):
            exchange = source.node_id, source.life, message.request_id, process.node_id
            self._awaited[exchange] = _Awaited(name, entry, call)
            return "", 0
        return name, self._act(name, entry, call, (source.node_id, process.node_id))

    def _answered(
        self, source: Process, process: Process, message: PeerResponse
    ) -> tuple[str, int | None]:
        """The rule that acts on an answer now, and the delay; None: it is dropped."""
        exchange = process.node_id, process.life, message.request_id, source.node_id
        awaited = self._awaited.pop(exchange, None)
        if awaited is None:
            return "", 0
        link = source.node_id, process.node_id
        return awaited.rule, self._act(awaited.rule, awaited.entry, awaited.call, link)

    def _act(self, name: str, entry: ActiveRule, call: Call, link: tuple[int, int]) -> int | None:
        """Note that a rule acts on a message; the delay, None if the message is dropped."""
        hit = reports.node_rule_hit(name, entry, call)
        if hit is not None:
            self._delivery.note(hit, self._notes[name])
        self.acts += 1
        effect, now_us = entry.rule.effect, self._delivery.now_us
        delay_us = drawn_us(effect, entry.rng) if isinstance(effect, Delay) else None
        if delay_us is None:
            self._dropped.setdefault(name, {})[link] = None
        until_us = now_us + (_RECOVERY_US if delay_us is None else delay_us)
        self._impaired_until_us[link] = max(self._impaired_until_us.get(link, 0), until_us)
        return delay_us

    def _reset(self, source: int, destination: int) -> None:
        """Notify two nodes that a connection between them is broken."""
        processes = self._delivery.processes
        for node, peer in ((source, destination), (destination, source)):
            if processes[node].node is not None:
                self._delivery.post(peer, processes[node], PeerDisconnected(peer))

    def _send_due(self, lane: Lane) -> None:
        """Send the messages of a lane whose time has come, in their order."""
        delayed = self._lanes.get(lane)
        while delayed and delayed[0].due_us <= self._delivery.now_us:
            first = delayed.popleft()
            if first.process.life == first.life:
                self._delivery.post(first.source, first.process, first.message)
        if delayed is not None and not delayed:
            del self._lanes[lane]


def _known(process: Process) -> KnownCluster | None:
    """What the node in a process knows of the cluster."""
    broker, controller = process.broker, process.controller
    if broker is not None:
        return KnownByBroker(broker)
    if controller is not None:
        return KnownByController(process.node_id, controller.image)
    return None


def _is_of_answer(rule: Rule) -> bool:
    effect = rule.effect
    assert isinstance(effect, Delay | Drop), effect
    return effect.of is Half.REPLY
