"""The small words of scenario files: partitions, moments, counts.

Owns: MomentRange, CountCheck, reading them; what a file may say for each word.  Never: looks at a
cluster, knows the words for nodes and conditions (operations/targets.py, conditions.py).  Raises
ValueError, with the right form, for text that is none of them.  Kafka: no counterpart.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from kcluster.config.files.durations import milliseconds
from kcluster.config.files.problems import show
from kcluster.operations.conditions import compare, condition
from kcluster.operations.names import partition_name
from kcluster.operations.targets import TARGETS_SHOWN, targets
from kcluster.scenario.language.fields import Words

_SYMBOLS: Final = ("<=", ">=", "==", "!=", "<", ">", "=")
_MOMENT: Final = "a time like 250ms, 5s, 2m or 5s..20s"


class MomentRange(Struct, frozen=True):
    """A time, or one between two times, drawn by the seed."""

    low_ms: int
    high_ms: int


class CountCheck(Struct, frozen=True):
    """What a number must be: `3`, `>= 1`, `some`, `none`."""

    symbol: str
    number: int

    def holds(self, value: float) -> bool:
        """Whether `value` is such a number."""
        return compare(value, self.symbol, self.number)

    def __str__(self) -> str:
        return str(self.number) if self.symbol == "==" else f"{self.symbol} {self.number}"


def moment(text: str) -> MomentRange:
    """`5s`, or `5s..20s` for a time between them, drawn by the seed."""
    low, dots, high = text.partition("..")
    low_ms = milliseconds(low, _MOMENT)
    high_ms = milliseconds(high, _MOMENT) if dots else low_ms
    if high_ms < low_ms:
        raise ValueError("the first time must be the earlier one")
    return MomentRange(low_ms, high_ms)


def count(text: str) -> CountCheck:
    """`3`, `>= 1`, `< 10`, `some`, `none`."""
    text = text.strip()
    if text in ("some", "none"):
        return CountCheck(">=" if text == "some" else "==", 1 if text == "some" else 0)
    for symbol in _SYMBOLS:
        if text.startswith(symbol):
            return CountCheck("==" if symbol == "=" else symbol, _count_number(text[len(symbol) :]))
    return CountCheck("==", _count_number(text))


def _count_number(text: str) -> int:
    digits = text.strip().replace(",", "").replace("_", "")
    if not digits.isdecimal():
        raise ValueError(f"{show(text)} is no number; write 3, >= 1, some or none")
    return int(digits)


PARTITION: Final = Words("a partition like orders-0", partition_name)
MOMENT: Final = Words("a time like 5s, or 5s..20s for a time between them", moment)
COUNT: Final = Words("a number like 3, >= 1, some or none", count)
TARGETS: Final = Words(TARGETS_SHOWN, targets, lists=True)
CONDITION: Final = Words("a condition like isr(orders-0) < 2", condition)
