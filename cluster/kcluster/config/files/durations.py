"""Durations as people write them: `250ms`, `1.5s`, `2m`, `1h`.

Owns: the units, reading and writing one.  Never: knows the place of a duration in a file.
Kafka: none; its configs have the unit in their name.

A number without a unit is refused: one reader would take it for seconds, another for milliseconds.
"""

from __future__ import annotations

import re
from typing import Final

from kcluster.config.files.problems import show

DURATION: Final = r"(?:(\d+(?:\.\d+)?) ?(ms|s|m|min|h)|0)"
MAX_MS: Final = 366 * 24 * 3_600_000
_NUMBER: Final = re.compile(r"\d+(?:\.\d+)?")
_MS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000}


def milliseconds_of(match: re.Match[str]) -> float:
    """The time in a match of DURATION."""
    return float(match[1]) * _MS[match[2]] if match[2] else 0.0


def in_seconds(ms: int) -> str:
    """A duration in words: `5s`, `8440ms`: whole seconds, or milliseconds."""
    return f"{ms // 1000}s" if ms % 1000 == 0 else f"{ms}ms"


def without_unit(text: str) -> str:
    """The question that a number without a unit raises; "" for any other text."""
    number = text.strip()
    if not _NUMBER.fullmatch(number):
        return ""
    return f"{number} what? Write {number}ms, {number}s or {number}m"


def milliseconds(text: str, wanted: str = "a time like 250ms, 5s or 2m") -> int:
    """The milliseconds of a duration; ValueError with the reason if the text is not one."""
    match = re.fullmatch(DURATION, text.strip())
    if match is None:
        raise ValueError(without_unit(text) or f"{show(text)} is not {wanted}")
    number = milliseconds_of(match)
    if number > MAX_MS:
        raise ValueError("more than a year")
    return round(number)
