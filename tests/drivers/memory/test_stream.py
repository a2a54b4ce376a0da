"""Two ends of a connection: those of Linux and ours behave alike."""

from __future__ import annotations

import errno
import select
import socket
import struct
import sys
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, Final

import pytest

from kcluster.drivers.memory.stream import CAPACITY_BYTES, StreamEnd, stream_pair


class KernelEnd:
    """A socket of the kernel, with the methods of a StreamEnd."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        sock.setblocking(False)

    @property
    def is_readable(self) -> bool:
        return bool(select.select([self.sock], [], [], 0)[0])

    @property
    def is_writable(self) -> bool:
        return bool(select.select([], [self.sock], [], 0)[1])

    def read(self, size_bytes: int) -> bytes:
        return self.sock.recv(size_bytes)

    def peek(self, size_bytes: int) -> bytes:
        return self.sock.recv(size_bytes, socket.MSG_PEEK)

    def write(self, data: bytes) -> int:
        return self.sock.send(data)

    def take_error(self) -> int:
        return self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)

    def close_write(self) -> None:
        self.sock.shutdown(socket.SHUT_WR)

    def close_read(self) -> None:
        self.sock.shutdown(socket.SHUT_RD)

    def close(self) -> None:
        self.sock.close()

    def abort(self) -> None:
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()


on_linux = pytest.mark.skipif(sys.platform != "linux", reason="kernels differ in their errors")


def kernel_pair() -> tuple[KernelEnd, KernelEnd]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        one = socket.create_connection(listening.getsockname())
        other, _ = listening.accept()
    for sock in (one, other):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return KernelEnd(one), KernelEnd(other)


@pytest.fixture(
    params=[
        pytest.param(kernel_pair, marks=on_linux, id="kernel"),
        pytest.param(stream_pair, id="memory"),
    ]
)
def ends(request: pytest.FixtureRequest) -> Iterator[tuple[Any, Any]]:
    one, other = request.param()
    yield one, other
    one.close()
    other.close()


def error_of(call: Callable[[], object]) -> int | None:
    try:
        call()
    except OSError as error:
        return error.errno
    return None


def test_ends__pass_bytes_and_say_when_they_are_ready(ends: tuple[Any, Any]) -> None:
    one, other = ends
    assert one.is_writable
    assert not other.is_readable
    assert error_of(lambda: other.read(1)) == errno.EAGAIN
    assert one.write(b"hello ") == 6
    one.write(memoryview(b"world"))
    assert other.is_readable
    assert other.peek(3) == b"hel"
    assert other.read(6) == b"hello "
    assert other.read(100) == b"world"
    assert not other.is_readable


def test_a_half_closed_connection__still_passes_bytes_the_other_way(ends: tuple[Any, Any]) -> None:
    one, other = ends
    one.write(b"question")
    one.close_write()
    assert error_of(lambda: one.write(b"more")) == errno.EPIPE
    assert one.is_writable
    assert other.read(100) == b"question"
    assert other.read(100) == other.read(100) == b""
    other.write(b"answer")
    assert one.read(100) == b"answer"
    other.close()
    assert one.read(100) == b""


def test_close__gives_the_other_end_everything_and_then_the_end(ends: tuple[Any, Any]) -> None:
    one, other = ends
    one.write(b"last words")
    one.close()
    assert other.read(4) == b"last"
    assert other.read(100) == b" words"
    assert other.read(100) == b""
    # What is written now is answered by a reset, which the next call gets to know.
    assert other.write(b"too late") == 8
    assert other.read(100) == b""
    assert error_of(lambda: other.write(b"!")) == errno.EPIPE


def test_close__with_unread_bytes_resets_the_connection(ends: tuple[Any, Any]) -> None:
    one, other = ends
    one.write(b"an answer")
    other.write(b"nobody reads this")
    one.close()
    assert other.is_readable
    assert other.is_writable
    assert other.read(100) == b"an answer"
    assert error_of(lambda: other.read(100)) == errno.ECONNRESET
    assert other.read(100) == b""
    assert error_of(lambda: other.write(b"!")) == errno.EPIPE


def test_a_reset__is_reported_once_by_the_first_call_that_looks(ends: tuple[Any, Any]) -> None:
    one, other = ends
    other.write(b"unread")
    one.close()
    assert error_of(lambda: other.write(b"!")) == errno.ECONNRESET
    assert error_of(lambda: other.write(b"!")) == errno.EPIPE
    assert other.read(1) == b""
    assert other.take_error() == 0


def test_a_reset_after_the_end__is_a_broken_pipe(ends: tuple[Any, Any]) -> None:
    one, other = ends
    one.close()
    other.write(b"answered by a reset")
    assert other.take_error() == errno.EPIPE


def test_a_writer_whose_peer_does_not_read__must_wait(ends: tuple[Any, Any]) -> None:
    one, other = ends
    written, is_full = 0, False
    while not is_full:
        try:
            written += one.write(bytes(64 << 10))
        except BlockingIOError:
            is_full = True
    assert not one.is_writable
    read = 0
    while read < written:
        read += len(other.read(64 << 10))
    assert one.is_writable
    assert one.write(b"more") == 4


def test_watchers__are_called_when_an_end_may_have_become_ready() -> None:
    one, other = stream_pair()
    seen: list[str] = []

    def look() -> None:
        seen.append("readable" if other.is_readable else "not readable")

    other.watchers[look] = None
    one.write(b"x")
    assert seen == ["readable"]
    del other.watchers[look]
    one.write(b"y")
    assert len(seen) == 1


def test_a_full_writer__is_called_when_a_third_is_free() -> None:
    one, other = stream_pair()
    assert one.write(bytes(CAPACITY_BYTES + 1)) == CAPACITY_BYTES
    calls: list[StreamEnd] = []
    one.watchers[lambda: calls.append(one)] = None
    other.read(CAPACITY_BYTES // 4)
    assert not calls
    assert not one.is_writable
    other.read(CAPACITY_BYTES // 4)
    assert calls == [one]
    assert one.is_writable


OPERATIONS: Final[dict[str, Callable[[Any], object]]] = {
    "write": lambda end: end.write(b"abc"),
    "write nothing": lambda end: end.write(b""),
    "read 2": lambda end: end.read(2),
    "read": lambda end: end.read(100),
    "peek": lambda end: end.peek(2),
    "take error": lambda end: end.take_error(),
    "close write": lambda end: end.close_write(),
    "close read": lambda end: end.close_read(),
    "close": lambda end: end.close(),
    "abort": lambda end: end.abort(),
}
LAST: Final = ("close", "abort")


def outcome(end: Any, operation: str) -> object:
    """What it returns, or its errno."""
    try:
        return OPERATIONS[operation](end)
    except OSError as error:
        return errno.errorcode[error.errno or 0]


def played(ends: tuple[Any, Any], rng: Random) -> list[object]:
    """Operations at random on both ends: what each returned, and which end was ready then."""
    seen: list[object] = []
    is_open = [True, True]
    for _ in range(14):
        at, operation = rng.randrange(2), rng.choice(list(OPERATIONS))
        if not is_open[at]:
            continue
        returned = outcome(ends[at], operation)
        is_open[at] = operation not in LAST
        ready = [
            (end.is_readable, end.is_writable)
            for end, is_there in zip(ends, is_open, strict=True)
            if is_there
        ]
        seen.append((at, operation, returned, ready))
    for end in ends:
        end.close()
    return seen


@on_linux
def test_ends__do_what_linux_does_whatever_is_done_to_them() -> None:
    for seed in range(300):
        assert played(stream_pair(), Random(seed)) == played(kernel_pair(), Random(seed)), seed
