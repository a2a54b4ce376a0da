"""Answers to the exercises of the course: for each a right one and wrong ones.

Owns: the answers, as replacements in the file that students begin with.  Never: ships in the wheel.
"""

from __future__ import annotations

from typing import NamedTuple

Edit = tuple[str, str]


class Answer(NamedTuple):
    """`edits`: (text, replacement).  `missed`: the goals that it misses, by their checks."""

    exercise: str
    what: str
    edits: tuple[Edit, ...]
    missed: tuple[str, ...] = ()


RIGHT = (
    Answer("leader", "broker 4 instead of the slow one", (("[[1, 2, 3]]", "[[1, 2, 4]]"),)),
)  # fmt: skip
WRONG = (
    Answer("leader", "as it was", (), ("writes_resume",)),
    Answer(
        "leader", "two replicas are too few", (("[[1, 2, 3]]", "[[1, 2]]"),), ("writes_resume",)
    ),
)
