"""A broker's end of a TLS connection, over any socket that never blocks.

Owns: the handshake, records under way between the socket and the connection, the watchers of both.
Never: reads a certificate's file or chooses ciphers (contexts.py), waits, knows Kafka's frames.
Kafka: SslTransportLayer.

OpenSSL works on two buffers in memory, so that the same code serves kernel sockets and streams in
virtual time.  A connection cannot wait for the socket itself: one read of the socket may bring
several records, and a handshake writes although the connection does not.  So the watchers here
stand between: a reader is called again while records are left, and a writer once all ciphertext has
left.

Ciphertext that the socket does not take is like bytes in the kernel's send buffer: it leaves even
while the cluster's clock is paused.
"""

from __future__ import annotations

import errno
import ssl
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, Protocol, final

from kcluster.drivers.sockets.connection import Buffer, ByteSocket, IoWatcher, Tap
from kcluster.drivers.sockets.handshake import HandshakeError
from kcluster.security.certificates import HandshakeProblem, handshake_text

ROOM_BYTES: Final = 128 << 10
"""The size of one read of ciphertext."""
MAX_PLAINTEXT_BYTES: Final = 256 << 10
"""The maximum that one `send` encrypts: it bounds the memory that a client costs that does not
read."""

_READ, _WRITE = 1, 2

_REASONS: Final = {
    "HTTP_REQUEST": HandshakeProblem.HTTP,
    "HTTPS_PROXY_REQUEST": HandshakeProblem.HTTP,
    "WRONG_VERSION_NUMBER": HandshakeProblem.NOT_TLS,
    "UNSUPPORTED_PROTOCOL": HandshakeProblem.NO_VERSION,
    "VERSION_TOO_LOW": HandshakeProblem.NO_VERSION,
    "NO_SHARED_CIPHER": HandshakeProblem.NO_CIPHER,
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": HandshakeProblem.NO_CERTIFICATE,
    "TLSV1_ALERT_UNKNOWN_CA": HandshakeProblem.UNKNOWN_CA,
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": HandshakeProblem.EXPIRED,
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": HandshakeProblem.NOT_ACCEPTED,
    "SSLV3_ALERT_BAD_CERTIFICATE": HandshakeProblem.NOT_ACCEPTED,
}
"""What the commonest of OpenSSL's reasons mean to the operator of a broker."""


class TlsHost(Protocol):
    """The acceptor, for the sockets that it made."""

    @property
    def context(self) -> ssl.SSLContext:
        """The context of new connections."""

    @property
    def is_open(self) -> bool:
        """Whether the broker's process runs, so that a closing connection can say so."""

    @property
    def room(self) -> memoryview:
        """A buffer for all sockets: what is read is passed on before the next read."""

    def watch_socket(self, sock: ByteSocket, mode: int) -> IoWatcher:
        """A watcher of the socket below.  `mode`: 1 for readable, 2 for writable."""

    def soon(self, callback: Callable[[], object]) -> None:
        """Call back in this turn of the loop, but not from here."""


@final
class TlsSocket:
    """One connection.  `on_secured`: called with the client's certificate (DER, None without one)
    once the handshake has ended."""

    __slots__ = (
        "_failure",
        "_host",
        "_incoming",
        "_is_drained",
        "_is_secured",
        "_outgoing",
        "_read",
        "_socket",
        "_tls",
        "_unsent",
        "_writable",
        "on_room",
        "on_secured",
        "tap",
    )  # fmt: skip

    def __init__(self, sock: ByteSocket, host: TlsHost) -> None:
        self._host = host
        self._socket = sock
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = host.context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._read: Callable[..., object] = self._tls.read  # int with a buffer
        self._is_secured = False
        self._is_drained = True
        """Whether OpenSSL has said that it needs more bytes of the socket."""
        self._failure: OSError | None = None
        """Why no more can be read."""
        self._unsent = memoryview(b"")
        """Ciphertext that the socket did not take."""
        self._writable: IoWatcher | None = None
        self.on_room: Callable[[], object] | None = None
        """The connection's callback that waits until all ciphertext has left."""
        self.on_secured: Callable[[bytes | None], object] | None = None
        self.tap: Tap | None = None

    # --------------------------------------------------------------------------- the connection's

    def recv_into(self, buffer: memoryview, /) -> int:
        """Read the plaintext that has arrived, and return its size in bytes; 0 at the end of the
        stream.  BlockingIOError: nothing has arrived.  Other OSErrors end the connection."""
        size_bytes = -1
        while size_bytes < 0:
            if self._failure is not None:
                raise self._failure
            if self._is_drained:
                arrived_bytes = self._socket.recv_into(self._host.room)
                if arrived_bytes:
                    self._incoming.write(self._host.room[:arrived_bytes])
                else:
                    self._incoming.write_eof()
            size_bytes = self._decrypt(buffer)
        if self.tap is not None and size_bytes:
            self.tap(True, buffer[:size_bytes])
        return size_bytes

    def send(self, data: Buffer, /) -> int:
        """Encrypt and write bytes, and return the number of those taken."""
        return self.sendmsg((data,))

    def sendmsg(self, buffers: Sequence[Buffer], /) -> int:
        """Encrypt and write the bytes of several buffers, and return the number of those taken."""
        self._flush()
        if self._unsent or not self._is_secured:
            raise BlockingIOError(errno.EAGAIN, "ciphertext is waiting")
        taken_bytes = 0
        for piece in _pieces(buffers):
            data = memoryview(piece)
            if self.tap is not None:
                self.tap(False, data)
            taken_bytes += len(data)
            while data:
                data = data[self._tls.write(data) :]
        self._flush()
        return taken_bytes

    def close(self) -> None:
        """Close the connection; a running broker's client is notified.  A process that was killed
        notifies nobody."""
        if self._is_secured and self._host.is_open:
            with suppress(OSError):  # SSLError as well: the client's answer is not waited for
                self._tls.unwrap()
        with suppress(OSError):
            if self._host.is_open:
                self._flush()
        if self._writable is not None:
            self._writable.stop()
            self._writable.close()
        self._socket.close()

    def watch(self, mode: int) -> IoWatcher:
        """A watcher for the connection, not started yet.  `mode`: 1 for readable, 2 for
        writable."""
        if mode == _READ:
            return _Reading(self, self._host.watch_socket(self._socket, mode), self._host)
        return _Writing(self)

    # --------------------------------------------------------------------------------- OpenSSL's

    @property
    def has_unread(self) -> bool:
        """Whether a read may return bytes that the socket no longer has."""
        return not self._is_drained

    def _decrypt(self, buffer: memoryview) -> int:
        """The bytes decrypted from what has arrived; 0 at the end of the stream, -1 if the socket
        must be read first."""
        size_bytes = 0
        try:
            if not self._is_secured:
                self._tls.do_handshake()
                self._secured()
            self._is_drained = False
            while size_bytes < len(buffer):
                taken_bytes = self._read(len(buffer) - size_bytes, buffer[size_bytes:])
                assert isinstance(taken_bytes, int), "it was given a buffer"
                if not taken_bytes:  # close_notify has come
                    self._is_drained = not size_bytes  # so that the next read returns the end
                    break
                size_bytes += taken_bytes
        except ssl.SSLWantReadError:
            self._is_drained = True
            self._flush()
            return size_bytes or -1
        except ssl.SSLEOFError:  # the stream ended without close_notify
            self._is_drained = not size_bytes
        except ssl.SSLError as error:
            self._is_drained = not size_bytes
            self._failure = self._refusal(error)
            if not size_bytes:
                raise self._failure from None
        return size_bytes

    def _secured(self) -> None:
        self._is_secured = True
        self._flush()
        if self.on_secured is not None:
            self.on_secured(self._tls.getpeercert(binary_form=True))
        if self.on_room is not None and not self._unsent:
            self._host.soon(self.on_room)

    def _refusal(self, error: ssl.SSLError) -> OSError:
        """The error of a connection that OpenSSL has ended; the client gets the alert first."""
        with suppress(OSError):
            self._flush()
        problem, detail = _problem_of(error)
        if not self._is_secured:
            return HandshakeError(problem, detail)
        return OSError(errno.EPROTO, f"TLS failed: {handshake_text(problem, detail)}")

    # -------------------------------------------------------------------------------- ciphertext

    def _flush(self) -> None:
        """Write ciphertext until none is left, or the socket takes no more, which is then watched.
        Raises the socket's OSError."""
        while True:
            if not self._unsent:
                if not self._outgoing.pending:
                    return
                self._unsent = memoryview(self._outgoing.read())
            try:
                sent_bytes = self._socket.send(self._unsent)
            except BlockingIOError:
                self._watch_writable()
                return
            self._unsent = self._unsent[sent_bytes:]

    def _watch_writable(self) -> None:
        if self._writable is None:
            self._writable = self._host.watch_socket(self._socket, _WRITE)
        if not self._writable.active:
            self._writable.start(self._on_writable)

    def _on_writable(self) -> None:
        assert self._writable is not None, "it called back"
        self._writable.stop()
        with suppress(OSError):  # the connection's next call raises it again
            self._flush()
        if not self._writable.active and self.on_room is not None:
            self.on_room()


@final
class _Reading:
    """Calls a connection back while its socket is readable, or records of it are left."""

    __slots__ = ("_callback", "_host", "_sock", "_watcher")

    def __init__(self, sock: TlsSocket, watcher: IoWatcher, host: TlsHost) -> None:
        self._sock = sock
        self._watcher = watcher
        self._host = host
        self._callback: Callable[[], object] | None = None

    @property
    def active(self) -> bool:
        """Whether the watcher is started and not stopped."""
        return self._callback is not None

    def start(self, callback: Callable[[], object], /) -> None:
        """Start to watch."""
        self._callback = callback
        self._watcher.start(self._on_readable)
        if self._sock.has_unread:
            self._host.soon(self._on_unread)

    def stop(self) -> None:
        """Stop watching."""
        self._callback = None
        self._watcher.stop()

    def close(self) -> None:
        """Stop watching for good."""
        self._callback = None
        self._watcher.close()

    def _on_readable(self) -> None:
        if self._callback is not None:
            self._callback()
        self._on_unread()

    def _on_unread(self) -> None:
        while self._callback is not None and self._sock.has_unread:
            self._callback()


@final
class _Writing:
    """Calls a connection back once no ciphertext waits for the socket."""

    __slots__ = ("_sock",)

    def __init__(self, sock: TlsSocket) -> None:
        self._sock = sock

    @property
    def active(self) -> bool:
        """Whether the watcher is started and not stopped."""
        return self._sock.on_room is not None

    def start(self, callback: Callable[[], object], /) -> None:
        """Start to watch; the ciphertext that waits is watched already."""
        self._sock.on_room = callback

    def stop(self) -> None:
        """Stop watching."""
        self._sock.on_room = None

    def close(self) -> None:
        """Stop watching for good."""
        self.stop()


def _pieces(buffers: Sequence[Buffer]) -> list[Buffer]:
    """The buffers up to MAX_PLAINTEXT_BYTES, joined where they are small: each piece begins a
    record."""
    if len(buffers) == 1:
        return [memoryview(buffers[0])[:MAX_PLAINTEXT_BYTES]]
    left_bytes = MAX_PLAINTEXT_BYTES
    taken: list[Buffer] = []
    for buffer in buffers:
        taken.append(memoryview(buffer)[:left_bytes])
        left_bytes -= len(taken[-1])
        if not left_bytes:
            break
    return [b"".join(taken)]


def _problem_of(error: ssl.SSLError) -> tuple[HandshakeProblem, str]:
    """The reason of a failure, and more about it."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return HandshakeProblem.CLIENT_REFUSED, error.verify_message
    problem = _REASONS.get(error.reason or "")
    if problem is None:
        return HandshakeProblem.OTHER, _in_words(error.reason)
    return problem, ""


def _in_words(reason: str | None) -> str:
    """OpenSSL's name of a reason, as words."""
    return (reason or "unknown reason").lower().replace("_", " ")
