"""The rates behind quotas and throttles, with both ways to count time."""

from __future__ import annotations

import pytest

from kcluster.broker.quotas.sampled_rate import SampledRate, SimpleRate


def test_rate__assumes_ten_full_windows_from_the_start() -> None:
    rate = SampledRate(11, 1_000)
    rate.record(100, 5_000)
    assert (rate.measure(5_000), rate.measured_ms(5_000)) == (10, 10_000)
    assert (rate.measure(5_500), rate.measured_ms(5_500)) == (100 / 10.5, 10_500)
    assert rate.measured_ms(6_000) == 10_000


def test_rate__ignores_values_older_than_eleven_windows() -> None:
    rate = SampledRate(11, 1_000)
    for second in range(20):
        rate.record(1_000, second * 1_000)
    assert rate.measure(19_500) == pytest.approx(11_000 / 10.5)
    assert rate.measure(40_000) == 0


def test_rate__reverted_values_do_not_count() -> None:
    rate = SampledRate(11, 1_000)
    rate.record(100, 0)
    rate.record(-100, 10)
    assert rate.measure(20) == 0


def test_simple_rate__the_first_window_counts_in_full() -> None:
    rate = SimpleRate(11, 1_000)
    assert rate.measure(5_000) == 0
    rate.record(100, 5_000)
    assert rate.measure(5_001) == 100
    assert rate.measure(6_000) == 100
    assert rate.measure(10_000) == 20


def test_simple_rate__ignores_values_older_than_eleven_windows() -> None:
    rate = SimpleRate(11, 1_000)
    for second in range(20):
        rate.record(1_000, second * 1_000)
    assert rate.measure(19_500) == pytest.approx(11_000 / 10.5)
    assert rate.measure(40_000) == 0
