"""A broker's port in memory: connections wait in its backlog, and accepted ones are read and
written here.

Owns: the backlog, the socket-like face of a connection's end, the watchers of such ends.  Never:
decides which connections are served (sockets/listener.py), carries bytes (network.py).
Kafka: the kernel's listening socket, epoll.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, Protocol, final

from kcluster.drivers.memory.stream import CAPACITY_BYTES, StreamEnd
from kcluster.drivers.sockets.connection import Buffer
from kcluster.drivers.sockets.listener import Listener
from kcluster.network.threads import NetworkThread, NetworkThreads

BACKLOG: Final = 1024
"""The number of connections that may wait to be accepted; further SYNs are dropped, as by Linux."""

_READ: Final = 1


class CallsBack(Protocol):
    """A driver's clock, with callbacks."""

    @property
    def now_us(self) -> int:
        """The current time."""

    def at(self, at_us: int, callback: Callable[[], object]) -> None:
        """Call back at that time."""


@final
class BrokerSocket:
    """The broker's end of a connection, with the methods of a socket that never blocks.

    `thread`: the network thread that reads it, None where that costs nothing; `cost_us`: the cost
    of the next read, which is a handshake's at first, then 0."""

    __slots__ = ("cost_us", "end", "thread")

    def __init__(
        self, end: StreamEnd, thread: NetworkThread | None = None, cost_us: int = 0
    ) -> None:
        self.end = end
        self.thread = thread
        self.cost_us = cost_us

    def readable_us(self, now_us: int) -> int:
        """The time at which the thread has read what has arrived now."""
        if self.thread is None:
            return now_us
        cost_us, self.cost_us = self.cost_us, 0
        return self.thread.takes_up(now_us, cost_us)

    def recv_into(self, buffer: memoryview) -> int:
        """Read the bytes that have arrived, and return their number; 0 at the end of the stream."""
        data = self.end.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def send(self, data: Buffer) -> int:
        """Write the bytes that fit, and return their number."""
        return self.end.write(data)

    def sendmsg(self, buffers: Sequence[Buffer]) -> int:
        """Write the bytes of several buffers that fit, in one packet, as the kernel does."""
        taken, size_bytes = [], 0
        for buffer in buffers:
            taken.append(buffer)
            size_bytes += len(buffer)
            if size_bytes >= CAPACITY_BYTES:
                break
        return self.end.write(b"".join(taken))

    def close(self) -> None:
        """Close the broker's end."""
        self.end.close()


@final
class EndWatcher:
    """Calls back while an end is readable, or writable, each time as an event of its own."""

    __slots__ = ("_callback", "_clock", "_end", "_is_due", "_look", "_mode", "_socket")

    def __init__(self, clock: CallsBack, sock: BrokerSocket, mode: int) -> None:
        self._clock = clock
        self._socket = sock
        self._end = sock.end
        self._mode = mode
        self._callback: Callable[[], object] | None = None
        self._is_due = False
        self._look: Callable[[], None] = self._on_change

    @property
    def active(self) -> bool:
        """Whether the watcher is started and not stopped."""
        return self._callback is not None

    def start(self, callback: Callable[[], object]) -> None:
        """Start to watch."""
        self._callback = callback
        self._end.watchers[self._look] = None
        self._on_change()

    def stop(self) -> None:
        """Stop watching."""
        self._callback = None
        self._end.watchers.pop(self._look, None)

    def close(self) -> None:
        """Stop watching for good."""
        self.stop()

    def _is_ready(self) -> bool:
        return self._end.is_readable if self._mode == _READ else self._end.is_writable

    def _on_change(self) -> None:
        if self._callback is not None and not self._is_due and self._is_ready():
            self._is_due = True
            due_us = self._clock.now_us
            if self._mode == _READ:
                due_us = self._socket.readable_us(due_us)
            self._clock.at(due_us, self._call_back)

    def _call_back(self) -> None:
        self._is_due = False
        callback = self._callback
        if callback is not None and self._is_ready():
            callback()
            self._on_change()


class MemoryAcceptor:
    """The port of a broker while its process runs.  `threads`: the network threads, which a TLS
    handshake keeps busy for `handshake_us`; None if handshakes cost nothing."""

    def __init__(
        self, clock: CallsBack, threads: NetworkThreads | None = None, handshake_us: int = 0
    ) -> None:
        self._clock = clock
        self._threads = threads
        self._handshake_us = handshake_us
        self._listener: Listener | None = None
        self._backlog: deque[StreamEnd] = deque()
        self._is_accepting = False
        self._is_due = False

    @property
    def is_open(self) -> bool:
        """Whether the port is open."""
        return self._listener is not None

    @property
    def has_room(self) -> bool:
        """Whether one more connection fits into the backlog."""
        return len(self._backlog) < BACKLOG

    def open(self, listener: Listener) -> None:
        """Listen, and pass arriving connections to this listener."""
        self._listener = listener
        self._is_accepting = True

    def close(self) -> None:
        """Close the port.  Connections in its backlog are reset."""
        self._listener = None
        self._is_accepting = False
        backlog, self._backlog = self._backlog, deque()
        for end in backlog:
            end.abort()

    def arrived(self, end: StreamEnd) -> None:
        """Take a connection that has arrived."""
        self._backlog.append(end)
        self._accept_soon()

    def stop_accepting(self) -> None:
        """Leave new connections in the backlog."""
        self._is_accepting = False

    def start_accepting(self) -> None:
        """Accept connections again, after `stop_accepting`."""
        self._is_accepting = True
        self._accept_soon()

    def _accept_soon(self) -> None:
        if self._is_accepting and self._backlog and not self._is_due:
            self._is_due = True
            self._clock.at(self._clock.now_us, self._accept)

    def _accept(self) -> None:
        self._is_due = False
        while self._is_accepting and self._backlog and self._listener is not None:
            if self._listener.is_held:
                self._is_accepting = False
                return
            end = self._backlog.popleft()
            thread = None if self._threads is None else self._threads.assign()
            sock = BrokerSocket(end, thread, self._handshake_us)
            if self._listener.arrived(sock, end.remote_address):
                self._listener.accept(sock, end.remote_address)

    def take_over(self, accepted: BrokerSocket, connection_id: int) -> BrokerSocket:
        """Take over the socket of a connection to be served."""
        return accepted

    def watch(self, sock: BrokerSocket, mode: int) -> EndWatcher:
        """A watcher of the socket, not started yet.  `mode`: 1 for readable, 2 for writable."""
        return EndWatcher(self._clock, sock, mode)

    def later(self, delay_s: float, callback: Callable[[], object]) -> None:
        """Call back after this delay."""
        self._clock.at(self._clock.now_us + round(delay_s * 1_000_000), callback)
