"""Rules at work in the proxy, between clients and the brokers of a real cluster.

Owns: held requests, silent connections, the answers that wait.  Never: decides which rule applies
(faults/rules.py), changes a message (faults/altering.py).  Kafka: no counterpart;
runtime/gate.py does the same for simulated brokers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import partial
from random import Random
from typing import Final, Protocol

import gevent
from msgspec import Struct

from kcluster.contract import Event, Request
from kcluster.events.network import RuleRemoved
from kcluster.events.rule_effects import (
    EFFECTS_ON_RECORDS,
    AnswerError,
    CapVersion,
    Close,
    CloseTime,
    Delay,
    Drop,
    EmptyFetch,
    Half,
    Reorder,
    StaleMetadata,
    ThrottleClient,
)
from kcluster.faults import reports
from kcluster.faults.altering import (
    Altered,
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
from kcluster.faults.calls import KnownCluster, SessionPart, call_of, served_call_of
from kcluster.faults.rules import ActiveRule, Rule, RuleBook, RuleError
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey, codec, is_known
from kcluster.protocol.errors import ProtocolError
from kcluster.protocol.framing import encode_request_frame
from kcluster.protocol.messages import Message
from kcluster.proxy.connection import ProxiedConnection
from kcluster.proxy.exchange import BARE_TOKEN, Exchange
from kcluster.proxy.streams import framed

STALE_NEEDS_A_BROKER: Final = (
    "stale answers from a broker's old metadata, which a proxy does not have; use it on simulated"
    " brokers"
)

_WITH_RECORDS: Final = (ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.SHARE_FETCH)


class LearnedCluster(Protocol):
    """What the proxy has learned of the cluster from the answers that passed."""

    def topic_name(self, topic_id: bytes) -> str | None: ...
    def topics(self) -> Iterable[str]: ...
    def session(self, broker_id: int, session_id: int) -> Iterable[SessionPart]: ...


class _KnownAt:
    """The cluster, as rules see it at one broker."""

    def __init__(self, view: LearnedCluster, broker: int) -> None:
        self._view = view
        self.broker = broker

    def topic_name(self, topic_id: bytes) -> str | None:
        return self._view.topic_name(topic_id)

    def topics(self) -> Iterable[str]:
        return self._view.topics()

    def session(self, session_id: int) -> Iterable[SessionPart]:
        return self._view.session(self.broker, session_id)


class _HeldRequest(Struct, eq=False):
    """A request that waits until one of another connection overtakes it."""

    connection: ProxiedConnection
    entry: ActiveRule
    release: Callable[[], None]


class ProxyGate:
    """All rules of a proxy.  `note`: called with each event of a rule; `seed`: for the rules'
    random numbers."""

    def __init__(self, view: LearnedCluster, note: Callable[[Event], None], seed: int) -> None:
        self.book = RuleBook(lambda name: Random(f"{seed}/{name}"))
        self._view = view
        self._note = note
        self._held: list[_HeldRequest] = []
        self._silenced: dict[str, list[ProxiedConnection]] = {}

    @property
    def is_active(self) -> bool:
        """Whether there are rules."""
        return bool(self.book.entries)

    def add(self, rule: Rule) -> str:
        """Add a rule after the others; returns its name.  RuleError if its name is taken, or its
        effect is impossible here."""
        problem = problem_before_a_cluster(rule)
        if problem is not None:
            raise RuleError(problem)
        name = self.book.add(rule, _now_ms())
        self._note(reports.added(name, rule))
        return name

    def remove(self, name: str) -> None:
        """Remove a rule: release the requests that it holds, close the connections that it
        silenced."""
        entry = self.book.entries.pop(name)
        for held in [x for x in self._held if x.entry is entry]:
            self._release(held)
        for connection in self._silenced.pop(name, ()):
            connection.close(f"rule {name} was removed")
        self._note(RuleRemoved(name, entry.hits, entry.calls))

    # ----------------------------------------------------------------------------- requests

    def admits(self, connection: ProxiedConnection, exchange: Exchange, frame: memoryview) -> bool:
        """Whether the request is forwarded now, unchanged; if not, the gate handles it."""
        key, version = exchange.api_key, exchange.api_version
        if key == BARE_TOKEN or not is_known(key, version) or not self._may_match(key, version):
            return True
        try:
            body = codec(key, version).decode_request(frame, exchange.body_position)
        except ProtocolError:
            return True  # the broker refuses it
        request = Request(
            connection.number,
            key,
            version,
            exchange.correlation_id,
            exchange.client_id,
            body,
            arrived_ms=exchange.asked_ms,
        )
        known = _KnownAt(self._view, connection.broker_id)
        call, now_ms = call_of(known, request), _now_ms()
        for held in self._held:
            if (
                held.connection is not connection
                and held.connection.broker_id == connection.broker_id
                and held.entry.fits(call, now_ms)
            ):
                gevent.spawn(self._release, held)
                return True
        if key in _WITH_RECORDS and self.book.has(EFFECTS_ON_RECORDS):
            exchange.on_answer = partial(
                self._on_records, connection, exchange, request, batches_in(body)
            )
        decided = self.book.decide(call, now_ms)
        if decided is None:
            return True
        exchange.rule = decided[0]
        return self._apply(*decided, known, connection, exchange, request, frame)

    def _may_match(self, api_key: int, version: int) -> bool:
        return any(entry.rule.concerns(api_key, version) for entry in self.book.entries.values())

    def _apply(
        self,
        name: str,
        entry: ActiveRule,
        known: KnownCluster,
        connection: ProxiedConnection,
        exchange: Exchange,
        request: Request,
        frame: memoryview,
    ) -> bool:
        effect = entry.rule.effect
        hit = reports.hit(name, entry, connection.broker_id, request)
        if hit is not None:
            self._note(hit)
        match effect:
            case AnswerError():
                altered = with_error(entry.rule, effect, known, request)
                return self._serve(altered, connection, exchange, request, frame)
            case CapVersion():
                caps = self.book.caps(call_of(known, request), _now_ms())
                return self._serve(with_caps(caps, request), connection, exchange, request, frame)
            case Delay(of=Half.REQUEST):
                delay_s = drawn_us(effect, entry.rng) / 1e6
                gevent.spawn_later(delay_s, _held_back(connection, exchange, frame))
            case Drop(of=Half.REQUEST, close=False):
                self._silence(name, connection)
            case Drop(of=Half.REQUEST) | Close(when=CloseTime.BEFORE):
                connection.close(f"rule {name}")
            case Reorder():
                release = _held_back(connection, exchange, frame)
                held = _HeldRequest(connection, entry, release)
                self._held.append(held)
                gevent.spawn_later(effect.limit_ms / 1000, self._release, held)
            case _:
                self._change_answer(name, entry, connection, exchange)
                return True
        return False

    def _serve(
        self,
        altered: Altered,
        connection: ProxiedConnection,
        exchange: Exchange,
        request: Request,
        frame: memoryview,
    ) -> bool:
        """Whether the request is forwarded unchanged; if not, it is forwarded as altered, or
        answered, here."""
        if altered.request is None:
            if altered.close_reason:
                connection.close(altered.close_reason)
            else:
                if altered.answer_version is not None:
                    exchange.api_version = altered.answer_version
                connection.answer(exchange, altered.answer)
            return False
        if altered.change is not None:
            exchange.on_answer = altered.change
        if altered.request is request.body:
            return True
        buffers = encode_request_frame(
            exchange.api_key,
            exchange.api_version,
            exchange.correlation_id,
            exchange.client_id,
            altered.request,
        )
        connection.forward(exchange, buffers, frame)
        return False

    def _release(self, held: _HeldRequest) -> None:
        if held in self._held:
            self._held.remove(held)
            held.release()

    # ------------------------------------------------------------------------------ answers

    def _change_answer(
        self, name: str, entry: ActiveRule, connection: ProxiedConnection, exchange: Exchange
    ) -> None:
        """Change, hold or withhold the answer when it comes."""
        effect = entry.rule.effect

        def on_answer(body: Message) -> Message | None:
            match effect:
                case ThrottleClient(throttle_ms=ms):
                    gevent.spawn_later(ms / 1000, connection.wait())
                    return throttled(body, ms)
                case Delay():
                    answer_later(connection, exchange, body, drawn_us(effect, entry.rng) / 1e6)
                case Drop(close=False):
                    self._silence(name, connection)
                case _:
                    connection.close(f"rule {name}")
            return None

        exchange.on_answer = on_answer

    def _on_records(
        self,
        connection: ProxiedConnection,
        exchange: Exchange,
        request: Request,
        batches: list[ProducedBatch],
        body: Message,
    ) -> Message | None:
        """The answer with the effect of a rule on records, if one applies; None if it comes
        later."""
        known = _KnownAt(self._view, connection.broker_id)
        call = served_call_of(known, request, body)
        decided = None if call is None else self.book.decide(call, _now_ms())
        if decided is None:
            return body
        exchange.rule, entry = decided
        hit = reports.hit(exchange.rule, entry, connection.broker_id, request)
        if hit is not None:
            self._note(hit)
        if isinstance(body, m.ProduceResponse):
            copy = duplicate_of(entry.rule, known, batches, body)
            if copy is None:
                return body
            _append_copy(connection, exchange, copy, body)
            return None
        if isinstance(body, m.ShareFetchResponse):
            return with_altered_records(entry.rule, known, body)
        assert isinstance(body, m.FetchResponse), request.api_key
        changed = with_altered_records(entry.rule, known, body)
        if isinstance(entry.rule.effect, EmptyFetch) and not has_records(changed):
            answer_later(connection, exchange, changed, max(0, request.body.max_wait_ms) / 1000)
            return None
        return changed

    def _silence(self, name: str, connection: ProxiedConnection) -> None:
        connection.silence()
        silenced = self._silenced.setdefault(name, [])
        silenced[:] = [each for each in silenced if each.is_open]
        silenced.append(connection)


def problem_before_a_cluster(rule: Rule) -> str | None:
    """Why a proxy cannot apply this rule; None if it can."""
    return STALE_NEEDS_A_BROKER if isinstance(rule.effect, StaleMetadata) else None


def batches_in(body: Message) -> list[ProducedBatch]:
    """The batches of a request, if it is a Produce."""
    return batches_of(body) if isinstance(body, m.ProduceRequest) else []


def _held_back(
    connection: ProxiedConnection, exchange: Exchange, frame: memoryview
) -> Callable[[], None]:
    """Hold a request, and its connection, until the returned function forwards it."""
    go_on = connection.wait()

    def forward() -> None:
        connection.forward(exchange, framed(frame), frame)
        go_on()

    return forward


def answer_later(
    connection: ProxiedConnection, exchange: Exchange, body: Message, delay_s: float
) -> None:
    """Hold an answer, and its connection, for a time."""
    go_on = connection.wait()
    exchange.is_held = True

    def send() -> None:
        connection.answer(exchange, body)
        go_on()

    gevent.spawn_later(delay_s, send)


def _append_copy(
    connection: ProxiedConnection, exchange: Exchange, copy: m.ProduceRequest, body: Message
) -> None:
    """Have the broker append copies of a request's batches; then send the answer, so that the
    client's next batches come after the copies."""
    go_on = connection.wait()
    exchange.is_held = True

    def on_appended(_: Message) -> None:
        connection.answer(exchange, body)
        go_on()

    connection.ask(exchange, copy, on_appended)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
