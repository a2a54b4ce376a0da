"""The event loop of virtual time: messages and deadlines of clients and brokers, in order.

Owns: the order of all future events, the connections of simulated clients. Never: reads a clock,
opens a socket, encodes a message (messages are passed as objects); decides a message's fate on a
link (network/transit.py); serves users directly (handle/virtual.py does). Kafka: no counterpart;
FoundationDB's simulation is the model.

A *pass* moves to the next time with due events and runs all of them: first brokers' deadlines and
messages between them, then scheduled callbacks, then clients' deadlines.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from heapq import heappop, heappush
from typing import Final, final

from kcluster.broker.node_view import BrokerNodeView
from kcluster.clients.logins import SSL_HANDSHAKE_FAILED, refuse, with_logins
from kcluster.clients.wire import ClientStateMachine
from kcluster.config.topology.model import Topology
from kcluster.contract import ConnectionClosed, HandshakeFailed, LoginFailed, Note, Reply, Request
from kcluster.deaths import ProcessState
from kcluster.drivers.wires.broker_end import admit, answered, listens
from kcluster.drivers.wires.virtual import ClientConnection, ClientWire
from kcluster.network.fabric import Fabric, Link
from kcluster.network.node_ids import FIRST_CLIENT_ID
from kcluster.network.threads import NetworkThreads
from kcluster.network.transit import Transit
from kcluster.principals import UNAUTHENTICATED, BrokerEndpoint, ClientIdentity
from kcluster.runtime.build import Plan
from kcluster.runtime.dispatch import MAX_IDLE, Dispatcher
from kcluster.runtime.livelock import LivelockError
from kcluster.runtime.process import Outlet, Process
from kcluster.security.certificates import (
    FIRST,
    BrokerCertificate,
    CertificateState,
    HandshakeProblem,
)
from kcluster.security.client_access import OPEN, ClientAccess
from kcluster.timers import NEVER_US

Callback = Callable[[], object]

FIRST_VIRTUAL_PORT: Final = 9092
_DOWN: Final = ProcessState.DOWN
_REFUSED_BY_CLIENTS: Final = {
    CertificateState.EXPIRED: HandshakeProblem.EXPIRED,
    CertificateState.WRONG_NAME: HandshakeProblem.NOT_ACCEPTED,
}
"""The alerts with which a client refuses a broker's certificate."""


@final
class VirtualTime:
    """One run.  `clients`: by id in the fabric; `endpoints`: the addresses of brokers; `trace`: a
    line for each connection that a broker closes; `certificates`: the ones that have replaced the
    brokers' own; `handshake_us`: the time for which a TLS handshake keeps a broker busy."""

    def __init__(
        self,
        fabric: Fabric,
        processes: Iterable[Process],
        endpoints: Mapping[int, tuple[BrokerEndpoint, ...]],
        trace: list[Note | str],
        certificates: Mapping[int, BrokerCertificate] = {},
        handshake_us: int = 0,
    ) -> None:
        self.dispatcher = Dispatcher(fabric, processes, self)
        self.dispatcher.heal_sinks = (self._on_link_healed,)
        self.clients: dict[int, ClientStateMachine] = {}
        self.beside: Outlet | None = None
        """The driver of connections that do not belong to simulated clients, if there is one."""
        self._transit: Transit[ClientConnection] = Transit(fabric, self, self, self._on_lost)
        self._endpoints = endpoints
        self._trace = trace
        self._certificates = certificates
        self._handshake_us = handshake_us
        self._threads: dict[tuple[int, str], NetworkThreads] = {}
        """The network threads of listeners with TLS, by broker and listener."""
        self._heap: list[tuple[int, int, Callback]] = []
        """(µs, sequence number, callback)."""
        self._sequence = 0
        self._now: deque[Callback] = deque()
        """Callbacks for the current time; they run after the callbacks on the heap."""
        self._connections: dict[int, ClientConnection] = {}
        """The connections whose broker's end is open, by id."""
        self._connection_ids = 0
        self.tls_round_trips: dict[str, int] = {}
        """The cost of the simulated clients' TLS handshakes, by listener."""
        self._ready: list[ClientConnection] = []
        """Connections whose broker may take the next request."""

    @property
    def now_ms(self) -> int:
        """The time that clients and nodes see."""
        return self.dispatcher.now_us // 1000

    @property
    def now_us(self) -> int:
        """The present time.  Part of Clock."""
        return self.dispatcher.now_us

    # ----------------------------------------------------------------------------------- passes

    def run(self, limit_us: int, condition: Callable[[], bool]) -> bool:
        """Advance time until `condition()` holds or nothing more is due up to `limit_us`; returns
        whether `condition()` holds."""
        dispatcher, idle = self.dispatcher, 0
        while not condition():
            due_us = self._next_due_us()
            if due_us > limit_us:
                return False
            idle = 0 if due_us > dispatcher.now_us else idle + 1
            if idle >= MAX_IDLE:
                raise LivelockError(self.now_ms, "a client is always due")
            dispatcher.at(due_us)
            self._run_scheduled()
            now_ms = dispatcher.now_us // 1000
            for client in tuple(self.clients.values()):
                deadline_ms = client.deadline_ms
                if deadline_ms is not None and deadline_ms <= now_ms:
                    client.on_tick(now_ms)
            self.settle()
        return True

    def _next_due_us(self) -> int:
        dispatcher = self.dispatcher
        if self._now:
            return dispatcher.now_us
        due_us = self._heap[0][0] if self._heap else NEVER_US
        for client in self.clients.values():
            deadline_ms = client.deadline_ms
            if deadline_ms is not None and deadline_ms * 1000 < due_us:
                due_us = deadline_ms * 1000
        if dispatcher.quiet_until_us < due_us:
            due_us = min(due_us, dispatcher.next_due_us())
        return max(due_us, dispatcher.now_us)

    def _run_scheduled(self) -> None:
        """Run the callbacks that are due."""
        heap, now, now_us = self._heap, self._now, self.dispatcher.now_us
        while True:
            if heap and heap[0][0] <= now_us:
                callback = heappop(heap)[2]
            elif now:
                callback = now.popleft()
            else:
                return
            callback()
            if self._ready:
                self.settle()

    def settle(self) -> None:
        """Give brokers the next requests of the connections that are ready."""
        dispatcher = self.dispatcher
        while self._ready:
            ready, self._ready = self._ready, []
            for connection in ready:
                request = connection.next_request()
                if request is None:
                    continue
                identity = connection.identity
                if identity is not UNAUTHENTICATED:
                    node = dispatcher.processes[connection.broker_id].broker
                    if node is not None:
                        received = admit(node, connection, request, self.now_ms)
                        if isinstance(received, LoginFailed):
                            dispatcher.dispatch(connection.broker_id, received)
                            continue
                gate = dispatcher.gate
                if gate is None or gate.admit(connection.broker_id, request):
                    dispatcher.dispatch(connection.broker_id, request)

    def at(self, at_us: int, callback: Callback) -> None:
        """Call back at a future time, after the callbacks already scheduled for that time."""
        if at_us == self.dispatcher.now_us:
            self._now.append(callback)
        else:
            self._sequence += 1
            heappush(self._heap, (at_us, self._sequence, callback))

    def is_idle(self) -> bool:
        """Whether no client waits for a reply or for a deadline."""
        return not any(x.is_busy for x in self._connections.values()) and all(
            client.deadline_ms is None for client in self.clients.values()
        )

    # ----------------------------------------------------------------------- for clients' wires

    def next_connection_id(self) -> int:
        """A new id, unique in this run."""
        self._connection_ids += 1
        return self._connection_ids

    def connect(
        self, client_id: int, broker_id: int, identity: ClientIdentity = UNAUTHENTICATED
    ) -> ClientConnection:
        """Open a connection; the first request shows whether the broker accepts it.  `identity`:
        the client, before it logs in."""
        connection = ClientConnection(self.next_connection_id(), client_id, broker_id, identity)
        if identity.protocol.has_tls:
            self._delay_by_handshake(connection, self.tls_round_trips[identity.listener])
        self._connections[connection.connection_id] = connection
        return connection

    def _delay_by_handshake(self, connection: ClientConnection, round_trips: int) -> None:
        """Let no message arrive before a TLS handshake could have ended.  Its messages are not
        sent: a cut, or a loss, shows at the client's first request."""
        client_id, broker_id = connection.client_id, connection.broker_id
        latency_us = self.dispatcher.fabric.latency_us
        there_us = latency_us(client_id, broker_id)
        round_trip_us = there_us + latency_us(broker_id, client_id)
        connection.arrival_at_broker_us = self.now_us + round_trips * round_trip_us + there_us

    def transmit(self, connection: ClientConnection, request: Request) -> None:
        """Send a request from a client to its broker."""
        self._transit.to_broker(connection, request)

    def hang_up(self, connection: ClientConnection) -> None:
        """Close the client's end of a connection."""
        self._transit.close_from_client(connection)

    # ------------------------------------------------------------------ the ends of connections

    def at_broker(self, connection: ClientConnection, message: Request) -> bool:
        """Deliver a request that has arrived.  Part of Ends."""
        process, identity = self.dispatcher.processes[connection.broker_id], connection.identity
        node = process.broker if process.accepts_clients else None
        is_open = identity is UNAUTHENTICATED
        is_served = node is not None and (is_open or listens(node, identity))
        done_us = self.now_us
        if node is not None and is_served and not is_open and identity.protocol.has_tls:
            done_us = self._secured_us(connection, node)
            if not connection.is_accepted:
                shown = self._certificates.get(connection.broker_id, FIRST)
                problem = _REFUSED_BY_CLIENTS.get(shown.state)
                is_served, connection.is_refused = problem is None, problem is not None
                self._handshake_ended(connection, message, problem)
        if not is_served:
            self._connections.pop(connection.connection_id, None)
            return False
        connection.is_accepted = True
        if done_us > self.now_us:
            self.at(done_us, partial(self._take, connection, message))
        else:
            self._take(connection, message)
        return True

    def _secured_us(self, connection: ClientConnection, node: BrokerNodeView) -> int:
        """The time at which a broker's network thread has read what has arrived on a connection
        with TLS; the first message stands for its handshake too."""
        if not self._handshake_us:
            return self.now_us
        if connection.thread is None:
            key = connection.broker_id, connection.identity.listener
            threads = self._threads.get(key)
            if threads is None:
                threads = self._threads[key] = NetworkThreads(node.config.num_network_threads)
            connection.thread = threads.assign()
        cost_us = 0 if connection.is_accepted else self._handshake_us
        return connection.thread.takes_up(self.now_us, cost_us)

    def _take(self, connection: ClientConnection, message: Request) -> None:
        message.arrived_ms = self.now_ms
        connection.waiting.append(message)
        self._ready.append(connection)

    def _handshake_ended(
        self, connection: ClientConnection, message: Request, problem: HandshakeProblem | None
    ) -> None:
        """Tell the broker how a TLS handshake ended."""
        broker_id, identity = connection.broker_id, connection.identity
        if problem is not None:
            failed = HandshakeFailed(identity.listener, message.client_host, problem)
            self.dispatcher.dispatch(broker_id, failed)
            return
        node = self.dispatcher.processes[broker_id].broker
        if node is not None and node.logins is not None:
            node.logins.secured(identity)

    def at_client(self, connection: ClientConnection, message: Reply) -> None:
        """Deliver a reply that has arrived.  Part of Ends."""
        connection.unanswered -= 1
        self.clients[connection.client_id].on_reply(
            connection.name, message.request.correlation_id, message.body, self.now_ms
        )

    def close_at_broker(self, connection: ClientConnection) -> None:
        """Close the broker's end.  Part of Ends."""
        self._connections.pop(connection.connection_id, None)
        if connection.is_accepted:
            closed = ConnectionClosed(connection.connection_id)
            self.dispatcher.dispatch(connection.broker_id, closed)

    def close_at_client(self, connection: ClientConnection) -> None:
        """Notify the client that the connection has ended.  Part of Ends."""
        client = self.clients[connection.client_id]
        if connection.is_refused:
            refuse(client, connection.name, SSL_HANDSHAKE_FAILED, self.now_ms)
        else:
            client.on_disconnected(connection.name, self.now_ms)

    def _close_from_broker(self, connection: ClientConnection) -> None:
        self._connections.pop(connection.connection_id, None)
        self._transit.close_from_broker(connection)

    def _on_link_healed(self, link: Link) -> None:
        self._transit.link_healed(link)

    def _on_lost(self, link: Link, at_us: int) -> None:
        self.dispatcher.on_lost(link, at_us)

    # ----------------------------------------------------------------------------- as an Outlet

    def reply(self, node_id: int, reply: Reply) -> None:
        """Send a broker's reply.  Part of Outlet."""
        connection = self._connections.get(reply.request.connection_id)
        if connection is None:
            if self.beside is not None:
                self.beside.reply(node_id, reply)
            return
        connection.in_broker = None
        if connection.waiting:
            self._ready.append(connection)
        if connection.identity is not UNAUTHENTICATED:
            node = self.dispatcher.processes[node_id].broker
            if node is not None:
                answered(node, reply)
        if reply.body is not None:
            self._transit.to_client(connection, reply)
        if reply.close_reason:
            self.close_connection(node_id, connection.connection_id, reply.close_reason)

    def close_connection(self, node_id: int, connection_id: int, reason: str) -> None:
        """Close a client's connection for a broker.  Part of Outlet."""
        connection = self._connections.get(connection_id)
        if connection is not None:
            self._trace.append(f"broker {node_id} closes connection {connection_id}: {reason}")
            self._close_from_broker(connection)
            # The broker may be in the middle of a step, so it gets the event afterwards.
            closed = ConnectionClosed(connection_id)
            self.at(self.now_us, partial(self.dispatcher.deliver, node_id, closed))
        elif self.beside is not None:
            self.beside.close_connection(node_id, connection_id, reason)

    def new_ports(self, node_id: int, count: int) -> tuple[int, ...]:
        """Unused ports.  Part of Outlet."""
        if self.beside is not None:
            return self.beside.new_ports(node_id, count)
        first = 1 + max(one.port for each in self._endpoints.values() for one in each)
        return tuple(range(first, first + count))

    def outside_clients(self, pattern: str, by_host: bool) -> tuple[int, ...]:
        """Find no node, unless outside clients connect beside the simulated ones.  Part of
        Outlet."""
        return () if self.beside is None else self.beside.outside_clients(pattern, by_host)

    def process_changed(self, process: Process, was: ProcessState) -> None:
        """End the connections of a process that has ended.  Part of Outlet."""
        if process.state is _DOWN:
            for connection in tuple(self._connections.values()):
                if connection.broker_id == process.node_id and connection.is_accepted:
                    self._close_from_broker(connection)
            for key in [key for key in self._threads if key[0] == process.node_id]:
                del self._threads[key]
        if self.beside is not None:
            self.beside.process_changed(process, was)

    def accept_clients(self, node_id: int) -> None:
        """Open the ports of a broker.  Part of Outlet."""
        if self.beside is not None:
            self.beside.accept_clients(node_id)


def virtual_ports(topology: Topology) -> dict[int, tuple[int, ...]]:
    """The ports of each broker, by id: from the topology, or numbers that do not depend on the
    machine."""
    specs = sorted(topology.brokers, key=lambda spec: spec.id)
    return {
        spec.id: tuple(
            listener.port or FIRST_VIRTUAL_PORT + at + nth * len(specs)
            for nth, listener in enumerate(spec.all_listeners)
        )
        for at, spec in enumerate(specs)
    }


def start_client(
    time: VirtualTime,
    plan: Plan,
    client: ClientStateMachine,
    kafka_id: str = "",
    access: ClientAccess | None = None,
) -> ClientWire:
    """Start a client; returns its wire, whose `client_id` names its links.  `kafka_id`: its
    client.id; without it, a client.id that shows that the client keeps a ledger.  `access`: how it
    comes in; None: as the topology's first user, if it must be a user."""
    access = plan.default_access if access is None else access
    client_id = FIRST_CLIENT_ID + len(time.clients)
    # By its name, so that a client less does not change the luck of the others.
    name = plan.fabric.add_client(client_id, getattr(client, "name", ""))
    rng = plan.chance.stream(f"client {name}")
    identity = UNAUTHENTICATED if access == OPEN else access.identity
    if identity.protocol.has_tls:
        time.tls_round_trips[access.listener] = plan.tls_round_trips(access)
    wire = ClientWire(time, client_id, plan.brokers_with(access.listener), rng, kafka_id, identity)
    started = with_logins(client, access, lambda: time.now_ms)
    time.clients[client_id] = started
    started.start(wire, time.now_ms)
    time.settle()
    return wire
