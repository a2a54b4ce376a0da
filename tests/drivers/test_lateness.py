"""When the live driver takes itself to be late, and holds the cluster's clock back."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from kcluster.config.topology.model import Topology
from kcluster.drivers.live import MAX_LATE_US, LiveDriver
from kcluster.handle.cluster import Cluster

LONG_US = 10 * MAX_LATE_US

HeldBack = Callable[[Callable[[LiveDriver], None]], int]


@pytest.fixture(scope="module")
def held_back_us() -> Iterator[HeldBack]:
    """By how much the clock is held back by the first look at it after a change."""
    with Cluster(Topology.of(brokers=1, profile="fast"), record=False) as cluster:

        def held_back(change: Callable[[LiveDriver], None]) -> int:
            def look() -> int:
                driver = cluster.driver
                driver.wake()
                before_us = driver.clock.offset_us
                change(driver)
                driver.wake()
                return before_us - driver.clock.offset_us

            return cluster.call(look)

        yield held_back


def test_a_broker_resumed_with_old_deadlines_does_not_hold_the_clock_back(
    held_back_us: HeldBack,
) -> None:
    def deadlines_long_past(driver: LiveDriver) -> None:
        driver.dispatcher.quiet_until_us -= LONG_US

    assert held_back_us(deadlines_long_past) == 0


def test_a_driver_that_got_no_cpu_holds_the_clock_back(held_back_us: HeldBack) -> None:
    def nothing_ran_for_long(driver: LiveDriver) -> None:
        driver.dispatcher.quiet_until_us -= LONG_US
        driver.dispatcher.now_us -= LONG_US

    assert held_back_us(nothing_ran_for_long) >= LONG_US - 2 * MAX_LATE_US
