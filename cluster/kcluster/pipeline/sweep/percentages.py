"""Shares and intervals as text: `28 %`, `24 to 32 %`, `below 0.37 %`.

Owns: the number of digits of a percentage.  Never: computes one (estimates.py).
Kafka: no counterpart.
"""

from __future__ import annotations

from math import floor, log10
from typing import Final

TABLE_DIGITS: Final = 3
PLOT_DIGITS: Final = 2


def percent(share: float, digits: int = TABLE_DIGITS) -> str:
    """A percentage such as `0.25 %`, with at most `digits` significant digits."""
    return f"{_number(share, digits)} %"


def interval_of(interval: tuple[float, float], digits: int = TABLE_DIGITS) -> str:
    """An interval such as `0.1 to 2.3 %`, or `below 0.4 %` if the lower end is 0."""
    low, high = interval
    if low == 0:
        return f"below {_number(high, PLOT_DIGITS)} %"
    return f"{_number(low, digits)} to {_number(high, digits)} %"


def _number(share: float, digits: int) -> str:
    """A share as a percentage without its sign.  A share below 1 is never rounded up to 100."""
    value = share * 100
    if not value:
        return "0"
    places = max(0, digits - 1 - floor(log10(value)))
    text = f"{value:.{places}f}"
    if float(text) >= 100 > value:
        return ">99" if digits <= 2 else f">99.{'9' * (digits - 2)}"
    return text.rstrip("0").rstrip(".") if "." in text else text
