"""Sockets, selectors and the resolver of a world, in the place of the standard library's.

Owns: the replacements of socket, select and selectors.  Never: decides how a socket behaves
(sockets.py, selecting.py). Kafka: no counterpart.
"""

from __future__ import annotations

import select as real_select
import selectors
import socket
from contextlib import ExitStack
from typing import Any, Final

from kcluster.drivers.memory.addresses import CLIENT_HOST
from kcluster.world import selecting, sockets
from kcluster.world.active import scheduler_here, world_here
from kcluster.world.holders import Replacement
from kcluster.world.replacing import set_attribute
from kcluster.world.sockets import RealSocket, WorldSocket

_select: Final = real_select.select
_poll: Final = real_select.poll
_socketpair: Final = socket.socketpair
_getaddrinfo: Final = socket.getaddrinfo
_gethostname: Final = socket.gethostname
_new_socket: Final = RealSocket.__new__
_SELECTORS: Final = tuple(
    getattr(selectors, name)
    for name in ("SelectSelector", "PollSelector", "EpollSelector", "DevpollSelector",
                 "KqueueSelector")
    if hasattr(selectors, name)
)  # fmt: skip


def select(readers: Any, writers: Any, others: Any, timeout: float | None = None) -> Any:
    """Replaces select.select."""
    if scheduler_here() is None:
        return _select(readers, writers, others, timeout)
    return selecting.select(readers, writers, others, timeout)


def poll(*ignored: object) -> Any:
    """Replaces select.poll.  Code that holds it as an attribute of a class calls it with `self`."""
    return _poll() if scheduler_here() is None else selecting.WorldPoll()


def socketpair(*arguments: Any, **keywords: Any) -> Any:
    """Replaces socket.socketpair."""
    if scheduler_here() is None:
        return _socketpair(*arguments, **keywords)
    return sockets.socketpair(*arguments)


def getaddrinfo(
    host: str | bytes | None,
    port: str | int | None,
    family: int = 0,
    type: int = 0,
    proto: int = 0,
    flags: int = 0,
) -> Any:
    """Replaces socket.getaddrinfo; resolves brokers by name, and this machine."""
    world = world_here()
    if world is None:
        return _getaddrinfo(host, port, family, type, proto, flags)
    if isinstance(host, bytes):
        host = host.decode()
    address = world.resolve(host or "127.0.0.1")
    found = (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (address, int(port or 0)))
    return [found] if family in (0, socket.AF_INET) else []


def gethostname() -> str:
    """Replaces socket.gethostname; returns one name on all machines."""
    return _gethostname() if scheduler_here() is None else CLIENT_HOST


PAIRS: Final = (
    Replacement(_select, select),
    Replacement(_poll, poll),
    Replacement(_socketpair, socketpair),
    Replacement(_getaddrinfo, getaddrinfo),
    Replacement(_gethostname, gethostname),
)


def _socket(cls: Any, *arguments: object, **keywords: object) -> object:
    """Replaces socket.socket.__new__; makes a subclass for the world's threads."""
    if scheduler_here() is None or cls is not RealSocket:
        return _new_socket(cls, *arguments, **keywords)
    return WorldSocket.__new__(WorldSocket)


def _selector(cls: Any, *arguments: object, **keywords: object) -> object:
    return object.__new__(cls) if scheduler_here() is None else selecting.WorldSelector()


def replace_classes(undo: ExitStack) -> None:
    """Replace classes that many modules hold by name, so that they make the world's objects."""
    set_attribute(undo, RealSocket, "__new__", _socket)
    for selector in _SELECTORS:
        set_attribute(undo, selector, "__new__", _selector)
