"""The active world of this process, and whether the calling thread is in it.

Owns: the one world of this process, if any, in the form that the replacements of the standard
library need.  Never: enters or leaves one (world.py). Kafka: no counterpart.
"""

from __future__ import annotations

import _thread
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from random import Random
from typing import Final, Protocol

from kcluster.drivers.memory.addresses import CLIENT_HOST
from kcluster.drivers.memory.stream import StreamEnd, stream_pair
from kcluster.world.errors import NotInVirtualTime, UnknownHost
from kcluster.world.exits import AtExits
from kcluster.world.scheduler import Scheduler, WorldClock, WorldThread
from kcluster.world.socket_table import SocketTable

_get_ident: Final = _thread.get_ident
_THIS_MACHINE: Final = frozenset(
    {"", "0.0.0.0", "127.0.0.1", "localhost", "::", "::1", CLIENT_HOST}
)


class WorldNetwork(WorldClock, Protocol):
    """A driver's network, the part of it that a world needs."""

    is_inhabited: bool
    """Whether threads live in the network's time, so that time passes only through them."""

    def connect(self, host: str, port: int, local: tuple[str, int]) -> StreamEnd:
        """Begin a connection from this address to a broker."""

    @property
    def hosts(self) -> dict[str, str]:
        """The brokers' addresses by name."""


class ActiveWorld:
    """A world, for its threads.  `entropy`: the source of the system's random numbers."""

    def __init__(self, network: WorldNetwork, scheduler: Scheduler, entropy: Random) -> None:
        self.scheduler = scheduler
        self.entropy = entropy
        self.sockets = SocketTable()
        self.at_exit = AtExits()
        self.refused: list[str] = []
        """Refused calls of functions that cannot work in virtual time, in their order."""
        self._network = network

    def kill(self, app: str) -> None:
        """End a program as SIGKILL does: the system closes its sockets, its threads end where they
        stand.  It may be called while the cluster runs."""
        self.at_exit.forget(app)
        self.sockets.close_all_of(app)
        self.scheduler.kill(app)

    def connect(self, host: str, port: int, local: tuple[str, int]) -> StreamEnd | None:
        """Return an end that is connected or being connected; None if no program on this machine
        listens at the address.  A local port without a listening program counts as a broker's,
        because many programs contain localhost:9092, and nothing outside of the world can be
        reached."""
        if host not in _THIS_MACHINE:
            return self._network.connect(host, port, local)
        listening = self.sockets.listening.get(port)
        if listening is None:
            brokers = next(iter(self._network.hosts), None)
            return None if brokers is None else self._network.connect(brokers, port, local)
        mine, theirs = stream_pair(local, (host, port))
        listening.arrived(theirs)
        return mine

    def resolve(self, host: str) -> str:
        """The address of a name; raises UnknownHost for hosts of the real world."""
        if host in _THIS_MACHINE:
            return host if host not in ("", "localhost") else "127.0.0.1"
        hosts = self._network.hosts
        if host in hosts:
            return hosts[host]
        if host in hosts.values():
            return host
        error = UnknownHost(host)
        if error.reason not in self.refused:
            self.refused.append(error.reason)
        raise error


_world: ActiveWorld | None = None
_threads: Mapping[int, WorldThread] = {}
"""The world's threads by their idents, which each lock and each reading of the clock looks up."""


def outside() -> AbstractContextManager[None]:
    """Take the calling thread out of the world for a while; for code that runs a program's threads,
    such as pytest."""
    return nullcontext() if _world is None else _world.scheduler.outside()


def thread_here() -> WorldThread | None:
    """The calling thread if it belongs to the world, None for all other threads."""
    return _threads.get(_get_ident())


def world_here() -> ActiveWorld | None:
    """The world that the calling thread belongs to, None for all other threads."""
    return None if _threads.get(_get_ident()) is None else _world


def scheduler_here() -> Scheduler | None:
    """The scheduler of the calling thread's world."""
    thread = _threads.get(_get_ident())
    return None if thread is None else thread.scheduler


def scheduler_of_process() -> Scheduler | None:
    """The scheduler of the world of this process, from any thread."""
    return None if _world is None else _world.scheduler


def app_here() -> str:
    """The program that the calling thread belongs to, "" for none."""
    thread = thread_here()
    return "" if thread is None else thread.app


def is_dying() -> bool:
    """Whether the calling thread belongs to a program that was killed, or to a world that is over:
    it only unwinds, and has no effect outside of itself."""
    thread = thread_here()
    return thread is not None and thread.is_ended_by_force


def refused(reason: str) -> NotInVirtualTime:
    """The error for a call that cannot work in virtual time; the world remembers it."""
    if _world is not None and reason not in _world.refused:
        _world.refused.append(reason)
    return NotInVirtualTime(reason)


def set_world(world: ActiveWorld | None) -> None:
    """Make this the world of the process."""
    global _world, _threads
    assert world is None or _world is None, "there is one world at a time in a process"
    _world = world
    _threads = {} if world is None else world.scheduler.by_ident
