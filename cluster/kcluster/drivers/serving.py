"""The common part of the drivers that serve clients' bytes: listeners, connections, settling,
conditions.

Owns: the listeners of brokers that are up, the open work of connections, the conditions for which
callers wait.  Never: reads a clock, waits, touches gevent or a socket (live.py and memory/driver.py
do).  Kafka: SocketServer, between its Processors and KafkaApis.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import TypeVar

from kcluster.broker.channel import Channel
from kcluster.broker.node_view import BrokerNodeView
from kcluster.broker.quotas.connection_quotas import ConnectionQuotas
from kcluster.contract import Input, Reply, Request
from kcluster.deaths import ProcessState
from kcluster.drivers.outside import Outside
from kcluster.drivers.sockets.connection import BrokerConnection, ByteSocket, Tap
from kcluster.drivers.sockets.listener import Acceptor, Limits, Listener
from kcluster.drivers.sockets.request_memory import RequestMemory
from kcluster.drivers.tls.optional import tls_of
from kcluster.operations.errors import ClusterError
from kcluster.principals import ClientIdentity
from kcluster.runtime.build import Plan
from kcluster.runtime.dispatch import Dispatcher
from kcluster.runtime.process import Process

T = TypeVar("T")


class SocketDriver(ABC):
    """A driver of a plan's nodes whose clients send bytes.  The dispatcher's outlet is this driver,
    or an outlet that passes this driver's connections on to it."""

    has_fixed_sizes = False
    """Whether all handshakes of TLS have one size, so that runs do not differ."""

    def __init__(self, plan: Plan, log: Callable[[str], None] | None) -> None:
        self.plan = plan
        self.outside: Outside | None = None  # only while links of such clients are cut or shaped
        self.listeners: dict[int, tuple[Listener, ...]] = {}
        """The listeners of each broker that is up, in the order of its endpoints."""
        self.bugs: list[BaseException] = []
        """Exceptions raised by steps.  Each is a bug in the simulator, so the test that hit it must
        fail."""
        self.is_clock_paused = False
        """Whether the clock is paused, which each ready socket checks, and then does nothing."""
        self.clock_speed = 1.0
        """The speed of the cluster's clock; 1.0 is the machine's."""
        self._log = log
        self._dirty: deque[BrokerConnection] = deque()
        self._unflushed: list[BrokerConnection] = []
        self._for_later: deque[tuple[int, Input]] = deque()
        self._settling = False
        self._conditions: list[tuple[Callable[[], bool], Future[None]]] = []
        self._armed_us = 0
        """The time of the running timer; no earlier event needs another timer."""
        self.tls = tls_of(
            plan.topology,
            plan.certificates,
            plan.shown_until_ms,
            names=self._names,
            fixed_size=self.has_fixed_sizes,
            log=self.log,
        )
        """The TLS of the brokers; None if no listener has it."""
        self.dispatcher: Dispatcher = self._make_dispatcher()

    # ------------------------------------------------------------------ what the drivers differ in

    @abstractmethod
    def _make_dispatcher(self) -> Dispatcher:
        """The nodes, with an outlet that leads to this driver."""

    @abstractmethod
    def _acceptor(self, node_id: int, at: int) -> Acceptor:
        """The acceptor of a broker's port number `at`; it does not listen yet."""

    def _names(self) -> Iterable[str]:
        """Further names and addresses of the brokers, for their certificates."""
        return ()

    def _tap(self, sock: ByteSocket) -> Tap | None:
        """Where a trace takes the plaintext of a socket; None if nobody traces."""
        return None

    @abstractmethod
    def _arm(self) -> None:
        """Set the timer, because the nodes want to wake earlier than `_armed_us`."""

    @abstractmethod
    def wake(self) -> None:
        """Bring the clock up to date, after a socket has called back."""

    @abstractmethod
    def settle_soon(self) -> None:
        """Settle before waiting again, once for all sockets that are ready now."""

    @abstractmethod
    def at(self, at_us: int, callback: Callable[[], object]) -> None:
        """Call back at this time, between two dispatches."""

    @abstractmethod
    def next_connection_id(self) -> int:
        """A new id, unique in this cluster."""

    @abstractmethod
    def on_resumed(self, callback: Callable[[], object]) -> None:
        """Call back once the clock is resumed."""

    @abstractmethod
    def outside_clients(self, pattern: str, by_host: bool) -> tuple[int, ...]:
        """The network node of these outside clients, created on first use.  Part of Outlet."""

    # ---------------------------------------------------------------------------- conditions

    def when(
        self, condition: Callable[[], bool], future: Future[None] | None = None
    ) -> Future[None]:
        """A future that completes when `condition()` holds between two dispatches, or `future`.
        Call this in the driver's thread."""
        if future is None:
            future = Future()
        if condition():
            future.set_result(None)
        else:
            self._conditions.append((condition, future))
        return future

    def forget_condition(self, future: Future[None]) -> None:
        """Stop checking the condition of a future from `when`."""
        self._conditions = [entry for entry in self._conditions if entry[1] is not future]

    # ------------------------------------------------------------------------ time and dispatch

    def now_ms(self) -> int:
        return self.dispatcher.now_us // 1000

    def deliver(self, node_id: int, event: Input) -> None:
        gate, outside = self.dispatcher.gate, self.outside
        if (
            outside is not None
            and isinstance(event, Request)
            and outside.takes_request(node_id, event)
        ):
            return
        if gate is None or not isinstance(event, Request) or gate.admit(node_id, event):
            self.dispatcher.deliver(node_id, event)

    def gave_up(self, node_id: int, request: Request) -> None:
        self.dispatcher.gave_up(node_id, request)

    def deliver_later(self, node_id: int, event: Input) -> None:
        self._for_later.append((node_id, event))

    def settle(self) -> None:
        if self._settling:
            return
        self._settling = True
        dispatcher, dirty = self.dispatcher, self._dirty
        try:
            while dirty or self._for_later or self._unflushed or not dispatcher.is_quiet:
                while self._for_later:
                    node_id, event = self._for_later.popleft()
                    dispatcher.deliver(node_id, event)
                while dirty:
                    connection = dirty.popleft()
                    connection.is_dirty = False
                    connection.pump()
                dispatcher.run()
                if not dirty:
                    self._flush()
                if dispatcher.is_cut_short:
                    self._flush()
                    self._arm()  # continues after other sockets were read
                    return
        finally:
            self._settling = False
        if self._conditions:
            self._check_conditions()
        if self.dispatcher.quiet_until_us < self._armed_us:
            self._arm()

    def _flush(self) -> None:
        unflushed, self._unflushed = self._unflushed, []
        for connection in unflushed:
            connection.is_unflushed = False
            connection.flush()

    def _check_conditions(self) -> None:
        for entry in tuple(self._conditions):
            condition, future = entry
            try:
                holds = condition()
            except ClusterError as error:
                self._conditions.remove(entry)
                future.set_exception(error)
                continue
            if holds:
                self._conditions.remove(entry)
                future.set_result(None)

    # ------------------------------------------------------------------- connections of clients

    def pump_later(self, connection: BrokerConnection) -> None:
        if not connection.is_dirty:
            connection.is_dirty = True
            self._dirty.append(connection)

    def flush_later(self, connection: BrokerConnection) -> None:
        if not connection.is_unflushed:
            connection.is_unflushed = True
            self._unflushed.append(connection)

    def log(self, line: str) -> None:
        if self._log is not None:
            self._log(line)

    def reply(self, node_id: int, reply: Reply) -> None:
        """Send a broker's reply.  Part of Outlet."""
        if self.outside is None or not self.outside.takes_reply(node_id, reply):
            self.write_reply(node_id, reply)

    def write_reply(self, node_id: int, reply: Reply) -> None:
        """Write a reply to its connection, if that is still open."""
        connection = self._connection(node_id, reply.request.connection_id)
        if connection is not None:
            connection.take_reply(reply)

    def close_connection(self, node_id: int, connection_id: int, reason: str) -> None:
        """Close a client's connection for a broker.  Part of Outlet."""
        connection = self._connection(node_id, connection_id)
        if connection is not None:
            connection.close(reason)

    def _connection(self, node_id: int, connection_id: int) -> BrokerConnection | None:
        for listener in self.listeners[node_id]:
            connection = listener.connections.get(connection_id)
            if connection is not None:
                return connection
        return None

    def open_listeners(self) -> tuple[Listener, ...]:
        """The listeners of all brokers that are up."""
        return tuple(listener for each in self.listeners.values() for listener in each)

    def process_changed(self, process: Process, was: ProcessState) -> None:
        """Close, pause or resume the broker's sockets.  Part of Outlet."""
        node_id = process.node_id
        if node_id not in self.plan.endpoints:
            return  # the controller
        if process.state is ProcessState.DOWN:
            for listener in self.listeners.pop(node_id):
                listener.close()
        elif process.state is ProcessState.PAUSED:
            for listener in self.listeners[node_id]:
                listener.pause()
        elif was is ProcessState.PAUSED:
            for listener in self.listeners[node_id]:
                listener.resume()
        else:
            node = process.broker
            assert node is not None, process.state
            self.listeners[node_id] = self._listeners_of(node)

    def accept_clients(self, node_id: int) -> None:
        """Open the ports of a broker.  Part of Outlet."""
        for listener in self.listeners[node_id]:
            listener.open()

    def _listeners_of(self, node: BrokerNodeView) -> tuple[Listener, ...]:
        """The listeners of a broker that starts, still closed; they share its limits."""

        def limits() -> Limits:
            return Limits.of(node.config)

        def keeps_answers() -> bool:
            return self.dispatcher.gate is None and self.outside is None

        quotas = ConnectionQuotas(node.view, node.quotas)
        memory = RequestMemory(limits().queued_max_bytes)
        made = []
        stores: list[Callable[[Mapping[str, str]], str | None]] = []
        for at, endpoint in enumerate(node.view.endpoints):
            identity = ClientIdentity(listener=endpoint.listener, protocol=endpoint.protocol)
            channel = Channel(node, keeps_answers, identity, node.logins)
            acceptor = self._acceptor(node.node_id, at)
            if self.tls is not None and endpoint.protocol.has_tls:
                tls = self.tls.listener(node.view, endpoint, channel)
                acceptor = tls.acceptor(acceptor, self._tap)
                stores.append(tls.check)
            made.append(Listener(node.node_id, channel, limits, quotas, memory, self, acceptor))
        if stores:
            node.view.check_stores = partial(_first_problem, stores)
        return tuple(made)


def _first_problem(
    checks: Sequence[Callable[[Mapping[str, str]], str | None]], configs: Mapping[str, str]
) -> str | None:
    """The first problem that a listener has with its broker's dynamic configs."""
    return next((problem for check in checks if (problem := check(configs)) is not None), None)
