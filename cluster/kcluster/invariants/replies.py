"""Each request gets one reply: which replies brokers still owe, and when they are overdue.

Owns: the unanswered requests of all brokers, and when a reply is overdue.  Never: checks a reply's
contents; decides when a run is over (checks/ does).
Kafka: KafkaApis and its purgatories, which answer every request once.

A broker may wait as long as the request allows (`max_wait_ms`, `timeout_ms`, a group's rebalance),
plus the time for which it waits for other nodes.  It owes no reply after the connection or its
process has ended, nor while it is paused.  A reply that a fault rule withheld counts as sent.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from kcluster.contract import Request
from kcluster.protocol.apis import ApiKey

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
            ApiKey.HEARTBEAT,
            ApiKey.LIST_OFFSETS,
            ApiKey.METADATA,
            ApiKey.PRODUCE,
        ),
    )
)
"""A broker answers these alone, without the controller and without a commit; but for a Produce in a
transaction, about which it may ask the coordinator first.  OffsetFetch and LeaveGroup are not among
them: what they return may wait for commits before it."""


class Patience(Struct, frozen=True):
    """How long a reply may take beyond what its request allows."""

    always_ms: int
    """For delays of the clock: a busy machine, a timer's last millisecond."""
    for_others_ms: int
    """For how long a broker waits for the controller, or for a commit of its own."""


class Overdue(Struct, frozen=True):
    """A request that has waited too long."""

    broker: int
    request: Request
    asked_ms: int

    def __str__(self) -> str:
        return f"{type(self.request.body).__name__} of {self.asked_ms} ms"


_Owed = tuple[int, int, int]
"""(broker, when the request arrived, until when the reply was owed: _OPEN if it still is)."""


class Replies:
    """The replies that all brokers of a cluster owe."""

    def __init__(self) -> None:
        self._owed: dict[Request, _Owed] = {}
        self._paused: dict[int, int] = {}
        """By broker: since when."""
        self._group_wait_ms = 0
        """The longest that any group waits for its members."""

    def on_request(self, broker: int, request: Request, now_ms: int) -> None:
        """A request arrived at a broker."""
        self._owed[request] = (broker, now_ms, _OPEN)
        if request.api_key == _JOIN_GROUP:
            body = request.body
            wait_ms = max(body.rebalance_timeout_ms, body.session_timeout_ms)
            self._group_wait_ms = max(self._group_wait_ms, wait_ms)

    def on_reply(self, request: Request) -> bool:
        """A broker has answered a request; False if it had answered it before."""
        return self._owed.pop(request, None) is not None

    def on_withheld(self, request: Request) -> None:
        """A broker has answered, and a rule drops or delays the reply."""
        owed = self._owed.get(request)
        if owed is not None:
            self._owed[request] = (owed[0], owed[1], owed[1])

    def on_end(self, now_ms: int, *, connection: int | None = None, broker: int = -1) -> None:
        """A connection, or the process of a broker, has ended."""
        for request, (asked, asked_ms, until_ms) in self._owed.items():
            if until_ms == _OPEN and (
                asked == broker if connection is None else request.connection_id == connection
            ):
                # A paused broker owes only what was due when it was paused.
                self._owed[request] = (asked, asked_ms, self._paused.get(asked, now_ms))
        if connection is None:
            self._paused.pop(broker, None)

    def on_pause(self, broker: int, now_ms: int) -> None:
        """A broker was paused."""
        self._paused[broker] = now_ms

    def on_resume(self, broker: int, now_ms: int) -> None:
        """A broker was resumed: the time for its replies starts again."""
        self._paused.pop(broker, None)
        for request, (asked, _, until_ms) in self._owed.items():
            if asked == broker and until_ms == _OPEN:
                self._owed[request] = (asked, now_ms, _OPEN)

    def unanswered(self) -> Iterator[tuple[int, Request, int]]:
        """Each request without an answer so far, as (broker, request, when it was given up): when
        its connection or its broker ended, or a rule withheld the reply; -1 if it was not."""
        for request, (broker, _, until_ms) in self._owed.items():
            yield broker, request, until_ms

    def overdue(self, now_ms: int, patience: Patience) -> Iterator[Overdue]:
        """Each request that has waited too long, once."""
        for request, (broker, asked_ms, until_ms) in self._owed.items():
            if until_ms == _OPEN:
                until_ms = self._paused.get(broker, now_ms)
            if until_ms - asked_ms > self._limit_ms(request, patience):
                self._owed[request] = (broker, asked_ms, asked_ms)
                yield Overdue(broker, request, asked_ms)

    def _limit_ms(self, request: Request, patience: Patience) -> int:
        body: object = request.body
        limit_ms = patience.always_ms
        if request.api_key not in _AT_ONCE or getattr(body, "transactional_id", None) is not None:
            limit_ms += patience.for_others_ms
        if request.api_key in _GROUP_APIS:
            # A rebalance waits for the members, and then for the leader's assignment.
            return limit_ms + 2 * self._group_wait_ms
        if getattr(body, "acks", _ACKS_ALL) != _ACKS_ALL:
            return limit_ms
        wait_ms: int = getattr(body, "max_wait_ms", 0) or getattr(body, "timeout_ms", 0)
        return limit_ms + max(0, wait_ms)
