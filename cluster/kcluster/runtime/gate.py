"""Rules at work between clients and brokers, on either clock.

Owns: held requests, silenced connections, replies that must be changed, and the notes about all of
these.  Never: decides which rule applies (faults/rules.py), builds an error response
(protocol/error_answers.py), waits (the dispatcher calls back).  Kafka: between SocketServer and
KafkaApis, where requests and responses pass.

A gate exists only while there are rules.  Requests pass it just before the broker gets them, so a
connection's next request follows the reply to its previous one (contract.py, 6).  A connection
whose request or reply was dropped stays silent, and is closed when its rule is removed.

A request that writes gets its error from the gate, for the partitions that the rule matches; the
broker serves the rest, and the two responses are merged.  A request that only reads is served by
the broker, and the error is put into its response, so that fetch sessions stay consistent.
Every reply that a client gets, also from the gate, goes to the reply sinks; dropped replies do not.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Final, Protocol

from msgspec import Struct

from kcluster.broker.node_view import BrokerNodeView
from kcluster.contract import Event, Input, NoteId, Reply, Request, Tick
from kcluster.events.network import RuleAdded, RuleCalls, RuleHit, RuleRemoved
from kcluster.events.rule_effects import (
    AnswerError,
    AnyEffect,
    Close,
    CloseTime,
    Delay,
    Drop,
    Half,
    Reorder,
    StaleMetadata,
    ThrottleClient,
)
from kcluster.faults.calls import StaleImage, call_of, is_answered, named, with_error
from kcluster.faults.rules import ActiveRule, Rule, RuleBook
from kcluster.protocol.apis import APIS, ApiKey
from kcluster.protocol.error_answers import ErrorAnswers, is_read
from kcluster.protocol.messages import Message
from kcluster.runtime.process import Process

MAX_NOTES: Final = 20
"""The most hits of a rule that get their own notes; later hits are counted, and reported when the
rule is removed."""
MAX_SILENCED: Final = 10_000

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


class RuleStatus(Struct, frozen=True):
    """A rule in force.  `calls`: the number of requests that it matched; `hits`: the number of
    calls to which it applied."""

    name: str
    effect: AnyEffect
    calls: int
    hits: int


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

    # -------------------------------------------------------------------------------- the rules

    def add(self, rule: Rule) -> str:
        """Add a rule after the others; RuleError if its name is taken."""
        delivery = self._delivery
        name = self.book.add(rule, delivery.now_ms)
        self._notes[name] = delivery.note(_added(name, rule))
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
        cause = self._notes.pop(name)
        self._delivery.note(RuleRemoved(name, entry.hits, entry.calls), cause)

    @property
    def is_idle(self) -> bool:
        """Whether there are no rules, and no effect of a rule is in progress."""
        if self.book.entries or self._changes:
            return False
        now_ms = self._delivery.now_ms
        return all(until_ms <= now_ms for until_ms in self._silent_until_ms.values())

    def status(self) -> tuple[RuleStatus, ...]:
        """The rules in force, in their order."""
        return tuple(
            RuleStatus(name, entry.rule.effect, entry.calls, entry.hits)
            for name, entry in self.book.entries.items()
        )

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
        call = call_of(node, request)
        now_ms = self._delivery.now_ms
        for held in self._held:
            if (
                held.node_id == node_id
                and held.request.connection_id != request.connection_id
                and held.entry.fits(call, now_ms)
            ):
                self._delivery.later(self._delivery.now_us, partial(self._release, held))
                return True
        decided = self.book.decide(call, now_ms)
        return decided is None or self._apply(*decided, node, request)

    def _apply(self, name: str, entry: ActiveRule, node: BrokerNodeView, request: Request) -> bool:
        effect, now_us, node_id = entry.rule.effect, self._delivery.now_us, node.node_id
        self._note(name, entry, node_id, request)
        match effect:
            case AnswerError():
                return self._answer(entry.rule, effect, node, request)
            case Delay(of=Half.REQUEST):
                self._later(now_us + _drawn_us(effect, entry), node_id, request, is_new=False)
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

    def _answer(
        self, rule: Rule, effect: AnswerError, node: BrokerNodeView, request: Request
    ) -> bool:
        wanted = rule.wants if rule.picks_partitions and named(node, request) else None
        names = node.image.topic_names
        answers = ErrorAnswers(request.api_key, request.api_version, effect.code, names.get, wanted)
        if effect.after or is_read(request.api_key):
            self._changes[request.connection_id] = partial(with_error, answers, node, rule, request)
            if request.api_key == ApiKey.FETCH and not effect.after:
                # An error is returned at once, even if the fetch would wait for data.
                request.body = copy.copy(request.body)
                request.body.max_wait_ms = 0
            return True
        error_body = answers.answer(request.body)
        if not is_answered(request):
            # With acks=0 a broker has no other way to report an error.
            reason = f"{effect.error} for a request that gets no answer"
            self._delivery.close_connection(node.node_id, request.connection_id, reason)
            return False
        if error_body is None:
            return True
        rest = None if wanted is None else answers.rest(request.body)
        if rest is None:
            self._answer_for(node.node_id, request, error_body)
            return False
        request.body = rest

        def merge(_node_id: int, reply: Reply) -> Reply:
            return Reply(reply.request, answers.merged(reply.body, error_body))

        self._changes[request.connection_id] = merge
        return True

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
        delivery.send_reply(node_id, Reply(request, body))

    # --------------------------------------------------------------------- replies from brokers

    def on_reply(self, node_id: int, reply: Reply) -> None:
        """Pass a broker's reply on, changed or delayed if a rule requires it, or drop it."""
        change = self._changes.pop(reply.request.connection_id, None)
        changed = reply if change is None else change(node_id, reply)
        if changed is not None:
            self._delivery.send_reply(node_id, changed)
            return
        for sink in self._delivery.withheld_sinks:
            sink(reply)

    def _change(
        self, name: str, entry: ActiveRule, effect: AnyEffect, node_id: int, reply: Reply
    ) -> Reply | None:
        request, delivery = reply.request, self._delivery
        match effect:
            case ThrottleClient(throttle_ms=ms):
                self._silent_until_ms[request.connection_id] = delivery.now_ms + ms
                if not hasattr(reply.body, "throttle_time_ms"):
                    return reply
                body = copy.copy(reply.body)
                body.throttle_time_ms = ms
                return Reply(request, body)
            case Delay():
                life = delivery.processes[node_id].life

                def send() -> None:
                    if delivery.processes[node_id].life == life:
                        delivery.send_reply(node_id, reply)

                delivery.later(delivery.now_us + _drawn_us(effect, entry), send)
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
        if entry.hits > MAX_NOTES:
            return
        hit = RuleHit(
            rule=name,
            broker=node_id,
            api=APIS[request.api_key].name,
            client_id=request.client_id or "",
            connection_id=request.connection_id,
            correlation_id=request.correlation_id,
            effect=entry.rule.effect,
            hit=entry.hits,
            is_last_noted=entry.hits == MAX_NOTES,
        )
        self._delivery.note(hit, self._notes[name])


_ALL_CALLS: Final = RuleCalls((), 0, 1, 0, 0, 1.0)


def _added(name: str, rule: Rule) -> RuleAdded:
    """The event of a rule's addition: the requests that the rule matches, and its effect."""
    calls = RuleCalls(
        tuple(rule.versions or ()), rule.nth, rule.every, rule.first, rule.times, rule.probability
    )
    return RuleAdded(
        rule=name,
        effect=rule.effect,
        apis=tuple(APIS[key].name for key in rule.apis),
        topic=(rule.topic or "*") if rule.picks_partitions else None,
        partitions=tuple(rule.partitions) if rule.picks_partitions else (),
        client=rule.client,
        brokers=tuple(rule.brokers),
        applies_to=None if calls == _ALL_CALLS else calls,
    )


def _drawn_us(delay: Delay, entry: ActiveRule) -> int:
    return delay.delay_ms * 1000 + (entry.rng.randrange(delay.jitter_ms * 1000 + 1))
