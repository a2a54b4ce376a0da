"""A broker's listening socket and the connections that came in over it.

Owns: the port (kept for the broker while it is down), which connections wait or are on their way
out.  Never: looks into what they carry (connection.py, broker/channel.py), decides who is served
(broker/connection_quotas.py).  Kafka: Acceptor.
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

from kcluster.broker.channel import Channel
from kcluster.broker.connection_quotas import ConnectionQuotas
from kcluster.config.kafka.definitions import BrokerConfig
from kcluster.contract import Input
from kcluster.drivers.sockets.connection import Connection

BACKLOG: Final = 1024
READ_SIZE_BYTES: Final = 256 << 10
RETRY_ACCEPT_S: Final = 0.1
"""How long nothing is accepted when the process has no file descriptor left; and how often whoever
waits for room looks whether max.connections was raised."""
POLL_MS: Final = 500
"""How long Kafka's acceptor waits for somebody to come before it looks at what else there is."""

_PlainSocket: Final = gevent.monkey.get_original("socket", "socket")
"""The standard library's, even in a process that somebody has patched: it never waits, so nothing
that calls it can yield."""


class Limits(Struct, frozen=True):
    """Kafka's configs of a listener."""

    request_max_bytes: int = 100 << 20
    """socket.request.max.bytes"""
    max_idle_ms: int = 600_000
    """connections.max.idle.ms; less than 0 for never."""

    @classmethod
    def of(cls, config: BrokerConfig) -> Limits:
        """As a broker is configured."""
        return cls(config.socket_request_max_bytes, config.connections_max_idle_ms)


class Gate(Protocol):
    """What sockets need of the live driver."""

    def now_ms(self) -> int:
        """The time of the present dispatch."""

    def wake(self) -> None:
        """Control has come from the hub: time has passed."""

    def settle_soon(self) -> None:
        """Finish what was begun since `wake`, together with what other sockets that are ready in
        this turn of the loop begin, before it waits for more."""

    def deliver(self, node_id: int, event: Input) -> None:
        """Give a node this event now; what follows from it comes with the next `settle`."""

    def defer(self, node_id: int, event: Input) -> None:
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
        quotas: ConnectionQuotas, gate: Gate, hub: Hub,
    ) -> None:  # fmt: skip
        self.node_id = node_id
        self.channel = channel
        self._limits = limits
        self._quotas = quotas
        self.gate = gate
        self.is_paused = False
        self.connections: dict[int, Connection] = {}
        self.read_buffer = memoryview(bytearray(READ_SIZE_BYTES))
        """For one receive at a time: what is in it is copied into frames before the next."""
        self._waiting: _Waiting | None = None
        """The first of those who wait to be served; while there is one, nobody is accepted."""
        self._throttled: list[Any] = []
        """Sockets of those who are not served, and closed later."""
        self._throttled_until_ms = 0
        self._polled_ms = 0
        """When these were last looked at."""
        self._hub = hub
        self._server = _Server(port.listen(), self)
        self._server.start()

    @property
    def limits(self) -> Limits:
        """As of now: most of them are dynamic configs."""
        return self._limits()

    @property
    def is_held(self) -> bool:
        """Whether nobody is accepted for now."""
        return self._waiting is not None

    def arrived(self, accepted: Any, address: Any) -> bool:
        """Whether a connection is to be served now, and is counted.  If not it waits to be, as all
        that come after it, or is turned away."""
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
            waiting = self._waiting = _Waiting(accepted, address, now_ms + wait_ms)
            self._server.stop_accepting()
            gevent.spawn_later(wait_ms / 1000 or RETRY_ACCEPT_S, self._look_again, waiting)
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
        """While connections are on their way out: nobody may have come for POLL_MS."""
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
        """Close those who were turned away, once none of them is to stay: Kafka's queue of them has
        the last one first, and is looked into when somebody came, or nobody for POLL_MS.  So none
        goes as long as others are turned away all the time."""
        self._polled_ms = now_ms
        if self._throttled_until_ms < now_ms and not self.is_paused and self._waiting is None:
            throttled, self._throttled = self._throttled, []
            for accepted in throttled:
                accepted.close()

    def _look_again(self, waiting: _Waiting) -> None:
        """Time has passed for whoever waits, if it still does."""
        if self._waiting is not waiting:
            return
        try:
            self.gate.wake()
            self.gate.settle_soon()
            self._go_on()
        finally:
            if self._waiting is waiting:
                left_ms = waiting.until_ms - self.gate.now_ms()
                later_s = left_ms / 1000 if left_ms > 0 else RETRY_ACCEPT_S
                gevent.spawn_later(later_s, self._look_again, waiting)

    def _go_on(self) -> None:
        """Serve whoever waits, if it may be, and accept again."""
        waiting, now_ms = self._waiting, self.gate.now_ms()
        if waiting is None or self.is_paused:
            return
        if now_ms >= waiting.until_ms and self._quotas.has_room:
            self._waiting = None
            if self._admit(waiting.accepted, waiting.address, now_ms):
                self.accept(waiting.accepted, waiting.address)
            self._server.accept_again()

    def accept(self, accepted: Any, address: Any) -> None:
        """Serve one connection, which was admitted, from now on until it is closed."""
        host = address[0]
        if not self._server.started:
            accepted.close()
            return
        sock = _PlainSocket(fileno=accepted.detach())
        sock.setblocking(False)
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError:
            # Gone before it was served.
            sock.close()
            self._quotas.closed(host)
            self._go_on()
            return
        connection_id = self.gate.next_connection_id()
        connection = Connection(self, sock, connection_id, host, self._hub)
        self.connections[connection_id] = connection
        connection.serve()

    def forget(self, connection: Connection, reason: str) -> None:
        """A connection was closed."""
        del self.connections[connection.connection_id]
        self._quotas.closed(connection.client_host)
        self.channel.connection_closed(connection.connection_id)
        if self._waiting is not None and self._server.started:
            self._go_on()
        if reason:
            self.gate.log(
                f"broker {self.node_id}: connection {connection.connection_id} from"
                f" {connection.client_host} closed: {reason}"
            )

    def pause(self) -> None:
        """The process stands still: what clients send stays unread, new ones stay unaccepted."""
        self.is_paused = True
        self._server.stop_accepting()

    def resume(self) -> None:
        """Read and accept again."""
        self.is_paused = False
        self._go_on()
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
        """Close those that have been silent longest, while there are more than max.connections,
        which may have been lowered.  Kafka: Processor.closeExcessConnections."""
        excess = self._quotas.excess
        if excess and not self.is_paused:
            idlest = sorted(self.connections.values(), key=lambda one: one.last_active_ms)
            for connection in idlest[:excess]:
                connection.close("more than max.connections")

    def close_idle(self, now_ms: int) -> None:
        """Close connections that were silent for connections.max.idle.ms."""
        limit_ms = self.limits.max_idle_ms
        if limit_ms < 0 or self.is_paused:
            return
        for connection in tuple(self.connections.values()):
            if not connection.awaits_reply and now_ms - connection.last_active_ms > limit_ms:
                connection.close("")


class _Waiting(Struct, frozen=True):
    """A connection that was accepted, and is not served yet."""

    accepted: Any
    address: Any
    until_ms: int
    """Then it is, if there is room for it."""


class _Server(StreamServer):  # type: ignore[misc]  # gevent has no types
    """gevent's server, which stops for limits on connections, and is calm when out of files."""

    def __init__(self, listening: Any, owner: Listener) -> None:
        super().__init__(listening, owner.accept)
        self._owner = owner

    def full(self) -> bool:
        return self._owner.is_held

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
        return accepted if accepted and self._owner.arrived(*accepted) else None

    def accept_again(self) -> None:
        """Accept, if nothing stands against it."""
        if self.started and not self._owner.is_paused and not self._owner.is_held:
            self.start_accepting()
