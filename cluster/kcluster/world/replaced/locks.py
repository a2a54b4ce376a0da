"""Locks and simple queues of the interpreter, for which a world's threads wait in virtual time.

Owns: acquire and release for a thread of a world.  Never: the classes built on locks: Condition,
Event, Semaphore, Barrier, Queue and pools are the standard library's own. Kafka: no counterpart;
pthread_mutex.

The methods are replaced in the types, so they are replaced in every lock, including locks that
modules made at their import and locks that outlive a world.  A method that was bound to its lock
before the world is not replaced (`Condition.acquire` of an older condition).
"""

from __future__ import annotations

import _thread
import queue
import sys
from collections.abc import Callable
from contextlib import ExitStack
from types import FrameType
from typing import Any, Final

from kcluster.world.active import scheduler_here, scheduler_of_process, thread_here
from kcluster.world.callers import CONDITION_WAIT, IMPORT_SYSTEM, IS_OWNED, THREAD_POOL, is_tool
from kcluster.world.lines import LONGEST_REAL_WAIT_S
from kcluster.world.replacing import set_in_builtin_type
from kcluster.world.scheduler import WorldThread
from kcluster.world.waits import WaitFor, Waiting

_RLOCK: Final[Any] = _thread.RLock
_FOR_LOCK: Final = Waiting(WaitFor.LOCK)
_FOR_QUEUE: Final = Waiting(WaitFor.QUEUE)

_release_save: Final = _RLOCK._release_save
_acquire_restore: Final = _RLOCK._acquire_restore
_is_owned: Final = _RLOCK._is_owned
_get: Final[Any] = queue.SimpleQueue.get
_put: Final[Any] = queue.SimpleQueue.put

Acquire = Callable[..., bool]


def replace_locks(undo: ExitStack) -> None:
    """Replace the methods of locks and simple queues."""
    lock: Any = _thread.LockType
    acquire, release = _acquire_of(lock), _release_of(lock, _is_never)
    names = {"acquire": acquire, "release": release, "__exit__": release}
    names |= {"__enter__": acquire, "acquire_lock": acquire, "release_lock": release}
    _put_in(undo, lock, names)

    acquire, release = _acquire_of(_RLOCK), _release_of(_RLOCK, _is_owned)
    names = {"acquire": acquire, "release": release, "__exit__": release}
    names |= {"__enter__": acquire, "_release_save": _release_save_here}
    names["_acquire_restore"] = _acquire_restore_by(acquire)
    _put_in(undo, _RLOCK, names)

    _put_in(undo, queue.SimpleQueue, {
        "get": get, "put": put, "get_nowait": get_nowait, "put_nowait": put_nowait,
    })  # fmt: skip


def _put_in(undo: ExitStack, owner: type, names: dict[str, Any]) -> None:
    for name, function in names.items():
        set_in_builtin_type(undo, owner, name, function)


def _acquire_of(kind: Any) -> Acquire:
    real = kind.acquire

    def acquire(lock: object, blocking: bool = True, timeout: float = -1) -> bool:
        thread = thread_here()
        if thread is None:
            return _by_others(real, lock, blocking, timeout)
        scheduler = thread.scheduler
        if timeout != -1:
            if not blocking or timeout < 0:
                return bool(real(lock, blocking, timeout))  # raises a ValueError
            blocking = timeout > 0
        if blocking and scheduler.is_random:
            caller = sys._getframe(1)
            if not (IMPORT_SYSTEM.is_at(caller) or is_tool(caller)):
                scheduler.may_switch()
        reserved = scheduler.lines.reserved
        if (not reserved or lock not in reserved) and real(lock, False):
            return True
        if not blocking:
            if _is_look(sys._getframe(1)):
                scheduler.polled()
            return False
        return _wait(real, lock, thread, timeout)

    return acquire


def _is_look(caller: FrameType) -> bool:
    """Whether code that did not get a lock only tests for a free lock, and may repeat the test."""
    if IS_OWNED.is_at(caller):
        return False
    if CONDITION_WAIT.is_at(caller) and caller.f_back is not None:  # called by Semaphore.acquire
        return not THREAD_POOL.is_at(caller.f_back.f_back)
    return True


def _wait(real: Acquire, lock: object, thread: WorldThread, timeout: float) -> bool:
    scheduler, lines = thread.scheduler, thread.scheduler.lines
    if lock in lines.by_others and real(lock, True, LONGEST_REAL_WAIT_S):
        return True
    deadline_us = scheduler.deadline_us(timeout) if timeout > 0 else None
    try:
        while True:
            lines.join(lock, thread)
            is_mine = scheduler.park(deadline_us, _FOR_LOCK)
            if lines.reserved.get(lock) is thread:
                del lines.reserved[lock]
                is_mine = True
            if is_mine and real(lock, False):
                return True
            if deadline_us is not None and scheduler.now_us >= deadline_us:
                return False
            lines.leave(lock, thread)
    finally:
        lines.leave(lock, thread)
        if lines.reserved.get(lock) is thread:
            del lines.reserved[lock]
            scheduler.pass_on(lock)


def _by_others(real: Acquire, lock: object, blocking: bool, timeout: float) -> bool:
    """Acquire a lock for a thread outside of the world; returns whether it was acquired."""
    scheduler = scheduler_of_process()
    if scheduler is None:
        return bool(real(lock, blocking, timeout))
    # The lock is noted before the thread holds it, because the thread may be interrupted at once.
    scheduler.lines.by_others[lock] = None
    is_mine = bool(real(lock, blocking, timeout))
    if not is_mine:
        scheduler.lines.by_others.pop(lock, None)
    return is_mine


def _is_never(lock: object) -> bool:
    return False


def _release_of(kind: Any, is_still_held: Callable[[object], bool]) -> Callable[..., None]:
    """The replacement of `release`, and of `__exit__`, which is called with an error's values."""
    real = kind.release

    def release(lock: object, *error: object) -> None:
        real(lock)
        scheduler = scheduler_of_process()
        if scheduler is None:
            return
        lines = scheduler.lines
        if not lines.by_others and lock not in lines.waiting:
            return  # usually, no thread waits
        if is_still_held(lock):
            return
        if scheduler.thread_here() is None:
            lines.released_by_others(lock)
        else:
            lines.by_others.pop(lock, None)
            scheduler.pass_on(lock)

    return release


def _release_save_here(lock: object) -> Any:
    state = _release_save(lock)
    scheduler = scheduler_here()
    if scheduler is not None:
        scheduler.pass_on(lock)
    return state


def _acquire_restore_by(acquire: Acquire) -> Callable[[object, object], None]:
    release = _RLOCK.release

    def restore(lock: object, state: object) -> None:
        if scheduler_here() is not None:
            acquire(lock)
            release(lock)
        _acquire_restore(lock, state)

    return restore


# ------------------------------------------------------------------------------------ queues


def get(items: object, block: bool = True, timeout: float | None = None) -> Any:
    """Replaces queue.SimpleQueue.get."""
    scheduler = scheduler_here()
    if scheduler is None:
        return _get(items, block, timeout)
    if timeout is not None and timeout < 0:
        raise ValueError("'timeout' must be a non-negative number")
    scheduler.may_switch()
    deadline_us = None if timeout is None else scheduler.deadline_us(timeout)
    thread = scheduler.here
    while True:
        try:
            return _get(items, False)
        except queue.Empty:
            caller: FrameType | None = sys._getframe(1)
            if caller is not None and caller.f_code is get_nowait.__code__:
                caller = caller.f_back
            if not block and not THREAD_POOL.is_at(caller):
                scheduler.polled()
            if not block or (deadline_us is not None and scheduler.now_us >= deadline_us):
                raise
        scheduler.lines.join(items, thread)
        try:
            scheduler.park(deadline_us, _FOR_QUEUE)
        finally:
            scheduler.lines.leave(items, thread)


def get_nowait(items: object) -> Any:
    """Replaces queue.SimpleQueue.get_nowait."""
    return get(items, False)


def put(items: object, item: object, block: bool = True, timeout: float | None = None) -> None:
    """Replaces queue.SimpleQueue.put."""
    _put(items, item)
    scheduler = scheduler_here()
    thread = None if scheduler is None else scheduler.lines.first(items)
    if scheduler is not None and thread is not None:
        scheduler.wake(thread)


def put_nowait(items: object, item: object) -> None:
    """Replaces queue.SimpleQueue.put_nowait."""
    put(items, item)
