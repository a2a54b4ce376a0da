"""The formulas, compared with published tables and calculations by hand."""

from __future__ import annotations

import math
import subprocess
import sys

import pytest

from kcluster.pipeline.sweep.estimates import (
    MS_PER_YEAR,
    clopper_pearson,
    exact_sign_test,
    per_billion,
    per_year,
    ratio_error,
    wilson,
)


@pytest.mark.parametrize(
    ("hits", "runs", "exact", "score"),
    [
        # Newcombe, "Two-sided confidence intervals for the single proportion" (1998), table I
        (81, 263, (0.2527, 0.3676), (0.2553, 0.3662)),
        (15, 148, (0.0578, 0.1617), (0.0624, 0.1605)),
        (0, 20, (0.0, 0.1684), (0.0, 0.1611)),
        (1, 29, (0.0009, 0.1776), (0.0061, 0.1718)),
    ],
)
def test_estimates__intervals_of_a_published_table(
    hits: int, runs: int, exact: tuple[float, float], score: tuple[float, float]
) -> None:
    assert clopper_pearson(hits, runs) == pytest.approx(exact, abs=5e-5)
    assert wilson(hits, runs) == pytest.approx(score, abs=5e-5)


def test_estimates__no_loss_has_a_positive_upper_bound() -> None:
    low, high = clopper_pearson(0, 1_000)
    assert low == 0
    assert high == pytest.approx(1 - 0.025 ** (1 / 1_000))  # (1 - p)^n = 2.5 %
    assert wilson(0, 0) == clopper_pearson(0, 0) == (0.0, 1.0)
    assert clopper_pearson(0, 1_000, 0.999)[1] > high


def test_estimates__sign_test_by_hand() -> None:
    assert exact_sign_test(0, 0) == 1.0
    assert exact_sign_test(5, 0) == pytest.approx(2 / 32)
    assert exact_sign_test(1, 7) == exact_sign_test(7, 1) == pytest.approx(2 * (1 + 8) / 256)
    assert exact_sign_test(4, 4) == 1.0


def test_estimates__error_of_a_ratio_is_that_of_its_residuals() -> None:
    lost, acked = [0, 3, 0, 9], [100, 120, 80, 100]
    ratio = sum(lost) / sum(acked)
    residuals = [y - ratio * x for y, x in zip(lost, acked, strict=True)]
    wanted = math.sqrt(sum(r * r for r in residuals) / 3 / 4) / (sum(acked) / 4)
    products = [
        sum(a * b for a, b in zip(one, other, strict=True))
        for one, other in ((lost, lost), (lost, acked), (acked, acked))
    ]
    assert ratio_error(4, sum(lost), sum(acked), *products) == pytest.approx(wanted)
    assert ratio_error(1, 3, 100, 9, 300, 10_000) == 0.0
    assert per_billion(12, 400) == 30_000_000
    assert per_billion(0, 0) == 0


def test_estimates__a_year_has_the_failures_of_its_brokers() -> None:
    # 20 failures cost 60 s; three brokers fail once in half a year each: six failures of 3 s.
    assert per_year(60, 20, 3, MS_PER_YEAR / 2) == pytest.approx(18)
    assert per_year(0, 0, 3, MS_PER_YEAR) == 0


def test_estimates__scipy_is_imported_when_it_is_needed() -> None:
    code = (
        "import sys, kcluster.cli.pipeline.sweep, kcluster.pipeline.sweep.report;"
        "sys.exit(any(name in sys.modules for name in ('scipy', 'matplotlib', 'pyspark')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
