"""Calls that cannot work in virtual time, refused in one line before anything hangs.

Owns: the refused functions of the standard library, with the reasons.  Never: refuses clients of
libraries (libraries.py), sockets (sockets.py refuses UDP, selecting.py files and pipes). Kafka: no
counterpart.

A refusal is not an OSError, after which a library would try again for ever.  The world remembers
it, in case the program swallows it.
"""

from __future__ import annotations

import os
import select
import signal
import sys
from collections.abc import Callable
from contextlib import ExitStack
from types import ModuleType
from typing import Final, NamedTuple

from kcluster.world.active import refused, world_here
from kcluster.world.callers import is_tool
from kcluster.world.holders import Replacement
from kcluster.world.replacing import set_attribute

_PROCESS: Final = "a process has a clock and sockets of its own: {} cannot be used in virtual time"
_SIGNAL: Final = "signals come in real time: {} cannot be used in virtual time"
_DESCRIPTORS: Final = "{} knows real descriptors only: use selectors or select.select"


class RefusedMethod(NamedTuple):
    """A method of a class of the standard library."""

    module: str
    owner: str
    name: str
    reason: str


_FUNCTIONS: Final = (
    (os, ("fork", "forkpty", "system", "posix_spawn", "posix_spawnp"), _PROCESS),
    (signal, ("alarm", "setitimer", "pause", "sigwait", "sigwaitinfo", "sigtimedwait"), _SIGNAL),
    (select, ("epoll", "kqueue", "devpoll"), _DESCRIPTORS),
)
METHODS: Final = (
    RefusedMethod("subprocess", "Popen", "__init__", _PROCESS.format("subprocess")),
    RefusedMethod(
        "multiprocessing.process", "BaseProcess", "start", _PROCESS.format("multiprocessing")
    ),
    RefusedMethod(
        "concurrent.futures.process", "ProcessPoolExecutor", "__init__",
        _PROCESS.format("ProcessPoolExecutor"),
    ),
)  # fmt: skip
MODULES: Final = tuple(dict.fromkeys(each.module for each in METHODS))


def _refusing(real: Callable[..., object], reason: str) -> Callable[..., object]:
    def refuse(*arguments: object, **keywords: object) -> object:
        if world_here() is None or is_tool(sys._getframe(1)):
            return real(*arguments, **keywords)
        raise refused(reason)

    refuse.__name__ = real.__name__
    return refuse


PAIRS: Final = tuple(
    Replacement(real, _refusing(real, reason.format(f"{module.__name__}.{name}")))
    for module, names, reason in _FUNCTIONS
    for name in names
    if (real := getattr(module, name, None)) is not None
)


def refuse_methods(module: ModuleType, undo: ExitStack) -> None:
    """Refuse the methods of a module that has been imported."""
    for each in METHODS:
        if each.module == module.__name__:
            owner = getattr(module, each.owner)
            set_attribute(undo, owner, each.name, _refusing(vars(owner)[each.name], each.reason))
