"""Sockets in virtual time do what those of Linux do, whatever is done to them."""

from __future__ import annotations

import errno
import select
import socket
import struct
import sys
from collections.abc import Callable
from random import Random
from typing import Final

import pytest

from tests.world.rig import empty_world

pytestmark = [
    pytest.mark.pure_python,
    pytest.mark.skipif(sys.platform != "linux", reason="kernels differ in their errors"),
]

STORIES: Final = 200
NOBODY: Final = ("127.0.0.1", 1)
RESET: Final = struct.pack("ii", 1, 0)
OPERATIONS: Final[dict[str, Callable[[socket.socket], object]]] = {
    "send": lambda sock: sock.send(b"abc"),
    "sendall": lambda sock: sock.sendall(b"defg"),
    "sendmsg": lambda sock: sock.sendmsg([b"a", b"bc"]),
    "send nothing": lambda sock: sock.send(b""),
    "recv 2": lambda sock: sock.recv(2),
    "recv": lambda sock: sock.recv(100),
    "recv nothing": lambda sock: sock.recv(0),
    "recv_into": lambda sock: sock.recv_into(bytearray(4)),
    "peek": lambda sock: sock.recv(2, socket.MSG_PEEK),
    "error": lambda sock: sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR),
    "shut write": lambda sock: sock.shutdown(socket.SHUT_WR),
    "shut read": lambda sock: sock.shutdown(socket.SHUT_RD),
    "shut both": lambda sock: sock.shutdown(socket.SHUT_RDWR),
    "peer": lambda sock: sock.getpeername()[0],
    "name": lambda sock: sock.getsockname()[0],
    "connect again": lambda sock: errno.errorcode[sock.connect_ex(NOBODY)],
    "timeout": lambda sock: sock.gettimeout(),
    "close": lambda sock: sock.close(),
    "reset": lambda sock: reset(sock),
}


def reset(sock: socket.socket) -> tuple[None, None]:
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    sock.close()
    return None, None


def connected() -> list[socket.socket]:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(5)
        one = socket.socket()
        one.connect(listening.getsockname())
        other, _ = listening.accept()
    for sock in (one, other):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setblocking(False)
    return [one, other]


def outcome(sock: socket.socket, operation: str) -> object:
    try:
        return OPERATIONS[operation](sock)
    except OSError as error:
        return type(error).__name__, error.errno


def played(seed: int) -> list[object]:
    """Operations at random on both ends: what each returned, and what select says then."""
    rng, socks = Random(seed), connected()
    seen: list[object] = []
    for _ in range(12):
        at, operation = rng.randrange(2), rng.choice(list(OPERATIONS))
        returned = outcome(socks[at], operation)
        there = [sock for sock in socks if sock.fileno() >= 0]
        readable, writable, _ = select.select(there, there, [], 0) if there else ([], [], [])
        ready = [(sock in readable, sock in writable) for sock in there]
        seen.append((at, operation, returned, ready))
    for sock in socks:
        sock.close()
    return seen


def test_sockets__do_what_those_of_linux_do() -> None:
    real = [played(seed) for seed in range(STORIES)]
    with empty_world():
        ours = [played(seed) for seed in range(STORIES)]
    assert ours == real


def code(sock: socket.socket, address: tuple[str, int]) -> str | int:
    returned = sock.connect_ex(address)
    return errno.errorcode[returned] if returned else 0


def ready(sock: socket.socket) -> tuple[bool, bool]:
    """What select says."""
    readable, writable, _ = select.select([sock], [sock], [], 0.05)
    return bool(readable), bool(writable)


def polled(sock: socket.socket) -> int:
    """What poll says; it also reports POLLHUP, which a world does not."""
    polling = select.poll()
    polling.register(sock)
    return dict(polling.poll(0))[sock.fileno()]


def connecting() -> list[object]:
    """Attempts to connect without blocking, and what an unconnected socket does."""
    seen: list[object] = []
    with socket.socket() as listening, socket.socket() as sock, socket.socket() as hopeless:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        for inheritable in (False, True):
            listening.set_inheritable(inheritable)
            seen.append(listening.get_inheritable())
        for fresh in (sock, hopeless):
            fresh.setblocking(False)
            seen += [outcome(fresh, name) for name in ("send", "recv", "peer", "error")]
            seen.append(ready(fresh))
        address = listening.getsockname()
        seen += [code(sock, address), ready(sock), code(sock, address), code(sock, address)]
        seen += [code(hopeless, NOBODY), ready(hopeless), outcome(hopeless, "error")]
        seen += [outcome(hopeless, "error"), code(hopeless, address)]
        waiting = socket.create_connection(address)
        seen += [polled(sock), polled(listening), sock.send(b"x"), polled(waiting)]
        seen.append(ready(listening))
        listening.close()
        seen += [outcome(waiting, "recv"), outcome(waiting, "recv")]
        waiting.close()
        seen += [outcome(waiting, name) for name in ("recv", "timeout", "peer", "error")]
        seen.append(waiting.detach())
    return seen


def test_sockets__connect_as_those_of_linux_do() -> None:
    real = connecting()
    with empty_world():
        ours = connecting()
    assert ours == real
