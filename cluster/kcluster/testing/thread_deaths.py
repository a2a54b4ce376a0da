"""Threads of a test that an exception ended, for its report.

Owns: `ThreadDeath`, noting them.  Never: hides a death from other observers (pytest warns of it).
Kafka: no counterpart; in Java, Thread.UncaughtExceptionHandler.
"""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct

from kcluster.testing.callers import is_library, place_of


class ThreadDeath(Struct, frozen=True):
    """A thread that an exception ended.  `error`: the exception in a line; `place`: the last line
    of the test's own code that the exception passed, "" if there is none."""

    at_ms: int
    thread: str
    error: str
    place: str


class ThreadDeaths:
    """The threads that an exception ended while this was attached, in order.  `clock_ms`: the
    cluster's time."""

    def __init__(self, clock_ms: Callable[[], int]) -> None:
        self.found: list[ThreadDeath] = []
        self._clock_ms = clock_ms
        self._others = threading.excepthook
        self._is_attached = False

    def attach(self) -> None:
        """Start to note deaths."""
        self._is_attached = True
        self._others = threading.excepthook
        threading.excepthook = self._on_death

    def detach(self) -> None:
        """Stop noting.  If another observer was attached meanwhile, it passes deaths on through
        this one."""
        self._is_attached = False
        if threading.excepthook == self._on_death:
            threading.excepthook = self._others

    def _on_death(self, ended: threading.ExceptHookArgs) -> None:
        error = ended.exc_value
        if self._is_attached and error is not None and not isinstance(error, SystemExit):
            self.note("" if ended.thread is None else ended.thread.name, error)
        self._others(ended)

    def note(self, thread: str, error: BaseException) -> None:
        """Note the death of a thread by this exception."""
        text = traceback.format_exception_only(error)[-1].strip()
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if not is_library(frame.filename)]
        place = place_of(own[-1].filename, own[-1].lineno or 0) if own else ""
        self.found.append(ThreadDeath(self._clock_ms(), thread, text, place))


def death_lines(deaths: Iterable[ThreadDeath], began_ms: int) -> Iterator[str]:
    """The deaths, a line each: `thread billing ended with ValueError: no price at billing.py:32,
    +9104 ms`."""
    for death in deaths:
        if death.at_ms >= began_ms:
            where = f" at {death.place}" if death.place else ""
            when = f"{death.at_ms - began_ms:+} ms"
            yield f"thread {death.thread} ended with {death.error}{where}, {when}"
