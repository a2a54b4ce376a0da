"""Each request gets exactly one reply: the replies that brokers owe, and the overdue replies.

Owns: the unanswered requests of all brokers, and the time at which a reply is overdue.  Never:
checks a reply's contents; decides on the end of a run (checks/ does).  Kafka: KafkaApis and its
purgatories, which answer every request once; KAFKA-8896 is similar.

A broker may wait as long as the request allows (`max_wait_ms`, `timeout_ms`, a group's rebalance),
plus the time for which it waits for other nodes.  A reply that waits for a group's rebalance is due
at once when the broker ceases to coordinate the group.  No reply is owed after the connection or
the broker's process has ended, nor while the broker is paused.  A reply that a fault rule withheld
counts as sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from kcluster.contract import Request
from kcluster.invariants.facts import Unanswered
from kcluster.protocol.apis import ApiKey
from kcluster.structs import Frozen

_OPEN: Final = -1
_ACKS_ALL: Final = -1
_JOIN_GROUP: Final = int(ApiKey.JOIN_GROUP)
_GROUP_APIS: Final = (_JOIN_GROUP, int(ApiKey.SYNC_GROUP))
_AT_ONCE: Final = frozenset(
    map(
        int,
        (
            ApiKey.API_VERSIONS,
            ApiKey.FETCH,
            ApiKey.FIND_COORDINATOR,
            ApiKey.LIST_OFFSETS,
            ApiKey.METADATA,
            ApiKey.PRODUCE,
        ),
    )
)
"""APIs that a broker answers alone, without the controller and without a commit, except for a
Produce in a transaction, about which it may ask the coordinator first.  OffsetFetch, Heartbeat and
LeaveGroup are not among them, because their answers may wait for earlier commits."""


class Patience(Frozen, frozen=True):
    """The time that a reply may take beyond the limit of its request."""

    always_ms: int
    """The time for late timers: on a busy machine, or within their last millisecond."""
    for_others_ms: int
    """The time that a broker waits for the controller, or for a commit of its own."""


_Owed = tuple[int, int, int]
"""A reply that a broker owes: (broker, the time from which on it may serve the request, the time
until which the reply is owed: _OPEN if it still is)."""


class Replies:
    """The replies that all brokers of a cluster owe."""

    def __init__(self) -> None:
        self._owed: dict[Request, _Owed] = {}
        self._resigned: dict[Request, None] = {}
        """The requests that waited for a rebalance when their broker ceased to coordinate the
        group."""
        self._paused: dict[int, int] = {}
        """The beginning of each broker's pause, by broker."""
        self._group_wait_ms = 0
        """The longest time that any group waits for its members."""

    def on_request(self, broker: int, request: Request, served_ms: int) -> None:
        """Record a request's arrival at a broker, which may serve it from this time on."""
        self._owed[request] = (broker, served_ms, _OPEN)
        if request.api_key == _JOIN_GROUP:
            body = request.body
            wait_ms = max(body.rebalance_timeout_ms, body.session_timeout_ms)
            self._group_wait_ms = max(self._group_wait_ms, wait_ms)

    def on_reply(self, request: Request) -> bool:
        """Record a broker's answer to a request; False if the broker had already answered it."""
        self._resigned.pop(request, None)
        return self._owed.pop(request, None) is not None

    def on_withheld(self, request: Request) -> None:
        """Record that a fault rule drops or delays an answer."""
        owed = self._owed.get(request)
        if owed is not None:
            self._owed[request] = (owed[0], owed[1], owed[1])

    def on_resigned(self, broker: int, is_its: Callable[[str], bool], now_ms: int) -> None:
        """Record that a broker no longer coordinates some groups (`is_its`).  Their waiting
        requests are due at once, because no rebalance can complete at this broker."""
        for request, (asked, _, until_ms) in self._owed.items():
            is_parked = asked == broker and until_ms == _OPEN and request.api_key in _GROUP_APIS
            if is_parked and is_its(request.body.group_id):
                self._owed[request] = (asked, now_ms, _OPEN)
                self._resigned[request] = None

    def on_end(self, now_ms: int, *, connection: int | None = None, broker: int = -1) -> None:
        """Record the end of a connection, or of a broker's process; replies are no longer due."""
        for request, (asked, asked_ms, until_ms) in self._owed.items():
            if until_ms == _OPEN and (
                asked == broker if connection is None else request.connection_id == connection
            ):
                # A paused broker owes only replies that were due when it was paused.
                self._owed[request] = (asked, asked_ms, self._paused.get(asked, now_ms))
        if connection is None:
            self._paused.pop(broker, None)

    def on_pause(self, broker: int, now_ms: int) -> None:
        """Record the pause of a broker."""
        self._paused[broker] = now_ms

    def on_resume(self, broker: int, now_ms: int) -> None:
        """Record the end of a broker's pause, which restarts the time for its replies."""
        self._paused.pop(broker, None)
        for request, (asked, _, until_ms) in self._owed.items():
            if asked == broker and until_ms == _OPEN:
                self._owed[request] = (asked, now_ms, _OPEN)

    def unanswered(self) -> Iterator[tuple[int, Request, int]]:
        """Each request without an answer so far, as (broker, request, the time until which the
        reply was owed; -1: it still is).  A reply is no longer owed once the connection or the
        broker has ended, a fault rule has withheld it, or it was reported as overdue."""
        for request, (broker, _, until_ms) in self._owed.items():
            yield broker, request, until_ms

    def overdue(self, now_ms: int, patience: Patience) -> Iterator[tuple[int, Unanswered]]:
        """Each request that has waited too long, once, with its broker."""
        for request, (broker, asked_ms, until_ms) in self._owed.items():
            if until_ms == _OPEN:
                until_ms = self._paused.get(broker, now_ms)
            if until_ms - asked_ms > self._limit_ms(request, patience):
                self._owed[request] = (broker, asked_ms, asked_ms)
                yield broker, Unanswered(type(request.body).__name__, asked_ms)

    def _limit_ms(self, request: Request, patience: Patience) -> int:
        body: object = request.body
        limit_ms = patience.always_ms
        if request in self._resigned:
            return limit_ms
        if request.api_key not in _AT_ONCE or getattr(body, "transactional_id", None) is not None:
            limit_ms += patience.for_others_ms
        if request.api_key in _GROUP_APIS:
            # A rebalance waits for the members, and then for the leader's assignment.
            return limit_ms + 2 * self._group_wait_ms
        if getattr(body, "acks", _ACKS_ALL) != _ACKS_ALL:
            return limit_ms
        wait_ms: int = getattr(body, "max_wait_ms", 0) or getattr(body, "timeout_ms", 0)
        return limit_ms + max(0, wait_ms)
