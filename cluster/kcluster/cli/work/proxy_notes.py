"""The events of a running proxy, in order, for its printer, its record and its door.

Owns: their numbers and times, who waits for the next.  Never: words an event (events/words/).
Kafka: no counterpart.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import gevent.event

from kcluster.config.files.durations import milliseconds
from kcluster.config.files.numbers import whole_number
from kcluster.contract import Event, Note
from kcluster.proxy.run_files import PROXY_NODE

_SINCE = "a time back (10s), an event's number (17), or now"


class ProxyNotes:
    """`sinks`: called with each event in the proxy's thread."""

    def __init__(self, *sinks: Callable[[Note], None]) -> None:
        self.notes: list[Note] = []
        self.began_ms = self.now_ms()
        self._sinks = sinks
        self._news = gevent.event.Event()

    @staticmethod
    def now_ms() -> int:
        """The time in ms since 1970."""
        return time.time_ns() // 1_000_000

    def add(self, event: Event) -> None:
        """Record an event."""
        note = Note((PROXY_NODE, len(self.notes) + 1), self.now_ms(), event)
        self.notes.append(note)
        for sink in self._sinks:
            sink(note)
        self._news.set()
        self._news.clear()

    def wait(self) -> None:
        """Wait for the next event, in a greenlet of the proxy's hub."""
        self._news.wait()

    def after(self, since: str) -> int:
        """The number of events that `since` leaves out: a number, a time back, or `now`; ValueError
        for anything else."""
        if not since:
            return 0
        if since == "now":
            return len(self.notes)
        number = whole_number(since)
        if number is not None:
            return number
        from_ms = self.now_ms() - milliseconds(since, _SINCE)
        return sum(note.at_ms < from_ms for note in self.notes)
