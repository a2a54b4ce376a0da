"""Clients from outside as nodes of the network, by client.id or address: they too can be cut off.

Owns: their node ids, what of theirs waits or was lost on the way.  Never: reads a socket
(network/), decides how slow or cut a link is (fabric.py).
Kafka: iptables and tc on the machines of clients.

Who a connection belongs to shows in its requests, so bytes are read, and a request that would not
have got through is kept from the broker, as if it were still on its way; what the broker answers
is kept from the client.  When the link is whole again, connections that lost something are closed,
as those of the project's own clients are.
# DIFFERS: a connection can be made across a cut, and only its first request is lost.
# DIFFERS: requests that a client pipelines over a slow link come one after the other, each after
# the answer to the one before has arrived.
"""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final

from kcluster.contract import Reply, Request
from kcluster.network.fabric import Link
from kcluster.network.node_ids import FIRST_CLIENT_ID, FIRST_OUTSIDE_ID

if TYPE_CHECKING:
    from kcluster.drivers.live import LiveDriver

MAX_REMEMBERED: Final = 10_000


class Outside:
    """All clients from outside of a live cluster.  The driver asks it while anything is done to
    their links."""

    def __init__(self, driver: LiveDriver) -> None:
        self._driver = driver
        self._dispatcher = driver.dispatcher
        self._fabric = driver.dispatcher.fabric
        self._looked_at = -1
        """How often the fabric had changed when it was last looked at."""
        self._ids: dict[tuple[bool, str], int] = {}
        """By pattern, and whether it is of addresses."""
        self._found: dict[tuple[str | None, str], tuple[int, ...]] = {}
        """By client.id and address: the nodes whose pattern fits."""
        self._broken: dict[tuple[int, int], tuple[int, ...]] = {}
        """(broker, connection) of what lost something, and the nodes that it belongs to."""
        self._arrived: Reply | None = None
        """An answer that was late, as it is told."""
        self._dispatcher.heal_sinks = (*self._dispatcher.heal_sinks, self._on_link_healed)

    def find(self, pattern: str, by_host: bool) -> int:
        """The node of all whose client.id, or address, fits a pattern."""
        key = (by_host, pattern)
        node = self._ids.get(key)
        if node is None:
            node = self._ids[key] = FIRST_OUTSIDE_ID + len(self._ids)
            self._fabric.clients[node] = f"at {pattern}" if by_host else pattern
            for broker_id in self._dispatcher.processes:
                # How far away they really are, TCP shows.
                self._fabric.set_latency(node, broker_id, 0)
            self._found.clear()
        return node

    def admit(self, node_id: int, request: Request) -> bool:
        """Whether a request gets to its broker now; if not, all that is needed has been done."""
        if self._looked_at != self._fabric.changes:
            self._look()
        nodes = self._nodes(request)
        return not nodes or self._pass(
            [(node, node_id) for node in nodes], node_id, request,
            request, lambda: self._enter(node_id, request),
        )  # fmt: skip

    def release(self, node_id: int, reply: Reply) -> bool:
        """Whether an answer gets to its client now."""
        nodes = self._nodes(reply.request)
        return not nodes or reply is self._arrived or self._pass(
            [(node_id, node) for node in nodes], node_id, reply.request,
            reply, lambda: self._tell(node_id, reply),
        )  # fmt: skip

    def _look(self) -> None:
        """With nothing done to their links, nobody need ask any more."""
        self._looked_at = self._fabric.changes
        ids = self._ids.values()
        links = (*self._fabric.cuts, *self._fabric.shaped)
        if not any(source in ids or end in ids for source, end in links):
            self._driver.outside = None

    def _enter(self, node_id: int, request: Request) -> None:
        gate = self._dispatcher.gate
        if gate is None or gate.admit(node_id, request):
            self._dispatcher.deliver(node_id, request)

    def _tell(self, node_id: int, reply: Reply) -> None:
        self._arrived = reply
        self._driver.reply(node_id, reply)
        self._arrived = None

    def _pass(
        self, links: list[Link], node_id: int, request: Request, message: Any,
        deed: Callable[[], None],
    ) -> bool:  # fmt: skip
        dispatcher = self._dispatcher
        total_us = 0
        for link in links:
            delay_us = self._fabric.delay_us(*link, dispatcher.now_us + total_us, message)
            if delay_us is None or delay_us < 0:
                self._lose(node_id, request)
                if delay_us is not None:
                    dispatcher.on_lost(link, -delay_us)
                return False
            total_us += delay_us
        if not total_us:
            return True
        life = dispatcher.processes[node_id].life

        def arrive() -> None:
            if any(self._fabric.is_cut(*link) for link in links):
                self._lose(node_id, request)
            elif dispatcher.processes[node_id].life == life:
                deed()

        dispatcher.later(dispatcher.now_us + total_us, arrive)
        return False

    def _lose(self, node_id: int, request: Request) -> None:
        self._broken[node_id, request.connection_id] = self._nodes(request)
        if len(self._broken) > MAX_REMEMBERED:
            del self._broken[next(iter(self._broken))]

    def _nodes(self, request: Request) -> tuple[int, ...]:
        key = (request.client_id, request.client_host)
        nodes = self._found.get(key)
        if nodes is None:
            if len(self._found) >= MAX_REMEMBERED:
                self._found.clear()
            nodes = self._found[key] = () if self._is_ours(request) else self._fitting(*key)
        return nodes

    def _fitting(self, client_id: str | None, host: str) -> tuple[int, ...]:
        return tuple(
            node
            for (by_host, pattern), node in self._ids.items()
            if fnmatchcase(host if by_host else client_id or "", pattern)
        )

    def _is_ours(self, request: Request) -> bool:
        """The project's own clients, over TCP too, have their own nodes."""
        name, _, number = (request.client_id or "").partition("client-")
        if name or not number.isdecimal():
            return False
        return FIRST_CLIENT_ID <= int(number) < FIRST_OUTSIDE_ID

    def _on_link_healed(self, link: Link) -> None:
        """What was lost is not sent again: both ends find their connection broken."""
        client, node_id = link
        for key, nodes in tuple(self._broken.items()):
            if key[0] == node_id and client in nodes:
                del self._broken[key]
                reason = "something of it was lost on the network"
                self._dispatcher.outlet.close_connection(*key, reason)
