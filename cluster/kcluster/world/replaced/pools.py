"""multiprocessing.pool.ThreadPool, whose threads wait for each other by a pipe.

Owns: a queue in the place of that pipe, for pools that are made in a world.  Never: pools of
processes: starting a process is refused (refusals.py).
Kafka: no counterpart.
"""

from __future__ import annotations

import queue
from contextlib import ExitStack
from types import ModuleType
from typing import Any

from kcluster.world.active import world_here
from kcluster.world.replacing import set_attribute


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
