"""Random interleavings: the places at which a thread of users' own code may be interrupted.

Owns: these places, which are the beginnings of lines, and their independence of the process, such
as its imported modules and logging's caches.  Never: decides whether to interrupt (scheduler.py
does), interrupts libraries at lines: they are interrupted at locks, clocks and sockets only.
Kafka: no counterpart.

The interpreter lets another thread run at calls and at the ends of loops, so a line is roughly a
unit that is not interrupted.  From Python 3.12 on this needs sys.monitoring, whose events other
tools may use too.  In 3.11 it is sys.settrace: with a debugger or coverage there are no
interruptions at lines.

With a second tool, the interpreter reports more: a line at several of its instructions, functions
of a single line.  So a line counts once until another line or a jump back follows, and the first
line of a function's definition never counts.

At the end of a with statement its line is reported once more.  That does not count: an exception
there, such as that of a program's death, would leave the statement without its `__exit__`.
"""

from __future__ import annotations

import dis
import functools
import logging
import os
import sys
import sysconfig
import threading
from collections.abc import Callable
from contextlib import ExitStack
from types import CodeType, FrameType
from typing import Any, Final

from kcluster.packaged import is_packaged
from kcluster.world.replacing import set_attribute
from kcluster.world.scheduler import Scheduler, WorldThread

_LIBRARIES: Final = tuple(
    dict.fromkeys(
        sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib")
    )
)
_INSTALLED: Final = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
_TOOLS: Final = (4, 3, 5, 2, 1, 0)
"""Free tool ids of sys.monitoring; 4 has no usual owner."""


def interrupt_lines(scheduler: Scheduler, undo: ExitStack) -> None:
    """Let threads of the world be interrupted at each line of users' code, until `undo` ends."""
    _forget_levels()
    _leave_imports_whole(scheduler, undo)

    def interrupt(frame: FrameType) -> None:
        thread = scheduler.thread_here()
        if thread is not None and _is_new_line(thread, frame):
            line = ""
            if scheduler.line_watches or scheduler.stalls:
                line = f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"
            if scheduler.line_watches:
                scheduler.at_line(line)
            scheduler.may_switch()
            if scheduler.stalls:
                scheduler.may_stall(line)

    if sys.version_info >= (3, 12):
        _monitor(interrupt, undo)
    elif sys.gettrace() is None:
        _trace(scheduler, interrupt, undo)


def _forget_levels() -> None:
    """Empty the caches of loggers.  A logger takes a lock to find its level and remembers it; after
    another world in this process, it would take no lock."""
    clear: Callable[[], None] | None = getattr(logging.Logger.manager, "_clear_cache", None)
    if clear is not None:
        clear()


def _leave_imports_whole(scheduler: Scheduler, undo: ExitStack) -> None:
    """Never interrupt a thread that loads a module: another test of this process may have loaded it
    before."""
    manager: Any = vars(sys.modules["_frozen_importlib"])["_ModuleLockManager"]
    enter, leave = manager.__enter__, manager.__exit__

    def begin(lock: Any) -> object:
        entered = enter(lock)
        thread = scheduler.thread_here()
        if thread is not None:
            thread.loading += 1
        return entered

    def end(lock: object, *error: object) -> object:
        try:
            return leave(lock, *error)
        finally:
            thread = scheduler.thread_here()
            if thread is not None:
                thread.loading = max(0, thread.loading - 1)

    set_attribute(undo, manager, "__enter__", begin)
    set_attribute(undo, manager, "__exit__", end)


def _is_new_line(thread: WorldThread, frame: FrameType) -> bool:
    """Whether a line counts; within one call, a later instruction of the previous line does not."""
    line = frame.f_lineno
    if line == frame.f_code.co_firstlineno or frame.f_lasti in _ends_of_with(frame.f_code):
        return False
    last, here = thread.line, (id(frame), line, frame.f_lasti)
    thread.line = here
    return here[:2] != last[:2] or here[2] <= last[2]


@functools.cache
def _ends_of_with(code: CodeType) -> frozenset[int]:
    """The first instructions of the places at which with statements are left without an error:
    `__exit__(None, None, None)` is called there."""
    instructions = list(dis.get_instructions(code))
    is_none = [x.opname == "LOAD_CONST" and x.argval is None for x in instructions]
    at = {x.offset: number for number, x in enumerate(instructions)}
    found = []
    for begin, _, _ in code.co_lines():
        first = at.get(begin, len(instructions))
        if first < len(instructions):
            after_value = first + (instructions[first].opname == "SWAP")  # of a return statement
            if is_none[after_value : after_value + 3] == [True] * 3:
                found.append(begin)
    return frozenset(found)


def is_users_code(file: str) -> bool:
    """Whether a file is users' code: neither of the standard library, nor installed, nor part of
    kcluster."""
    return not (
        is_packaged(file)
        or file.startswith(("<", *_LIBRARIES))
        or any(part in file for part in _INSTALLED)
    )


class _Files:
    """The decision which files are users' code, remembered by name."""

    def __init__(self) -> None:
        self._known: dict[str, bool] = {}

    def is_users(self, code: CodeType) -> bool:
        file = code.co_filename
        known = self._known.get(file)
        if known is None:
            known = self._known[file] = is_users_code(file)
        return known


def _monitor(interrupt: Callable[[FrameType], None], undo: ExitStack) -> None:
    monitoring: Any = vars(sys)["monitoring"]  # type checkers of 3.11 do not know it
    tool = next((tool for tool in _TOOLS if monitoring.get_tool(tool) is None), None)
    if tool is None:
        return
    files, line = _Files(), monitoring.events.LINE

    def on_line(code: CodeType, number: int) -> object:
        if not files.is_users(code):
            return monitoring.DISABLE
        interrupt(sys._getframe(1))
        return None

    monitoring.use_tool_id(tool, "kcluster")
    undo.callback(monitoring.free_tool_id, tool)
    monitoring.register_callback(tool, line, on_line)
    undo.callback(monitoring.register_callback, tool, line, None)
    monitoring.set_events(tool, line)
    undo.callback(monitoring.set_events, tool, 0)


def _trace(scheduler: Scheduler, interrupt: Callable[[FrameType], None], undo: ExitStack) -> None:
    files, advance = _Files(), scheduler.advance

    def on_call(frame: FrameType, event: str, argument: object) -> Any:
        return on_line if files.is_users(frame.f_code) else None

    def on_line(frame: FrameType, event: str, argument: object) -> object:
        if event == "line":
            interrupt(frame)
        return on_line

    def advance_untraced(limit_us: int, condition: Callable[[], bool]) -> bool:
        # The cluster has no lines of users' code, and tracing doubles its time.
        if sys.gettrace() is not on_call:
            return advance(limit_us, condition)
        sys.settrace(None)
        try:
            return advance(limit_us, condition)
        finally:
            sys.settrace(on_call)

    set_attribute(undo, scheduler, "advance", advance_untraced)
    undo.callback(threading.settrace, threading.gettrace())
    threading.settrace(on_call)
    undo.callback(sys.settrace, None)
    sys.settrace(on_call)
