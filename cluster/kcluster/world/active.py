"""The world that is there now, for whoever asks from which thread.

Owns: the one world of this process, if any.  Never: makes one (world.py does).
Kafka: no counterpart.
"""

from __future__ import annotations

import _thread
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kcluster.world.scheduler import Scheduler
    from kcluster.world.world import World

_get_ident: Final = _thread.get_ident
_world: World | None = None


def world_here() -> World | None:
    """The world that the calling thread belongs to, None for all other threads."""
    world = _world
    return world if world is not None and world.scheduler.task_here() is not None else None


def scheduler_here() -> Scheduler | None:
    """The scheduler of that world."""
    world = _world
    if world is None or world.scheduler.task_here() is None:
        return None
    return world.scheduler


def app_here() -> str:
    """The program that the calling thread belongs to, "" for none."""
    scheduler = scheduler_here()
    task = None if scheduler is None else scheduler.task_here()
    return "" if task is None else task.app


def set_world(world: World | None) -> None:
    """From now on this is the world of the process."""
    global _world
    assert world is None or _world is None, "there is one world at a time in a process"
    _world = world
