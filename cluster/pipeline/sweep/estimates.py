"""What the counts of runs say about a setting: shares with intervals, rates, times a year.

Owns: the formulas.  Never: reads a table, knows Spark or a run.
Kafka: no counterpart.  Sources: Wilson 1927 and Clopper & Pearson 1934 as in Brown, Cai, DasGupta,
"Interval Estimation for a Binomial Proportion" (2001); the continued fraction of the incomplete
beta function by Lentz's method.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Final

CONFIDENCE: Final = 0.95
SECONDS_A_YEAR: Final = 365.25 * 86_400
BILLION: Final = 1_000_000_000
_TINY: Final = 1e-300

Interval = tuple[float, float]


def wilson(hits: int, runs: int, confidence: float = CONFIDENCE) -> Interval:
    """The interval of a share by Wilson's score: near its confidence on average, and short."""
    assert 0 <= hits <= runs, (hits, runs)
    if runs == 0:
        return 0.0, 1.0
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    share, square = hits / runs, z * z / runs
    middle = share + square / 2
    half = z * math.sqrt(share * (1 - share) / runs + square / (4 * runs))
    low, high = (middle - half) / (1 + square), (middle + half) / (1 + square)
    return (0.0 if hits == 0 else max(0.0, low)), (1.0 if hits == runs else min(1.0, high))


def clopper_pearson(hits: int, runs: int, confidence: float = CONFIDENCE) -> Interval:
    """The exact interval of a share: never less than its confidence, so longer."""
    assert 0 <= hits <= runs, (hits, runs)
    tail = (1 - confidence) / 2
    low = 0.0 if hits == 0 else _beta_quantile(tail, hits, runs - hits + 1)
    high = 1.0 if hits == runs else _beta_quantile(1 - tail, hits + 1, runs - hits)
    return low, high


def per_billion(lost: int, acked: int) -> float:
    """Records lost of a billion acked; 0 where nothing was acked."""
    return lost / acked * BILLION if acked else 0.0


def ratio_error(runs: int, sum_y: float, sum_x: float, yy: float, xy: float, xx: float) -> float:
    """The standard error of sum_y / sum_x, when runs are drawn and not records: `yy`, `xy`, `xx`
    are the sums of the runs' products.  Linearized (Cochran, Sampling Techniques, 6.4)."""
    if runs < 2 or sum_x == 0:
        return 0.0
    ratio = sum_y / sum_x
    squares = max(0.0, yy - 2 * ratio * xy + ratio * ratio * xx)
    return math.sqrt(squares * runs / (runs - 1)) / sum_x


def seconds_a_year(unavailable_ms: float, ran_ms: float) -> float:
    """Of a year in which things fail as often as they did in these runs."""
    return unavailable_ms / ran_ms * SECONDS_A_YEAR if ran_ms else 0.0


def exact_sign_test(only_a: int, only_b: int) -> float:
    """How likely so uneven a split is when both settings lose alike (McNemar's test, exact): of the
    seeds at which one of two settings lost and the other did not."""
    both = only_a + only_b
    if both == 0:
        return 1.0
    few = min(only_a, only_b)
    tail: float = sum(math.comb(both, k) for k in range(few + 1)) / (1 << both)
    return min(1.0, 2 * tail)


def _beta_quantile(share: float, a: float, b: float) -> float:
    """Where I_x(a, b) is `share`, by halving."""
    low, high = 0.0, 1.0
    for _ in range(200):
        middle = (low + high) / 2
        if incomplete_beta(middle, a, b) < share:
            low = middle
        else:
            high = middle
        if high - low < 1e-15 * high:
            break
    return (low + high) / 2


def incomplete_beta(x: float, a: float, b: float) -> float:
    """I_x(a, b), regularized: of n tries the chance of a or more hits, with b = n - a + 1."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):
        return 1 - incomplete_beta(1 - x, b, a)
    log_front = (
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
        + a * math.log(x) + b * math.log1p(-x)
    )  # fmt: skip
    return math.exp(log_front) * _fraction(x, a, b) / a


def _fraction(x: float, a: float, b: float) -> float:
    """The continued fraction of the incomplete beta function."""
    c, d = 1.0, 1 / _not_zero(1 - (a + b) * x / (a + 1))
    found = d
    for m in range(1, 10_000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d = 1 / _not_zero(1 + even * d)
        c = _not_zero(1 + even / c)
        found *= d * c
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d = 1 / _not_zero(1 + odd * d)
        c = _not_zero(1 + odd / c)
        found *= d * c
        if abs(d * c - 1) < 1e-15:
            break
    return found


def _not_zero(x: float) -> float:
    return x if abs(x) > _TINY else _TINY
