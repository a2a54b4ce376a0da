"""The threads that wait for each lock or queue of a world.

Owns: the lines of waiting threads, and the reservations of locks.  Never: knows whether a lock is
free (the lock itself does), chooses who runs (scheduler.py), acquires (replaced/locks.py). Kafka:
no counterpart; futexes.

A released lock is reserved for the first thread in its line, so no thread overtakes another.
"""

from __future__ import annotations

import _thread
from collections import deque
from collections.abc import Callable
from typing import Final, Generic, TypeVar, final

LONGEST_REAL_WAIT_S: Final = 0.2
"""The limit of a real wait for a lock that a thread outside of the world may hold."""

LOCKS: Final = (_thread.LockType, _thread.RLock)
_acquire: Final[dict[type, Callable[..., bool]]] = {kind: kind.acquire for kind in LOCKS}
_release: Final[dict[type, Callable[..., None]]] = {kind: kind.release for kind in LOCKS}

T = TypeVar("T")


@final
class WaitingLines(Generic[T]):
    """The threads that wait, by the lock or queue that they wait for."""

    __slots__ = ("by_others", "freed", "reserved", "waiting")

    def __init__(self) -> None:
        self.waiting: dict[object, deque[T]] = {}
        """The lines, by lock or queue."""
        self.reserved: dict[object, T] = {}
        """Released locks, each with the thread whose turn it is."""
        self.by_others: dict[object, None] = {}
        """Locks that threads outside of the world hold, or are about to acquire."""
        self.freed: deque[object] = deque()
        """Locks that threads outside of the world released while the world's threads were
        waiting."""

    def join(self, thing: object, thread: T) -> None:
        """Put a thread at the end of a line."""
        self.waiting.setdefault(thing, deque()).append(thread)

    def leave(self, thing: object, thread: T) -> None:
        """Take a thread out of a line, if it is in one."""
        waiting = self.waiting.get(thing)
        if waiting is not None and thread in waiting:
            waiting.remove(thread)
            if not waiting:
                del self.waiting[thing]

    def first(self, thing: object) -> T | None:
        """Take the first thread out of a line."""
        waiting = self.waiting.get(thing)
        if waiting is None:
            return None
        thread = waiting.popleft()
        if not waiting:
            del self.waiting[thing]
        return thread

    def released_by_others(self, lock: object) -> None:
        """Note that a thread outside of the world released a lock."""
        self.by_others.pop(lock, None)
        if lock in self.waiting:
            self.freed.append(lock)

    def find_freed(self) -> None:
        """Look for locks that threads outside of the world held before it began; the world waits
        for them in real time.  Called when no thread of the world can go on."""
        for lock in tuple(self.waiting):
            if isinstance(lock, LOCKS) and _acquire[type(lock)](lock, True, LONGEST_REAL_WAIT_S):
                _release[type(lock)](lock)
                self.freed.append(lock)
