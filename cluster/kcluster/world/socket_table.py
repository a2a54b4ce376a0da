"""The sockets of one world, by number and by port.

Owns: who has which descriptor, and who listens on which port.  Never: how a socket behaves
(sockets.py), who waits for it (selecting.py).
Kafka: no counterpart; a process' table of files.

A descriptor is a number far above those of the process.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from kcluster.drivers.memory.stream import StreamEnd

FIRST_DESCRIPTOR: Final = 1_000_000
FIRST_PORT: Final = 40_000


class Pollable(Protocol):
    """What a selector asks of a socket."""

    @property
    def is_readable(self) -> bool:
        """Whether recv, or accept, returns at once."""

    @property
    def is_writable(self) -> bool:
        """Whether send returns at once, or a connection is made or refused."""

    def watch(self, on_change: Callable[[], None]) -> None:
        """Call back whenever it may have become readable or writable."""

    def unwatch(self, on_change: Callable[[], None]) -> None:
        """End that."""


class Listening(Protocol):
    """A socket that servers accept from."""

    def arrived(self, end: StreamEnd) -> None:
        """A client has connected."""


class SocketTable:
    """The sockets of one world."""

    def __init__(self) -> None:
        self.by_descriptor: dict[int, Pollable] = {}
        self.listening: dict[int, Listening] = {}
        """By port."""
        self._descriptors = FIRST_DESCRIPTOR
        self._ports = FIRST_PORT

    def new_descriptor(self, sock: Pollable) -> int:
        """A number for a socket."""
        self._descriptors += 1
        self.by_descriptor[self._descriptors] = sock
        return self._descriptors

    def new_port(self) -> int:
        """A port for a socket that is not bound to one."""
        self._ports += 1
        return self._ports
