"""One end of a TCP connection in memory: the state that a kernel keeps for a socket.

Owns: the state of an end, its unread bytes, its room for more.  Never: waits, knows the time,
decides when a message arrives at the other end (its `Cable` does). Kafka: the kernel's TCP below a
client and a broker.

Errors come as on Linux.  Bytes that arrived before a reset can still be read; the next call raises
the error; after it, reading returns the end of the stream and writing raises BrokenPipeError. After
a FIN, reading never raises.

# DIFFERS: written bytes leave at once, as with TCP_NODELAY, which clients of Kafka set.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from enum import Enum
from typing import Final, Protocol, final

Address = tuple[str, int]
Buffer = bytes | bytearray | memoryview

CAPACITY_BYTES: Final = 1 << 20
"""The number of bytes that one end may write before the other has read them: send buffer plus
receive buffer.

# DIFFERS: Linux lets both grow, on loopback to about 4 MB together."""

_TEXTS: Final = {
    errno.ECONNREFUSED: "Connection refused",
    errno.ECONNRESET: "Connection reset by peer",
    errno.ENOTCONN: "Transport endpoint is not connected",
    errno.EPIPE: "Broken pipe",
    errno.ETIMEDOUT: "Connection timed out",
}


class Signal(Enum):
    """Messages of a connection other than data.  RESET also refuses a connection."""

    SYN = "SYN"
    SYN_ACK = "SYN-ACK"
    FIN = "FIN"
    RESET = "RST"


@final
class Packet:
    """Bytes under way.  network/shapes.py measures `body`."""

    __slots__ = ("body",)

    def __init__(self, body: bytes) -> None:
        self.body = body

    def __repr__(self) -> str:
        return f"Packet({len(self.body)} bytes)"


Message = Packet | Signal


class Cable(Protocol):
    """The connection between two ends."""

    def send(self, sender: StreamEnd, message: Message) -> None:
        """Carry a message to the other end, whose `arrive` takes it."""

    def has_read(self, reader: StreamEnd, size_bytes: int) -> None:
        """Let the other end write this much more, because the application has read it."""


@final
class StreamEnd:
    """One end of a connection.

    `is_connecting`: whether a SYN was sent and not yet answered.  `error`: the errno that the next
    call raises; 0 for none.  `watchers`: called when any of the properties may have changed.
    """

    __slots__ = (
        "_cable", "_is_closed", "_read_is_closed", "_received", "_room_bytes", "_saw_end",
        "_write_is_closed",
        "error", "is_connected", "is_connecting", "local_address", "remote_address", "watchers",
    )  # fmt: skip

    def __init__(
        self, local_address: Address, remote_address: Address, cable: Cable, is_connected: bool
    ) -> None:
        self.local_address = local_address
        self.remote_address = remote_address
        self.is_connected = is_connected
        self.is_connecting = not is_connected
        self.error = 0
        self.watchers: dict[Callable[[], None], None] = {}
        self._cable = cable
        self._received = bytearray()
        self._room_bytes = CAPACITY_BYTES
        self._saw_end = False
        """Whether a FIN has arrived."""
        self._read_is_closed = False
        self._write_is_closed = False
        self._is_closed = False

    # ------------------------------------------------------------------------ for its owner

    @property
    def cable(self) -> Cable:
        """The connection to the other end."""
        return self._cable

    @property
    def is_readable(self) -> bool:
        """Whether reading returns at once: data, the end of the stream, or an error."""
        return bool(self._received) or self._saw_end or self._read_is_closed or self._is_dead

    @property
    def is_writable(self) -> bool:
        """Whether writing returns at once.  After the buffers were full, a third of them must be
        free."""
        if self._write_is_closed or self._is_dead:
            return True
        return self.is_connected and self._room_bytes * 3 >= CAPACITY_BYTES

    @property
    def _is_dead(self) -> bool:
        """Whether the end is neither connected nor connecting: it was refused or reset, or both
        ends have sent a FIN."""
        return not self.is_connected and not self.is_connecting

    def read(self, size_bytes: int) -> bytes:
        """Up to `size_bytes`; b"" at the end.  BlockingIOError if nothing has arrived, or the error
        of the connection."""
        received = self._received
        if size_bytes >= len(received):
            if not received:
                return self._read_nothing()
            data = bytes(received)
            received.clear()
        else:
            data = bytes(received[:size_bytes])
            del received[:size_bytes]
        self._cable.has_read(self, len(data))
        return data

    def peek(self, size_bytes: int) -> bytes:
        """The result of `read`, without taking the bytes."""
        return bytes(self._received[:size_bytes]) if self._received else self._read_nothing()

    def _read_nothing(self) -> bytes:
        if self._saw_end:
            return b""
        self._raise_error()
        if (self.is_connected or self.is_connecting) and not self._read_is_closed:
            raise BlockingIOError(errno.EAGAIN, "nothing has arrived")
        return b""

    def write(self, data: bytes | bytearray | memoryview) -> int:
        """Send the bytes that fit, and return their number.  Raises BlockingIOError if nothing
        fits, BrokenPipeError if this end was closed or the other one is gone, or the error of the
        connection."""
        self._raise_error()
        if self._write_is_closed or self._is_dead:
            raise BrokenPipeError(errno.EPIPE, _TEXTS[errno.EPIPE])
        room_bytes = self._room_bytes
        if self.is_connecting or (not room_bytes and len(data)):
            raise BlockingIOError(errno.EAGAIN, "the buffers are full")
        body = bytes(data if len(data) <= room_bytes else memoryview(data)[:room_bytes])
        if body:
            self._room_bytes = room_bytes - len(body)
            self._cable.send(self, Packet(body))
        return len(body)

    def take_error(self) -> int:
        """The pending errno, which is cleared, as by SO_ERROR."""
        error, self.error = self.error, 0
        return error

    def _raise_error(self) -> None:
        error = self.take_error()
        if error:
            raise OSError(error, _TEXTS[error])

    def close_write(self) -> None:
        """Send a FIN: this end writes no more, and can still read.  OSError (ENOTCONN) if there is
        no connection, or it has ended."""
        self._check_connected()
        if not self._write_is_closed:
            self._write_is_closed = True
            self._cable.send(self, Signal.FIN)
            self._die_if_ended()
            self._changed()

    def close_read(self) -> None:
        """Stop waiting for bytes: a reader gets the bytes that have arrived, or the end of the
        stream.  The other end is not notified.  Raises the errors of `close_write`."""
        self._check_connected()
        self._read_is_closed = True
        self._changed()

    def _check_connected(self) -> None:
        if not self.is_connected:
            raise OSError(errno.ENOTCONN, _TEXTS[errno.ENOTCONN])

    def close(self) -> None:
        """Close this end.  The other end gets a FIN, or a RST if bytes were left unread; its later
        bytes are answered by a RST."""
        if self._is_closed:
            return
        self._is_closed = True
        if self.is_connected:
            if self._received:
                self._cable.send(self, Signal.RESET)
                self._die()
            elif not self._write_is_closed:
                self._cable.send(self, Signal.FIN)
        self._write_is_closed = True
        self.is_connecting = False
        self.error = 0
        self._received.clear()
        self._changed()

    def abort(self) -> None:
        """End the connection with a RST, as the kernel does for a connection that was never
        accepted."""
        if self.is_connected:
            self._cable.send(self, Signal.RESET)
        self._die()
        self._is_closed = True
        self._changed()

    # ---------------------------------------------------------------------- for its cable

    def arrive(self, message: Message) -> None:
        """Take a message of the other end."""
        if isinstance(message, Packet):
            if self._is_closed:
                self._refuse()
                return
            if self._is_dead or self._saw_end:
                return
            if self._read_is_closed and self._write_is_closed:
                # A RST, because the bytes can no longer be read: RFC 1122, 4.2.2.13.
                self._refuse()
                self.error = errno.ECONNRESET
                self._changed()
                return
            self._received += message.body
        elif message is Signal.FIN:
            self._saw_end = True
            self._die_if_ended()
        elif message is Signal.SYN_ACK:
            was_waiting, was_dead = self.is_connecting, self._is_dead
            self.is_connecting = False
            self.is_connected = True
            if not was_waiting:
                if was_dead:  # this end was closed in between, or has timed out
                    self._refuse()
                return
        else:
            self.reset()
            return
        self._changed()

    def _refuse(self) -> None:
        if self.is_connected:
            self._cable.send(self, Signal.RESET)
            self._die()

    def reset(self) -> None:
        """Take the other end's reset, or its refusal."""
        if self._is_dead:
            return
        if not self._is_closed:
            if self.is_connecting:
                self.error = errno.ECONNREFUSED
            else:
                self.error = errno.EPIPE if self._saw_end else errno.ECONNRESET
        self._die()
        self._changed()

    def time_out(self) -> None:
        """Fail the attempt to connect, because the SYN was not answered."""
        if self.is_connecting:
            self.error = errno.ETIMEDOUT
            self._die()
            self._changed()

    def _die(self) -> None:
        self.is_connected = self.is_connecting = False

    def _die_if_ended(self) -> None:
        if self._saw_end and self._write_is_closed:
            self._die()

    def may_write(self, size_bytes: int) -> None:
        """Take note that the other end has read this much."""
        was_writable = self.is_writable
        self._room_bytes += size_bytes
        if not was_writable and self.is_writable:
            self._changed()

    def _changed(self) -> None:
        for watcher in tuple(self.watchers):
            watcher()


@final
class _Pair:
    """Carries messages between two ends at once, without a network."""

    __slots__ = ("_ends",)

    def __init__(self, here: Address, there: Address) -> None:
        self._ends = (StreamEnd(here, there, self, True), StreamEnd(there, here, self, True))

    @property
    def ends(self) -> tuple[StreamEnd, StreamEnd]:
        """Both ends."""
        return self._ends

    def _other(self, end: StreamEnd) -> StreamEnd:
        first, second = self._ends
        return second if end is first else first

    def send(self, sender: StreamEnd, message: Message) -> None:
        """Deliver a message at once.  Part of Cable."""
        self._other(sender).arrive(message)

    def has_read(self, reader: StreamEnd, size_bytes: int) -> None:
        """Let the other end write.  Part of Cable."""
        self._other(reader).may_write(size_bytes)


@final
class _Nowhere:
    """The cable of an end that is never connected."""

    __slots__ = ()

    def send(self, sender: StreamEnd, message: Message) -> None:
        """Drop the message.  Part of Cable."""

    def has_read(self, reader: StreamEnd, size_bytes: int) -> None:
        """Do nothing, because nothing was written.  Part of Cable."""


def unanswered_end(here: Address, there: Address) -> StreamEnd:
    """An end that connects to an address without an answer: it waits for a reset or a time-out."""
    return StreamEnd(here, there, _Nowhere(), False)


def refused_end(here: Address, there: Address) -> StreamEnd:
    """An end whose connection was refused."""
    end = unanswered_end(here, there)
    end.reset()
    return end


def stream_pair(
    here: Address = ("127.0.0.1", 0), there: Address = ("127.0.0.1", 0)
) -> tuple[StreamEnd, StreamEnd]:
    """Two ends that are connected to each other, with these addresses."""
    return _Pair(here, there).ends
