"""The part of a lesson that the page shows beside the cluster, its answers and its votes.

Owns: LessonCard, the newest card of a cluster, all cards of the class so far, the answers that the
page gives in place of the terminal.  Never: knows a lesson (learn/), counts a vote (voting.py),
draws (page/lesson.js).
Kafka: no counterpart.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from enum import StrEnum

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from kcluster.json_types import JsonObject


class Awaited(StrEnum):
    """What a lesson waits for."""

    NOTHING = ""
    ANSWER = "answer"
    GO_ON = "go_on"


class VotePlace(Struct, frozen=True):
    """The page on which phones vote.  `path`: the dark modules of its QR code as the path of an
    SVG, `size` modules wide."""

    url: str
    path: str
    size: int


class LessonCard(Struct, frozen=True):
    """One part of a lesson.  `text`, `because`, `after`: Markdown in paragraphs, in which the page
    knows `code` and *emphasis*. `right`: the place of the right choice, from 0; None before it is
    shown.  `from_s`, `until_s`: the seconds of the scenario at which the part begins and ends.
    `awaits`: what the lesson waits for; `given`: the class's answer.  `voters`: how many have
    voted; `votes`: their counts by choice, once the answer is shown."""

    lesson: str
    part: str
    text: str
    question: str = ""
    choices: tuple[str, ...] = ()
    right: int | None = None
    because: str = ""
    after: str = ""
    from_s: float = 0
    until_s: float = 0
    awaits: Awaited = Awaited.NOTHING
    given: int | None = None
    voters: int = 0
    votes: tuple[int, ...] = ()
    vote_at: VotePlace | None = None


class LessonCards:
    """The cards of a cluster's lesson, for all its watchers.  To be used from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0
        self._card: LessonCard | None = None
        self._newest = b""
        self._shown: list[tuple[int, LessonCard]] = []
        self.on_answer: Callable[[int | None], None] | None = None
        """Called with the answer that the page gives, from 0; None: go on without one."""

    def show(self, card: LessonCard, at_ms: int | None = None) -> None:
        """Show this card in place of the previous one.  `at_ms`: the moment on the cluster's clock
        from which a replay of the class shows it; None: instead of the previous one there too."""
        with self._lock:
            self._set(card)
            if at_ms is not None:
                self._shown.append((at_ms, card))

    def change(self, **changes: object) -> None:
        """Change fields of the newest card, if there is one."""
        with self._lock:
            if self._card is not None:
                self._set(replace(self._card, **changes))
                if self._shown:
                    self._shown[-1] = (self._shown[-1][0], self._card)

    def answer(self, choice: int | None) -> bool:
        """Answer in place of the terminal; None: go on without an answer.  Returns whether the
        lesson waits for that."""
        with self._lock:
            card, on_answer = self._card, self.on_answer
            if card is None or on_answer is None or card.awaits is Awaited.NOTHING:
                return False
            if choice is not None and not (
                card.awaits is Awaited.ANSWER and 0 <= choice < len(card.choices)
            ):
                return False
            self._set(replace(card, awaits=Awaited.NOTHING, given=choice))
        on_answer(choice)
        return True

    def newest(self) -> tuple[int, bytes]:
        """The number of cards so far, and the last one as JSON; empty if there was no card."""
        with self._lock:
            return self._count, self._newest

    def replayed(self) -> list[JsonObject]:
        """The cards of the class so far, each with the moment `at` from which it was shown; without
        the address of the vote, which is over."""
        with self._lock:
            shown = list(self._shown)
        return [
            {**msgspec.to_builtins(replace(card, vote_at=None, awaits=Awaited.NOTHING)), "at": at}
            for at, card in shown
        ]

    def _set(self, card: LessonCard) -> None:
        self._count += 1
        self._card = card
        self._newest = msgspec.json.encode(card)
