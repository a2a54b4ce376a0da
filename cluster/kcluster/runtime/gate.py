"""Rules at work between clients and brokers, on either clock.

Owns: held requests, silenced connections, replies that must be changed, and the notes about all of
these.  Never: decides which rule applies (faults/rules.py), changes a message
(faults/altering.py), waits (the dispatcher calls back).  Kafka: between SocketServer and
KafkaApis, where requests and responses pass.

A gate exists only while there are rules.  Requests pass it just before the broker gets them, so a
connection's next request follows the reply to its previous one (contract.py, 6).  A connection
whose request or reply was dropped stays silent, and is closed when its rule is removed.

Every reply that a client gets, also from the gate, goes to the reply sinks; dropped replies do not.

A rule on records is decided at the broker's reply.  The copy of a Produce is a request of the gate,
and so is its reply, which no client gets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final, Protocol

from msgspec import Struct

from kcluster.broker.node_view import BrokerNodeView
from kcluster.contract import Event, Input, NoteId, Reply, Request, Tick
from kcluster.deaths import ProcessState
from kcluster.events.network import RuleRemoved
from kcluster.events.rule_effects import (
    EFFECTS_ON_RECORDS,
    AnswerError,
    AnyEffect,
    CapVersion,
    Close,
    CloseTime,
    Delay,
    Drop,
    DuplicateRecords,
    EmptyFetch,
    Half,
    Reorder,
    StaleMetadata,
    ThrottleClient,
)
from kcluster.faults import reports
from kcluster.faults.altering import (
    Altered,
    AnswerChange,
    ProducedBatch,
    batches_of,
    drawn_us,
    duplicate_of,
    has_records,
    throttled,
    with_altered_records,
    with_caps,
    with_error,
)
from kcluster.faults.brokers import KnownByBroker, StaleImage
from kcluster.faults.calls import call_of, served_call_of
from kcluster.faults.rules import ActiveRule, Rule, RuleBook
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.messages import Message
from kcluster.runtime.process import Process

MAX_SILENCED: Final = 10_000
NO_CONNECTION: Final = 0
"""The connection of the gate's own requests; drivers number connections from 1."""

ReplyChange = Callable[[int, Reply], Reply | None]
"""Makes the reply for the client: (broker id, reply) -> reply; None if the client gets none now."""


class Delivery(Protocol):
    """A gate's interface to its dispatcher."""

    gate: FaultGate | None
    """The gate that requests pass; None: they go to the broker directly."""

    @property
    def now_us(self) -> int:
        """The current time."""

    @property
    def now_ms(self) -> int:
        """The current time, as nodes see it."""

    @property
    def processes(self) -> Mapping[int, Process]:
        """The processes of the cluster, by node id."""

    @property
    def tap(self) -> Callable[[int, int, Input], None] | None:
        """Called with (now_us, node id, event) before an event is delivered."""

    @property
    def withheld_sinks(self) -> Iterable[Callable[[Reply], None]]:
        """Called with replies that a rule withholds from their clients or delays."""

    def dispatch(self, node_id: int, event: Input) -> None:
        """Deliver an event to a node at the current time, and run."""

    def later(self, at_us: int, callback: Callable[[], object]) -> None:
        """Call back at that time."""

    def send_reply(self, node_id: int, reply: Reply) -> None:
        """Send a broker's reply to its client."""

    def close_connection(self, node_id: int, connection_id: int, reason: str) -> None:
        """Close a client's connection to a broker."""

    def note(self, event: Event, cause: NoteId | None = None) -> NoteId:
        """Record an action of a rule; returns the note's id, for later notes that it causes."""


class _Held(Struct):
    """A request that waits until another one overtakes it."""

    node_id: int
    life: int
    request: Request
    entry: ActiveRule


class FaultGate:
    """All rules of a cluster, with their actions in progress."""

    def __init__(self, delivery: Delivery, book: RuleBook) -> None:
        self.book = book
        self._delivery = delivery
        self._notes: dict[str, NoteId] = {}
        """The note of each rule's addition, by rule."""
        self._changes: dict[int, ReplyChange] = {}
        """The change of the reply to each connection's present request, by connection."""
        self._silent_until_ms: dict[int, int] = {}
        self._silenced: dict[str, list[tuple[int, int]]] = {}
        """The (broker, connection) pairs that get no more replies, by rule."""
        self._held: list[_Held] = []
        self._stale: dict[str, dict[int, StaleImage]] = {}
        """The old metadata by rule and broker."""
        self._batches: dict[int, list[ProducedBatch]] = {}
        """The batches of each connection's present Produce, while a rule may copy them."""
        self._copies = 0
        """The number of copies that are to be appended at this moment."""

    # -------------------------------------------------------------------------------- the rules

    def add(self, rule: Rule) -> str:
        """Add a rule after the others; RuleError if its name is taken."""
        delivery = self._delivery
        name = self.book.add(rule, delivery.now_ms)
        self._notes[name] = delivery.note(reports.added(name, rule))
        if isinstance(rule.effect, StaleMetadata):
            self._stale[name] = {
                node_id: StaleImage(node)
                for node_id, process in delivery.processes.items()
                if (node := process.broker) is not None
            }
        return name

    def remove(self, name: str) -> None:
        """Remove a rule: release the requests that it holds, close the connections that it
        silenced."""
        entry = self.book.entries.pop(name)
        self._stale.pop(name, None)
        for held in [x for x in self._held if x.entry is entry]:
            self._release(held)
        for node_id, connection_id in self._silenced.pop(name, ()):
            if self._delivery.processes[node_id].node is not None:
                self._close(node_id, connection_id, name)
        if not self.book.has((DuplicateRecords,)):
            self._batches.clear()
        cause = self._notes.pop(name)
        self._delivery.note(RuleRemoved(name, entry.hits, entry.calls), cause)

    @property
    def is_idle(self) -> bool:
        """Whether there are no rules, and no effect of a rule is in progress."""
        if self.book.entries or self._changes or self._copies:
            return False
        now_ms = self._delivery.now_ms
        return all(until_ms <= now_ms for until_ms in self._silent_until_ms.values())

    # --------------------------------------------------------------------------------- requests

    def admit(self, node_id: int, request: Request) -> bool:
        """Whether the broker gets this request now; if not, the gate handles it."""
        if not self.book.entries and self.is_idle:
            self._delivery.gate = None
            return True
        silent_until_ms = self._silent_until_ms.pop(request.connection_id, 0)
        if silent_until_ms > self._delivery.now_ms:
            self._later(silent_until_ms * 1000, node_id, request, is_new=True)
            return False
        return self._admit(node_id, request)

    def _admit(self, node_id: int, request: Request) -> bool:
        node = self._delivery.processes[node_id].broker
        if node is None:
            return True
        call = call_of(KnownByBroker(node), request)
        now_ms = self._delivery.now_ms
        for held in self._held:
            if (
                held.node_id == node_id
                and held.request.connection_id != request.connection_id
                and held.entry.fits(call, now_ms)
            ):
                self._delivery.later(self._delivery.now_us, partial(self._release, held))
                return True
        if request.api_key == ApiKey.PRODUCE and self.book.has((DuplicateRecords,)):
            self._batches[request.connection_id] = batches_of(request.body)
        decided = self.book.decide(call, now_ms)
        return decided is None or self._apply(*decided, node, request)

    def _apply(self, name: str, entry: ActiveRule, node: BrokerNodeView, request: Request) -> bool:
        effect, now_us, node_id = entry.rule.effect, self._delivery.now_us, node.node_id
        self._note(name, entry, node_id, request)
        match effect:
            case AnswerError():
                altered = with_error(entry.rule, effect, KnownByBroker(node), request)
                return self._serve(altered, node_id, request)
            case CapVersion():
                call = call_of(KnownByBroker(node), request)
                caps = self.book.caps(call, self._delivery.now_ms)
                return self._serve(with_caps(caps, request), node_id, request)
            case Delay(of=Half.REQUEST):
                self._later(now_us + drawn_us(effect, entry.rng), node_id, request, is_new=False)
            case Drop(of=Half.REQUEST):
                self._silence(name, node_id, request, effect.close)
            case Close(when=CloseTime.BEFORE):
                self._close(node_id, request.connection_id, name)
            case StaleMetadata():
                image = self._stale[name].get(node_id)
                return image is None or self._answer_stale(image, node, request)
            case Reorder():
                life = self._delivery.processes[node_id].life
                held = _Held(node_id, life, request, entry)
                self._held.append(held)
                due_us = now_us + effect.limit_ms * 1000
                self._delivery.later(due_us, partial(self._release, held))
            case _:
                self._changes[request.connection_id] = partial(self._change, name, entry, effect)
                return True
        return False

    def _later(self, at_us: int, node_id: int, request: Request, *, is_new: bool) -> None:
        """Give a broker a request later.  `is_new`: whether rules apply to it at that time."""
        life = self._delivery.processes[node_id].life

        def enter() -> None:
            process = self._delivery.processes[node_id]
            if process.life == life and (not is_new or self._admit(node_id, request)):
                self._delivery.dispatch(node_id, request)

        self._delivery.later(at_us, enter)

    def _release(self, held: _Held) -> None:
        if held not in self._held:
            return
        self._held = [other for other in self._held if other is not held]
        if self._delivery.processes[held.node_id].life == held.life:
            self._delivery.dispatch(held.node_id, held.request)

    # -------------------------------------------------------------------- replies from the gate

    def _serve(self, altered: Altered, node_id: int, request: Request) -> bool:
        """Whether the broker gets the request, altered as an effect requires."""
        if altered.request is not None:
            request.body, change = altered.request, altered.change
            if change is not None:
                self._changes[request.connection_id] = partial(_changed, change)
            return True
        if altered.close_reason:
            connection_id = request.connection_id
            self._delivery.close_connection(node_id, connection_id, altered.close_reason)
        else:
            if altered.answer_version is not None:
                request.api_version = altered.answer_version
            self._answer_for(node_id, request, altered.answer)
        return False

    def _answer_stale(self, image: StaleImage, node: BrokerNodeView, request: Request) -> bool:
        delivery, node_id = self._delivery, node.node_id
        self._answer_for(node_id, request, image.answer(node, request, delivery.now_ms))
        # Requests by the handler itself (to create a topic) are sent with the broker's next step.
        delivery.dispatch(node_id, Tick())
        return False

    def _answer_for(self, node_id: int, request: Request, body: Message | None) -> None:
        """Answer a request that the broker never sees; observers see the request and the reply."""
        delivery = self._delivery
        if delivery.tap is not None:
            delivery.tap(delivery.now_us, node_id, request)
        delivery.send_reply(node_id, Reply(request, body, is_of_rule=True))

    # --------------------------------------------------------------------- replies from brokers

    def on_reply(self, node_id: int, reply: Reply) -> None:
        """Pass a broker's reply on, changed or delayed if a rule requires it, or drop it."""
        connection_id = reply.request.connection_id
        changed: Reply | None = None
        if connection_id != NO_CONNECTION:
            change = self._changes.pop(connection_id, None)
            batches = self._batches.pop(connection_id, ())
            if change is None:
                changed = self._change_of_records(node_id, reply, batches)
            else:
                changed = change(node_id, reply)
        if changed is not None:
            self._delivery.send_reply(node_id, changed)
            return
        for sink in self._delivery.withheld_sinks:
            sink(reply)

    def _change_of_records(
        self, node_id: int, reply: Reply, batches: Sequence[ProducedBatch]
    ) -> Reply | None:
        """The reply with the effect of a rule on records, if one applies."""
        request, body, delivery = reply.request, reply.body, self._delivery
        node = delivery.processes[node_id].broker
        if body is None or node is None or not self.book.has(EFFECTS_ON_RECORDS):
            return reply
        known = KnownByBroker(node)
        call = served_call_of(known, request, body)
        decided = None if call is None else self.book.decide(call, delivery.now_ms)
        if decided is None:
            return reply
        name, entry = decided
        self._note(name, entry, node_id, request)
        if isinstance(entry.rule.effect, DuplicateRecords):
            copy = duplicate_of(entry.rule, known, batches, body)
            if copy is None:
                return reply
            self._append_copy(node_id, reply, copy)
            return None
        changed = Reply(request, with_altered_records(entry.rule, known, body), reply.close_reason)
        if isinstance(entry.rule.effect, EmptyFetch) and not has_records(changed.body):
            self._send_later(max(0, request.body.max_wait_ms) * 1000, node_id, changed)
            return None
        return changed

    def _append_copy(self, node_id: int, reply: Reply, body: Message) -> None:
        """Have a broker append copies of a request's batches, as a request of the same client; then
        send the reply, so that the client's next batches come after the copies."""
        request = reply.request
        copy = Request(
            NO_CONNECTION,
            request.api_key,
            request.api_version,
            request.correlation_id,
            request.client_id,
            body,
            request.client_host,
            self._delivery.now_ms,
            request.identity,
        )
        self._copies += 1
        life = self._delivery.processes[node_id].life

        def append() -> None:
            self._copies -= 1
            process = self._delivery.processes[node_id]
            if process.life == life:
                if process.state is ProcessState.UP:
                    self._delivery.dispatch(node_id, copy)
                self._delivery.send_reply(node_id, reply)

        self._delivery.later(self._delivery.now_us, append)

    def _send_later(self, after_us: int, node_id: int, reply: Reply) -> None:
        """Send a reply after this time, unless its broker ends before."""
        delivery = self._delivery
        life = delivery.processes[node_id].life

        def send() -> None:
            if delivery.processes[node_id].life == life:
                delivery.send_reply(node_id, reply)

        delivery.later(delivery.now_us + after_us, send)

    def _change(
        self, name: str, entry: ActiveRule, effect: AnyEffect, node_id: int, reply: Reply
    ) -> Reply | None:
        request, delivery = reply.request, self._delivery
        match effect:
            case ThrottleClient(throttle_ms=ms):
                self._silent_until_ms[request.connection_id] = delivery.now_ms + ms
                return Reply(request, throttled(reply.body, ms))
            case Delay():
                self._send_later(drawn_us(effect, entry.rng), node_id, reply)
            case Drop(close=False):
                self._silence(name, node_id, request, False)
            case _:
                self._close(node_id, request.connection_id, name)
        return None

    def _silence(self, name: str, node_id: int, request: Request, close: bool) -> None:
        if close:
            self._close(node_id, request.connection_id, name)
            return
        silenced = self._silenced.setdefault(name, [])
        silenced.append((node_id, request.connection_id))
        del silenced[:-MAX_SILENCED]

    def _close(self, node_id: int, connection_id: int, name: str) -> None:
        self._delivery.close_connection(node_id, connection_id, f"rule {name}")

    def _note(self, name: str, entry: ActiveRule, node_id: int, request: Request) -> None:
        hit = reports.hit(name, entry, node_id, request)
        if hit is not None:
            self._delivery.note(hit, self._notes[name])


def _changed(change: AnswerChange, _node_id: int, reply: Reply) -> Reply:
    if reply.body is None:
        return reply
    return Reply(reply.request, change(reply.body), is_of_rule=True)
