"""Threads of a world: their start, their end, and joining them; multiprocessing.pool.ThreadPool,
whose threads wait for each other by a pipe.

Owns: the replacements of the functions with which threading starts threads, and of atexit; a queue
in the place of that pipe, for pools that are made in a world.  Never: locks (locks.py), decides the
order of threads (scheduler.py), pools of processes: starting a process is refused (refusals.py).
Kafka: no counterpart.
"""

from __future__ import annotations

import _thread
import atexit
import logging
import queue
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack
from types import ModuleType
from typing import Any, Final

from kcluster.world.active import app_here, is_dying, scheduler_here, world_here
from kcluster.world.errors import WorldEnded
from kcluster.world.exits import AtExit
from kcluster.world.holders import Replacement
from kcluster.world.replacing import set_attribute
from kcluster.world.scheduler import WorldThread

_allocate_lock: Final = _thread.allocate_lock
_start_new_thread: Final = _thread.start_new_thread
_register: Final = atexit.register
_unregister: Final = atexit.unregister


def start_new_thread(function: Callable[..., object], arguments: Any, keywords: Any = None) -> int:
    """Replaces _thread.start_new_thread."""
    scheduler = scheduler_here()
    if scheduler is None:
        return _start_new_thread(function, arguments, keywords or {})
    return scheduler.spawn(function, arguments, keywords or {}).ident


def register(function: Callable[..., object], /, *arguments: object, **keywords: object) -> Any:
    """Replaces atexit.register; the world makes the calls of its threads at its end."""
    world = world_here()
    if world is None:
        return _register(function, *arguments, **keywords)
    world.at_exit.register(AtExit(app_here(), function, arguments, keywords))
    return function


def unregister(function: Callable[..., object]) -> None:
    """Replaces atexit.unregister."""
    world = world_here()
    if world is not None:
        world.at_exit.unregister(function)
    _unregister(function)


PAIRS: Final = [
    Replacement(_start_new_thread, start_new_thread),
    Replacement(_register, register),
    Replacement(_unregister, unregister),
]

if sys.version_info < (3, 13):
    _set_sentinel: Final = vars(_thread)["_set_sentinel"]

    def set_sentinel() -> Any:
        """The lock that a thread holds until it has ended; Thread.join waits for it."""
        scheduler = scheduler_here()
        if scheduler is None:
            return _set_sentinel()
        lock = _allocate_lock()

        def release() -> None:
            if lock.locked():
                lock.release()

        scheduler.here.sentinel = release
        return lock

    PAIRS.append(Replacement(_set_sentinel, set_sentinel))
else:
    _start_joinable_thread: Final = _thread.start_joinable_thread
    _HANDLES: Final = ("_handle", "_os_thread_handle")
    """What a Thread calls it: in 3.13, and since 3.14."""

    class WorldThreadHandle:
        """The handle of a thread, for threading.Thread."""

        def __init__(self, thread: WorldThread) -> None:
            self.ident = thread.ident
            self._ended = _allocate_lock()
            self._ended.acquire(False)  # the thread must not run before its join can wait
            thread.sentinel = self._set_done

        def join(self, timeout: float | None = None) -> None:
            """Wait until the thread has ended, for `timeout` seconds at most."""
            if self._ended.acquire(True, -1 if timeout is None else max(timeout, 0)):
                self._ended.release()

        def is_done(self) -> bool:
            """Whether the thread has ended."""
            return not self._ended.locked()

        def _set_done(self) -> None:
            if self._ended.locked():
                self._ended.release()

    def start_joinable_thread(
        function: Callable[[], object], handle: object = None, daemon: bool = True
    ) -> Any:
        """Replaces _thread.start_joinable_thread."""
        scheduler = scheduler_here()
        if scheduler is None:
            return _start_joinable_thread(function, handle=handle, daemon=daemon)
        twin = WorldThreadHandle(scheduler.spawn(function, (), {}))
        thread = getattr(function, "__self__", None)
        if handle is not None and isinstance(thread, threading.Thread):
            for name in _HANDLES:
                if name in vars(thread):
                    setattr(thread, name, twin)
        return twin

    PAIRS.append(Replacement(_start_joinable_thread, start_joinable_thread))


def report_no_forced_ends(undo: ExitStack) -> None:
    """Do not report threads that are ended by force as crashed, and drop what they log."""
    report, call_handlers = threading.excepthook, logging.Logger.callHandlers

    def excepthook(crash: Any, /) -> None:
        if not (issubclass(crash.exc_type, WorldEnded) or is_dying()):
            report(crash)

    def handle(logger: logging.Logger, record: logging.LogRecord) -> None:
        if not is_dying():
            call_handlers(logger, record)

    set_attribute(undo, threading, "excepthook", excepthook)
    set_attribute(undo, logging.Logger, "callHandlers", handle)


class _Changes(queue.SimpleQueue[None]):
    """The part of multiprocessing.SimpleQueue that a ThreadPool uses."""

    _reader = None
    """The object that the pool passes on to `_wait_for_updates`."""


class _Context:
    """The part of a multiprocessing context that a ThreadPool uses."""

    SimpleQueue = _Changes


def let_pools_wait(module: ModuleType, undo: ExitStack) -> None:
    """Let the threads of new ThreadPools wait in virtual time, until `undo` ends."""
    names: Any = module
    set_up, wait = names.ThreadPool._setup_queues, names.Pool._wait_for_updates

    def set_up_here(pool: Any) -> None:
        set_up(pool)
        if world_here() is not None:
            pool._ctx = _Context

    def wait_here(sentinels: object, changes: object, timeout: float | None = None) -> None:
        if not isinstance(changes, _Changes):
            wait(sentinels, changes, timeout)
            return
        changes.get()
        while not changes.empty():
            changes.get()

    set_attribute(undo, names.ThreadPool, "_setup_queues", set_up_here)
    set_attribute(undo, names.Pool, "_wait_for_updates", staticmethod(wait_here))
