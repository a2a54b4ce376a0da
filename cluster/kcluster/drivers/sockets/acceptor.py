"""Listening sockets of the kernel, and the connections that arrive there.

Owns: the port (reserved for the broker while it is down), accepting with gevent.  Never: decides
which connections are served (listener.py), reads from them (connection.py).  Kafka: Acceptor.
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable
from typing import Final

import gevent
import gevent.monkey
from gevent.server import StreamServer

from kcluster.drivers.sockets.connection import IoWatcher, SocketHost
from kcluster.drivers.sockets.listener import RETRY_ACCEPT_S, Listener

BACKLOG: Final = 1024

_PlainSocket: Final[type[socket.socket]] = gevent.monkey.get_original("socket", "socket")
"""The standard library's class, even in a monkey-patched process: its sockets are used without
blocking, and its callers never yield."""


class ReservedPort:
    """A port reserved for a broker from its first start on, whether it is up or down.

    A bound socket that does not listen holds the port: connections are refused, and no other
    process can take it.  Two sockets can bind one port only if SO_REUSEADDR is set on both.  The
    option is set on this socket at first, so that old connections in TIME_WAIT do not matter, and
    while a listener binds.
    """

    def __init__(self, host: str, port: int) -> None:
        self.host = host
        self._socket = self._bound(port)
        self.port: int = self._socket.getsockname()[1]
        self._share(False)

    def bind(self) -> socket.socket:
        """A new socket on the port, which does not listen yet."""
        self._share(True)
        try:
            bound = self._bound(self.port)
        finally:
            self._share(False)
        bound.setblocking(False)
        return bound

    def listen(self, bound: socket.socket) -> None:
        """Let a socket from `bind` listen."""
        self._share(True)
        try:
            bound.listen(BACKLOG)
        finally:
            self._share(False)

    def lend(self) -> None:
        """Let a process listen on the port that sets SO_REUSEADDR, as Java does on Linux."""
        self._share(True)

    def _share(self, allowed: bool) -> None:
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, int(allowed))

    def _bound(self, port: int) -> socket.socket:
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


class SocketAcceptor:
    """Accepts the connections of one life of one broker, in the hub of the calling thread."""

    def __init__(self, port: ReservedPort, driver: SocketHost, node_id: int) -> None:
        self._port = port
        self._driver = driver
        self._node_id = node_id
        self._socket = port.bind()  # fails here, not when the port opens
        self._server: _Server | None = None
        self._loop = gevent.get_hub().loop

    @property
    def is_open(self) -> bool:
        """Whether the port is open."""
        return self._server is not None and bool(self._server.started)

    def open(self, listener: Listener) -> None:
        """Listen, and pass arriving connections to this listener."""
        self._port.listen(self._socket)
        self._server = _Server(self._socket, listener, self)
        self._server.start()

    def close(self) -> None:
        """Close the port."""
        if self._server is not None:
            self._server.close()
        self._socket.close()

    def stop_accepting(self) -> None:
        """Leave new connections in the kernel's backlog."""
        assert self._server is not None
        self._server.stop_accepting()

    def start_accepting(self) -> None:
        """Accept connections again, after `stop_accepting`."""
        assert self._server is not None
        self._server.start_accepting()

    def take_over(self, accepted: socket.socket, connection_id: int) -> socket.socket | None:
        """Take over the socket of a connection to be served; None if its client closed it in
        between."""
        sock = _PlainSocket(fileno=accepted.detach())
        sock.setblocking(False)
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError:
            sock.close()
            return None
        return sock

    def watch(self, sock: socket.socket, mode: int) -> IoWatcher:
        """A watcher of the hub."""
        watcher: IoWatcher = self._loop.io(sock.fileno(), mode)
        return watcher

    def later(self, delay_s: float, callback: Callable[[], object]) -> None:
        """Call back after this delay, in a greenlet."""
        gevent.spawn_later(delay_s, callback)

    def accept_waits(self, accept_again: Callable[[], None]) -> bool:
        """Whether nothing may be accepted because the clock is paused; then accepting is put
        off."""
        if not self._driver.is_clock_paused:
            return False
        self.stop_accepting()
        self._driver.on_resumed(accept_again)
        return True

    def ran_out(self, error: OSError, accept_again: Callable[[], None]) -> None:
        """Put off accepting, because there are no more file descriptors."""
        self._driver.log(f"broker {self._node_id} cannot accept: {error.strerror}")
        self.stop_accepting()
        gevent.spawn_later(RETRY_ACCEPT_S, accept_again)


class _Server(StreamServer):  # type: ignore[misc]  # gevent has no types
    """gevent's server that pauses at connection limits and survives a lack of file descriptors."""

    def __init__(self, listening: object, owner: Listener, acceptor: SocketAcceptor) -> None:
        super().__init__(listening, owner.accept)
        self._owner = owner
        self._acceptor = acceptor

    def full(self) -> bool:
        return self._owner.is_held

    def do_read(self) -> object:
        if self._acceptor.accept_waits(self._owner.accept_again):
            return None
        try:
            accepted = super().do_read()
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.ENFILE):
                raise
            self._acceptor.ran_out(error, self._owner.accept_again)
            return None
        return accepted if accepted and self._owner.arrived(*accepted) else None
