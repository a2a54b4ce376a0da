"""The broker's end of one client's connection: reads frames, hands them over, writes replies.

Owns: a socket, its read-ahead, its unsent replies.  Never: decodes a body (broker/channel.py), or
waits (its driver calls it when its socket is readable or writable; it has no greenlet).
Kafka: KafkaChannel with its mute state, Selector, NetworkSend.

One frame is in the broker at a time (contract rule 6).  While its reply is due, or the client does
not read its replies, or the broker's process is paused, frames wait here.  Past `READ_AHEAD_BYTES`
nothing more is read, so the kernel's receive window closes and the client has to wait.  The client
also has to wait while all connections together hold more than their RequestMemory allows.
"""

from __future__ import annotations

import errno
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from kcluster.broker.channel import Channel
from kcluster.contract import ConnectionClosed, HandshakeFailed, Input, LoginFailed, Reply, Request
from kcluster.drivers.sockets.handshake import HandshakeError
from kcluster.drivers.sockets.request_memory import RequestMemory
from kcluster.protocol.errors import ProtocolError
from kcluster.protocol.framing import FrameReader

Buffer = bytes | bytearray | memoryview

Tap = Callable[[bool, Buffer], None]
"""Called with (whether it goes to the broker, the plaintext), for a trace of encrypted
connections."""

READ_AHEAD_BYTES: Final = 256 << 10
UNSENT_LIMIT_BYTES: Final = 1 << 20
"""The limit of unsent bytes beyond which the connection's next request waits.  One reply may be
larger."""

MAX_BUFFERS_PER_SEND: Final = 1024
"""IOV_MAX of Linux and macOS."""

_READ, _WRITE = 1, 2

_CLIENT_GONE: Final = frozenset(
    {errno.EPIPE, errno.ECONNABORTED, errno.ECONNRESET, errno.ETIMEDOUT}
)
"""Errors of a client that disconnected; they are not logged."""


class ByteSocket(Protocol):
    """A connection's interface to its socket, which never blocks: BlockingIOError instead."""

    def recv_into(self, buffer: memoryview, /) -> int:
        """Read the bytes that have arrived, and return their number; 0 at the end of the stream."""

    def send(self, data: Buffer, /) -> int:
        """Write the bytes that fit, and return their number."""

    def sendmsg(self, buffers: Sequence[Buffer], /) -> int:
        """Write the bytes of several buffers that fit, and return their number."""

    def close(self) -> None:
        """Close the socket."""


class IoWatcher(Protocol):
    """Calls back while a socket is ready, as libev's io watchers do.  `active`: whether it is
    started and not stopped."""

    @property
    def active(self) -> bool: ...
    def start(self, callback: Callable[[], object], /) -> None: ...
    def stop(self) -> None: ...
    def close(self) -> None: ...


class SocketHost(Protocol):
    """The driver, for listeners and connections."""

    def now_ms(self) -> int:
        """The time of the current dispatch."""

    def wake(self) -> None:
        """Bring the clock up to date, after a socket has called back."""

    def settle_soon(self) -> None:
        """Settle before the loop waits again, once for all sockets that are ready in this turn of
        the loop."""

    def deliver(self, node_id: int, event: Input) -> None:
        """Deliver this event to a node now; resulting messages are delivered by the next
        `settle`."""

    def deliver_later(self, node_id: int, event: Input) -> None:
        """Deliver this event by the next `settle`."""

    def pump_later(self, connection: BrokerConnection) -> None:
        """Pump this connection by the next `settle`."""

    def flush_later(self, connection: BrokerConnection) -> None:
        """Flush this connection at the end of the next `settle`."""

    @property
    def is_clock_paused(self) -> bool:
        """Whether the cluster's clock is paused, so that nothing is read, written or accepted."""

    def on_resumed(self, callback: Callable[[], object]) -> None:
        """Call back once the clock is resumed."""

    def gave_up(self, node_id: int, request: Request) -> None:
        """Take note that a connection ended before this request was answered."""

    def next_connection_id(self) -> int:
        """A new id, unique in this cluster."""

    def log(self, line: str) -> None:
        """Write a line to the operator's log."""


class ConnectionOwner(Protocol):
    """The listener, for the connections that it accepted."""

    @property
    def node_id(self) -> int:
        """The broker's id."""

    @property
    def channel(self) -> Channel:
        """Decodes requests and encodes replies."""

    @property
    def driver(self) -> SocketHost:
        """The driver."""

    @property
    def is_paused(self) -> bool:
        """Whether the broker's process is paused, so that no request is delivered."""

    @property
    def memory(self) -> RequestMemory:
        """The memory that the listener's connections share."""

    @property
    def read_buffer(self) -> memoryview:
        """A buffer for all connections: each receive is copied into frames before the next."""

    def forget(self, connection: BrokerConnection, reason: str) -> None:
        """Forget a closed connection; `reason` is logged unless empty."""


class BrokerConnection:
    """A client's connection to a broker's listener."""

    __slots__ = (
        "_ahead_bytes",
        "_channel",
        "_counted_bytes",
        "_driver",
        "_frames",
        "_malformed",
        "_memory",
        "_node_id",
        "_pumping",
        "_readable",
        "_reader",
        "_reading",
        "_request",
        "_request_max_bytes",
        "_socket",
        "_unsent",
        "_unsent_bytes",
        "_watch",
        "_writable",
        "awaits_reply",
        "client_host",
        "connection_id",
        "is_dirty",
        "is_open",
        "is_unflushed",
        "last_active_ms",
        "listener",
    )  # fmt: skip

    def __init__(
        self,
        listener: ConnectionOwner,
        sock: ByteSocket,
        connection_id: int,
        client_host: str,
        watch: Callable[[ByteSocket, int], IoWatcher],
        *,
        request_max_bytes: int,
    ) -> None:
        self.listener = listener
        self._driver = listener.driver
        self._channel = listener.channel
        self._node_id = listener.node_id
        self.connection_id = connection_id
        self.client_host = client_host
        self.is_open = True
        self.is_dirty = False
        """Whether the connection is on the driver's list of connections to pump."""
        self.is_unflushed = False
        """Whether the connection is on the driver's list of connections to flush."""
        self.awaits_reply = False
        self._request: Request | None = None
        """The newest request that was delivered."""
        self.last_active_ms = listener.driver.now_ms()
        self._watch = watch
        self._socket = sock
        self._request_max_bytes = request_max_bytes
        self._reader = FrameReader(listener.channel.login_limit_bytes(request_max_bytes))
        self._frames: deque[memoryview] = deque()
        self._ahead_bytes = 0
        """The number of bytes read and not yet delivered to the broker."""
        self._memory = listener.memory
        self._counted_bytes = 0
        """The part of the read-ahead bytes that the memory has counted."""
        self._unsent: list[Buffer] = []
        self._unsent_bytes = 0
        self._malformed = ""
        """The reason why nothing more is read; the connection closes once all earlier frames are
        answered."""
        self._pumping = False
        self._readable: Any = watch(sock, _READ)
        self._writable: Any = None
        self._reading = False

    # --------------------------------------------------------------------------- reading

    def serve(self) -> None:
        """Start to read.  From now on the driver calls when the socket is ready."""
        self._set_reading(True)

    def _on_readable(self) -> None:
        driver = self._driver
        if driver.is_clock_paused:
            self._readable.stop()
            driver.on_resumed(self._read_again)
            return
        is_sound = False
        try:
            driver.wake()
            self._read()
            self.pump()
            driver.settle_soon()
            is_sound = True
        finally:
            if not is_sound:
                # A step raised an error, which is a bug of the simulator; it ends the client's
                # connection.
                self.close("")

    def _read_again(self) -> None:
        if self.is_open and self._reading:
            self._readable.start(self._on_readable)

    def _read(self) -> None:
        try:
            rest = None if self._malformed else self._reader.buffer_for_rest()
            if rest is not None:
                size_bytes = self._socket.recv_into(rest)
                frame = self._reader.received(size_bytes)
                if frame is not None:
                    self._frames.append(frame)
            else:
                room = self.listener.read_buffer
                size_bytes = self._socket.recv_into(room)
                if self._malformed and size_bytes:
                    # The bytes are read only to notice a disconnected client.
                    return
                self._reader.feed(room[:size_bytes], self._frames)
        except BlockingIOError:
            return
        except ProtocolError as error:
            # Earlier complete frames get their replies first.
            self._malformed = str(error)
            return
        except OSError as cause:
            self._broken(cause)
            return
        if not size_bytes:
            self.close("")
            return
        self._ahead_bytes += size_bytes
        self.last_active_ms = self._driver.now_ms()

    @property
    def _must_wait(self) -> bool:
        return (
            self.awaits_reply or self._unsent_bytes > UNSENT_LIMIT_BYTES or self.listener.is_paused
        )

    def _set_reading(self, wanted: bool) -> None:
        if wanted is not self._reading and self.is_open:
            self._reading = wanted
            if wanted:
                self._readable.start(self._on_readable)
            else:
                self._readable.stop()

    # --------------------------------------------------------------------- to the broker

    def pump(self) -> None:
        """Deliver frames until one must wait.  Replies are written together, when the driver has
        settled."""
        if self._pumping:
            return
        self._pumping = True
        frames = self._frames
        try:
            while frames and self.is_open and not self._must_wait:
                frame = frames.popleft()
                self._ahead_bytes -= len(frame) + 4
                self._hand_over(frame)
        finally:
            self._pumping = False
        if self._unsent:
            self._driver.flush_later(self)
        if self._malformed and not frames and not self.awaits_reply:
            self._send()
            self._end(self._malformed)
        if self._ahead_bytes != self._counted_bytes:
            self._count(self._ahead_bytes)
        self._set_reading(self._may_read())

    def _end(self, reason: str) -> None:
        """Close, because the client sent something that is no frame or no request.  The login of a
        client ends as the broker decides."""
        failed = self._channel.unreadable(self.connection_id, self.client_host, reason)
        if failed is None:
            self.close(reason)
        else:
            self._deliver_failed(failed)

    def _deliver_failed(self, failed: LoginFailed) -> None:
        """Wait until the broker closes the connection."""
        self.awaits_reply = True
        self._request = failed.request
        self._driver.deliver(self._node_id, failed)

    def _may_read(self) -> bool:
        if self._malformed:
            return True
        if self._memory.is_exhausted and self._ahead_bytes:
            return not self._must_wait and self._memory.may_read(self)
        return self._ahead_bytes < READ_AHEAD_BYTES or not self._must_wait

    def _count(self, held_bytes: int) -> None:
        change_bytes = held_bytes - self._counted_bytes
        self._counted_bytes = held_bytes
        self._memory.count(self, change_bytes, is_done=not held_bytes)

    def read_on(self) -> None:
        """Continue to read, because there is memory for requests again, or it is this connection's
        turn."""
        if self.is_open:
            self.last_active_ms = self._driver.now_ms()
            self._driver.pump_later(self)

    def _hand_over(self, frame: memoryview) -> None:
        driver = self._driver
        try:
            received = self._channel.receive(
                frame, self.connection_id, self.client_host, driver.now_ms()
            )
        except ProtocolError as error:
            self._frames.clear()
            self._malformed = str(error)
            return
        if isinstance(received, Request):
            self.awaits_reply = True
            self._request = received
            driver.deliver(self._node_id, received)
        elif isinstance(received, LoginFailed):
            self._deliver_failed(received)
        else:
            self._write(received)

    def take_reply(self, reply: Reply) -> None:
        """Take the reply to the request in the broker; the next `flush` writes it."""
        assert self.awaits_reply, reply
        self.awaits_reply = False
        try:
            self._write(self._channel.answer(reply))
        except ProtocolError as error:
            self._frames.clear()
            self._malformed = str(error)
        if reply.close_reason:
            self._frames.clear()
            self._malformed = reply.close_reason
        elif self._reader.max_size_bytes < self._request_max_bytes:
            self._raise_limit()
        if not self._pumping:
            self._driver.pump_later(self)

    def _raise_limit(self) -> None:
        """Allow requests of any size once the client has logged in."""
        if self._channel.is_logged_in(self.connection_id):
            self._reader.max_size_bytes = self._request_max_bytes

    # --------------------------------------------------------------------------- writing

    def _write(self, buffers: list[Buffer]) -> None:
        self._unsent.extend(buffers)
        for buffer in buffers:
            self._unsent_bytes += len(buffer)

    def flush(self) -> None:
        """Send the waiting replies, then deliver the requests that waited for them."""
        self._send()
        if self._frames and not self._must_wait:
            self._driver.pump_later(self)

    def _send(self) -> None:
        """Send as many bytes as the kernel takes now, and the rest later.  Never blocks."""
        unsent = self._unsent
        if not unsent or not self.is_open or (self._writable and self._writable.active):
            return
        try:
            while unsent:
                if len(unsent) == 1:
                    sent_bytes = self._socket.send(unsent[0])
                else:
                    sent_bytes = self._socket.sendmsg(unsent[:MAX_BUFFERS_PER_SEND])
                self._forget_sent(sent_bytes)
        except BlockingIOError:
            if self._writable is None:
                self._writable = self._watch(self._socket, _WRITE)
            self._writable.start(self._on_writable)
        except OSError as error:
            self._broken(error)

    def _forget_sent(self, sent_bytes: int) -> None:
        self._unsent_bytes -= sent_bytes
        unsent = self._unsent
        if not self._unsent_bytes:
            unsent.clear()
            return
        whole = 0
        for buffer in unsent:
            if sent_bytes < len(buffer):
                break
            sent_bytes -= len(buffer)
            whole += 1
        del unsent[:whole]
        if sent_bytes:
            unsent[0] = memoryview(unsent[0])[sent_bytes:]

    def _on_writable(self) -> None:
        self._writable.stop()
        driver = self._driver
        if driver.is_clock_paused:
            driver.on_resumed(self._write_again)
            return
        driver.wake()
        self.last_active_ms = driver.now_ms()
        self._send()
        self.pump()
        driver.settle_soon()

    def _write_again(self) -> None:
        if self.is_open:
            self._writable.start(self._on_writable)

    # --------------------------------------------------------------------------- the end

    def _broken(self, error: OSError) -> None:
        if isinstance(error, HandshakeError):
            failed = HandshakeFailed(
                self._channel.identity.listener, self.client_host, error.problem, error.detail
            )
            self._driver.deliver_later(self._node_id, failed)
        self.close("" if error.errno in _CLIENT_GONE else str(error.strerror))

    def close(self, reason: str, *, tell_broker: bool = True) -> None:
        """Close at once; unsent replies are lost.  `reason` is logged unless empty."""
        if not self.is_open:
            return
        self.is_open = False
        self._readable.stop()
        self._readable.close()
        if self._writable is not None:
            self._writable.stop()
            self._writable.close()
        if self.awaits_reply and self._request is not None:
            self._driver.gave_up(self._node_id, self._request)
        self._request = None
        self.listener.forget(self, reason)
        self._socket.close()
        self._frames.clear()
        self._reader.forget()
        self._ahead_bytes = 0
        self._unsent.clear()
        if self._counted_bytes:
            self._count(0)
        if tell_broker:
            self._driver.deliver_later(self.listener.node_id, ConnectionClosed(self.connection_id))
