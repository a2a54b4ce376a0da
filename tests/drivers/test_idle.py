"""A live cluster that nobody uses wakes up rarely, and is exact as soon as somebody asks."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from kcluster.config.topology.model import Topology
from kcluster.drivers.live import LiveDriver
from kcluster.handle.cluster import Cluster

IDLE_MS = 1000
MACHINE_GRAIN_US = 500


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(Topology.of(brokers=3, profile="fast"), record=False) as running:
        yield running


@pytest.mark.pure_python
def test_idle__several_heartbeats_share_a_wake_up(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    rings: list[int] = []
    pass_deadlines = LiveDriver.pass_deadlines

    def counted(driver: LiveDriver) -> None:
        rings.append(driver.now_ms())
        pass_deadlines(driver)

    monkeypatch.setattr(LiveDriver, "pass_deadlines", counted)
    began_ms = cluster.driver.now_ms()
    is_over = threading.Event()
    while cluster.driver.clock_ms() < began_ms + IDLE_MS:
        is_over.wait(0.05)
    # Heartbeats every 20 ms and fetches every 50 ms: 70 wake-ups, if each had its own.
    assert len(rings) < 45


def test_idle__a_command_finds_done_what_was_due(cluster: Cluster) -> None:
    driver = cluster.driver
    is_over = threading.Event()
    overdue = 0
    for _ in range(20):
        is_over.wait(0.053)
        overdue += cluster.call(
            lambda: (
                driver.dispatcher.quiet_until_us
                < driver.clock.at(time.monotonic_ns() // 1000) - MACHINE_GRAIN_US
            )
        )
    assert overdue < 7, "more than half of the calls come while a heartbeat was put off"
