"""An acceptor whose connections speak TLS: it stands between a listener and the acceptor of a port.

Owns: the wrapping of accepted sockets, the context of new connections.  Never: accepts (the
acceptor below does), makes a context (contexts.py).  Kafka: SslChannelBuilder.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from functools import partial
from typing import Final, final

from kcluster.drivers.sockets.connection import ByteSocket, IoWatcher, Tap
from kcluster.drivers.sockets.listener import Acceptor, Listener
from kcluster.drivers.tls.tls_socket import ROOM_BYTES, TlsSocket


@final
class TlsAcceptor:
    """The TLS side of a broker's port.

    `context`: asked at each connection, so that a replaced certificate counts for new connections,
    as in Kafka.  `secured`: called after a handshake with the connection's id and the client's
    certificate; its OSError ends the connection.  `tap`: where a trace takes the plaintext of a
    socket.
    """

    def __init__(
        self,
        beneath: Acceptor,
        context: Callable[[], ssl.SSLContext],
        secured: Callable[[int, bytes | None], object],
        tap: Callable[[ByteSocket], Tap | None],
    ) -> None:
        self._beneath: Final = beneath
        self._context = context
        self._secured = secured
        self._tap = tap
        self.room = memoryview(bytearray(ROOM_BYTES))

    @property
    def context(self) -> ssl.SSLContext:
        """The context of new connections."""
        return self._context()

    @property
    def is_open(self) -> bool:
        """Whether the port is open."""
        return self._beneath.is_open

    def open(self, listener: Listener) -> None:
        """Listen, and pass arriving connections to this listener."""
        self._beneath.open(listener)

    def close(self) -> None:
        """Close the port.  Connections in its backlog are reset."""
        self._beneath.close()

    def stop_accepting(self) -> None:
        """Leave new connections in the backlog."""
        self._beneath.stop_accepting()

    def start_accepting(self) -> None:
        """Accept connections again, after `stop_accepting`."""
        self._beneath.start_accepting()

    def take_over(self, accepted: object, connection_id: int) -> TlsSocket | None:
        """Take over the socket of a connection to be served; None if its client closed it in
        between."""
        sock = self._beneath.take_over(accepted, connection_id)
        if sock is None:
            return None
        secured = TlsSocket(sock, self)
        secured.on_secured = partial(self._secured, connection_id)
        secured.tap = self._tap(sock)
        return secured

    def watch(self, sock: object, mode: int) -> IoWatcher:
        """A watcher of the connection, not started yet.  `mode`: 1 for readable, 2 for writable."""
        assert isinstance(sock, TlsSocket), "one that was taken over"
        return sock.watch(mode)

    def watch_socket(self, sock: ByteSocket, mode: int) -> IoWatcher:
        """A watcher of the socket below.  Part of TlsHost."""
        return self._beneath.watch(sock, mode)

    def soon(self, callback: Callable[[], object]) -> None:
        """Call back in this turn of the loop.  Part of TlsHost."""
        self._beneath.later(0, callback)

    def later(self, delay_s: float, callback: Callable[[], object]) -> None:
        """Call back after this delay."""
        self._beneath.later(delay_s, callback)
