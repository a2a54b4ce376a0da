"""Waiting for several sockets of a world: selectors, and select.

Owns: the selector.  Never: decides when a socket is ready (sockets.py). Kafka: no counterpart;
epoll.
"""

from __future__ import annotations

import math
import selectors
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeVar

from kcluster.world.active import refused, scheduler_here, world_here
from kcluster.world.callers import ASYNCIO
from kcluster.world.scheduler import WorldThread
from kcluster.world.socket_table import Pollable
from kcluster.world.sockets import WorldSocket
from kcluster.world.waits import WaitFor, Waiting

if TYPE_CHECKING:
    from _typeshed import FileDescriptorLike

F = TypeVar("F", bound="FileDescriptorLike")

_READ: Final = selectors.EVENT_READ
_WRITE: Final = selectors.EVENT_WRITE
POLLIN: Final = 1
POLLPRI: Final = 2
POLLOUT: Final = 4
"""The flags of select.poll, on every system."""
SHORT_S: Final = 0.001
"""The longest timeout of a spinning thread."""
_FOR_SOCKETS: Final = Waiting(WaitFor.SOCKETS)


class WorldSelector(selectors.BaseSelector):
    """Replaces selectors.DefaultSelector for a thread of a world."""

    def __init__(self) -> None:
        self._keys: dict[int, selectors.SelectorKey] = {}
        """The registered keys by descriptor, in the order of results."""
        self._sockets: dict[int, Pollable] = {}
        self._waiting: WorldThread | None = None
        """The thread that waits in `select`."""
        self._map: _KeysByFile | None = _KeysByFile(self, self._keys)

    def register(
        self, fileobj: FileDescriptorLike, events: int, data: object = None
    ) -> selectors.SelectorKey:
        """Register a file, as the standard library's selectors do."""
        if not events or events & ~(_READ | _WRITE):
            raise ValueError(f"Invalid events: {events!r}")
        number, sock = _socket_of(fileobj)
        if number in self._keys:
            raise KeyError(f"{fileobj!r} (FD {number}) is already registered")
        key = self._keys[number] = selectors.SelectorKey(fileobj, number, events, data)
        self._sockets[number] = sock
        sock.watch(self._changed)
        return key

    def unregister(self, fileobj: FileDescriptorLike) -> selectors.SelectorKey:
        """Unregister a file, as the standard library's selectors do."""
        key = self._keys.pop(self.number_of(fileobj))
        self._sockets.pop(key.fd).unwatch(self._changed)
        return key

    def modify(
        self, fileobj: FileDescriptorLike, events: int, data: object = None
    ) -> selectors.SelectorKey:
        """Change a key, as the standard library's selectors do; it keeps its place in the order of
        results."""
        key = self.get_key(fileobj)._replace(events=events, data=data)
        self._keys[key.fd] = key
        self._changed()
        return key

    def number_of(self, fileobj: FileDescriptorLike) -> int:
        """The descriptor under which a file is registered; KeyError if it is not."""
        number = fileobj if isinstance(fileobj, int) else fileobj.fileno()
        if number in self._keys:
            return int(number)
        for key in self._keys.values():  # its socket was closed since
            if key.fileobj is fileobj:
                return key.fd
        raise KeyError(f"{fileobj!r} is not registered")

    def get_map(self) -> Mapping[FileDescriptorLike, selectors.SelectorKey]:
        """The registered keys, as the standard library's selectors return them."""
        return self._map  # type: ignore[return-value]  # None once it is closed, as there

    def _changed(self) -> None:
        if self._waiting is not None:
            self._waiting.scheduler.wake(self._waiting)

    def _ready(self) -> list[tuple[selectors.SelectorKey, int]]:
        ready = []
        for number, key in self._keys.items():
            sock = self._sockets[number]
            events = key.events & (
                (_READ if sock.is_readable else 0) | (_WRITE if sock.is_writable else 0)
            )
            if events:
                ready.append((key, events))
        return ready

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait for ready files; timeouts are rounded up to milliseconds, as by epoll."""
        scheduler = scheduler_here()
        if scheduler is None:
            raise refused("a thread of no world uses a selector of one")
        ready = self._ready()
        if ready:
            scheduler.may_switch()
            return ready
        looks_in_vain = not ASYNCIO.is_at(sys._getframe(1))
        if timeout is not None and timeout <= 0:
            if looks_in_vain:
                scheduler.polled()
            scheduler.let_others_run()
            return self._ready()
        deadline_us = None
        if timeout is not None:
            deadline_us = scheduler.deadline_us(math.ceil(timeout * 1e3) * 1e-3)
        self._waiting = scheduler.thread_here()
        try:
            while not ready:
                if deadline_us is not None and scheduler.now_us >= deadline_us:
                    break
                scheduler.park(deadline_us, _FOR_SOCKETS)
                ready = self._ready()
        finally:
            self._waiting = None
        if not ready and looks_in_vain and timeout is not None and timeout <= SHORT_S:
            scheduler.polled()
        return ready

    def close(self) -> None:
        """Close the selector, as the standard library's selectors do."""
        for sock in self._sockets.values():
            sock.unwatch(self._changed)
        self._sockets.clear()
        self._keys.clear()
        self._map = None


class WorldPoll:
    """Replaces select.poll for a thread of a world."""

    def __init__(self) -> None:
        self._selector = WorldSelector()

    def register(self, fd: FileDescriptorLike, eventmask: int = POLLIN | POLLPRI | POLLOUT) -> None:
        """Register a file, as select.poll does."""
        with suppress(KeyError):
            self._selector.unregister(fd)
        events = (_READ if eventmask & POLLIN else 0) | (_WRITE if eventmask & POLLOUT else 0)
        self._selector.register(fd, events)

    modify = register

    def unregister(self, fd: FileDescriptorLike) -> None:
        """Unregister a file, as select.poll does."""
        self._selector.unregister(fd)

    def poll(self, timeout_ms: float | None = None) -> list[tuple[int, int]]:
        """Wait for ready files, as select.poll does.  An end or an error is reported as POLLIN."""
        timeout_s = None if timeout_ms is None or timeout_ms < 0 else timeout_ms / 1000
        return [
            (key.fd, (POLLIN if events & _READ else 0) | (POLLOUT if events & _WRITE else 0))
            for key, events in self._selector.select(timeout_s)
        ]


class _KeysByFile(Mapping["FileDescriptorLike", selectors.SelectorKey]):
    """The keys of a selector, by file object or descriptor."""

    def __init__(self, selector: WorldSelector, keys: dict[int, selectors.SelectorKey]) -> None:
        self._selector = selector
        self._keys = keys

    def __len__(self) -> int:
        return len(self._keys)

    def __getitem__(self, fileobj: FileDescriptorLike) -> selectors.SelectorKey:
        return self._keys[self._selector.number_of(fileobj)]

    def __iter__(self) -> Iterator[int]:
        return iter(self._keys)


def _socket_of(fileobj: FileDescriptorLike) -> tuple[int, Pollable]:
    """A socket and its descriptor; ValueError if it is closed."""
    number = fileobj if isinstance(fileobj, int) else fileobj.fileno()
    world = world_here()
    sock = None if world is None else world.sockets.by_descriptor.get(number)
    if sock is not None:
        return number, sock
    if number < 0 or isinstance(fileobj, WorldSocket):
        raise ValueError(f"Invalid file descriptor: {number}")
    raise refused(
        f"{fileobj!r} is a file, a pipe or a real socket: in virtual time, only sockets that were"
        " made in it can be waited for"
    )


def select(
    readers: Collection[F], writers: Collection[F], others: object, timeout: float | None = None
) -> tuple[list[F], list[F], list[F]]:
    """Replaces select.select."""
    wanted: dict[F, int] = {}
    for event, objects in ((_READ, readers), (_WRITE, writers)):
        for each in objects:
            wanted[each] = wanted.get(each, 0) | event
    with WorldSelector() as selector:
        for each, events in wanted.items():
            selector.register(each, events)
        ready = {key.fileobj: events for key, events in selector.select(timeout)}
    return (
        [x for x in readers if ready.get(x, 0) & _READ],
        [x for x in writers if ready.get(x, 0) & _WRITE],
        [],
    )
