"""Rules at work between clients and brokers, on either clock.

Owns: what is held, dropped, silenced; the requests whose replies are still to be changed; the notes
of it.  Never: decides which rule applies (faults/rules.py), what an error answer looks like
(protocol/error_answers.py), waits (the dispatcher calls back).
Kafka: stands where SocketServer hands requests to KafkaApis and takes responses from it.

There is a gate only while there are rules.  Requests pass it just before the broker gets them, so a
connection's next request comes when the one before has its reply (contract.py, 6); a connection
whose request or reply was dropped is silent for good, and closed when its rule goes.

An error for a request that changes something is answered here, for those of its partitions that
are meant; the broker gets the rest, and the two answers become one.  A request that only reads is
served as always, and the error put into the answer: so sessions stay as the broker has them.
What is told, also by the gate, goes to the reply sinks; a reply that was dropped does not.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from kcluster.broker.node import BrokerNode
from kcluster.contract import NoteId, Reply, Request, Tick
from kcluster.events.network import RuleAdded, RuleHit, RuleRemoved
from kcluster.faults.calls import call_of, is_answered, named, with_error
from kcluster.faults.effects import (
    Answer,
    Close,
    Delay,
    Drop,
    Effect,
    Reorder,
    StaleMetadata,
    Throttle,
)
from kcluster.faults.rules import Entry, Rule, RuleBook
from kcluster.faults.stale import StaleImage
from kcluster.protocol.apis import APIS, ApiKey
from kcluster.protocol.error_answers import ErrorAnswers, is_read

if TYPE_CHECKING:
    from kcluster.runtime.dispatch import Dispatcher

MAX_NOTES: Final = 20
"""So many hits of a rule are told one by one; the rest is counted, and told when it goes."""
MAX_SILENCED: Final = 10_000

ReplyChange = Callable[[int, Reply], Reply | None]
"""(broker id, reply) -> what the client is told, or None for nothing now."""


class RuleStatus(Struct, frozen=True):
    """A rule in force: `calls` it fitted, `hits` it applied to."""

    name: str
    effect: str
    calls: int
    hits: int


class _Held(Struct):
    """A request that lets another pass."""

    node_id: int
    life: int
    request: Request
    entry: Entry


class Gate:
    """All rules of a cluster, and what they have under way."""

    def __init__(self, dispatcher: Dispatcher, book: RuleBook) -> None:
        self.book = book
        self._dispatcher = dispatcher
        self._notes: dict[str, NoteId] = {}
        """Of the moment at which a rule was added."""
        self._changes: dict[int, ReplyChange] = {}
        """By connection, of which one request is in a broker: what becomes of its reply."""
        self._silent_until_ms: dict[int, int] = {}
        self._silenced: dict[str, list[tuple[int, int]]] = {}
        """By rule: (broker, connection) of what never gets an answer."""
        self._held: list[_Held] = []
        self._stale: dict[str, dict[int, StaleImage]] = {}
        """By rule and broker."""

    # --------------------------------------------------------------------------- the rules

    def add(self, rule: Rule) -> str:
        """Put a rule in force, behind the others; RuleError if its name is taken."""
        dispatcher = self._dispatcher
        name = self.book.add(rule, dispatcher.now_ms)
        self._notes[name] = dispatcher.note(_added(name, rule))
        if isinstance(rule.effect, StaleMetadata):
            nodes = (process.node for process in dispatcher.processes.values())
            self._stale[name] = {
                node.node_id: StaleImage(node) for node in nodes if isinstance(node, BrokerNode)
            }
        return name

    def remove(self, name: str) -> None:
        """A rule goes: what it holds is let go, connections that it silenced are closed."""
        entry = self.book.entries.pop(name)
        self._stale.pop(name, None)
        for held in [x for x in self._held if x.entry is entry]:
            self._let_go(held)
        for node_id, connection_id in self._silenced.pop(name, ()):
            if self._dispatcher.processes[node_id].node is not None:
                self._close(node_id, connection_id, name)
        cause = self._notes.pop(name)
        self._dispatcher.note(RuleRemoved(name, entry.hits, entry.calls), cause)

    @property
    def is_idle(self) -> bool:
        """Whether there is neither a rule nor anything that one has begun."""
        if self.book.entries or self._changes:
            return False
        now_ms = self._dispatcher.now_ms
        return all(until_ms <= now_ms for until_ms in self._silent_until_ms.values())

    def status(self) -> tuple[RuleStatus, ...]:
        """The rules in force, in their order."""
        return tuple(
            RuleStatus(name, str(entry.rule.effect), entry.calls, entry.hits)
            for name, entry in self.book.entries.items()
        )

    # ------------------------------------------------------------------------ the way in

    def admit(self, node_id: int, request: Request) -> bool:
        """Whether the broker gets this request now; if not, all that is needed has been done."""
        if not self.book.entries and self.is_idle:
            self._dispatcher.gate = None
            return True
        silent_until_ms = self._silent_until_ms.pop(request.connection_id, 0)
        if silent_until_ms > self._dispatcher.now_ms:
            self._later(silent_until_ms * 1000, node_id, request, is_new=True)
            return False
        return self._admit(node_id, request)

    def _admit(self, node_id: int, request: Request) -> bool:
        node = self._dispatcher.processes[node_id].node
        if not isinstance(node, BrokerNode):
            return True
        call = call_of(node, request)
        now_ms = self._dispatcher.now_ms
        for held in self._held:
            if (
                held.node_id == node_id
                and held.request.connection_id != request.connection_id
                and held.entry.fits(call, now_ms)
            ):
                self._dispatcher.later(self._dispatcher.now_us, partial(self._let_go, held))
                return True
        decided = self.book.decide(call, now_ms)
        return decided is None or self._apply(*decided, node, request)

    def _apply(self, name: str, entry: Entry, node: BrokerNode, request: Request) -> bool:
        effect, now_us, node_id = entry.rule.effect, self._dispatcher.now_us, node.node_id
        self._note(name, entry, node_id, request)
        match effect:
            case Answer():
                return self._answer(entry.rule, effect, node, request)
            case Delay(of="request"):
                self._later(now_us + _drawn_us(effect, entry), node_id, request, is_new=False)
            case Drop(what="request"):
                self._silence(name, node_id, request, effect.close)
            case Close(when="before"):
                self._close(node_id, request.connection_id, name)
            case StaleMetadata():
                image = self._stale[name].get(node_id)
                return image is None or self._answer_stale(image, node, request)
            case Reorder():
                life = self._dispatcher.processes[node_id].life
                held = _Held(node_id, life, request, entry)
                self._held.append(held)
                due_us = now_us + effect.limit_ms * 1000
                self._dispatcher.later(due_us, partial(self._let_go, held))
            case _:
                self._changes[request.connection_id] = partial(self._change, name, entry, effect)
                return True
        return False

    def _later(self, at_us: int, node_id: int, request: Request, *, is_new: bool) -> None:
        """Give a broker a request at a time to come; rules look at it then only if it `is_new`."""
        life = self._dispatcher.processes[node_id].life

        def enter() -> None:
            process = self._dispatcher.processes[node_id]
            if process.life == life and (not is_new or self._admit(node_id, request)):
                self._dispatcher.deliver(node_id, request)

        self._dispatcher.later(at_us, enter)

    def _let_go(self, held: _Held) -> None:
        if held not in self._held:
            return
        self._held = [other for other in self._held if other is not held]
        if self._dispatcher.processes[held.node_id].life == held.life:
            self._dispatcher.deliver(held.node_id, held.request)

    # -------------------------------------------------------------------- answers of the gate

    def _answer(self, rule: Rule, effect: Answer, node: BrokerNode, request: Request) -> bool:
        wanted = rule.wants if rule.picks_partitions and named(node, request) else None
        names = node.image.topic_names
        answers = ErrorAnswers(request.api_key, request.api_version, effect.code, names.get, wanted)
        if effect.after or is_read(request.api_key):
            self._changes[request.connection_id] = partial(with_error, answers, node, rule, request)
            if request.api_key == ApiKey.FETCH and not effect.after:
                # An error is told at once, whatever a fetch would wait for.
                request.body = copy.copy(request.body)
                request.body.max_wait_ms = 0
            return True
        told = answers.answer(request.body)
        if not is_answered(request):
            # As a broker does who has no other way to say that it failed.
            reason = f"{effect.error} for a request that gets no answer"
            self._dispatcher.outlet.close_connection(node.node_id, request.connection_id, reason)
            return False
        if told is None:
            return True
        rest = None if wanted is None else answers.rest(request.body)
        if rest is None:
            self._answer_for(node.node_id, request, told)
            return False
        request.body = rest

        def merge(_node_id: int, reply: Reply) -> Reply:
            return Reply(reply.request, answers.merged(reply.body, told))

        self._changes[request.connection_id] = merge
        return True

    def _answer_stale(self, image: StaleImage, node: BrokerNode, request: Request) -> bool:
        dispatcher, node_id = self._dispatcher, node.node_id
        self._answer_for(node_id, request, image.answer(node, request, dispatcher.now_ms))
        # What the handler had the broker ask (a topic to be created) goes out with its next step.
        dispatcher.deliver(node_id, Tick())
        return False

    def _answer_for(self, node_id: int, request: Request, body: Any) -> None:
        """Answer a request that the broker never sees; who watches sees it come, and its answer."""
        dispatcher = self._dispatcher
        if dispatcher.tap is not None:
            dispatcher.tap(dispatcher.now_us, node_id, request)
        dispatcher.tell(node_id, Reply(request, body))

    # ----------------------------------------------------------------------- the way back

    def on_reply(self, node_id: int, reply: Reply) -> None:
        """A broker has answered: tell its client that, something else, later, or nothing."""
        change = self._changes.pop(reply.request.connection_id, None)
        told = reply if change is None else change(node_id, reply)
        if told is not None:
            self._dispatcher.tell(node_id, told)

    def _change(
        self, name: str, entry: Entry, effect: Effect, node_id: int, reply: Reply
    ) -> Reply | None:
        request, dispatcher = reply.request, self._dispatcher
        match effect:
            case Throttle(ms=ms):
                self._silent_until_ms[request.connection_id] = dispatcher.now_ms + ms
                if not hasattr(reply.body, "throttle_time_ms"):
                    return reply
                body = copy.copy(reply.body)
                body.throttle_time_ms = ms
                return Reply(request, body)
            case Delay():
                life = dispatcher.processes[node_id].life

                def tell() -> None:
                    if dispatcher.processes[node_id].life == life:
                        dispatcher.tell(node_id, reply)

                dispatcher.later(dispatcher.now_us + _drawn_us(effect, entry), tell)
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
        self._dispatcher.outlet.close_connection(node_id, connection_id, f"rule {name}")

    def _note(self, name: str, entry: Entry, node_id: int, request: Request) -> None:
        if entry.hits > MAX_NOTES:
            return
        hit = RuleHit(
            rule=name,
            broker=node_id,
            api=APIS[request.api_key].name,
            client_id=request.client_id or "",
            connection_id=request.connection_id,
            correlation_id=request.correlation_id,
            effect=str(entry.rule.effect),
            hit=entry.hits,
            is_last_noted=entry.hits == MAX_NOTES,
        )
        self._dispatcher.note(hit, self._notes[name])


def _added(name: str, rule: Rule) -> RuleAdded:
    """Which requests a rule is about, and what it does."""
    return RuleAdded(
        rule=name,
        effect=str(rule.effect),
        apis=tuple(APIS[key].name for key in rule.apis),
        topic=(rule.topic or "*") if rule.picks_partitions else None,
        partitions=tuple(rule.partitions) if rule.picks_partitions else (),
        client=rule.client,
        brokers=tuple(rule.brokers),
    )


def _drawn_us(delay: Delay, entry: Entry) -> int:
    return delay.ms * 1000 + (entry.rng.randrange(delay.jitter_ms * 1000 + 1))
