"""Who waits for which lock, or queue, of a world.

Owns: the lines of waiting threads, and for whom a lock is reserved.  Never: whether a lock is free
(the lock itself knows), who runs (scheduler.py), what acquiring does (replaced/locks.py).
Kafka: no counterpart; futexes.

Whoever releases a lock reserves it for the first of those that wait, so nobody is overtaken.
"""

from __future__ import annotations

import _thread
from collections import deque
from typing import Any, Final, Generic, TypeVar, final

LONGEST_REAL_WAIT_S: Final = 0.2
"""For a lock that a thread of no world may hold."""

LOCKS: Final = (_thread.LockType, _thread.RLock)
_acquire: Final[dict[type, Any]] = {kind: kind.acquire for kind in LOCKS}
_release: Final[dict[type, Any]] = {kind: kind.release for kind in LOCKS}

T = TypeVar("T")


@final
class WaitingLines(Generic[T]):
    """Threads that wait, by what they wait for."""

    __slots__ = ("by_others", "freed", "reserved", "waiting")

    def __init__(self) -> None:
        self.waiting: dict[object, deque[T]] = {}
        """By what they wait for."""
        self.reserved: dict[object, T] = {}
        """Locks that were released, and the thread whose turn it is."""
        self.by_others: dict[object, None] = {}
        """Locks that threads of no world hold, or are about to."""
        self.freed: deque[object] = deque()
        """Those that such threads released, while threads of the world were waiting."""

    def join(self, thing: object, thread: T) -> None:
        """A thread waits for something."""
        self.waiting.setdefault(thing, deque()).append(thread)

    def leave(self, thing: object, thread: T) -> None:
        """It waits no longer, or never did."""
        waiting = self.waiting.get(thing)
        if waiting is not None and thread in waiting:
            waiting.remove(thread)
            if not waiting:
                del self.waiting[thing]

    def first(self, thing: object) -> T | None:
        """Take the first thread out of the line for something."""
        waiting = self.waiting.get(thing)
        if waiting is None:
            return None
        thread = waiting.popleft()
        if not waiting:
            del self.waiting[thing]
        return thread

    def released_by_others(self, lock: object) -> None:
        """A thread of no world released a lock."""
        self.by_others.pop(lock, None)
        if lock in self.waiting:
            self.freed.append(lock)

    def find_freed(self) -> None:
        """Look for locks that threads of no world held before the world began; they are waited for
        in real time.  Called when no thread of the world can go on."""
        for lock in tuple(self.waiting):
            if isinstance(lock, LOCKS) and _acquire[type(lock)](lock, True, LONGEST_REAL_WAIT_S):
                _release[type(lock)](lock)
                self.freed.append(lock)
