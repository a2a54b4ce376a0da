"""What the counts of runs say about a setting: shares with intervals, rates, times a year.

Owns: the formulas.  Never: reads a table, knows Spark or a run; imports scipy before it is needed
(it is slow to import).
Kafka: no counterpart.  Sources: Wilson 1927 and Clopper & Pearson 1934 as in Brown, Cai, DasGupta,
"Interval Estimation for a Binomial Proportion" (2001), both by scipy.stats.binomtest; Cochran,
"Sampling Techniques" (1977), 6.4.
"""

from __future__ import annotations

import math
from typing import Any, Final, Literal

CONFIDENCE: Final = 0.95
MS_A_YEAR: Final = 365.25 * 86_400_000
BILLION: Final = 1_000_000_000

Interval = tuple[float, float]


def wilson(hits: int, runs: int, confidence: float = CONFIDENCE) -> Interval:
    """The interval of a share by Wilson's score: near its confidence on average, and short."""
    return _interval(hits, runs, confidence, "wilson")


def clopper_pearson(hits: int, runs: int, confidence: float = CONFIDENCE) -> Interval:
    """The exact interval of a share: never less than its confidence, so longer."""
    return _interval(hits, runs, confidence, "exact")


def per_billion(lost: int, acked: int) -> float:
    """Records lost of a billion acked; 0 where nothing was acked."""
    return lost / acked * BILLION if acked else 0.0


def ratio_error(runs: int, sum_y: float, sum_x: float, yy: float, xy: float, xx: float) -> float:
    """The standard error of sum_y / sum_x, when runs are drawn and not records: `yy`, `xy`, `xx`
    are the sums of the runs' products.  Linearized (Cochran, 6.4)."""
    if runs < 2 or sum_x == 0:
        return 0.0
    ratio = sum_y / sum_x
    squares = max(0.0, yy - 2 * ratio * xy + ratio * ratio * xx)
    return math.sqrt(squares * runs / (runs - 1)) / sum_x


def a_year(whole: float, failures: int, brokers: int, mtbf_ms: float) -> float:
    """`whole` (seconds, losses) is what so many failures of a broker cost; what a year costs with
    so many brokers, each of which fails once in `mtbf_ms`.  Linear: it holds as far as failures
    meet no more often there than here; 0 where nothing failed."""
    return whole / failures * brokers * MS_A_YEAR / mtbf_ms if failures else 0.0


def exact_sign_test(only_a: int, only_b: int) -> float:
    """How likely so uneven a split is when both settings lose alike (McNemar's test, exact): of the
    seeds at which one of two settings lost and the other did not."""
    if only_a + only_b == 0:
        return 1.0
    return float(_binomtest(only_a, only_a + only_b).pvalue)


def _interval(
    hits: int, runs: int, confidence: float, method: Literal["wilson", "exact"]
) -> Interval:
    assert 0 <= hits <= runs, (hits, runs)
    if runs == 0:
        return 0.0, 1.0
    found = _binomtest(hits, runs).proportion_ci(confidence, method=method)
    return float(found.low), float(found.high)


def _binomtest(hits: int, runs: int) -> Any:
    from scipy.stats import binomtest

    return binomtest(hits, runs)
