"""Moments in the life of clients, by what brokers see of them: `3rd commit of billing`.

Owns: the kinds of moments, their written form, their recognition in requests, answers and events;
the watch that counts them.  Never: acts at a moment (stages and handles do), looks into logs
(written.py does, for the moments inside brokers), sees a line of a program (world/ does).
Kafka: no counterpart.

A moment is a place at which programs are vulnerable: between a commit and the work, between an
append and its ack.  Moments of a kind are counted from the beginning of the watch.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from msgspec import Struct

from kcluster.config.files.problems import unknown
from kcluster.contract import Input, Note, Reply, Request
from kcluster.events import KINDS
from kcluster.operations.errors import ClusterError
from kcluster.operations.python_values import text_in
from kcluster.operations.settled import Settled
from kcluster.operations.written import BROKERS_MOMENTS, Written, WrittenWatch
from kcluster.protocol.apis import ApiKey
from kcluster.runtime.dispatch import Dispatcher

COMMIT: Final = "commit"
PRODUCE: Final = "produce"
ACK: Final = "ack"
DELIVERY: Final = "delivery"
REBALANCE: Final = "rebalance"
TRANSACTION: Final = "transaction"
EXECUTION: Final = "execution"
CLIENTS_MOMENTS: Final = {
    COMMIT: "offsets of a group were committed, and the client was answered",
    PRODUCE: "a Produce request has arrived, and is not yet answered",
    ACK: "a Produce request was answered without an error",
    DELIVERY: "a Fetch request was answered with records",
    REBALANCE: "the members of a group got their partitions",
    TRANSACTION: "a transaction was committed or aborted, and the client was answered",
    EXECUTION: "a program is about to execute this line of its own code, such as billing.py:31",
}
"""The kinds of moments besides events, with their meanings."""
MOMENTS: Final = (*CLIENTS_MOMENTS, *BROKERS_MOMENTS)
_REBALANCED: Final = "group_assigned"
_FORM: Final = re.compile(r"(?:([0-9]+)(?:st|nd|rd|th) )?([a-z_]+)(?: of (\S+))?")
_LINE: Final = re.compile(r"[^:]+:[0-9]+")
_OFFSET_COMMIT: Final = int(ApiKey.OFFSET_COMMIT)
_TXN_OFFSET_COMMIT: Final = int(ApiKey.TXN_OFFSET_COMMIT)
_PRODUCE: Final = int(ApiKey.PRODUCE)
_FETCH: Final = int(ApiKey.FETCH)
_END_TXN: Final = int(ApiKey.END_TXN)


class NthMoment(Struct, frozen=True):
    """The `number`-th moment of a kind.  `of`: the group, topic, partition, client id,
    transactional id or line of code that it belongs to, "" for any."""

    number: int
    kind: str
    of: str = ""

    @property
    def is_inside(self) -> bool:
        """Whether it is a moment inside a broker, over as soon as the broker's answers leave it."""
        return self.kind in BROKERS_MOMENTS

    def __str__(self) -> str:
        of = f" of {self.of}" if self.of else ""
        return f"{ordinal(self.number)} {self.kind}{of}"


class SeenMoment(Struct, frozen=True):
    """A moment that has come.  `names`: what it may be called by; the first is its subject."""

    kind: str
    names: tuple[str, ...]


def ordinal(number: int) -> str:
    """`1st`, `2nd`, `3rd`, `11th`."""
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{'th' if number % 100 in (11, 12, 13) else ending}"


def awaited_moment(text: str) -> NthMoment | None:
    """The moment in `3rd commit of billing`; None for other text.  ValueError if its kind is
    unknown, or its number is no number of a moment."""
    match = _FORM.fullmatch(text)
    if match is None or (match[1] is None and match[2] not in MOMENTS):
        return None
    known = (*MOMENTS, *KINDS)
    if match[2] not in known:
        raise ValueError(unknown("moment", match[2], known))
    number = int(match[1] or 1)
    if number < 1:
        raise ValueError("moments are counted from 1st")
    if match[2] == EXECUTION and not _LINE.fullmatch(match[3] or ""):
        raise ValueError(f"{EXECUTION} has a line of code: 3rd execution of billing.py:31")
    return NthMoment(number, match[2], match[3] or "")


def moment_in(text: str) -> NthMoment:
    """The moment that the text means; ClusterError for any other text."""
    try:
        found = awaited_moment(" ".join(text_in("after", text).split()))
    except ValueError as error:
        raise ClusterError(f"{text}: {error}") from None
    if found is None:
        raise ClusterError(f"{text}: not a moment; one is 3rd commit of billing, or ack of orders")
    return found


class MomentWatch:
    """Sees the moments of a cluster from now on, until `end`.  `on_moment`: called with each, in
    the driver's thread, while a node is stepping: it must not act on the cluster."""

    def __init__(
        self, dispatcher: Dispatcher, settled: Settled, on_moment: Callable[[SeenMoment], None]
    ) -> None:
        self._dispatcher = dispatcher
        self._settled = settled
        self._on_moment = on_moment
        self._is_over = False
        self._tap = dispatcher.tap
        dispatcher.tap = self._before_step
        dispatcher.reply_sinks = (*dispatcher.reply_sinks, self._on_reply)
        dispatcher.note_sinks = (*dispatcher.note_sinks, self._on_note)

    def end(self) -> None:
        """See no more moments."""
        self._is_over = True
        dispatcher = self._dispatcher
        if dispatcher.tap == self._before_step:
            dispatcher.tap = self._tap
        dispatcher.reply_sinks = tuple(x for x in dispatcher.reply_sinks if x != self._on_reply)
        dispatcher.note_sinks = tuple(x for x in dispatcher.note_sinks if x != self._on_note)

    def _before_step(self, now_us: int, node_id: int, event: Input) -> None:
        if self._tap is not None:
            self._tap(now_us, node_id, event)
        if isinstance(event, Request) and event.api_key == _PRODUCE and not self._is_over:
            self._on_moment(SeenMoment(PRODUCE, self._names_of_produce(event)))

    def _on_reply(self, _node_id: int, reply: Reply, _now_ms: int) -> None:
        for seen in self._in_reply(reply):
            if not self._is_over:
                self._on_moment(seen)

    def _on_note(self, note: Note) -> None:
        event = note.event
        if event.is_internal or self._is_over:
            return
        names = (event.subject.removeprefix("group "), event.subject)
        self._on_moment(SeenMoment(event.kind, names))
        if event.kind == _REBALANCED:
            self._on_moment(SeenMoment(REBALANCE, names))

    def _in_reply(self, reply: Reply) -> Iterator[SeenMoment]:
        request, body = reply.request, reply.body
        if body is None:
            return
        api, client = request.api_key, request.client_id or ""
        if api in (_OFFSET_COMMIT, _TXN_OFFSET_COMMIT):
            parts = [part for topic in body.topics for part in topic.partitions]
            if parts and not any(part.error_code for part in parts):
                yield SeenMoment(COMMIT, (request.body.group_id, client))
        elif api == _PRODUCE:
            parts = [part for topic in body.responses for part in topic.partition_responses]
            if parts and not any(part.error_code for part in parts):
                yield SeenMoment(ACK, self._names_of_produce(request))
        elif api == _FETCH:
            names = tuple(self._delivered(body))
            if names:
                yield SeenMoment(DELIVERY, (*names, client))
        elif api == _END_TXN and not body.error_code:
            yield SeenMoment(TRANSACTION, (request.body.transactional_id, client))

    def _names_of_produce(self, request: Request) -> tuple[str, ...]:
        names: dict[str, None] = {}
        for topic in request.body.topic_data:
            name = self._topic(topic)
            names[name] = None
            names |= {f"{name}-{part.index}": None for part in topic.partition_data}
        return (*names, request.client_id or "")

    def _delivered(self, body: object) -> Iterator[str]:
        for topic in getattr(body, "responses", ()):
            parts = [part.partition_index for part in topic.partitions if part.records]
            if parts:
                name = self._topic(topic)
                yield from (name, *(f"{name}-{part}" for part in parts))

    def _topic(self, topic: object) -> str:
        """The name of a topic of a request or an answer, which has the name or the id."""
        name = getattr(topic, "name", None) or getattr(topic, "topic", None)
        if name:
            return str(name)
        found = self._settled.image.topic_names.get(getattr(topic, "topic_id", b""))
        return found or ""


def when_reached(
    dispatcher: Dispatcher, settled: Settled, moment: NthMoment, callback: Callable[[], None]
) -> Callable[[], None]:
    """Call back once, when this moment has come, counted from now.  Of a moment of clients: in the
    middle of a step, so the callback must not act on the cluster (see MomentWatch).  Of a moment
    inside a broker: it may act, before anything of the broker's step leaves the broker.  Returns
    what ends the wait."""
    left = moment.number

    def count(kind: str, names: tuple[str, ...]) -> bool:
        """Whether this is the moment."""
        nonlocal left
        if kind == moment.kind and (not moment.of or moment.of in names):
            left -= 1
            return not left
        return False

    def on_moment(seen: SeenMoment) -> None:
        if count(seen.kind, seen.names):
            watch.end()
            callback()

    def on_written(written: Written) -> None:
        if count(written.kind, written.names):
            inside.end()
            dispatcher.interject(callback)

    if moment.is_inside:
        inside = WrittenWatch(dispatcher, on_written)
        return inside.end
    watch = MomentWatch(dispatcher, settled, on_moment)
    return watch.end
