"""What happens next in virtual time: deeds, messages of simulated clients, everybody's deadlines.

Owns: the order of all that is to happen, connections of simulated clients.  Never: reads a clock,
opens a socket, encodes a message: they are passed as they are; is asked by users (virtual.py is).
Kafka: no counterpart; FoundationDB's simulation is the model.

A *pass* goes to the next moment at which something is due, and lets all of it happen: brokers'
deadlines and messages between them, then what is scheduled, then clients' deadlines.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from typing import Final, final

from kcluster.clients.wire import ClientStateMachine
from kcluster.contract import ConnectionClosed, PeerDisconnected, Reply, Request
from kcluster.drivers.wires.virtual import ClientConnection
from kcluster.network.fabric import Fabric, Link
from kcluster.runtime.dispatch import MAX_IDLE, NEVER_US, Dispatcher
from kcluster.runtime.process import Process, ProcessState

Deed = Callable[[], None]
Message = Request | ConnectionClosed | Reply | PeerDisconnected
"""What passes over a connection: to its broker a request, or its client's end of it; to its client
an answer, or the broker's end."""
Passing = tuple[ClientConnection, Message]

_DOWN: Final = ProcessState.DOWN


@final
class VirtualTime:
    """The course of one run.  `clients` by their id in the fabric; `addresses` of the brokers;
    `trace`: told which connections brokers close."""

    def __init__(
        self, fabric: Fabric, processes: Iterable[Process], addresses: dict[int, tuple[str, int]],
        trace: list[str],
    ) -> None:  # fmt: skip
        self.dispatcher = Dispatcher(fabric, processes, self)
        self.dispatcher.heal_sinks = (self._on_link_healed,)
        self.clients: dict[int, ClientStateMachine] = {}
        self._fabric = fabric
        self._addresses = addresses
        self._trace = trace
        self._heap: list[tuple[int, int, Passing | Deed]] = []
        """(µs, number of its coming, what comes)."""
        self._sequence = 0
        self._behind: deque[Passing | Deed] = deque()
        """What comes now, behind all that the heap has for now."""
        self._connections: dict[int, ClientConnection] = {}
        self._connection_ids = 0
        self._ready: list[ClientConnection] = []
        """Connections whose broker may take the next request."""

    @property
    def now_ms(self) -> int:
        """What clients and nodes see."""
        return self.dispatcher.now_us // 1000

    # ------------------------------------------------------------------------------- passes

    def run(self, limit_us: int, condition: Callable[[], bool]) -> bool:
        """Let time pass until `condition()` holds, or nothing more is due up to `limit_us`; whether
        it holds."""
        dispatcher, idle = self.dispatcher, 0
        while not condition():
            due_us = self._next_due_us()
            if due_us > limit_us:
                return False
            idle = 0 if due_us > dispatcher.now_us else idle + 1
            assert idle < MAX_IDLE, f"time stands still at {self.now_ms} ms: a client is always due"
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
        if self._behind:
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
        """All that is to happen up to this moment."""
        heap, behind, now_us = self._heap, self._behind, self.dispatcher.now_us
        while True:
            if heap and heap[0][0] <= now_us:
                first = heappop(heap)[2]
            elif behind:
                first = behind.popleft()
            else:
                return
            if isinstance(first, tuple):
                self._arrive(first[0], first[1])
            else:
                first()
            if self._ready:
                self.settle()

    def settle(self) -> None:
        """Give brokers the next requests of connections that may have one."""
        dispatcher = self.dispatcher
        while self._ready:
            ready, self._ready = self._ready, []
            for connection in ready:
                request = connection.next_request()
                if request is None:
                    continue
                gate = dispatcher.gate
                if gate is None or gate.admit(connection.broker_id, request):
                    dispatcher.deliver(connection.broker_id, request)

    def schedule(self, at_us: int, what: Passing | Deed) -> None:
        """Let something happen at a time to come, behind what was to happen then before."""
        if at_us == self.dispatcher.now_us:
            self._behind.append(what)
        else:
            self._sequence += 1
            heappush(self._heap, (at_us, self._sequence, what))

    def is_idle(self) -> bool:
        """No client waits for an answer, or for a time."""
        return not any(x.is_busy for x in self._connections.values()) and all(
            client.deadline_ms is None for client in self.clients.values()
        )

    # --------------------------------------------------------------------- for clients' wires

    def connect(self, client_id: int, broker_id: int) -> ClientConnection:
        """A new connection; whether there is somebody at the other end shows when it is used."""
        self._connection_ids += 1
        connection = ClientConnection(
            self._connection_ids, client_id, broker_id, self.dispatcher.processes[broker_id].life
        )
        self._connections[connection.connection_id] = connection
        return connection

    def transmit(self, connection: ClientConnection, request: Request) -> None:
        """Carry a request from a client to its broker."""
        self._send(connection, request, to_broker=True)

    def hang_up(self, connection: ClientConnection) -> None:
        """A client closes its connection: what it has sent arrives, and then the end."""
        connection.hung_up = True
        self._send(connection, ConnectionClosed(connection.connection_id), to_broker=True)

    # -------------------------------------------------------------------------- over the links

    def _send(self, connection: ClientConnection, message: Message, *, to_broker: bool) -> None:
        """Let a message, or the end of a connection, pass over its link: in order, late, or not at
        all.  A connection that lost a message is broken."""
        dispatcher, fabric, is_lost = self.dispatcher, self._fabric, False
        arrival_us = dispatcher.now_us
        if not fabric.is_plain:
            link = _link(connection, to_broker)
            delay_us = fabric.delay_us(link[0], link[1], arrival_us, message)
            if delay_us is None:
                connection.is_broken |= _is_missed(message)
                return
            if delay_us < 0:
                # Lost for good: nothing behind it gets through, until the connection is reset.
                delay_us, is_lost = -delay_us, _is_missed(message)
                dispatcher.on_lost(link, delay_us)
                connection.is_broken |= is_lost
            arrival_us += delay_us
        if to_broker:
            arrival_us = connection.at_broker_us = max(arrival_us, connection.at_broker_us)
        else:
            arrival_us = connection.at_client_us = max(arrival_us, connection.at_client_us)
        if not is_lost:
            self.schedule(arrival_us, (connection, message))

    def _arrive(self, connection: ClientConnection, message: Message) -> None:
        """The other end is reached, unless the link has been cut meanwhile."""
        to_broker = isinstance(message, Request | ConnectionClosed)
        if self._fabric.has_cuts and self._fabric.is_cut(*_link(connection, to_broker)):
            connection.is_broken |= _is_missed(message)
        elif isinstance(message, Reply):
            connection.tell_reply(self.clients[connection.client_id], message, self.now_ms)
        elif isinstance(message, PeerDisconnected):
            connection.tell_disconnected(self.clients[connection.client_id], self.now_ms)
        elif not self._is_to_this_life(connection):
            if isinstance(message, Request):
                self._refuse(connection)
        elif isinstance(message, ConnectionClosed):
            connection.is_open = False
            self._connections.pop(connection.connection_id, None)
            self.dispatcher.deliver(connection.broker_id, message)
        elif connection.is_open:
            message.arrived_ms = self.now_ms
            connection.waiting.append(message)
            self._ready.append(connection)

    def _is_to_this_life(self, connection: ClientConnection) -> bool:
        """The broker's process still lives the life that the connection was made to."""
        process = self.dispatcher.processes[connection.broker_id]
        return process.node is not None and process.life == connection.life

    def _refuse(self, connection: ClientConnection) -> None:
        """The broker's end is closed: its client will hear."""
        if connection.is_open:
            connection.is_open = False
            self._connections.pop(connection.connection_id, None)
            self._send(connection, PeerDisconnected(connection.broker_id), to_broker=False)

    def _on_link_healed(self, link: Link) -> None:
        """What was lost in a cut is not sent again: both ends find their connection broken."""
        for connection in tuple(self._connections.values()):
            if connection.is_broken and connection.is_open and link == _link(connection, True):
                if self._is_to_this_life(connection):
                    gone = ConnectionClosed(connection.connection_id)
                    self.dispatcher.deliver(connection.broker_id, gone)
                self._refuse(connection)

    # -------------------------------------------------------------------------- as an Outlet

    def reply(self, node_id: int, reply: Reply) -> None:
        connection = self._connections.get(reply.request.connection_id)
        if connection is None:
            return
        connection.in_broker = None
        if connection.waiting:
            self._ready.append(connection)
        if reply.body is not None:
            self._send(connection, reply, to_broker=False)

    def close_connection(self, node_id: int, connection_id: int, reason: str) -> None:
        connection = self._connections.get(connection_id)
        if connection is not None:
            self._trace.append(f"broker {node_id} closes connection {connection_id}: {reason}")
            self._refuse(connection)

    def new_port(self, node_id: int) -> int:
        return max(port for _, port in self._addresses.values()) + 1

    def outside_clients(self, pattern: str, by_host: bool) -> tuple[int, ...]:
        return ()

    def process_changed(self, process: Process, was: ProcessState) -> None:
        if process.state is _DOWN:
            for connection in tuple(self._connections.values()):
                if connection.broker_id == process.node_id:
                    self._refuse(connection)


def _link(connection: ClientConnection, to_broker: bool) -> Link:
    client_id, broker_id = connection.client_id, connection.broker_id
    return (client_id, broker_id) if to_broker else (broker_id, client_id)


def _is_missed(message: Message) -> bool:
    """Whether somebody waits for it in vain when it is lost: not so for the end of a connection."""
    return isinstance(message, Request | Reply)
