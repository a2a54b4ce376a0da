"""TLS over the sockets of a world: ssl.SSLSocket, with OpenSSL between two buffers in memory.

Owns: the object that stands for OpenSSL's in an SSLSocket, its waits.  Never: carries bytes
(sockets.py), checks a certificate (OpenSSL does).  Kafka: no counterpart; the client's side of
SslTransportLayer.

The standard library's SSLSocket runs unchanged above a WorldSocket.  Only the object that reads and
writes a descriptor in C is replaced, by one that exchanges bytes with the socket.  asyncio has its
own TLS above buffers in memory, and needs nothing.

OpenSSL draws its own random numbers and reads the machine's clock for the dates of certificates.
Neither reaches the run: handshakes have one size, and a trace has the plaintext
(docs/decisions/039).
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Final, TypeVar

from kcluster.world.active import world_here
from kcluster.world.replacing import set_attribute
from kcluster.world.sockets import WorldSocket

if TYPE_CHECKING:
    from typing_extensions import Buffer

T = TypeVar("T")

RECORD_BYTES: Final = 16 << 10
"""The most plaintext in one record, which is what one write of OpenSSL sends."""
_READ_BYTES: Final = RECORD_BYTES + 512


class TakenSocket(WorldSocket):
    """A socket that takes the place of the one with its descriptor."""

    def __init__(self, family: int, type: int, proto: int, fileno: int) -> None:
        world = world_here()
        assert world is not None, "made by a thread of the world"
        taken = world.sockets.by_descriptor[fileno]
        assert isinstance(taken, WorldSocket), "SSLContext.wrap_socket was given one"
        vars(self).update(vars(taken))
        self._io_refs = 0  # slots
        self._closed = False
        world.sockets.by_descriptor[fileno] = self
        taken._is_closed = True


class WorldTlsSocket(ssl.SSLSocket, TakenSocket):  # type: ignore[misc]  # typeshed's names differ
    """ssl.SSLSocket above a WorldSocket."""

    @property
    def is_readable(self) -> bool:
        """Whether bytes have arrived: at the socket, or since they were taken from it."""
        tls: BufferedTls | None = vars(self)["_sslobj"]
        return super().is_readable or (tls is not None and tls.has_unread)


class BufferedTls:
    """The methods of the object that an SSLSocket has from OpenSSL."""

    def __init__(self, sock: WorldTlsSocket, tls: Callable[..., ssl.SSLObject]) -> None:
        self._sock = sock
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = tls(self._incoming, self._outgoing)
        self._unsent = b""
        """Ciphertext that the socket has not taken."""
        self._written_bytes = 0
        """The plaintext of a write that has to be repeated, as OpenSSL wants it."""

    def __getattr__(self, name: str) -> object:
        return getattr(self._tls, name)

    @property
    def session(self) -> ssl.SSLSession | None:
        return self._tls.session

    @session.setter
    def session(self, session: ssl.SSLSession) -> None:
        self._tls.session = session

    @property
    def context(self) -> ssl.SSLContext:
        return self._tls.context

    @context.setter
    def context(self, context: ssl.SSLContext) -> None:
        self._tls.context = context

    @property
    def has_unread(self) -> bool:
        """Whether ciphertext was taken from the socket and is not read yet."""
        return self._incoming.pending > 0

    def do_handshake(self) -> None:
        """Make the handshake."""
        self._run(self._tls.do_handshake)

    def read(self, size_bytes: int, buffer: bytearray | None = None) -> object:
        """Read plaintext: into the buffer, if there is one."""
        if buffer is None:
            return self._run(lambda: self._tls.read(size_bytes))
        return self._run(lambda: self._tls.read(size_bytes, buffer))

    def write(self, data: Buffer) -> int:
        """Write plaintext, and return the number of bytes taken."""
        if not self._written_bytes:
            view = memoryview(data).cast("B")[:RECORD_BYTES]
            self._written_bytes = self._run(lambda: self._tls.write(view), flushes=False)
        self._flush()
        written_bytes, self._written_bytes = self._written_bytes, 0
        return written_bytes

    def shutdown(self) -> WorldTlsSocket:
        """Say goodbye, and wait for the other end to do so."""
        self._run(self._tls.unwrap)
        return self._sock

    def _run(self, call: Callable[[], T], *, flushes: bool = True) -> T:
        """Call OpenSSL until it needs no more bytes of the socket."""
        while True:
            try:
                result = call()
            except ssl.SSLWantReadError:
                self._flush()
                self._receive()
                continue
            except ssl.SSLError:
                with suppress(OSError):
                    self._flush()  # the alert
                raise
            if flushes:
                self._flush()
            return result

    def _receive(self) -> None:
        """Take what has arrived at the socket, waiting for it if the socket blocks."""
        try:
            data = WorldSocket.recv(self._sock, _READ_BYTES)
        except BlockingIOError:
            raise ssl.SSLWantReadError(
                ssl.SSL_ERROR_WANT_READ, "The operation did not complete (read)"
            ) from None
        if data:
            self._incoming.write(data)
        else:
            self._incoming.write_eof()

    def _flush(self) -> None:
        """Send all ciphertext, waiting for room if the socket blocks."""
        while True:
            self._unsent = self._unsent or self._outgoing.read()
            if not self._unsent:
                return
            try:
                sent_bytes = WorldSocket.send(self._sock, self._unsent)
            except BlockingIOError:
                raise ssl.SSLWantWriteError(
                    ssl.SSL_ERROR_WANT_WRITE, "The operation did not complete (write)"
                ) from None
            self._unsent = self._unsent[sent_bytes:]


def replace_tls(module: ModuleType, undo: ExitStack) -> None:
    """Let ssl.SSLSocket work above the sockets of a world."""
    real_create = vars(ssl.SSLSocket)["_create"].__func__
    real_wrap: Callable[..., object] = getattr(ssl.SSLContext, "_wrap_socket")  # noqa: B009 private

    def create(cls: type, /, sock: object, *arguments: object, **keywords: object) -> object:
        made = WorldTlsSocket if isinstance(sock, WorldSocket) else cls
        return real_create(made, sock, *arguments, **keywords)

    def wrap(
        context: ssl.SSLContext,
        sock: object,
        server_side: bool,
        server_hostname: str | None = None,
        *,
        owner: object = None,
        session: ssl.SSLSession | None = None,
    ) -> object:
        if isinstance(sock, WorldTlsSocket):
            wrap_bio = partial(
                context.wrap_bio,
                server_side=server_side,
                server_hostname=server_hostname,
                session=session,
            )
            return BufferedTls(sock, wrap_bio)
        return real_wrap(context, sock, server_side, server_hostname, owner=owner, session=session)

    set_attribute(undo, ssl.SSLSocket, "_create", classmethod(create))
    set_attribute(undo, ssl.SSLContext, "_wrap_socket", wrap)
