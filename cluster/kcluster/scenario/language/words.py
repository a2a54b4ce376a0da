"""The small words of scenario files: moments, counts, conditions.

Owns: MomentRange, CountCheck, reading them; the forms that a file may have for each word.  Never:
looks at a cluster, knows the words for nodes and conditions (operations/).  Raises ValueError, with
the right form, for text that is none of them.  Kafka: no counterpart.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from kcluster.config.files.durations import milliseconds
from kcluster.config.files.fields import UNITS_SHOWN, Words, duration_text
from kcluster.config.files.numbers import whole_number
from kcluster.config.files.problems import show
from kcluster.operations.conditions import compare, condition

_SYMBOLS: Final = ("<=", ">=", "==", "!=", "<", ">", "=")
_LENGTH: Final = f"a time like 250ms, 5s or 2m; the units are {UNITS_SHOWN}"
_MOMENT: Final = f"a time like 250ms, 5s, 2m or 5s..20s; the units are {UNITS_SHOWN}"


class MomentRange(Struct, frozen=True):
    """A time, or a range from which the seed draws a time."""

    low_ms: int
    high_ms: int

    @property
    def is_drawn(self) -> bool:
        """Whether the range has two different ends, so that the seed draws."""
        return self.low_ms < self.high_ms

    def __str__(self) -> str:
        low, high = duration_text(self.low_ms), duration_text(self.high_ms)
        return low if low == high else f"{low}..{high}"


class CountCheck(Struct, frozen=True):
    """The expected value of a number: `3`, `>= 1`, `some`, `none`."""

    symbol: str
    number: int

    def holds(self, value: float) -> bool:
        """Whether `value` is as expected."""
        return compare(value, self.symbol, self.number)

    def __str__(self) -> str:
        return str(self.number) if self.symbol == "==" else f"{self.symbol} {self.number}"


def moment(text: str) -> MomentRange:
    """The range in a text: `5s`, or `5s..20s` for a time between these two, drawn by the seed."""
    low, dots, high = text.partition("..")
    low_ms = milliseconds(low, _MOMENT)
    high_ms = milliseconds(high, _MOMENT) if dots else low_ms
    if high_ms < low_ms:
        raise ValueError("the first time must be the earlier one")
    return MomentRange(low_ms, high_ms)


def count(text: str) -> CountCheck:
    """The check in a text: `3`, `>= 1`, `< 10`, `some`, `none`."""
    text = text.strip()
    if text in ("some", "none"):
        return CountCheck(">=" if text == "some" else "==", 1 if text == "some" else 0)
    for symbol in _SYMBOLS:
        if text.startswith(symbol):
            return CountCheck("==" if symbol == "=" else symbol, _count_number(text[len(symbol) :]))
    return CountCheck("==", _count_number(text))


def _count_number(text: str) -> int:
    number = whole_number(text.strip().replace(",", "").replace("_", ""))
    if number is None:
        raise ValueError(f"{show(text)} is no number; write 3, >= 1, some or none")
    return number


def time_check(text: str) -> CountCheck:
    """The check of a time, in ms, in a text: `< 1s`, `300ms`, `some`, `none`."""
    text = text.strip()
    if text in ("some", "none"):
        return count(text)
    symbol = next((symbol for symbol in _SYMBOLS if text.startswith(symbol)), "")
    number = milliseconds(text[len(symbol) :], _LENGTH)
    return CountCheck("==" if symbol in ("", "=") else symbol, number)


MOMENT: Final = Words(
    "a time like 5s, or 5s..20s for a time between them", moment, brief="time, or 5s..20s"
)
COUNT: Final = Words(
    "a number like 3, >= 1, some or none", count, brief="number, >= 1, some or none"
)
TIME_CHECK: Final = Words(
    "a time like < 1s, some or none", time_check, brief="time such as < 1s, some or none"
)
CONDITION: Final = Words("a condition like isr(orders-0) < 2", condition, brief="condition")
