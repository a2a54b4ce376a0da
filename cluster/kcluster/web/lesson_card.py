"""The part of a lesson that the page shows beside the cluster.

Owns: LessonCard, and the newest one of a cluster.  Never: knows a lesson (learn/), draws
(page/lesson.js).
Kafka: no counterpart.
"""

from __future__ import annotations

import threading

import msgspec
from msgspec import Struct


class LessonCard(Struct, frozen=True):
    """One part of a lesson.  `text`, `because`, `after`: Markdown in paragraphs, in which the page
    knows `code` and *emphasis*. `right`: the place of the right choice, from 0; None before it is
    shown."""

    lesson: str
    part: str
    text: str
    question: str = ""
    choices: tuple[str, ...] = ()
    right: int | None = None
    because: str = ""
    after: str = ""


class LessonCards:
    """The newest card of a cluster, for all its watchers."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0
        self._newest = b""

    def show(self, card: LessonCard) -> None:
        """Show this card in place of the previous one."""
        with self._lock:
            self._count += 1
            self._newest = msgspec.json.encode(card)

    def newest(self) -> tuple[int, bytes]:
        """The number of cards so far, and the last one as JSON; empty if there was no card."""
        with self._lock:
            return self._count, self._newest
