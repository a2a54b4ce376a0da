"""A broker's listening socket and the connections that came in over it.

Owns: the port (kept for the broker while it is down), limits on connections.  Never: looks into
what they carry (connection.py, broker/channel.py).  Kafka: Acceptor, ConnectionQuotas.
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable
from typing import Any, Final, Protocol

import gevent
import gevent.monkey
from gevent.hub import Hub
from gevent.server import StreamServer
from msgspec import Struct

from cluster.broker.channel import Channel
from cluster.contract import Event
from cluster.network.connection import Connection

BACKLOG: Final = 1024
READ_SIZE_BYTES: Final = 256 << 10
RETRY_ACCEPT_S: Final = 0.1
"""How long nothing is accepted when the process has no file descriptor left."""

_PlainSocket: Final = gevent.monkey.get_original("socket", "socket")
"""The standard library's, even in a process that somebody has patched: it never waits, so nothing
that calls it can yield."""


class Limits(Struct, frozen=True):
    """Kafka's configs of a listener."""

    request_max_bytes: int = 100 << 20
    """socket.request.max.bytes"""
    max_connections: int = 2**31 - 1
    """max.connections: beyond it, clients wait to be accepted."""
    max_connections_per_ip: int = 2**31 - 1
    """max.connections.per.ip: beyond it, connections are closed."""
    max_idle_ms: int = 600_000
    """connections.max.idle.ms; less than 0 for never."""


class Gate(Protocol):
    """What sockets need of the live driver."""

    def now_ms(self) -> int:
        """The time of the present dispatch."""

    def wake(self) -> None:
        """Control has come from the hub: time has passed."""

    def settle_soon(self) -> None:
        """Finish what was begun since `wake`, together with what other sockets that are ready in
        this turn of the loop begin, before it waits for more."""

    def deliver(self, node_id: int, event: Event) -> None:
        """Give a node this event now; what follows from it comes with the next `settle`."""

    def defer(self, node_id: int, event: Event) -> None:
        """Deliver this event by the next `settle`."""

    def pump_later(self, connection: Connection) -> None:
        """Pump this connection by the next `settle`."""

    def flush_later(self, connection: Connection) -> None:
        """Flush this connection at the end of the next `settle`."""

    def next_connection_id(self) -> int:
        """An id that no connection of this cluster has had."""

    def log(self, line: str) -> None:
        """Tell the operator."""


class ReservedPort:
    """A port kept for a broker from its first start on, whether it is up or down.

    A bound socket that does not listen holds it: connections are refused, and no other process gets
    it.  SO_REUSEADDR, which two sockets on one port must both have, it has at first, so that
    connections of the past (TIME_WAIT) do not matter, and while a listener of ours binds beside it.
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
        """Let others have the port."""
        self._socket.close()


class Listener:
    """The listener of one life of one broker."""

    def __init__(
        self, node_id: int, port: ReservedPort, channel: Channel, limits: Callable[[], Limits],
        gate: Gate, hub: Hub,
    ) -> None:  # fmt: skip
        self.node_id = node_id
        self.channel = channel
        self._limits = limits
        self.gate = gate
        self.is_paused = False
        self.connections: dict[int, Connection] = {}
        self.read_buffer = memoryview(bytearray(READ_SIZE_BYTES))
        """For one receive at a time: what is in it is copied into frames before the next."""
        self._per_host: dict[str, int] = {}
        self._hub = hub
        self._server = _Server(port.listen(), self)
        self._server.start()

    @property
    def limits(self) -> Limits:
        """As of now: most of them are dynamic configs."""
        return self._limits()

    def accept(self, accepted: Any, address: Any) -> None:
        """Serve one connection from now on, until it is closed."""
        host = address[0]
        if not self._server.started:
            accepted.close()
            return
        if self._per_host.get(host, 0) >= self.limits.max_connections_per_ip:
            self.gate.log(f"broker {self.node_id}: {host} has too many connections, one refused")
            self._server.done()
            accepted.close()
            return
        sock = _PlainSocket(fileno=accepted.detach())
        sock.setblocking(False)
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError:
            # Gone before it was served.
            self._server.done()
            sock.close()
            return
        connection_id = self.gate.next_connection_id()
        connection = Connection(self, sock, connection_id, host, self._hub)
        self.connections[connection_id] = connection
        self._per_host[host] = self._per_host.get(host, 0) + 1
        connection.serve()

    def forget(self, connection: Connection, reason: str) -> None:
        """A connection was closed."""
        del self.connections[connection.connection_id]
        host = connection.client_host
        self._per_host[host] -= 1
        if not self._per_host[host]:
            del self._per_host[host]
        self.channel.connection_closed(connection.connection_id)
        self._server.done()
        if reason:
            self.gate.log(
                f"broker {self.node_id}: connection {connection.connection_id} from {host}"
                f" closed: {reason}"
            )

    def pause(self) -> None:
        """The process stands still: what clients send stays unread, new ones stay unaccepted."""
        self.is_paused = True
        self._server.stop_accepting()

    def resume(self) -> None:
        """Read and accept again."""
        self.is_paused = False
        self._server.accept_again()
        for connection in tuple(self.connections.values()):
            self.gate.pump_later(connection)

    def close(self) -> None:
        """Close the port and all connections at once, as the kernel does for a dead process."""
        self._server.close()
        for connection in tuple(self.connections.values()):
            connection.close("", tell_broker=False)

    def close_idle(self, now_ms: int) -> None:
        """Close connections that were silent for connections.max.idle.ms."""
        limit_ms = self.limits.max_idle_ms
        if limit_ms < 0 or self.is_paused:
            return
        for connection in tuple(self.connections.values()):
            if not connection.awaits_reply and now_ms - connection.last_active_ms > limit_ms:
                connection.close("")


class _Server(StreamServer):  # type: ignore[misc]  # gevent has no types
    """gevent's server, with Kafka's limit on connections and a calm way to be out of files."""

    def __init__(self, listening: Any, owner: Listener) -> None:
        super().__init__(listening, owner.accept)
        self._owner = owner
        self._open_connections = 0

    def full(self) -> bool:
        return self._open_connections >= self._owner.limits.max_connections

    def do_read(self) -> Any:
        try:
            accepted = super().do_read()
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.ENFILE):
                raise
            self._owner.gate.log(f"broker {self._owner.node_id} cannot accept: {error.strerror}")
            self.stop_accepting()
            gevent.spawn_later(RETRY_ACCEPT_S, self.accept_again)
            return None
        if accepted:
            self._open_connections += 1
        return accepted

    def stop_accepting(self) -> None:
        super().stop_accepting()
        if self.started and self.full():
            # The limit may be raised while nobody goes.
            gevent.spawn_later(RETRY_ACCEPT_S, self.accept_again)

    def done(self) -> None:
        """One of the connections that were accepted is closed."""
        was_full = self.full()
        self._open_connections -= 1
        if was_full:
            self.accept_again()

    def accept_again(self) -> None:
        """Accept, if nothing stands against it; look again later if it is the limit that does."""
        if not self.started or self._owner.is_paused:
            return
        if self.full():
            gevent.spawn_later(RETRY_ACCEPT_S, self.accept_again)
        else:
            self.start_accepting()
