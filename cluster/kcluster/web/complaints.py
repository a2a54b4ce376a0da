"""The server's log lines about bad requests: few lines, and no control characters in them.

Owns: the limit of lines per time, their escaping.  Never: decides that a request is bad.
Kafka: no counterpart.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from kcluster.events.render import one_line

MAX_LINES: Final = 10
"""The most lines within one WINDOW_S; further ones are only counted."""
WINDOW_S: Final = 10.0
MAX_CHARS: Final = 300


class Complaints:
    """Lines about requests that cannot be served.  `write`: called with one line; `now_s`: a
    monotonic clock.  To be used from any thread."""

    def __init__(self, write: Callable[[str], object], now_s: Callable[[], float]) -> None:
        self._write = write
        self._now_s = now_s
        self._window_s = float("-inf")
        self._lines = 0
        self._lock = threading.Lock()

    def add(self, text: str) -> None:
        """Log a line, unless there were many within the last WINDOW_S."""
        with self._lock:
            now_s = self._now_s()
            if now_s >= self._window_s + WINDOW_S:
                hidden, self._window_s, self._lines = self._lines - MAX_LINES, now_s, 0
                if hidden > 0:
                    self._write(f"{hidden} more requests could not be served")
            self._lines += 1
            if self._lines <= MAX_LINES:
                self._write(one_line(text if len(text) <= MAX_CHARS else f"{text[:MAX_CHARS]}..."))
