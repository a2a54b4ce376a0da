"""Requests that a broker serves although it should have muted the connection to throttle a client.

Owns: the time until which each connection is to be muted, by the answers that it got.  Never: knows
a quota, or a rate.  Kafka: ClientQuotaManager.throttle, SocketServer's muted channels; KIP-219.

    throttle-ignored    a request is answered before the end of the throttle time of an earlier
                        answer on its connection

A broker answers at once, with the throttle time, and then reads nothing from that connection until
the time is over, whether the client waits or not.
"""

from __future__ import annotations

from kcluster.contract import Reply, Request
from kcluster.invariants.facts import Muted
from kcluster.invariants.promises import forget_oldest


class MutedConnections:
    """The muted connections of one cluster."""

    def __init__(self) -> None:
        self._until_ms: dict[int, int] = {}
        """The end of the last throttle time, by connection."""
        self._early: dict[Request, int] = {}
        """The requests that came before that, each with the time until which it has to wait."""

    def on_request(self, request: Request, now_ms: int) -> int:
        """Record a request, which may come on a muted connection.  Returns the time from which it
        may be served."""
        until_ms = self._until_ms.get(request.connection_id, 0)
        if until_ms <= now_ms:
            return now_ms
        self._early[request] = until_ms
        forget_oldest(self._early)
        return until_ms

    def on_reply(self, reply: Reply, now_ms: int) -> Muted | None:
        """What a broker's own answer breaks; None if nothing."""
        request = reply.request
        throttle_ms = getattr(reply.body, "throttle_time_ms", 0)
        if throttle_ms:
            self._until_ms[request.connection_id] = now_ms + throttle_ms
            forget_oldest(self._until_ms)
        until_ms = self._early.pop(request, 0)
        if until_ms <= now_ms:
            return None
        return Muted(type(request.body).__name__, request.connection_id, until_ms)

    def on_closed(self, connection_id: int) -> None:
        """Forget a connection that has ended."""
        self._until_ms.pop(connection_id, None)
