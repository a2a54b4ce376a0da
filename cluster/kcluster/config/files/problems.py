"""Problems in a user's file: the mistake, its place, and its correction.

Owns: Problem, Place, the errors that list problems, words shared by all messages.
Never: stops at the first problem.
Kafka: ConfigException, one at a time and without a place; here all of them at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final, Self

from msgspec import Struct

MAX_SHOWN: Final = 100
"""The number of problems that a TopologyError lists; further problems are only counted."""
_MAX_VALUE_CHARS: Final = 60
_PLAIN_KEY: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")


_OTHER_WORDS: Final = {
    "replicas": "replication_factor",
    "rf": "replication_factor",
    "bootstrap": "base_port",
    "ports": "base_port",
}
"""Words that users write for keys with quite another spelling."""


class Place(Struct, frozen=True):
    """A place in a file; lines and columns count from 1."""

    line: int
    column: int


class Problem(Struct, frozen=True):
    """One problem.  Lines and columns count from 1; 0: not about a place in a file."""

    source: str
    """The file's name, as the user wrote it; empty for a topology made in Python."""
    line: int
    column: int
    path: str
    """The path of the value, such as `brokers[2].port`: list items count from 0."""
    text: str

    def __str__(self) -> str:
        place = f"{self.source}:{self.line}:{self.column}" if self.line else self.source
        head = f"{place} {self.path}".strip()
        return f"{head}: {self.text}" if head else self.text


class ProblemsError(ValueError):
    """The error for a user's file that cannot be used; str() has one line for each problem, in
    order of place."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(problems, key=lambda p: (p.line, p.column)))
        lines = [str(problem) for problem in self.problems[:MAX_SHOWN]]
        if len(self.problems) > MAX_SHOWN:
            lines.append(f"... and {len(self.problems) - MAX_SHOWN} more problems")
        super().__init__("\n".join(lines))

    def __reduce__(self) -> tuple[type[Self], tuple[tuple[Problem, ...]]]:
        """How the error passes from one process to another: by its problems, not by their text."""
        return type(self), (self.problems,)


class TopologyError(ProblemsError):
    """The error for a topology that cannot be used."""


def show(value: object) -> str:
    """A value in the form for messages: on one line, without control characters, not too long."""
    text = str(value)
    if len(text) > _MAX_VALUE_CHARS:
        text = text[: _MAX_VALUE_CHARS - 3] + "..."
    return text if text.isprintable() and text.strip() == text and text else repr(text)


def join(path: str, key: str | int) -> str:
    """The path of a part of a value: `brokers`, 2 -> `brokers[2]`; then `port` ->
    `brokers[2].port`."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    if not _PLAIN_KEY.fullmatch(key):
        return f"{path}[{show(repr(key))}]"
    return f"{path}.{key}" if path else key


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The name among `known` that was probably meant."""
    if len(word) > 200:
        return None
    names = list(known)
    if _OTHER_WORDS.get(word) in names:
        return _OTHER_WORDS[word]
    by_folded = {name.lower().replace("_", ".").replace("-", "."): name for name in names}
    folded = word.lower().replace("_", ".").replace("-", ".")
    swapped = [name for name in by_folded if sorted(name) == sorted(folded)]  # nht for nth
    close = swapped or get_close_matches(folded, list(by_folded), n=1, cutoff=0.7)
    return by_folded[close[0]] if close else None


def unknown(what: str, word: str, known: Iterable[str]) -> str:
    """The message for a name that does not exist: with the nearest name, or with all names if they
    are few."""
    names = list(known)
    meant = nearest(word, names)
    if meant is not None:
        return f"no such {what}; did you mean {meant}?"
    if len(names) <= 12:
        return f"no such {what}; there are {', '.join(names) or 'none'}"
    return f"no such {what}"
