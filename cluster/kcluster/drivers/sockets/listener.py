"""A broker's listener and the connections that it accepted.

Owns: the connections that wait to be served or to be closed.  Never: reads from a connection
(connection.py, broker/channel.py), admits connections (broker/quotas/connection_quotas.py), touches
a socket (its `Acceptor` does: acceptor.py, memory/acceptor.py).  Kafka: Acceptor.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final, Protocol

from msgspec import Struct

from kcluster.broker.channel import Channel
from kcluster.broker.quotas.connection_quotas import ConnectionQuotas
from kcluster.config.kafka.definitions import BrokerConfig
from kcluster.drivers.sockets.connection import BrokerConnection, ByteSocket, IoWatcher, SocketHost
from kcluster.drivers.sockets.request_memory import STALL_MS, RequestMemory

READ_SIZE_BYTES: Final = 256 << 10
RETRY_ACCEPT_S: Final = 0.1
"""The time for which nothing is accepted when the process is out of file descriptors.  Also the
time between two checks of a waiting connection for a raised max.connections."""
POLL_MS: Final = 500
"""The time for which Kafka's acceptor waits for a new connection in one poll."""

PeerAddress = tuple[str, int] | tuple[str, int, int, int]
"""The address of a client of IPv4 or IPv6; its host comes first, as in the standard library."""


class AcceptedSocket(Protocol):
    """A socket in the form in which its acceptor passes it on: of the kernel, or in memory."""

    def close(self) -> object:
        """Close the socket."""


class Limits(Struct, frozen=True):
    """Kafka's configs of a listener."""

    request_max_bytes: int = 100 << 20
    """The value of socket.request.max.bytes."""
    max_idle_ms: int = 600_000
    """The value of connections.max.idle.ms; less than 0 for never."""
    queued_max_bytes: int = -1
    """The value of queued.max.request.bytes."""

    @classmethod
    def of(cls, config: BrokerConfig) -> Limits:
        """The limits in a broker's configuration."""
        return cls(
            config.socket_request_max_bytes,
            config.connections_max_idle_ms,
            config.queued_max_request_bytes,
        )


class Acceptor(Protocol):
    """A listening port, and timers on the clock of its connections.  An acceptor calls
    `Listener.arrived` and, if that returns True, `Listener.accept`.  The listener returns sockets
    to it unchanged."""

    @property
    def is_open(self) -> bool:
        """Whether the port is open."""

    def open(self, listener: Listener) -> None:
        """Listen, and pass arriving connections to this listener."""

    def close(self) -> None:
        """Close the port.  Connections in its backlog are reset."""

    def stop_accepting(self) -> None:
        """Leave new connections in the backlog."""

    def start_accepting(self) -> None:
        """Accept connections again, after `stop_accepting`."""

    def take_over(self, accepted: Any, connection_id: int) -> ByteSocket | None:
        """Take over the socket of a connection to be served; None if its client closed it in
        between."""

    def watch(self, sock: Any, mode: int) -> IoWatcher:
        """A watcher of the socket, not started yet.  `mode`: 1 for readable, 2 for writable."""

    def later(self, delay_s: float, callback: Callable[[], object]) -> None:
        """Call back after this delay."""


class Listener:
    """A listener of one life of one broker."""

    def __init__(
        self,
        node_id: int,
        channel: Channel,
        limits: Callable[[], Limits],
        quotas: ConnectionQuotas,
        memory: RequestMemory,
        driver: SocketHost,
        acceptor: Acceptor,
    ) -> None:
        self.node_id = node_id
        self.channel = channel
        self._limits = limits
        self._quotas = quotas
        self._name = channel.identity.listener
        self.driver = driver
        self.is_paused = False
        self.connections: dict[int, BrokerConnection] = {}
        self.read_buffer = memoryview(bytearray(READ_SIZE_BYTES))
        """A buffer for all connections: each receive is copied into frames before the next."""
        self.memory = memory
        """The memory that the connections of all listeners of the broker share."""
        self._waiting: _WaitingConnection | None = None
        """The connection that waits to be served; while there is one, no other is accepted."""
        self._throttled: list[AcceptedSocket] = []
        """Sockets that are not served and will be closed later."""
        self._throttled_until_ms = 0
        self._polled_ms = 0
        """The time at which throttled sockets were last checked."""
        self._acceptor = acceptor

    def open(self) -> None:
        """Accept connections from now on."""
        self._acceptor.open(self)

    @property
    def limits(self) -> Limits:
        """The current limits; most of them are dynamic configs."""
        return self._limits()

    @property
    def awaits_reply(self) -> bool:
        """Whether a client waits for an answer of the broker, or to be served at all."""
        waits = self._waiting is not None or bool(self._throttled)
        return waits or any(x.awaits_reply for x in self.connections.values())

    @property
    def is_held(self) -> bool:
        """Whether no connections are accepted now."""
        return self._waiting is not None

    def arrived(self, accepted: AcceptedSocket, address: PeerAddress) -> bool:
        """Whether a new connection is served now, and counted.  If not, it is rejected, or it waits
        together with all later ones."""
        self.driver.wake()
        self.driver.settle_soon()
        if not self._acceptor.is_open:
            accepted.close()
            return False
        now_ms = self.driver.now_ms()
        is_served = self._is_served(accepted, address, now_ms)
        if self._throttled:
            self._close_throttled(now_ms)
        return is_served

    def _is_served(self, accepted: AcceptedSocket, address: PeerAddress, now_ms: int) -> bool:
        wait_ms = self._quotas.arrived(self._name, now_ms)
        if wait_ms or not self._quotas.has_room(self._name):
            waiting = self._waiting = _WaitingConnection(accepted, address, now_ms + wait_ms)
            self._acceptor.stop_accepting()
            self._acceptor.later(
                wait_ms / 1000 or RETRY_ACCEPT_S, partial(self._retry_waiting, waiting)
            )
            return False
        return self._admit(accepted, address, now_ms)

    def _admit(self, accepted: AcceptedSocket, address: PeerAddress, now_ms: int) -> bool:
        refusal = self._quotas.admit(self._name, address[0], now_ms)
        if refusal is None:
            return True
        if refusal.reason:
            self.driver.log(f"broker {self.node_id}: {refusal.reason}")
        if not refusal.keep_ms:
            accepted.close()
            return False
        self._throttled.append(accepted)
        self._throttled_until_ms = max(self._throttled_until_ms, now_ms + refusal.keep_ms)
        if len(self._throttled) == 1:
            self._acceptor.later(POLL_MS / 1000, self._poll)
        return False

    def _poll(self) -> None:
        """Run while rejected connections are open: none may have been accepted for POLL_MS."""
        if not self._throttled:
            return
        self.driver.wake()
        self.driver.settle_soon()
        now_ms = self.driver.now_ms()
        if now_ms >= self._polled_ms + POLL_MS:
            self._close_throttled(now_ms)
        if self._throttled:
            self._acceptor.later((self._polled_ms + POLL_MS - now_ms) / 1000, self._poll)

    def _close_throttled(self, now_ms: int) -> None:
        """Close the rejected connections once the delay of the last one has passed.  Kafka keeps
        rejected connections in a queue, checks only the last one, and does so after each new
        connection and after POLL_MS without one.  So none is closed while further ones are
        rejected."""
        self._polled_ms = now_ms
        if self._throttled_until_ms < now_ms and not self.is_paused and self._waiting is None:
            throttled, self._throttled = self._throttled, []
            for accepted in throttled:
                accepted.close()

    def _retry_waiting(self, waiting: _WaitingConnection) -> None:
        """Try again to serve the waiting connection, if there still is one."""
        if self._waiting is not waiting:
            return
        try:
            self.driver.wake()
            self.driver.settle_soon()
            self._serve_waiting()
        finally:
            if self._waiting is waiting:
                left_ms = waiting.until_ms - self.driver.now_ms()
                later_s = left_ms / 1000 if left_ms > 0 else RETRY_ACCEPT_S
                self._acceptor.later(later_s, partial(self._retry_waiting, waiting))

    def _serve_waiting(self) -> None:
        """Serve the waiting connection, if it may be served now, and accept again."""
        waiting, now_ms = self._waiting, self.driver.now_ms()
        if waiting is None or self.is_paused:
            return
        if now_ms >= waiting.until_ms and self._quotas.has_room(self._name):
            self._waiting = None
            if self._admit(waiting.accepted, waiting.address, now_ms):
                self.accept(waiting.accepted, waiting.address)
            self.accept_again()

    def accept(self, accepted: AcceptedSocket, address: PeerAddress) -> None:
        """Serve an admitted connection until it is closed."""
        host = address[0]
        if not self._acceptor.is_open:
            accepted.close()
            return
        connection_id = self.driver.next_connection_id()
        sock = self._acceptor.take_over(accepted, connection_id)
        if sock is None:
            self._quotas.closed(self._name, host)
            self._serve_waiting()
            return
        connection = BrokerConnection(
            self,
            sock,
            connection_id,
            host,
            self._acceptor.watch,
            request_max_bytes=self.limits.request_max_bytes,
        )
        self.connections[connection_id] = connection
        connection.serve()

    def accept_again(self) -> None:
        """Accept new connections, unless paused, closed or at a limit."""
        if self._acceptor.is_open and not self.is_paused and not self.is_held:
            self._acceptor.start_accepting()

    def forget(self, connection: BrokerConnection, reason: str) -> None:
        """Forget a closed connection."""
        del self.connections[connection.connection_id]
        self._quotas.closed(self._name, connection.client_host)
        self.channel.connection_closed(connection.connection_id)
        if self._waiting is not None and self._acceptor.is_open:
            self._serve_waiting()
        if reason:
            self.driver.log(
                f"broker {self.node_id}: connection {connection.connection_id} from"
                f" {connection.client_host} closed: {reason}"
            )

    def pause(self) -> None:
        """Read nothing and accept nothing, because the process is paused."""
        self.is_paused = True
        if self._acceptor.is_open:
            self._acceptor.stop_accepting()

    def resume(self) -> None:
        """Read and accept again."""
        self.is_paused = False
        self._serve_waiting()
        self.accept_again()
        for connection in tuple(self.connections.values()):
            self.driver.pump_later(connection)

    def close(self) -> None:
        """Close the port and all connections at once, as the kernel does for a dead process."""
        self._acceptor.close()
        if self._waiting is not None:
            self._waiting.accepted.close()
            self._waiting = None
        for accepted in self._throttled:
            accepted.close()
        self._throttled = []
        for connection in tuple(self.connections.values()):
            connection.close("", tell_broker=False)

    def close_excess(self) -> None:
        """Close the connections that have been idle longest if there are more than max.connections,
        which may have been lowered.  Kafka: Processor.closeExcessConnections."""
        excess = self._quotas.excess
        if excess and not self.is_paused:
            idlest = sorted(self.connections.values(), key=lambda one: one.last_active_ms)
            for connection in idlest[:excess]:
                connection.close("more than max.connections")

    def close_idle(self, now_ms: int) -> None:
        """Close connections that were idle for connections.max.idle.ms, and the connection for
        which all others wait for memory, if its client sends nothing more."""
        limit_ms = self.limits.max_idle_ms
        if self.is_paused:
            return
        first = self.memory.first
        if isinstance(first, BrokerConnection) and now_ms - first.last_active_ms > STALL_MS:
            first.close(f"others wait for its memory, and it sent nothing for {STALL_MS // 1000} s")
        if limit_ms < 0:
            return
        for connection in tuple(self.connections.values()):
            if not connection.awaits_reply and now_ms - connection.last_active_ms > limit_ms:
                connection.close("")


class _WaitingConnection(Struct, frozen=True):
    """A connection that was accepted and is not yet served."""

    accepted: AcceptedSocket
    address: PeerAddress
    until_ms: int
    """The time at which the connection is served, if max.connections allows it."""
