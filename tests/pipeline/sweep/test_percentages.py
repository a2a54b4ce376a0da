"""Percentages as people read them."""

from __future__ import annotations

import pytest

from kcluster.pipeline.sweep.estimates import PLOT_DIGITS, interval_of, percent


def test_percentages__an_interval_from_nothing_is_shown_as_below() -> None:
    assert interval_of((0.0, 0.00368)) == "below 0.37 %"
    assert interval_of((0.0009, 0.1776)) == "0.09 to 17.8 %"


@pytest.mark.parametrize(
    ("share", "in_a_table", "in_a_plot"),
    [
        (0, "0 %", "0 %"),
        (0.00042, "0.042 %", "0.042 %"),
        (0.0025, "0.25 %", "0.25 %"),
        (0.1136, "11.4 %", "11 %"),
        (0.2, "20 %", "20 %"),
        (0.0999, "9.99 %", "10 %"),
        (0.996, "99.6 %", ">99 %"),
        (0.99999, ">99.9 %", ">99 %"),
        (1, "100 %", "100 %"),
    ],
)
def test_percentages__few_digits_and_100_only_for_all(
    share: float, in_a_table: str, in_a_plot: str
) -> None:
    assert percent(share) == in_a_table
    assert percent(share, PLOT_DIGITS) == in_a_plot


def test_percentages__all_of_few_runs_is_no_power_of_ten() -> None:
    assert interval_of((0.478, 1.0), PLOT_DIGITS) == "48 to 100 %"
