"""A broker's listening socket and the connections that came in over it.

Owns: the port (reserved for the broker while it is down), which connections wait to be served or
to be closed.  Never: reads from a connection (connection.py, broker/channel.py), decides which are
served (broker/quotas/connection_quotas.py).  Kafka: Acceptor.
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable
from typing import Any, Final

import gevent
import gevent.monkey
from gevent.hub import Hub
from gevent.server import StreamServer
from msgspec import Struct

from kcluster.broker.channel import Channel
from kcluster.broker.quotas.connection_quotas import ConnectionQuotas
from kcluster.config.kafka.definitions import BrokerConfig
from kcluster.drivers.sockets.connection import BrokerConnection, SocketHost

BACKLOG: Final = 1024
READ_SIZE_BYTES: Final = 256 << 10
RETRY_ACCEPT_S: Final = 0.1
"""How long nothing is accepted when the process is out of file descriptors, and how often a waiting
connection checks whether max.connections was raised."""
POLL_MS: Final = 500
"""How long Kafka's acceptor waits in one poll for a new connection."""

_PlainSocket: Final = gevent.monkey.get_original("socket", "socket")
"""The standard library's class, even in a monkey-patched process: it is used without blocking, so
its callers never yield."""


class Limits(Struct, frozen=True):
    """Kafka's configs of a listener."""

    request_max_bytes: int = 100 << 20
    """socket.request.max.bytes"""
    max_idle_ms: int = 600_000
    """connections.max.idle.ms; less than 0 for never."""

    @classmethod
    def of(cls, config: BrokerConfig) -> Limits:
        """The limits in a broker's configuration."""
        return cls(config.socket_request_max_bytes, config.connections_max_idle_ms)


class ReservedPort:
    """A port reserved for a broker from its first start on, whether it is up or down.

    A bound socket that does not listen holds it: connections are refused, and no other process can
    take it.  SO_REUSEADDR must be set on both of two sockets that bind one port.  This one has it
    at first, so that old connections in TIME_WAIT do not matter, and while a listener binds.
    """

    def __init__(self, host: str, port: int) -> None:
        self.host = host
        self._socket = self._bound(port)
        self.port: int = self._socket.getsockname()[1]
        self._share(False)

    def listen(self) -> Any:
        """A new listening socket on the port."""
        self._share(True)
        try:
            listening = self._bound(self.port)
            listening.setblocking(False)
            listening.listen(BACKLOG)
        finally:
            self._share(False)
        return listening

    def _share(self, allowed: bool) -> None:
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, int(allowed))

    def _bound(self, port: int) -> Any:
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        bound = _PlainSocket(family, socket.SOCK_STREAM)
        try:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind((self.host, port))
        except OSError:
            bound.close()
            raise
        return bound

    def release(self) -> None:
        """Release the port."""
        self._socket.close()


class Listener:
    """The listener of one life of one broker."""

    def __init__(
        self,
        node_id: int,
        port: ReservedPort,
        channel: Channel,
        limits: Callable[[], Limits],
        quotas: ConnectionQuotas,
        gate: SocketHost,
        hub: Hub,
    ) -> None:
        self.node_id = node_id
        self.channel = channel
        self._limits = limits
        self._quotas = quotas
        self.gate = gate
        self.is_paused = False
        self.connections: dict[int, BrokerConnection] = {}
        self.read_buffer = memoryview(bytearray(READ_SIZE_BYTES))
        """Shared by the connections: each receive is copied into frames before the next."""
        self._waiting: _WaitingConnection | None = None
        """A connection that waits to be served; while there is one, none is accepted."""
        self._throttled: list[Any] = []
        """Sockets that are not served and will be closed later."""
        self._throttled_until_ms = 0
        self._polled_ms = 0
        """When these were last checked."""
        self._hub = hub
        self._server = _Server(port.listen(), self)
        self._server.start()

    @property
    def limits(self) -> Limits:
        """The current limits; most of them are dynamic configs."""
        return self._limits()

    @property
    def is_held(self) -> bool:
        """Whether no connections are accepted now."""
        return self._waiting is not None

    def arrived(self, accepted: Any, address: Any) -> bool:
        """Whether a new connection is served now, and thus counted.  If not, it is rejected, or it
        and all later ones wait."""
        self.gate.wake()
        self.gate.settle_soon()
        if not self._server.started:
            accepted.close()
            return False
        now_ms = self.gate.now_ms()
        is_served = self._is_served(accepted, address, now_ms)
        if self._throttled:
            self._close_throttled(now_ms)
        return is_served

    def _is_served(self, accepted: Any, address: Any, now_ms: int) -> bool:
        wait_ms = self._quotas.arrived(now_ms)
        if wait_ms or not self._quotas.has_room:
            waiting = self._waiting = _WaitingConnection(accepted, address, now_ms + wait_ms)
            self._server.stop_accepting()
            gevent.spawn_later(wait_ms / 1000 or RETRY_ACCEPT_S, self._retry_waiting, waiting)
            return False
        return self._admit(accepted, address, now_ms)

    def _admit(self, accepted: Any, address: Any, now_ms: int) -> bool:
        refusal = self._quotas.admit(address[0], now_ms)
        if refusal is None:
            return True
        if refusal.reason:
            self.gate.log(f"broker {self.node_id}: {refusal.reason}")
        if not refusal.keep_ms:
            accepted.close()
            return False
        self._throttled.append(accepted)
        self._throttled_until_ms = max(self._throttled_until_ms, now_ms + refusal.keep_ms)
        if len(self._throttled) == 1:
            gevent.spawn_later(POLL_MS / 1000, self._poll)
        return False

    def _poll(self) -> None:
        """Runs while rejected connections are open: none may have been accepted for POLL_MS."""
        if not self._throttled:
            return
        self.gate.wake()
        self.gate.settle_soon()
        now_ms = self.gate.now_ms()
        if now_ms >= self._polled_ms + POLL_MS:
            self._close_throttled(now_ms)
        if self._throttled:
            gevent.spawn_later((self._polled_ms + POLL_MS - now_ms) / 1000, self._poll)

    def _close_throttled(self, now_ms: int) -> None:
        """Close the rejected connections once the delay of the last one has passed.  Kafka keeps
        them in a queue with the last one first, which it checks after each new connection and after
        POLL_MS without one; so none is closed while others keep being rejected."""
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
            self.gate.wake()
            self.gate.settle_soon()
            self._serve_waiting()
        finally:
            if self._waiting is waiting:
                left_ms = waiting.until_ms - self.gate.now_ms()
                later_s = left_ms / 1000 if left_ms > 0 else RETRY_ACCEPT_S
                gevent.spawn_later(later_s, self._retry_waiting, waiting)

    def _serve_waiting(self) -> None:
        """Serve the waiting connection, if that is allowed now, and accept again."""
        waiting, now_ms = self._waiting, self.gate.now_ms()
        if waiting is None or self.is_paused:
            return
        if now_ms >= waiting.until_ms and self._quotas.has_room:
            self._waiting = None
            if self._admit(waiting.accepted, waiting.address, now_ms):
                self.accept(waiting.accepted, waiting.address)
            self._server.accept_again()

    def accept(self, accepted: Any, address: Any) -> None:
        """Serve an admitted connection until it is closed."""
        host = address[0]
        if not self._server.started:
            accepted.close()
            return
        sock = _PlainSocket(fileno=accepted.detach())
        sock.setblocking(False)
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError:
            # The client closed it before it was served.
            sock.close()
            self._quotas.closed(host)
            self._serve_waiting()
            return
        connection_id = self.gate.next_connection_id()
        connection = BrokerConnection(
            self,
            sock,
            connection_id,
            host,
            self._hub,
            request_max_bytes=self.limits.request_max_bytes,
        )
        self.connections[connection_id] = connection
        connection.serve()

    def forget(self, connection: BrokerConnection, reason: str) -> None:
        """A connection was closed."""
        del self.connections[connection.connection_id]
        self._quotas.closed(connection.client_host)
        self.channel.connection_closed(connection.connection_id)
        if self._waiting is not None and self._server.started:
            self._serve_waiting()
        if reason:
            self.gate.log(
                f"broker {self.node_id}: connection {connection.connection_id} from"
                f" {connection.client_host} closed: {reason}"
            )

    def pause(self) -> None:
        """The process is paused: read nothing, accept nothing."""
        self.is_paused = True
        self._server.stop_accepting()

    def resume(self) -> None:
        """Read and accept again."""
        self.is_paused = False
        self._serve_waiting()
        self._server.accept_again()
        for connection in tuple(self.connections.values()):
            self.gate.pump_later(connection)

    def close(self) -> None:
        """Close the port and all connections at once, as the kernel does for a dead process."""
        self._server.close()
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
        """Close connections that were idle for connections.max.idle.ms."""
        limit_ms = self.limits.max_idle_ms
        if limit_ms < 0 or self.is_paused:
            return
        for connection in tuple(self.connections.values()):
            if not connection.awaits_reply and now_ms - connection.last_active_ms > limit_ms:
                connection.close("")


class _WaitingConnection(Struct, frozen=True):
    """A connection that was accepted and is not served yet."""

    accepted: Any
    address: Any
    until_ms: int
    """When it is served, if max.connections allows it."""


class _Server(StreamServer):  # type: ignore[misc]  # gevent has no types
    """gevent's server that pauses at connection limits and survives a lack of file descriptors."""

    def __init__(self, listening: Any, owner: Listener) -> None:
        super().__init__(listening, owner.accept)
        self._owner = owner

    def full(self) -> bool:
        return self._owner.is_held

    def do_read(self) -> Any:
        gate = self._owner.gate
        if gate.is_clock_paused:
            self.stop_accepting()
            gate.on_resumed(self.accept_again)
            return None
        try:
            accepted = super().do_read()
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.ENFILE):
                raise
            self._owner.gate.log(f"broker {self._owner.node_id} cannot accept: {error.strerror}")
            self.stop_accepting()
            gevent.spawn_later(RETRY_ACCEPT_S, self.accept_again)
            return None
        return accepted if accepted and self._owner.arrived(*accepted) else None

    def accept_again(self) -> None:
        """Accept new connections, unless paused, closed or at a limit."""
        if self.started and not self._owner.is_paused and not self._owner.is_held:
            self.start_accepting()
