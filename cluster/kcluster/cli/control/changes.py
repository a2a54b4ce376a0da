"""A change of the running cluster, with each line that follows from it shown when it happens.

Owns: carrying out an operation while its events are passed on; the lines of a change.  Never: knows
a verb, talks over a socket (server.py does), words an event (events/render.py).  Kafka: none.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any, Final, TypeVar

from kcluster.contract import Note
from kcluster.events.render import ECHOES, fold, folded_line
from kcluster.handle.cluster import Cluster
from kcluster.operations.errors import ClusterError

GATHER_S: Final = 0.02
"""Events within this time of each other are shown together, with equal lines folded."""

MAX_AT_ONCE: Final = 500
"""As many are taken before `is_full` is asked again."""

T = TypeVar("T")

Say = Callable[[str], None]
"""Shows one line, at once."""


class LiveChange:
    """Carries out one operation.  `lines` and `notes`: all that was shown and noted meanwhile."""

    def __init__(self, cluster: Cluster, origin_ms: int, show: Say) -> None:
        self.lines: list[str] = []
        self.notes: list[Note] = []
        self._cluster = cluster
        self._origin_ms = origin_ms
        self._show = show
        self._inbox: SimpleQueue[Note | str | None] = SimpleQueue()
        self._error: ClusterError | None = None
        self._is_done = False

    def carry_out(self, operation: Callable[[Say], object]) -> None:
        """Call `operation(say)` in a thread of its own, and show what happens until it returns.
        Raises its ClusterError."""
        end = self._cluster.subscribe(lambda entry: self._inbox.put(entry.note))
        try:
            # A daemon: a cluster that stops does not wait for an operation that still does.
            threading.Thread(
                target=self._run, args=(operation,), name="operation", daemon=True
            ).start()
            while self._show_some():
                pass
        finally:
            end()
        if self._error is not None:
            raise self._error
        assert self._is_done, "the operation failed on a bug; its traceback is on stderr"

    def say(self, line: str) -> None:
        """Show a line."""
        self.lines.append(line)
        self._show(line)

    def _run(self, operation: Callable[[Say], object]) -> None:
        try:
            operation(self._inbox.put)
            self._is_done = True
        except ClusterError as error:
            self._error = error
        finally:
            self._inbox.put(None)

    def _show_some(self) -> bool:
        """Show what has happened since the last call; returns whether the operation goes on."""
        items = gather(self._inbox, lambda items: items[-1] is None)
        notes: list[Note] = []
        for item in items:
            if isinstance(item, Note):
                notes.append(item)
            else:
                self._show_notes(notes)
                if item is not None:
                    self.say(item)
        self._show_notes(notes)
        return items[-1] is not None

    def _show_notes(self, notes: list[Note]) -> None:
        self.notes += notes
        for entry in fold([note for note in notes if not isinstance(note.event, ECHOES)]):
            self.say(folded_line(entry, self._origin_ms))
        notes.clear()


def gather(inbox: SimpleQueue[T], is_full: Callable[[list[T]], bool]) -> list[T]:
    """Wait for the next item, then for those that come within GATHER_S, until `is_full(items)`.
    There is one reader of `inbox`."""
    items = [inbox.get()]
    deadline = time.monotonic() + GATHER_S
    while not is_full(items) and (left_s := deadline - time.monotonic()) > 0:
        try:
            items.append(inbox.get(timeout=left_s))
        except Empty:
            break
        # Those that came with it.
        items += [inbox.get_nowait() for _ in range(min(inbox.qsize(), MAX_AT_ONCE))]
    return items


def no_line(line: str) -> Any:
    """Shows nothing: the lines are in the answer."""
