"""One end of a proxied connection: frames in, bytes out, and neither ever blocks.

Owns: the watchers of a socket, the bytes that it does not take yet.  Never: reads a header, knows
the other end (connection.py joins the two).  Kafka: TransportLayer, NetworkReceive, NetworkSend.
"""

from __future__ import annotations

import socket
import ssl
from collections import deque
from collections.abc import Callable
from struct import Struct as Packer
from typing import Final, Protocol

import gevent
import gevent.socket

from kcluster.drivers.sockets.connection import IoWatcher
from kcluster.protocol.codec.primitives import Buffer
from kcluster.protocol.errors import ProtocolError
from kcluster.protocol.framing import FrameReader

READ_SIZE_BYTES: Final = 256 << 10
MAX_BUFFERS: Final = 512
"""The most buffers of one write; Linux takes 1024."""
MAX_UNSENT_BYTES: Final = 1 << 20
"""The bytes that a slow reader may leave unsent, beyond which its other end is not read."""
TLS_WRITE_BYTES: Final = 64 << 10
MAX_JOINED_BYTES: Final = 4 << 10
"""The largest frame that is copied behind its length: one small buffer is sent faster than two."""

_READ, _WRITE = 1, 2
_WOULD_BLOCK: Final = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
SIZE: Final = Packer(">i")


class ByteEnd(Protocol):
    """A connected socket that does not block, with TLS or without."""

    def fileno(self) -> int: ...
    def recv_into(self, buffer: memoryview, /) -> int: ...
    def write(self, buffers: list[Buffer]) -> int:
        """Write the beginning of these bytes; returns the number of bytes taken."""

    @property
    def has_unread(self) -> bool:
        """Whether a read returns bytes that the kernel no longer has."""

    def close(self) -> None: ...


def framed(frame: memoryview) -> list[Buffer]:
    """A frame behind its length, as buffers to send."""
    size_bytes = len(frame)
    start = SIZE.pack(size_bytes)
    return [start + frame] if size_bytes <= MAX_JOINED_BYTES else [start, frame]


class PlainEnd:
    """A socket without TLS."""

    has_unread = False

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self.fileno = sock.fileno
        self.recv_into: Callable[[memoryview], int] = sock.recv_into
        self.close = sock.close

    def write(self, buffers: list[Buffer]) -> int:
        """Write the beginning of these bytes."""
        if len(buffers) == 1:
            return self._socket.send(buffers[0])
        return self._socket.sendmsg(buffers[:MAX_BUFFERS])


class TlsEnd:
    """A socket with TLS, whose handshake has ended."""

    def __init__(self, sock: ssl.SSLSocket) -> None:
        self._socket = sock
        self.fileno = sock.fileno
        self.recv_into: Callable[[memoryview], int] = sock.recv_into
        self.close = sock.close

    @property
    def has_unread(self) -> bool:
        return self._socket.pending() > 0

    def write(self, buffers: list[Buffer]) -> int:
        """Write the beginning of these bytes."""
        data: Buffer = buffers[0]
        if len(buffers) > 1 and len(data) < TLS_WRITE_BYTES:
            data = bytearray()
            for each in buffers:
                data += each[: TLS_WRITE_BYTES - len(data)]
                if len(data) == TLS_WRITE_BYTES:
                    break
        return self._socket.send(data)


def secured(
    sock: socket.socket,
    context: ssl.SSLContext,
    *,
    server_side: bool,
    name: str | None,
    timeout_s: float,
) -> TlsEnd:
    """Do a TLS handshake, and wait for its end in this greenlet; OSError if it fails."""
    tls = context.wrap_socket(
        sock, server_side=server_side, server_hostname=name, do_handshake_on_connect=False
    )
    try:
        while True:
            try:
                tls.do_handshake()
                return TlsEnd(tls)
            except ssl.SSLWantReadError:
                gevent.socket.wait_read(tls.fileno(), timeout_s)
            except ssl.SSLWantWriteError:
                gevent.socket.wait_write(tls.fileno(), timeout_s)
    except BaseException:
        tls.close()
        raise


def foreign_protocol(data: memoryview) -> str:
    """What the sender of bytes that are no frame speaks, if they show it; else empty."""
    start = bytes(data[:4])
    if start[:2] in (b"\x16\x03", b"\x15\x03"):
        return "its bytes are TLS, which this connection has not"
    return "its bytes are HTTP" if start in (b"GET ", b"POST", b"PUT ", b"HEAD", b"HTTP") else ""


class FrameStream:
    """Cuts what arrives into frames, and sends what is given to it, in order.

    `on_frames`: called with the frames of each read; `on_end`: called once, with the reason, when
    the peer has closed the connection or sent what is no frame; `on_room`: called when few bytes
    are left unsent after there were many.
    """

    def __init__(
        self,
        end: ByteEnd,
        room: memoryview,
        max_frame_bytes: int,
        on_frames: Callable[[list[memoryview]], None],
        on_end: Callable[[str], None],
        on_room: Callable[[], None],
    ) -> None:
        self._end = end
        self._room = room
        self._reader = FrameReader(max_frame_bytes)
        self._on_frames = on_frames
        self._on_end = on_end
        self._on_room = on_room
        self._unsent: deque[Buffer] = deque()
        self.unsent_bytes = 0
        self.is_open = True
        self._reads = False
        self._closes_when_sent = False
        loop = gevent.get_hub().loop
        self._readable: IoWatcher = loop.io(end.fileno(), _READ)
        self._writable: IoWatcher = loop.io(end.fileno(), _WRITE)

    # ----------------------------------------------------------------------------- reading

    def read(self, wanted: bool) -> None:
        """Read from now on, or leave what arrives in the kernel."""
        if not self.is_open or wanted == self._reads:
            return
        self._reads = wanted
        if wanted:
            self._readable.start(self._on_readable)
            if self._end.has_unread:
                gevent.get_hub().loop.run_callback(self._on_readable)
        else:
            self._readable.stop()

    def _on_readable(self) -> None:
        while self._reads and self._read_once():
            pass

    def _read_once(self) -> bool:
        """Read what has arrived; returns whether there may be more that the kernel does not
        have."""
        frames: list[memoryview] = []
        rest = self._reader.buffer_for_rest()
        try:
            count = self._end.recv_into(self._room if rest is None else rest)
        except _WOULD_BLOCK:
            return False
        except OSError as error:
            self._finish(error.strerror or str(error))
            return False
        if not count:
            self._finish("")
            return False
        problem = ""
        try:
            if rest is None:
                self._reader.feed(self._room[:count], frames)
            elif (whole := self._reader.received(count)) is not None:
                frames.append(whole)
        except ProtocolError as error:
            problem = foreign_protocol(self._room[:count]) or str(error)
        if frames:
            self._on_frames(frames)
        if problem:
            self._finish(problem)
        return self._reads and self._end.has_unread

    def _finish(self, reason: str) -> None:
        if self.is_open:
            self.read(False)
            self._on_end(reason)

    # ----------------------------------------------------------------------------- writing

    def send(self, buffers: list[Buffer]) -> None:
        """Send bytes after all earlier ones.  The buffers must not change afterwards."""
        if not self.is_open:
            return
        self._unsent += filter(len, buffers)  # a write of nothing would never end
        self.unsent_bytes += sum(map(len, buffers))
        if not self._writable.active:
            self._flush()

    def _flush(self) -> None:
        was_full = self.unsent_bytes > MAX_UNSENT_BYTES
        try:
            while self._unsent:
                self._sent(self._end.write(list(self._unsent)))
        except _WOULD_BLOCK:
            if not self._writable.active:
                self._writable.start(self._flush)
        except OSError as error:
            self._unsent.clear()
            self.unsent_bytes = 0
            self._finish(error.strerror or str(error))
            return
        else:
            if self._writable.active:
                self._writable.stop()
            if self._closes_when_sent:
                self.close()
                return
        if was_full and self.unsent_bytes <= MAX_UNSENT_BYTES:
            self._on_room()

    def _sent(self, count: int) -> None:
        self.unsent_bytes -= count
        unsent = self._unsent
        if not self.unsent_bytes:
            unsent.clear()
            return
        while count:
            first = unsent[0]
            if len(first) > count:
                unsent[0] = memoryview(first)[count:]
                return
            count -= len(first)
            unsent.popleft()

    @property
    def is_full(self) -> bool:
        """Whether the peer reads too slowly for more bytes."""
        return self.unsent_bytes > MAX_UNSENT_BYTES

    # ----------------------------------------------------------------------------- closing

    def close_when_sent(self) -> None:
        """Read nothing more, and close the socket once all bytes have left."""
        self.read(False)
        if self._unsent:
            self._closes_when_sent = True
        else:
            self.close()

    def close(self) -> None:
        """Close the socket at once."""
        if not self.is_open:
            return
        self.read(False)
        self.is_open = False
        self._readable.close()
        self._writable.stop()
        self._writable.close()
        self._unsent.clear()
        self.unsent_bytes = 0
        self._reader.forget()
        self._end.close()
