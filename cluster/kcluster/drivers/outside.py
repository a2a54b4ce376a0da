"""Clients from outside as nodes of the network, by client.id or address, so that their links can be
cut.

Owns: their delayed requests and replies.  Never: reads a socket (drivers/sockets/connection.py),
decides a message's fate on a link (network/transit.py), assigns node ids (client_nodes.py). Kafka:
iptables and tc on the machines of clients.

Only a request names its client, so it is read from the socket first, and then withheld from the
broker for the time that the link would have taken.  Replies are withheld from clients in this way,
too.  A broken connection is closed, as with the project's own clients.

# DIFFERS: a connection can be made across a cut, and only its first request is lost.
# DIFFERS: pipelined requests on a slow link arrive one at a time, each after the reply to its
#   predecessor.
# DIFFERS: the end of a connection is neither delayed nor lost in a cut: a client learns at once
#   that its broker has died, and a reply that is then under way is lost.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from kcluster.config.files.numbers import whole_number
from kcluster.contract import Reply, Request
from kcluster.drivers.client_nodes import MAX_REMEMBERED, ClientNodes
from kcluster.network.fabric import Link
from kcluster.network.node_ids import FIRST_CLIENT_ID, FIRST_OUTSIDE_ID
from kcluster.network.transit import CarriedConnection, Transit
from kcluster.runtime.dispatch import Dispatcher


class OutsideHost(Protocol):
    """The part of the live driver that this module uses."""

    outside: Outside | None
    """The observer of every request and reply; None while no link of outside clients is cut or
    shaped."""

    @property
    def dispatcher(self) -> Dispatcher:
        """The cluster's nodes and network."""

    def write_reply(self, node_id: int, reply: Reply) -> None:
        """Write a reply to its connection, if that is still open."""


class OutsideConnection(CarriedConnection):
    """A connection of a client from outside.  `life`: the life of the broker's process."""

    __slots__ = ("connection_id", "life")

    def __init__(self, connection_id: int, broker_id: int, life: int) -> None:
        super().__init__((), broker_id)
        self.connection_id = connection_id
        self.life = life


class Outside:
    """All outside clients of a live cluster.  The driver uses it only while their links are cut or
    shaped."""

    def __init__(self, driver: OutsideHost) -> None:
        self._driver = driver
        self._dispatcher = driver.dispatcher
        self._fabric = driver.dispatcher.fabric
        self._seen_changes = -1
        """`Fabric.changes` when the links were last checked."""
        self._clients = ClientNodes(self._fabric)
        self._connections: dict[tuple[int, int], OutsideConnection] = {}
        """The connections, by broker and connection id."""
        self._transit: Transit[OutsideConnection] = Transit(self._fabric, self, self, self._on_lost)
        self._dispatcher.heal_sinks = (*self._dispatcher.heal_sinks, self._transit.link_healed)

    def find(self, pattern: str, by_host: bool) -> int:
        """The node of all clients whose client.id or address matches a pattern."""
        # TCP itself adds the real latency.
        return self._clients.find(pattern, by_host, self._dispatcher.processes)

    def takes_request(self, node_id: int, request: Request) -> bool:
        """Whether the request travels over a link, so that the driver must not deliver it; if so,
        it is taken over."""
        if self._seen_changes != self._fabric.changes:
            self._check_links()
        nodes = self._nodes(request)
        if nodes:
            self._transit.to_broker(self._connection(node_id, request, nodes), request)
        return bool(nodes)

    def takes_reply(self, node_id: int, reply: Reply) -> bool:
        """Whether the reply travels over a link, so that the driver must not write it; if so, it is
        taken over."""
        nodes = self._nodes(reply.request)
        if nodes:
            self._transit.to_client(self._connection(node_id, reply.request, nodes), reply)
        return bool(nodes)

    def _check_links(self) -> None:
        """Detach from the driver once no link of outside clients is cut or shaped."""
        self._seen_changes = self._fabric.changes
        ids = self._clients.ids.values()
        links = (*self._fabric.cuts, *self._fabric.shaped)
        if not any(source in ids or end in ids for source, end in links):
            self._driver.outside = None
            self._connections.clear()

    # ------------------------------------------------------------------------------- clock

    @property
    def now_us(self) -> int:
        """The present time.  Part of Clock."""
        return self._dispatcher.now_us

    def at(self, at_us: int, callback: Callable[[], object]) -> None:
        """Call back at that time, at once if that time is now.  Part of Clock."""
        if at_us <= self._dispatcher.now_us:
            callback()
        else:
            self._dispatcher.later(at_us, callback)

    # ------------------------------------------------------------- the ends of connections

    def at_broker(self, connection: OutsideConnection, message: Request) -> bool:
        """Deliver a request that has arrived.  Part of Ends."""
        node_id = connection.broker_id
        if self._dispatcher.processes[node_id].life != connection.life:
            return False
        gate = self._dispatcher.gate
        if gate is None or gate.admit(node_id, message):
            self._dispatcher.deliver(node_id, message)
        return True

    def at_client(self, connection: OutsideConnection, message: Reply) -> None:
        """Write a reply that has arrived.  Part of Ends."""
        if self._dispatcher.processes[connection.broker_id].life == connection.life:
            self._driver.write_reply(connection.broker_id, message)

    def close_at_broker(self, connection: OutsideConnection) -> None:
        """Close a broken connection.  Part of Ends."""
        if self._dispatcher.processes[connection.broker_id].life == connection.life:
            reason = "a message was lost on the network"
            self._dispatcher.outlet.close_connection(
                connection.broker_id, connection.connection_id, reason
            )

    def close_at_client(self, connection: OutsideConnection) -> None:
        """Do nothing, because both ends are one socket.  Part of Ends."""

    def _on_lost(self, link: Link, at_us: int) -> None:
        self._dispatcher.on_lost(link, at_us)

    # ------------------------------------------------------------------- matching nodes

    def _connection(
        self, node_id: int, request: Request, nodes: tuple[int, ...]
    ) -> OutsideConnection:
        key = (node_id, request.connection_id)
        connection = self._connections.get(key)
        if connection is None:
            if len(self._connections) >= MAX_REMEMBERED:
                del self._connections[next(iter(self._connections))]
            life = self._dispatcher.processes[node_id].life
            connection = OutsideConnection(request.connection_id, node_id, life)
            self._connections[key] = connection
        connection.set_clients(nodes)
        return connection

    def _nodes(self, request: Request) -> tuple[int, ...]:
        if self._is_ours(request):
            return ()
        return self._clients.matching(request.client_id, request.client_host)

    def _is_ours(self, request: Request) -> bool:
        """Whether a connection is of one of the project's own clients, which have their own nodes,
        over TCP too."""
        name, _, digits = (request.client_id or "").partition("client-")
        number = None if name else whole_number(digits)
        return number is not None and FIRST_CLIENT_ID <= number < FIRST_OUTSIDE_ID
