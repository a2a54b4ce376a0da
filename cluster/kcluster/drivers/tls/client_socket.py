"""The client's end of a TLS connection, for the project's own clients over kernel sockets.

Owns: the handshake, and reads and writes that never block.  Never: chooses a certificate
(cluster_tls.py does), waits, knows Kafka's frames.
Kafka: SslTransportLayer, in client mode; ssl.endpoint.identification.algorithm=https.
"""

from __future__ import annotations

import errno
import socket
import ssl
from typing import final


@final
class TlsClientSocket:
    """One connection, over a socket that is connected and does not block.  `name`: the host, which
    the broker's certificate must name."""

    def __init__(self, sock: socket.socket, context: ssl.SSLContext, name: str) -> None:
        self._tls = context.wrap_socket(sock, server_hostname=name, do_handshake_on_connect=False)
        self.is_secured = False
        """Whether the handshake has ended."""
        self.waits_to_write = False
        """Whether the handshake continues when the socket is writable, not when it is readable."""

    def handshake(self) -> None:
        """Continue the handshake.  BlockingIOError: it waits for the socket.  SSLError: it has
        failed."""
        self.waits_to_write = False
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            raise BlockingIOError(errno.EAGAIN, "handshake") from None
        except ssl.SSLWantWriteError:
            self.waits_to_write = True
            raise BlockingIOError(errno.EAGAIN, "handshake") from None
        self.is_secured = True

    def send(self, data: bytes | bytearray) -> int:
        """Encrypt and write bytes, and return the number of those taken."""
        try:
            return self._tls.send(data)
        except (ssl.SSLWantWriteError, ssl.SSLWantReadError):
            raise BlockingIOError(errno.EAGAIN, "no room") from None

    def recv_into(self, buffer: memoryview) -> int:
        """Read plaintext, and return its size in bytes; 0 at the end of the stream."""
        try:
            return self._tls.recv_into(buffer)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise BlockingIOError(errno.EAGAIN, "nothing has arrived") from None

    @property
    def has_unread(self) -> bool:
        """Whether a read returns bytes that the socket no longer has."""
        return self._tls.pending() > 0

    def close(self) -> None:
        """Close the socket."""
        self._tls.close()
