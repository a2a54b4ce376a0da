"""Random interleavings: where a thread of users' own code may be interrupted.

Owns: that this can be at the beginning of each line of theirs.  Never: draws whether it is
(scheduler.py does), interrupts a library: there it can be at locks, clocks and sockets only.
Kafka: no counterpart.

The interpreter lets another thread run at calls and at the ends of loops, so a line is about what
it leaves whole.  From Python 3.12 on this needs sys.monitoring, whose events other tools may use
too.  In 3.11 it is sys.settrace: with a debugger or coverage there are no interruptions at lines.
"""

from __future__ import annotations

import os
import sys
import sysconfig
import threading
from collections.abc import Callable
from contextlib import ExitStack
from types import CodeType, FrameType
from typing import Any, Final

from kcluster.packaged import is_packaged
from kcluster.world.scheduler import Scheduler

_LIBRARIES: Final = tuple(
    dict.fromkeys(
        sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib")
    )
)
_INSTALLED: Final = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
_TOOLS: Final = (4, 3, 5, 2, 1, 0)
"""Ids of tools of sys.monitoring; 4 has no usual owner."""


def interrupt_lines(scheduler: Scheduler, undo: ExitStack) -> None:
    """From now on threads of the world may be interrupted at each line of users' code; `undo` ends
    that."""

    def interrupt() -> None:
        if scheduler.thread_here() is not None:
            scheduler.may_switch()

    if sys.version_info >= (3, 12):
        _monitor(interrupt, undo)
    elif sys.gettrace() is None:
        _trace(interrupt, undo)


def is_users_code(file: str) -> bool:
    """Whether a file is neither of the standard library, nor installed, nor ours."""
    return not (
        is_packaged(file)
        or file.startswith(("<", *_LIBRARIES))
        or any(part in file for part in _INSTALLED)
    )


class _Files:
    """Which files are of users."""

    def __init__(self) -> None:
        self._known: dict[str, bool] = {}

    def is_users(self, code: CodeType) -> bool:
        file = code.co_filename
        known = self._known.get(file)
        if known is None:
            known = self._known[file] = is_users_code(file)
        return known


def _monitor(interrupt: Callable[[], None], undo: ExitStack) -> None:
    monitoring: Any = vars(sys)["monitoring"]  # unknown to type checkers of 3.11
    tool = next((tool for tool in _TOOLS if monitoring.get_tool(tool) is None), None)
    if tool is None:
        return
    files, line = _Files(), monitoring.events.LINE

    def on_line(code: CodeType, number: int) -> object:
        if not files.is_users(code):
            return monitoring.DISABLE
        interrupt()
        return None

    monitoring.use_tool_id(tool, "kcluster")
    undo.callback(monitoring.free_tool_id, tool)
    monitoring.register_callback(tool, line, on_line)
    undo.callback(monitoring.register_callback, tool, line, None)
    monitoring.set_events(tool, line)
    undo.callback(monitoring.set_events, tool, 0)


def _trace(interrupt: Callable[[], None], undo: ExitStack) -> None:
    files = _Files()

    def on_call(frame: FrameType, event: str, argument: Any) -> Any:
        return on_line if files.is_users(frame.f_code) else None

    def on_line(frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line":
            interrupt()
        return on_line

    undo.callback(threading.settrace, threading.gettrace())
    threading.settrace(on_call)
    undo.callback(sys.settrace, None)
    sys.settrace(on_call)
