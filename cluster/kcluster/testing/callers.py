"""The lines of a test that called methods of its cluster.

Owns: `CallingLine`, wrapping the methods of a cluster's handle so that their calls are noted.
Never: changes the effect of a method.
Kafka: no counterpart.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import linecache
import os
import sys
import sysconfig
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import FrameType
from typing import Final, Protocol, TypeVar

from msgspec import Struct

from kcluster.evidence.recorder import Recorder
from kcluster.handle.network import NetworkFault
from kcluster.packaged import is_packaged

C = TypeVar("C", bound=type)

READS: Final = frozenset({
    "add_client", "after_failure", "at", "at_moment", "begin_test", "bootstrap_of", "brokers",
    "call", "check_manners", "check_steps", "choose", "client_config", "clock", "clock_ms", "close",
    "count_life", "draw", "draw_anew", "events", "find", "is_caller_dying", "is_settled", "leader",
    "logs", "manners", "mark", "moment", "network", "open", "partition", "pause_clock", "processed",
    "recorded_now", "recorded_since", "require", "result", "resume_clock", "rules", "run",
    "run_for", "run_info", "run_until", "run_until_condition", "run_until_idle", "save",
    "sequence_at", "set_speed", "start_recording", "status", "step", "story", "subscribe",
    "threads_left", "topics", "trace_hash", "trace_into", "trace_lines", "verdict", "wait_for",
    "wait_until", "wait_until_in_sync", "wait_until_settled", "wait_until_without", "when",
})  # fmt: skip
"""Methods without an effect on the cluster, whose calls are not noted."""


@functools.cache
def _libraries() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    return ("<", *dict.fromkeys(paths[name] + os.path.sep for name in names))


def is_library(path: str) -> bool:
    """Whether a file belongs to Python, to an installed package, or to kcluster, and so is not the
    user's."""
    return path.startswith(_libraries()) or is_packaged(path)


def place_of(file: str, line: int) -> str:
    """The place of a line: `tests/test_orders.py:12`; only the name for a file elsewhere."""
    shown = os.path.relpath(file)
    return f"{Path(file).name if shown.startswith(os.pardir) else shown}:{line}"


class CallingLine(Struct):
    """A line of a test that acted on its cluster.  `place`: `tests/test_orders.py:12`;
    `notes_before`: the number of earlier notes; `error`: the exception that ended it, if there was
    one."""

    at_ms: int
    notes_before: int
    place: str
    source: str
    error: str = ""


class NotesLines(Protocol):
    """A handle whose calls are noted."""

    calling_lines: list[CallingLine]
    threads_inside: set[int]
    """Threads that are inside a method of the handle; their nested calls are not noted."""

    @property
    def recorder(self) -> Recorder:
        """The recorder, which has the notes of the cluster."""

    def clock_ms(self) -> int:
        """The cluster's time."""


def notes_its_callers(handle: C) -> C:
    """A class decorator: notes every call of a public method that acts on the cluster."""
    for name in dir(handle):
        method = getattr(handle, name)
        if not name.startswith("_") and name not in READS and inspect.isfunction(method):
            setattr(handle, name, _noted(method))
    return handle


def _noted(method: Callable[..., object]) -> Callable[..., object]:
    @functools.wraps(method)
    def noted(self: NotesLines, *arguments: object, **keys: object) -> object:
        thread = threading.get_ident()
        if thread in self.threads_inside:
            return method(self, *arguments, **keys)
        with _Noting(self, method):
            self.threads_inside.add(thread)
            try:
                result = method(self, *arguments, **keys)
            finally:
                self.threads_inside.discard(thread)
        if isinstance(result, NetworkFault):
            return NetworkFault(_noting_undo(self, result))
        return _noting_undo(self, result) if inspect.isfunction(result) else result

    return noted


def _noting_undo(handle: NotesLines, undo: Callable[[], None]) -> Callable[[], None]:
    def noted() -> None:
        with _Noting(handle, undo):
            undo()

    return noted


class _Noting:
    """Notes a call, and the exception by which it ends."""

    def __init__(self, handle: NotesLines, function: Callable[..., object]) -> None:
        self._line = _note(handle, function)

    def __enter__(self) -> None:
        """Begin the call, which `__init__` has noted."""

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if error is not None and self._line is not None:
            self._line.error = traceback.format_exception_only(error)[-1].strip()


def _note(handle: NotesLines, function: Callable[..., object]) -> CallingLine | None:
    place = None
    for frame in frames_of(sys._getframe(1)):
        if str(frame.f_globals.get("__name__")).startswith("_pytest."):
            return None  # the caller is a fixture of ours
        if not is_library(frame.f_code.co_filename):
            place = frame.f_code.co_filename, frame.f_lineno
            break
    place = place or awaiting_line(handle, function.__name__)
    if place is None:
        where = f"thread {threading.current_thread().name}"
        source = f"{function.__name__}()"
    else:
        file, line = place
        where = place_of(file, line)
        source = linecache.getline(file, line).strip()
    noted = CallingLine(handle.clock_ms(), len(handle.recorder.notes), where, source)
    handle.calling_lines.append(noted)
    return noted


def awaiting_line(handle: object, name: str) -> tuple[str, int] | None:
    """The file and the line of the test's coroutine that awaits this method of the handle in
    `asyncio.to_thread`, in whose thread it has no frame."""
    for outermost in sys._current_frames().values():
        stack = list(frames_of(outermost))
        for at, frame in enumerate(stack):
            if _is_to_thread(frame, handle, name):  # the frame runs, and starts the other thread
                return _first_own_line(stack[at:])
            loop = frame.f_locals.get("self") if frame.f_code.co_name == "run_forever" else None
            if isinstance(loop, asyncio.AbstractEventLoop):
                for task in asyncio.all_tasks(loop):
                    awaiting = list(frames_awaiting(task.get_coro()))
                    if awaiting and _is_to_thread(awaiting[-1], handle, name):
                        return _first_own_line(reversed(awaiting))
    return None


def _is_to_thread(frame: FrameType, handle: object, name: str) -> bool:
    if frame.f_code is not asyncio.to_thread.__code__:
        return False
    function = frame.f_locals.get("func")
    is_ours = getattr(function, "__self__", None) is handle
    return is_ours and getattr(function, "__name__", "") == name


def _first_own_line(frames: Iterable[FrameType]) -> tuple[str, int] | None:
    own = (frame for frame in frames if not is_library(frame.f_code.co_filename))
    return next(((frame.f_code.co_filename, frame.f_lineno) for frame in own), None)


def frames_of(frame: FrameType | None) -> Iterator[FrameType]:
    """A frame and its callers."""
    while frame is not None:
        yield frame
        frame = frame.f_back


def frames_awaiting(coroutine: object) -> Iterator[FrameType]:
    """The frames of a waiting coroutine, and of the coroutines that it awaits, down to the last."""
    while inspect.iscoroutine(coroutine) and coroutine.cr_frame is not None:
        yield coroutine.cr_frame
        coroutine = coroutine.cr_await
