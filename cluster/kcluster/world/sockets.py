"""Sockets of a world, in place of socket.socket for its threads.

Owns: blocking, timeouts, options, names of the sockets of a world; servers inside it.  Never:
carries bytes (drivers/memory/ does), chooses threads to run (scheduler.py). Kafka: no counterpart;
the kernel's side of a client's sockets.

A socket here has a number instead of a file descriptor, and one end of a TCP connection in memory.
"""

from __future__ import annotations

import _socket
import errno
import os
import socket
import struct
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

from kcluster.drivers.memory.addresses import CLIENT_HOST
from kcluster.drivers.memory.stream import StreamEnd, refused_end, stream_pair
from kcluster.world.active import app_here, is_dying, refused, scheduler_here, world_here
from kcluster.world.errors import WorldEnded
from kcluster.world.scheduler import WorldThread
from kcluster.world.waits import WaitFor, Waiting

if TYPE_CHECKING:
    from typing_extensions import Buffer

RealSocket = socket.socket
LOOPBACK: Final = "127.0.0.1"
NO_LINGERING: Final = struct.pack("ii", 1, 0)
"""The value of SO_LINGER with which close() resets the connection."""

Address = tuple[str, int]


def _host_and_port(address: object) -> Address:
    """The host and the port of an IPv4 or IPv6 address."""
    if not isinstance(address, tuple):
        raise refused("only TCP sockets live in virtual time, with a host and a port, not a path")
    return address[0], int(address[1])


class WorldSocket(RealSocket):
    """Replaces socket.socket for a thread of a world, with the methods of the standard
    library's."""

    _is_closed = True  # for __del__ of a socket that was refused

    def __new__(cls, *arguments: object, **keywords: object) -> WorldSocket:
        return _socket.socket.__new__(cls)

    def __init__(
        self,
        family: int = -1,
        type: int = -1,  # the standard library's name
        proto: int = -1,
        fileno: int | None = None,
    ) -> None:
        world = world_here()
        assert world is not None, "made by a thread of the world"
        if fileno is not None:
            raise refused("a socket cannot be made from a file descriptor in virtual time")
        if type not in (-1, socket.SOCK_STREAM):
            raise refused("only TCP sockets live in virtual time, no UDP or raw ones")
        if is_dying():
            raise WorldEnded
        self.app = app_here()
        self._world = world
        self._sockets = world.sockets
        self._family = socket.AF_INET if family == -1 else family
        self._proto = max(proto, 0)
        self._fd = self._sockets.new_descriptor(self)
        self._timeout: float | None = None
        self._end: StreamEnd | None = None
        self._local: tuple[str, int] = ("0.0.0.0", 0)
        self._options: dict[tuple[int, int], object] = {
            (socket.SOL_SOCKET, socket.SO_TYPE): socket.SOCK_STREAM
        }
        self._arrived: deque[StreamEnd] | None = None
        """Connections to a listening socket that are not yet accepted."""
        self._watchers: dict[Callable[[], None], None] = {}
        self._is_closed = False
        self._is_inheritable = False
        self._was_connected = False
        """Whether an attempt to connect has reported its success."""
        self._io_refs = 0  # the files of makefile(), as in the standard library
        self._closed = False

    family = property(lambda self: socket.AddressFamily(self._family))
    type = property(lambda self: socket.SOCK_STREAM)
    proto = property(lambda self: self._proto)
    timeout = property(lambda self: self._timeout)

    def __repr__(self) -> str:
        return f"<WorldSocket {self._fd} {self._local}>"

    def __del__(self) -> None:
        if not self._is_closed:
            self._real_close()

    # -------------------------------------------------------------------------------- settings

    def fileno(self) -> int:
        """The socket's number; -1 once it is closed."""
        return -1 if self._is_closed else self._fd

    def setblocking(self, flag: bool) -> None:
        self._check_open()
        self._timeout = None if flag else 0.0

    def getblocking(self) -> bool:
        return self._timeout != 0.0

    def settimeout(self, value: float | None) -> None:
        if value is not None and value < 0:
            raise ValueError("Timeout value out of range")
        self._check_open()
        self._timeout = value

    def gettimeout(self) -> float | None:
        return self._timeout

    def setsockopt(self, level: int, name: int, value: object, *rest: object) -> None:
        self._check_open()
        self._options[level, name] = value

    def getsockopt(self, level: int, name: int, *rest: object) -> Any:
        self._check_open()
        if (level, name) == (socket.SOL_SOCKET, socket.SO_ERROR):
            return 0 if self._end is None else self._end.take_error()
        return self._options.get((level, name), 0)

    def set_inheritable(self, inheritable: bool) -> None:
        self._check_open()
        self._is_inheritable = inheritable  # no process could inherit it

    def get_inheritable(self) -> bool:
        self._check_open()
        return self._is_inheritable

    def getsockname(self) -> Address:
        self._check_open()
        return self._local

    def getpeername(self) -> Address:
        self._check_open()
        if self._end is None or not self._end.is_connected:
            raise OSError(errno.ENOTCONN, os.strerror(errno.ENOTCONN))
        return self._end.remote_address

    def _check_open(self) -> None:
        if self._is_closed:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))

    # -------------------------------------------------------------------------------- readiness

    @property
    def is_readable(self) -> bool:
        """Whether recv or accept would return at once."""
        if self._arrived is not None:
            return bool(self._arrived)
        return self._end is None or self._end.is_readable

    @property
    def is_writable(self) -> bool:
        """Whether `send` would return at once; for an attempt to connect: whether it has ended."""
        if self._end is None:
            return self._arrived is None
        return not self._end.is_connecting and self._end.is_writable

    def watch(self, on_change: Callable[[], None]) -> None:
        """Call back whenever the socket may have become readable or writable."""
        self._watchers[on_change] = None
        if self._end is not None:
            self._end.watchers[on_change] = None

    def unwatch(self, on_change: Callable[[], None]) -> None:
        """End the callbacks."""
        self._watchers.pop(on_change, None)
        if self._end is not None:
            self._end.watchers.pop(on_change, None)

    def _attach(self, end: StreamEnd) -> None:
        self._end = end
        for on_change in self._watchers:
            end.watchers[on_change] = None

    def _wait(self, is_ready: Callable[[], bool], wait: Waiting) -> None:
        """Block the calling thread until `is_ready()`, but no longer than the timeout."""
        scheduler = scheduler_here()
        if self._timeout == 0.0:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        if scheduler is None:
            raise refused("a thread of no world uses a socket of one")
        deadline_us = None if self._timeout is None else scheduler.deadline_us(self._timeout)
        waking = Waking(scheduler.here)
        self.watch(waking)
        try:
            while not is_ready():
                if deadline_us is not None and scheduler.now_us >= deadline_us:
                    raise TimeoutError("timed out")
                scheduler.park(deadline_us, wait)
        finally:
            self.unwatch(waking)

    # ------------------------------------------------------------------------ making connections

    def bind(self, address: object) -> None:
        self._check_open()
        host, port = _host_and_port(address)
        port = port or self._sockets.new_port()
        if port in self._sockets.listening:
            raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
        self._local = (host, port)

    def listen(self, backlog: int = 128) -> None:
        self._check_open()
        if not self._local[1]:
            self._local = (self._local[0], self._sockets.new_port())
        self._arrived = deque()
        self._sockets.listening[self._local[1]] = self

    def arrived(self, end: StreamEnd) -> None:
        """Take a connection to this listening socket."""
        assert self._arrived is not None, "it listens"
        self._arrived.append(end)
        for on_change in tuple(self._watchers):
            on_change()

    def accept(self) -> tuple[WorldSocket, Address]:
        self._check_open()
        arrived = self._arrived
        if arrived is None:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        if not arrived:
            self._wait(lambda: bool(arrived), Waiting(WaitFor.CLIENT))
        accepted = WorldSocket(self._family)
        accepted._attach(arrived.popleft())
        accepted._was_connected = True
        accepted._local = self._local
        assert accepted._end is not None, "just attached"
        return accepted, accepted._end.remote_address

    def connect_ex(self, address: object) -> int:
        if self._is_closed:
            return errno.EBADF
        end = self._end
        if end is None:
            host, port = _host_and_port(address)
            own_host = LOOPBACK if host in (LOOPBACK, "localhost") else CLIENT_HOST
            local = self._local = (own_host, self._local[1] or self._sockets.new_port())
            end = self._world.connect(host, port, local)
            if end is None:
                end = refused_end(local, (host, port))
            self._attach(end)
            if self._timeout == 0.0:
                return errno.EINPROGRESS
            if end.is_connecting:
                try:
                    self._wait(
                        lambda: not end.is_connecting, Waiting(WaitFor.CONNECTION, f"{host}:{port}")
                    )
                except TimeoutError:
                    return errno.EAGAIN
            return self._refused(end)
        if end.is_connecting:
            return errno.EALREADY
        # On Linux the call after a successful attempt returns 0, too.
        return errno.EISCONN if self._was_connected else self._refused(end)

    def _refused(self, end: StreamEnd) -> int:
        """The error of an attempt to connect, after which another may follow."""
        error = end.take_error()
        if not error and not end.is_connected:
            error = errno.ECONNABORTED  # the error was already read
        if error:
            for on_change in self._watchers:
                end.watchers.pop(on_change, None)
            self._end = None
        self._was_connected = not error
        return error

    def connect(self, address: object) -> None:
        error = WorldSocket.connect_ex(self, address)  # ssl.SSLSocket has its own
        if error == errno.EAGAIN:
            raise TimeoutError("timed out")
        if error == errno.EINPROGRESS:
            raise BlockingIOError(error, os.strerror(error))
        if error not in (0, errno.EISCONN):
            raise OSError(error, os.strerror(error))

    # ------------------------------------------------------------------------------------- bytes

    def _connected_end(self) -> StreamEnd:
        self._check_open()
        if self._end is None:
            raise OSError(errno.ENOTCONN, os.strerror(errno.ENOTCONN))
        return self._end

    def recv(self, bufsize: int, flags: int = 0, /) -> bytes:
        if not bufsize:
            return b""
        end = self._connected_end()
        if not end.is_readable:
            self._wait(lambda: end.is_readable, Waiting(WaitFor.BYTES))
        return end.peek(bufsize) if flags & socket.MSG_PEEK else end.read(bufsize)

    def recv_into(self, buffer: Buffer, nbytes: int = 0, flags: int = 0) -> int:
        view = memoryview(buffer).cast("B")
        data = self.recv(nbytes or len(view), flags)
        view[: len(data)] = data
        return len(data)

    def recvfrom(self, bufsize: int, flags: int = 0, /) -> tuple[bytes, None]:
        return self.recv(bufsize, flags), None

    def send(self, data: Buffer, flags: int = 0, /) -> int:
        self._check_open()
        end = self._end
        if end is None:
            raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
        if end.is_connecting:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        view = memoryview(data).cast("B")
        if view and not end.is_writable:
            self._wait(lambda: end.is_writable, Waiting(WaitFor.ROOM))
        return end.write(view)

    def sendall(self, data: Buffer, flags: int = 0, /) -> None:
        view = memoryview(data).cast("B")
        while view:
            view = view[self.send(view) :]

    def sendmsg(self, buffers: Iterable[Buffer], *rest: object) -> int:
        return self.send(b"".join(bytes(buffer) for buffer in buffers))

    # ------------------------------------------------------------------------------------ the end

    def shutdown(self, how: int, /) -> None:
        end = self._connected_end()
        if how != socket.SHUT_WR:
            end.close_read()
        if how != socket.SHUT_RD:
            end.close_write()

    def _real_close(self, *rest: object) -> None:
        """Close the connection; called by close() once no file made from the socket is open."""
        if self._is_closed:
            return
        self._is_closed = True
        self._sockets.by_descriptor.pop(self._fd, None)
        if self._arrived is not None:
            self._sockets.listening.pop(self._local[1], None)
            for end in self._arrived:
                end.abort()
        if self._end is not None:
            if self._options.get((socket.SOL_SOCKET, socket.SO_LINGER)) == NO_LINGERING:
                self._end.abort()
            else:
                self._end.close()

    def close_for_process(self) -> None:
        """Close the connection, as the system does when the socket's process has ended."""
        WorldSocket._real_close(self)  # without the farewell of ssl.SSLSocket

    def detach(self) -> int:
        if self._is_closed:
            return -1
        raise refused(
            "a socket cannot be given away in virtual time, to a process or a library: it has no"
            " descriptor"
        )

    def dup(self) -> WorldSocket:
        raise refused("a socket cannot be duplicated in virtual time")


class Waking:
    """Wakes one thread; each wait has a Waking of its own."""

    __slots__ = ("_thread",)

    def __init__(self, thread: WorldThread) -> None:
        self._thread = thread

    def __call__(self) -> None:
        self._thread.scheduler.wake(self._thread)


def socketpair(*arguments: object) -> tuple[WorldSocket, WorldSocket]:
    """Replaces socket.socketpair."""
    one, other = WorldSocket(socket.AF_UNIX), WorldSocket(socket.AF_UNIX)
    ends = stream_pair(("", 0), ("", 0))
    one._attach(ends[0])
    other._attach(ends[1])
    return one, other
