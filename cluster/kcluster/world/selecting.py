"""Waiting for several sockets of a world: selectors, select and poll.

Owns: the selector.  Never: when a socket is ready (sockets.py).
Kafka: no counterpart; epoll.
"""

from __future__ import annotations

import math
import selectors
from collections.abc import Mapping
from typing import Any, Final

from kcluster.world.active import scheduler_here, world_here
from kcluster.world.sockets import WorldSocket
from kcluster.world.waits import Wait, WaitFor

_READ: Final = selectors.EVENT_READ
_WRITE: Final = selectors.EVENT_WRITE


class WorldSelector(selectors._BaseSelectorImpl):  # type: ignore[name-defined,misc]
    """selectors.DefaultSelector, for a thread of a world."""

    def __init__(self) -> None:
        super().__init__()
        self._waking: Any = None
        """Wakes the thread that is in `select`."""

    def register(self, fileobj: Any, events: int, data: Any = None) -> Any:
        """As in the standard library."""
        sock = _socket_of(fileobj)
        key = super().register(fileobj, events, data)
        sock.watch(self._changed)
        return key

    def unregister(self, fileobj: Any) -> Any:
        """As in the standard library."""
        key = super().unregister(fileobj)
        sock = _find(key.fileobj) or _find(key.fd)
        if sock is not None:
            sock.unwatch(self._changed)
        return key

    def modify(self, fileobj: Any, events: int, data: Any = None) -> Any:
        """As in the standard library; the key keeps its place in the order of answers."""
        key = self.get_key(fileobj)
        changed = key._replace(events=events, data=data)
        self._fd_to_key[key.fd] = changed
        self._changed()
        return changed

    def _changed(self) -> None:
        if self._waking is not None:
            self._waking.scheduler.wake(self._waking)

    def _ready(self) -> list[tuple[Any, int]]:
        ready = []
        for key in tuple(self._fd_to_key.values()):
            sock = _find(key.fd)
            if sock is None:
                continue  # closed without having been unregistered
            events = key.events & (
                (_READ if sock.is_readable else 0) | (_WRITE if sock.is_writable else 0)
            )
            if events:
                ready.append((key, events))
        return ready

    def select(self, timeout: float | None = None) -> list[tuple[Any, int]]:
        """As in the standard library: rounded up to milliseconds, as epoll waits."""
        scheduler = scheduler_here()
        assert scheduler is not None, "used by a thread of the world"
        cost_us = scheduler.cost.of_reading()
        if cost_us:
            scheduler.compute(cost_us)
        ready = self._ready()
        if ready:
            scheduler.may_switch()
            return ready
        if timeout is not None and timeout <= 0:
            scheduler.let_others_run()
            return self._ready()
        deadline_us = None
        if timeout is not None:
            deadline_us = scheduler.deadline_us(math.ceil(timeout * 1e3) * 1e-3)
        self._waking = scheduler.task_here()
        try:
            while not ready:
                if deadline_us is not None and scheduler.now_us >= deadline_us:
                    break
                scheduler.park(deadline_us, Wait(WaitFor.SOCKETS))
                ready = self._ready()
        finally:
            self._waking = None
        return ready

    def close(self) -> None:
        """As in the standard library."""
        mapping: Mapping[Any, Any] = self._fd_to_key
        for key in mapping.values():
            sock = _find(key.fd)
            if sock is not None:
                sock.unwatch(self._changed)
        super().close()


def _find(fileobj: Any) -> WorldSocket | None:
    if isinstance(fileobj, WorldSocket):
        return fileobj
    world = world_here()
    if world is None or not isinstance(fileobj, int):
        return None
    return world.sockets.by_descriptor.get(fileobj)


def _socket_of(fileobj: Any) -> WorldSocket:
    sock = _find(fileobj) or _find(getattr(fileobj, "_sock", None))
    if sock is None and hasattr(fileobj, "fileno"):
        sock = _find(fileobj.fileno())
    if sock is None:
        raise ValueError(f"{fileobj!r} is not a socket of this world")
    return sock


def select(
    readers: Any, writers: Any, others: Any, timeout: float | None = None
) -> tuple[list[Any], list[Any], list[Any]]:
    """select.select."""
    selector = WorldSelector()
    wanted: dict[Any, int] = {}
    for event, objects in ((_READ, readers), (_WRITE, writers)):
        for each in objects:
            wanted[each] = wanted.get(each, 0) | event
    for each, events in wanted.items():
        selector.register(each, events)
    ready = {key.fileobj: events for key, events in selector.select(timeout)}
    selector.close()
    return (
        [x for x in readers if ready.get(x, 0) & _READ],
        [x for x in writers if ready.get(x, 0) & _WRITE],
        [],
    )
