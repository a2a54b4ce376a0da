"""Single values that Python users pass to operations: numbers within bounds, seconds, text.

Owns: the check of such a value, and its refusal, which names the parameter.  Never: reads a file
(config/files/fields.py does).  Kafka: no counterpart; Java's compiler checks these.
"""

from __future__ import annotations

from typing import Final, TypeVar

from kcluster.config.files.durations import MAX_MS
from kcluster.config.files.fields import MAX_SHOWN_NUMBER
from kcluster.config.files.problems import show
from kcluster.operations.errors import ClusterError

N = TypeVar("N", int, float)

MAX_INT: Final = 2**31 - 1
"""The greatest number that a partition or a count can have in Kafka's protocol."""


def number_in(name: str, value: N, low: float, high: float, is_whole: bool = False) -> N:
    """The value, if it is a number within these bounds."""
    if not isinstance(value, int if is_whole else int | float) or isinstance(value, bool):
        raise wrong(name, value, f"must be a {'whole ' if is_whole else ''}number")
    if not low <= value <= high:
        if value != value:
            raise wrong(name, value, "must be a number")
        if high < MAX_SHOWN_NUMBER:
            raise wrong(name, value, f"must be from {low:g} to {high:.10g}")
        bound = f"at least {low:g}" if value < low else f"at most {high:.12g}"
        raise wrong(name, value, f"must be {bound}")
    return value


def seconds_in(name: str, value: float) -> float:
    """The value, if it is a number of seconds for which an operation can wait."""
    return number_in(name, value, 0, MAX_MS / 1000)


def text_in(name: str, value: str) -> str:
    """The value, if it is text."""
    if not isinstance(value, str):
        raise wrong(name, value, "must be text")
    return value


def wrong(name: str, value: object, reason: str) -> ClusterError:
    """The refusal of a parameter's value."""
    return ClusterError(f"{name}={show(value)}: {reason}")
