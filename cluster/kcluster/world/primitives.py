"""Locks of a world: what threading, queue and concurrent.futures are built from.

Owns: the lock and the reentrant lock.  Never: the things built on them: the standard library's own
Condition, Event, Semaphore, Barrier and Queue are used as they are.
Kafka: no counterpart; pthread_mutex.

A lock outlives its world, as an object: free ones can be taken by anybody; one that is held then
stays held.
"""

from __future__ import annotations

import _thread
from collections import deque
from types import TracebackType
from typing import Any, Final

from kcluster.world.active import scheduler_here
from kcluster.world.errors import NotInVirtualTime
from kcluster.world.scheduler import Scheduler, WorldThread
from kcluster.world.waits import WaitFor, Waiting

_get_ident: Final = _thread.get_ident
_FOR_LOCK: Final = Waiting(WaitFor.LOCK)


class WorldLock:
    """threading.Lock.  Those who wait get it in the order in which they came."""

    __slots__ = ("__weakref__", "_is_locked", "_waiting")

    def __init__(self) -> None:
        self._is_locked = False
        self._waiting: deque[WorldThread] = deque()

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """As threading.Lock.acquire."""
        _check_timeout(blocking, timeout)
        scheduler = scheduler_here()
        if scheduler is not None and blocking:
            scheduler.may_switch()
        if not self._is_locked:
            self._is_locked = True
            return True
        if not blocking or timeout == 0:
            return False
        return self._wait(_inside(scheduler), timeout)

    def _wait(self, scheduler: Scheduler, timeout: float) -> bool:
        task = scheduler.current
        assert task is not None, "the caller is a thread of the world"
        self._waiting.append(task)
        deadline_us = scheduler.deadline_us(timeout) if timeout > 0 else None
        is_mine = False
        try:
            is_mine = scheduler.park(deadline_us, _FOR_LOCK)
        finally:
            if not is_mine and task in self._waiting:
                self._waiting.remove(task)
        return is_mine

    def release(self) -> None:
        """As threading.Lock.release."""
        if not self._is_locked:
            raise RuntimeError("release unlocked lock")
        while self._waiting:
            task = self._waiting.popleft()
            scheduler = _scheduler_of(task)
            if scheduler is not None:
                scheduler.wake(task)  # it holds the lock from now on
                return
        self._is_locked = False

    def locked(self) -> bool:
        """As threading.Lock.locked."""
        return self._is_locked

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()

    def _at_fork_reinit(self) -> None:
        self._is_locked = False
        self._waiting.clear()

    acquire_lock, release_lock, locked_lock = acquire, release, locked


class WorldRLock:
    """threading.RLock."""

    __slots__ = ("__weakref__", "_count", "_lock", "_owner")

    def __init__(self) -> None:
        self._lock = WorldLock()
        self._owner = 0
        self._count = 0

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """As threading.RLock.acquire."""
        me = _get_ident()
        if self._owner == me:
            self._count += 1
            return True
        if not self._lock.acquire(blocking, timeout):
            return False
        self._owner, self._count = me, 1
        return True

    def release(self) -> None:
        """As threading.RLock.release."""
        if self._owner != _get_ident():
            raise RuntimeError("cannot release un-acquired lock")
        self._count -= 1
        if not self._count:
            self._owner = 0
            self._lock.release()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()

    # What threading.Condition asks of a lock.

    def _is_owned(self) -> bool:
        return self._owner == _get_ident()

    def _release_save(self) -> tuple[int, int]:
        state = (self._count, self._owner)
        self._count = self._owner = 0
        self._lock.release()
        return state

    def _acquire_restore(self, state: tuple[int, int]) -> None:
        self._lock.acquire()
        self._count, self._owner = state

    def _recursion_count(self) -> int:
        return self._count if self._is_owned() else 0

    def locked(self) -> bool:
        """As threading.RLock.locked, of 3.14."""
        return self._lock.locked()

    def _at_fork_reinit(self) -> None:
        self._lock._at_fork_reinit()
        self._count = self._owner = 0


def _check_timeout(blocking: bool, timeout: Any) -> None:
    if not blocking and timeout != -1:
        raise ValueError("can't specify a timeout for a non-blocking call")
    if timeout < 0 and timeout != -1:
        raise ValueError("timeout value must be a non-negative number")


def _inside(scheduler: Scheduler | None) -> Scheduler:
    if scheduler is None:
        raise NotInVirtualTime("a thread of no world waits for a lock of one, or of one that ended")
    return scheduler


def _scheduler_of(task: WorldThread) -> Scheduler | None:
    """The scheduler that can wake a task that waits."""
    return task.scheduler if task.is_parked and not task.is_done else None
