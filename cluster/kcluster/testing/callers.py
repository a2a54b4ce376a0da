"""Which line of a test called which method of its cluster.

Owns: `CallingLine`, wrapping the methods of a cluster's handle so that their calls are noted.
Never: changes what a method does.
Kafka: no counterpart.
"""

from __future__ import annotations

import functools
import inspect
import linecache
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

from msgspec import Struct

from kcluster.evidence.recorder import Recorder
from kcluster.operations.network_verbs import NetworkFault
from kcluster.packaged import is_packaged

C = TypeVar("C", bound=type)

READS: Final = frozenset({
    "add_client", "after_failure", "at", "begin_test", "call", "check_steps", "choose", "clock",
    "clock_ms", "close", "draw", "events", "find", "is_settled", "leader", "logs", "mark", "moment",
    "network", "open", "pause_clock", "processed", "recorded_now", "recorded_since",
    "resume_clock", "rules", "run",
    "run_for", "run_info", "run_until", "run_until_condition", "run_until_idle", "save",
    "sequence_at", "set_speed", "start_recording", "status", "step", "story", "subscribe",
    "threads_left", "trace_hash", "trace_into", "trace_lines", "verdict", "wait_for",
    "wait_until_in_sync", "wait_until_settled", "wait_until_without",
})  # fmt: skip
"""Methods that do nothing to the cluster; their calls are not noted."""


class CallingLine(Struct, frozen=True):
    """A line of a test that did something to its cluster.  `place`: `tests/test_orders.py:12`;
    `notes_before`: how many notes there were."""

    at_ms: int
    notes_before: int
    place: str
    source: str


class NotesLines(Protocol):
    """A handle whose calls are noted."""

    calling_lines: list[CallingLine]
    threads_inside: set[int]
    """Threads that are in one of its methods, so that what that method calls is not noted again."""

    @property
    def recorder(self) -> Recorder:
        """Has the notes of the cluster."""

    def clock_ms(self) -> int:
        """The cluster's time."""


def notes_its_callers(handle: C) -> C:
    """A class decorator: every call of a public method that does something is noted."""
    for name in dir(handle):
        method = getattr(handle, name)
        if not name.startswith("_") and name not in READS and inspect.isfunction(method):
            setattr(handle, name, _noted(method))
    return handle


def _noted(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def noted(self: NotesLines, *arguments: Any, **keys: Any) -> Any:
        thread = threading.get_ident()
        if thread in self.threads_inside:
            return method(self, *arguments, **keys)
        _note(self)
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
        _note(handle)
        undo()

    return noted


def _note(handle: NotesLines) -> None:
    frame = sys._getframe(1)
    while frame.f_back is not None and is_packaged(frame.f_code.co_filename):
        frame = frame.f_back
    if str(frame.f_globals.get("__name__")).startswith("_pytest."):
        return  # a fixture of ours
    file, line = frame.f_code.co_filename, frame.f_lineno
    shown = os.path.relpath(file)
    handle.calling_lines.append(
        CallingLine(
            handle.clock_ms(),
            len(handle.recorder.notes),
            f"{Path(file).name if shown.startswith(os.pardir) else shown}:{line}",
            linecache.getline(file, line).strip(),
        )
    )
