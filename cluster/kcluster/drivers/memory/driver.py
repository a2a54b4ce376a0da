"""The in-memory driver: brokers serve bytes in virtual time, beside the project's own clients.

Owns: virtual time, the listeners by port, the advance of time while real client code runs. Never:
opens a socket, runs a client's code, waits; orders events (virtual_time.py does). Kafka: the
machines that brokers run on.

It stands above VirtualTime as the live driver stands above gevent, with the live driver's listeners
and connections, which settle after each pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Final, TypeVar, final

from kcluster.contract import Note
from kcluster.deaths import ProcessState
from kcluster.drivers.memory.acceptor import BrokerSocket, MemoryAcceptor
from kcluster.drivers.memory.addresses import CLIENT_HOST, hosts_of
from kcluster.drivers.memory.network import Door, MemoryNetwork, StreamConnection
from kcluster.drivers.memory.stream import StreamEnd
from kcluster.drivers.serving import SocketDriver
from kcluster.drivers.sockets.connection import ByteSocket, Tap
from kcluster.drivers.sockets.listener import Acceptor
from kcluster.drivers.virtual_time import VirtualTime, virtual_ports
from kcluster.network.threads import NetworkThreads
from kcluster.operations.errors import ClusterError
from kcluster.runtime.build import Plan
from kcluster.runtime.dispatch import Dispatcher
from kcluster.runtime.process import Process
from kcluster.timers import NEVER_US

T = TypeVar("T")

SWEEP_US: Final = 1_000_000
"""The time between two checks for idle connections; there are none while nothing happens."""


@final
class InMemoryDriver(SocketDriver):
    """Runs a plan's nodes in virtual time, from `start_ms` on.  `log`: like the live driver's.

    `trace`: a line for each connection of a simulated client that a broker closes.
    """

    has_fixed_sizes = True

    def __init__(
        self, plan: Plan, log: Callable[[str], None] | None = None, *, start_ms: int = 0
    ) -> None:
        self.trace: list[Note | str] = []
        self.time = VirtualTime(
            plan.fabric,
            plan.processes,
            plan.endpoints,
            self.trace,
            plan.certificates,
            plan.handshake_us,
        )
        super().__init__(plan, log)
        self.thread_id: int | None = None
        self.ports = virtual_ports(plan.topology)
        """The ports of each broker's listeners, by broker id."""
        self._acceptors: dict[Door, MemoryAcceptor] = {}
        self.network = MemoryNetwork(self.time, self.dispatcher, self._acceptors)
        for node_id in plan.endpoints:
            self._set_latency(node_id)
        self.is_inhabited = False
        """Whether threads of real client code run in this time, so that only they may let it
        pass."""
        self._is_stopped = False
        self._sweep_due_us = 0
        self.time.beside = self
        self.dispatcher.at(start_ms * 1000)

    def _make_dispatcher(self) -> Dispatcher:
        return self.time.dispatcher

    # ------------------------------------------------------------------------ life and time

    def open(self) -> None:
        """Start every process at this moment."""
        for process in self.plan.processes:
            self.dispatcher.start(process.node_id)
        self.settle()

    def stop(self) -> None:
        """Refuse further calls.  Waits for a condition end with a ClusterError."""
        self._is_stopped = True
        waiting, self._conditions = self._conditions, []
        for _, future in waiting:
            future.set_exception(ClusterError("the cluster was stopped"))

    @property
    def now_us(self) -> int:
        """The current virtual time, in µs."""
        return self.dispatcher.now_us

    def clock_ms(self) -> int:
        """The current virtual time, in ms."""
        return self.dispatcher.now_us // 1000

    def advance(self, limit_us: int, condition: Callable[[], bool]) -> bool:
        """Let time pass until `condition()` holds, or until `limit_us`; returns whether it holds.
        With NEVER_US, time stands still when nothing is due."""

        def settled_and_holds() -> bool:
            self.settle()
            if self.dispatcher.now_us >= self._sweep_due_us:
                self._close_idle()
            return condition()

        if self.time.run(limit_us, settled_and_holds):
            return True
        if limit_us < NEVER_US:
            self.dispatcher.at(limit_us)
        return False

    def at(self, at_us: int, callback: Callable[[], object]) -> None:
        """Call back at this time, between two dispatches."""
        self.time.at(max(at_us, self.dispatcher.now_us), callback)

    def call(self, function: Callable[[], T]) -> Future[T]:
        """Run `function` now, with its consequences at this moment.  A ClusterError that it raises
        goes to the future."""
        if self._is_stopped:
            raise ClusterError("the cluster is not running")
        future: Future[T] = Future()
        try:
            result = function()
        except ClusterError as error:
            self.settle()
            future.set_exception(error)
        else:
            self.settle()
            future.set_result(result)
        return future

    def wake(self) -> None:
        """Do nothing: the clock moves only between two dispatches."""

    def settle_soon(self) -> None:
        """Do nothing: `advance` settles after every pass."""

    def _arm(self) -> None:
        """Do nothing: `advance` looks for due events."""

    # -------------------------------------------------------------------------- connections

    @property
    def hosts(self) -> dict[str, str]:
        """The addresses of brokers' names."""
        return hosts_of(self.plan.topology.host, self.plan.endpoints)

    def connect(self, host: str, port: int, local: tuple[str, int] = (CLIENT_HOST, 0)) -> StreamEnd:
        """A client at `local` connects to a broker's name or address; port 0: any port.  The
        returned end is connecting; if no broker is there, the connection is refused."""
        door = self._door_at(host, port)
        is_encrypted = False
        if door is not None:
            is_encrypted = self.plan.endpoints[door[0]][door[1]].protocol.has_tls
        return self.network.connect(local, (host, port), door, is_encrypted=is_encrypted)

    def _door_at(self, host: str, port: int) -> Door | None:
        hosts = self.hosts
        address = hosts.get(host, host)
        for node_id, endpoints in self.plan.endpoints.items():
            for at, known in enumerate(endpoints):
                if known.port == port and hosts.get(known.host, known.host) == address:
                    return node_id, at
        where = self.plan.topology.host
        if address == hosts.get(where, where):
            for node_id, ports in self.ports.items():
                if port in ports:
                    return node_id, ports.index(port)
        return None

    def _names(self) -> Iterable[str]:
        hosts = self.hosts
        return (*hosts, *hosts.values())

    def _tap(self, sock: ByteSocket) -> Tap | None:
        assert isinstance(sock, BrokerSocket), "of its acceptor"
        connection = sock.end.cable
        return connection.show if isinstance(connection, StreamConnection) else None

    def _set_latency(self, node_id: int) -> None:
        self.network.add_broker(node_id, self.plan.topology.network.default_latency_ms)

    def _close_idle(self) -> None:
        self._sweep_due_us = self.dispatcher.now_us + SWEEP_US
        for listener in self.open_listeners():
            if listener.connections:
                listener.close_excess()
                listener.close_idle(self.now_ms())
        self.settle()

    # ------------------------------------------------------------------------- as an Outlet

    def next_connection_id(self) -> int:
        return self.time.next_connection_id()

    def _acceptor(self, node_id: int, at: int) -> Acceptor:
        threads, handshake_us = None, self.plan.handshake_us
        if handshake_us and self.plan.endpoints[node_id][at].protocol.has_tls:
            config = self.plan.topology.broker_config(node_id)
            threads = NetworkThreads(config.num_network_threads)
        acceptor = MemoryAcceptor(self.time, threads, handshake_us)
        self._acceptors[node_id, at] = acceptor
        return acceptor

    def process_changed(self, process: Process, was: ProcessState) -> None:
        """Close, pause or resume the broker's port and connections.  Part of Outlet."""
        super().process_changed(process, was)
        if process.state is ProcessState.DOWN:
            for door in [door for door in self._acceptors if door[0] == process.node_id]:
                del self._acceptors[door]

    def new_ports(self, node_id: int, count: int) -> tuple[int, ...]:
        """Assign ports to a broker that is new, or down and about to have other addresses.  Part
        of Outlet."""
        first = 1 + max(map(max, self.ports.values()))
        ports = self.ports[node_id] = tuple(range(first, first + count))
        self._set_latency(node_id)
        return ports

    def outside_clients(self, pattern: str, by_host: bool) -> tuple[int, ...]:
        """The network node of these outside clients, created on first use.  Part of Outlet."""
        return (self.network.find(pattern, by_host),)

    # --------------------------------------------------------------------- steering the clock

    def on_resumed(self, callback: Callable[[], object]) -> None:
        """Do nothing: the clock is never paused."""
        raise AssertionError(callback)
