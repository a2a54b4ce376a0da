"""Statistics of a setting from counts of runs: shares with intervals, rates, figures per year; and
their text: `28 %`, `24 to 32 %`, `below 0.37 %`.

Owns: the formulas, how many digits a percentage has.  Never: reads a table, knows Spark
or a run; imports scipy, which is slow to import, before a formula needs it.
Kafka: no counterpart.  Sources: Wilson 1927 and Clopper & Pearson 1934 as in Brown, Cai, DasGupta,
"Interval Estimation for a Binomial Proportion" (2001), both by scipy.stats.binomtest; Cochran,
"Sampling Techniques" (1977), 6.4.
"""

from __future__ import annotations

import math
from typing import Any, Final, Literal

CONFIDENCE: Final = 0.95
MS_PER_YEAR: Final = 365.25 * 86_400_000
BILLION: Final = 1_000_000_000

Interval = tuple[float, float]


def wilson(hits: int, runs: int, confidence: float = CONFIDENCE) -> Interval:
    """The interval of a share by Wilson's score: near its nominal confidence on average."""
    return _interval(hits, runs, confidence, "wilson")


def clopper_pearson(hits: int, runs: int, confidence: float = CONFIDENCE) -> Interval:
    """The exact interval of a share: at least its nominal confidence, so wider."""
    return _interval(hits, runs, confidence, "exact")


def per_billion(lost: int, acked: int) -> float:
    """Records lost per billion acked; 0 if nothing was acked."""
    return lost / acked * BILLION if acked else 0.0


def ratio_error(runs: int, sum_y: float, sum_x: float, yy: float, xy: float, xx: float) -> float:
    """The standard error of sum_y / sum_x, where the sampled unit is a run, not a record.  `yy`,
    `xy`, `xx`: sums over runs of the products.  Linearized (Cochran, 6.4)."""
    if runs < 2 or sum_x == 0:
        return 0.0
    ratio = sum_y / sum_x
    squares = max(0.0, yy - 2 * ratio * xy + ratio * ratio * xx)
    return math.sqrt(squares * runs / (runs - 1)) / sum_x


def per_year(total: float, failures: int, brokers: int, mtbf_ms: float) -> float:
    """The cost of a year with `brokers` brokers that each fail once in `mtbf_ms`, where `failures`
    failures of a broker cost `total` (seconds or losses).  The figure is linear in the failures, so
    it assumes that they overlap as often as in the runs. 0 if nothing failed."""
    return total / failures * brokers * MS_PER_YEAR / mtbf_ms if failures else 0.0


def exact_sign_test(only_a: int, only_b: int) -> float:
    """The p-value of McNemar's exact test.  `only_a`, `only_b`: seeds at which only one of the two
    settings lost records; the null hypothesis is that both settings lose equally often."""
    if only_a + only_b == 0:
        return 1.0
    return float(_binomtest(only_a, only_a + only_b).pvalue)


def _interval(
    hits: int, runs: int, confidence: float, method: Literal["wilson", "exact"]
) -> Interval:
    assert 0 <= hits <= runs, (hits, runs)
    if runs == 0:
        return 0.0, 1.0
    interval = _binomtest(hits, runs).proportion_ci(confidence, method=method)
    return float(interval.low), float(interval.high)


def _binomtest(hits: int, runs: int) -> Any:
    from scipy.stats import binomtest

    return binomtest(hits, runs)


TABLE_DIGITS: Final = 3
PLOT_DIGITS: Final = 2


def percent(share: float, digits: int = TABLE_DIGITS) -> str:
    """`0.25 %`, with at most `digits` significant digits."""
    return f"{_number(share, digits)} %"


def interval_of(interval: tuple[float, float], digits: int = TABLE_DIGITS) -> str:
    """`0.1 to 2.3 %`, or `below 0.4 %` if the lower end is 0."""
    low, high = interval
    if low == 0:
        return f"below {_number(high, PLOT_DIGITS)} %"
    return f"{_number(low, digits)} to {_number(high, digits)} %"


def _number(share: float, digits: int) -> str:
    """A share as a percentage without its sign.  A share below 1 is never shown as 100 %."""
    value = share * 100
    if not value:
        return "0"
    places = max(0, digits - 1 - math.floor(math.log10(value)))
    text = f"{value:.{places}f}"
    if float(text) >= 100 > value:
        return ">99" if digits <= 2 else f">99.{'9' * (digits - 2)}"
    return text.rstrip("0").rstrip(".") if "." in text else text
