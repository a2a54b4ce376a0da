"""Notices a thread that keeps the baton: it blocks in C, or computes for ever.

Owns: the limits in real time, and the end of the run beyond them.  Never: virtual time; the
scheduler notices a world in which all threads wait (a deadlock, the limit). Kafka: no counterpart.

The watchdog is a real thread.  It ends the run by an exception in the world's first thread if that
is the main thread of the process, where a signal interrupts most blocking calls; otherwise it
reports the thread.
"""

from __future__ import annotations

import _thread
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from types import FrameType
from typing import Final

from kcluster.world.errors import StandStill
from kcluster.world.scheduler import Scheduler
from kcluster.world.waits import place_of

PATIENCE_S: Final = 20.0
"""The real time for which a thread may block without using the processor."""
COMPUTING_S: Final = 60.0
"""The CPU time for which a thread may compute without reading a clock, taking a lock or using a
socket."""
TICK_S: Final = 0.5
LEAST_CPU_S: Final = 0.01
DEBUGGERS: Final = frozenset({"pdb", "bdb", "cmd", "code", "IPython", "ipdb", "pydevd", "debugpy"})
"""Modules in which a thread waits for its user."""

_acquire: Final = _thread.LockType.acquire
_release: Final = _thread.LockType.release
_start_new_thread: Final = _thread.start_new_thread
_monotonic: Final = time.monotonic
_clock_gettime: Final = time.clock_gettime
_SIGNAL: Final = signal.SIGVTALRM


class Watchdog:
    """Watches the threads of one world from `start` to the end of `undo`."""

    def __init__(self, scheduler: Scheduler, patience_s: float = PATIENCE_S) -> None:
        self._scheduler = scheduler
        self._patience_s = patience_s
        self._stop = _thread.allocate_lock()
        self._error: StandStill | None = None
        self._main_ident = 0
        """The ident of the first thread, if that is the main thread of the process."""

    def start(self, undo: ExitStack) -> None:
        """Begin to watch.  Called by the world's first thread."""
        _acquire(self._stop)
        try:
            old = signal.signal(_SIGNAL, self._raise)
        except ValueError:
            pass  # this is not the main thread
        else:
            self._main_ident = _thread.get_ident()
            undo.callback(signal.signal, _SIGNAL, old)
        undo.callback(_release, self._stop)
        _start_new_thread(self._watch, ())

    def _raise(self, number: int, frame: FrameType | None) -> None:
        error, self._error = self._error, None
        if error is not None:
            self._scheduler.go_on_without_current()
            raise error

    def _watch(self) -> None:
        seen: tuple[int, ...] = ()
        since_s = cpu_s = 0.0
        while not _acquire(self._stop, True, TICK_S):
            progress = self._scheduler.progress
            if progress != seen:
                seen, since_s, cpu_s = progress, _monotonic(), self._cpu_s()
                continue
            quiet_s, used_s = _monotonic() - since_s, self._cpu_s() - cpu_s
            is_computing = used_s > LEAST_CPU_S
            if used_s < COMPUTING_S if is_computing else quiet_s < self._patience_s:
                continue
            if not self._is_debugged():
                self._end(used_s if is_computing else quiet_s, is_computing)
            seen = ()

    def _cpu_s(self) -> float:
        """The CPU time that the thread with the baton has used."""
        thread = self._scheduler.current
        if thread is None or not hasattr(time, "pthread_getcpuclockid"):
            return 0.0
        try:
            return _clock_gettime(time.pthread_getcpuclockid(thread.ident))
        except OSError:
            return 0.0  # the thread has just ended

    def _frames(self) -> Iterator[FrameType]:
        thread = self._scheduler.current
        frame = None if thread is None else sys._current_frames().get(thread.ident)
        while frame is not None:
            yield frame
            frame = frame.f_back

    def _is_debugged(self) -> bool:
        modules = (str(frame.f_globals.get("__name__")) for frame in self._frames())
        return any(module.partition(".")[0] in DEBUGGERS for module in modules)

    def _end(self, for_s: float, is_computing: bool) -> None:
        thread = self._scheduler.current
        if thread is None:
            return
        place = place_of(next(self._frames(), None))
        error = StandStill(thread.name, place, for_s, is_computing)
        if self._main_ident:
            self._error = error
            signal.pthread_kill(self._main_ident, _SIGNAL)
        else:
            print(error, file=sys.__stderr__, flush=True)
