"""The sockets of one world, by number and by port.

Owns: the sockets by descriptor, the listening ones by port.  Never: decides how a socket behaves
(sockets.py), or waits for one (selecting.py). Kafka: no counterpart; a process' table of files.

A descriptor is a number far above the process' own descriptors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from kcluster.drivers.memory.stream import StreamEnd

FIRST_DESCRIPTOR: Final = 1_000_000
FIRST_PORT: Final = 40_000


class Pollable(Protocol):
    """A socket, in the form that selectors use."""

    @property
    def is_readable(self) -> bool:
        """Whether recv or accept on the socket would return at once."""

    @property
    def is_writable(self) -> bool:
        """Whether `send` would return at once; for an attempt to connect: whether it has ended."""

    @property
    def app(self) -> str:
        """The program that made the socket, "" for a test."""

    def close_for_process(self) -> None:
        """Close the connection, as the system does when the socket's process has ended."""

    def watch(self, on_change: Callable[[], None]) -> None:
        """Call back whenever the socket may have become readable or writable."""

    def unwatch(self, on_change: Callable[[], None]) -> None:
        """End the callbacks."""


class Listening(Protocol):
    """A socket from which a server accepts connections."""

    def arrived(self, end: StreamEnd) -> None:
        """Take a client that has connected."""


class SocketTable:
    """The sockets of one world."""

    def __init__(self) -> None:
        self.by_descriptor: dict[int, Pollable] = {}
        self.listening: dict[int, Listening] = {}
        """The listening sockets by port."""
        self._descriptors = FIRST_DESCRIPTOR
        self._ports = FIRST_PORT

    def new_descriptor(self, sock: Pollable) -> int:
        """A free number for a socket."""
        self._descriptors += 1
        self.by_descriptor[self._descriptors] = sock
        return self._descriptors

    def close_all_of(self, app: str) -> None:
        """Close the sockets of a program that was killed."""
        for sock in tuple(self.by_descriptor.values()):
            if sock.app == app:
                sock.close_for_process()

    def new_port(self) -> int:
        """A free port for a socket that is not bound to one."""
        self._ports += 1
        return self._ports
