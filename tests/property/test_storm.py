"""Storms of faults: whatever happens to a cluster, Kafka's guarantees hold.

More of them: KCLUSTER_SEEDS=1-5000 pytest tests/property, or python -m tests.property.storm 1-5000.
"""

from __future__ import annotations

import os

import pytest

import kcluster
from tests.property.moving import MovingStorm
from tests.property.storm import Storm

USUAL = "1-96" if kcluster.build() == "compiled" else "1-32"
"""The compiled build plays five times as many in the same time; .ci/run tests both builds."""
FIRST, _, LAST = os.environ.get("KCLUSTER_SEEDS", USUAL).partition("-")
SEEDS = range(int(FIRST), int(LAST or FIRST) + 1)
AT_ONCE = 8
"""Seeds in one test, so that it is neither too short nor too long to be seen."""
QUICK = 16
"""So many of them are not slow."""
PARTS = [
    pytest.param(first, marks=pytest.mark.slow if number * AT_ONCE >= QUICK else ())
    for number, first in enumerate(SEEDS[::AT_ONCE])
]


@pytest.mark.parametrize("first", PARTS)
def test_storm__breaks_no_guarantee(first: int) -> None:
    for seed in range(first, min(first + AT_ONCE, SEEDS.stop)):
        storm = Storm(seed)
        assert not storm.run(), "\n" + storm.report()


@pytest.mark.parametrize("first", PARTS)
def test_storm__breaks_no_guarantee_while_partitions_move(first: int) -> None:
    for seed in range(first, min(first + AT_ONCE, SEEDS.stop)):
        storm = MovingStorm(seed)
        assert not storm.run(), "\n" + storm.report()


def test_storm__a_leader_that_slept_while_a_member_lost_its_disk_is_exempt() -> None:
    """It wakes up with fetches of that member's earlier life, and its high watermark moves."""
    storm = MovingStorm(209)
    assert not storm.run(), "\n" + storm.report()
    assert storm.report().endswith("replay: python -m tests.property.moving 209")


def test_storm__the_same_seed_gives_the_same_trace() -> None:
    hashes = []
    for _ in range(2):
        storm = Storm(3)
        storm.run()
        hashes.append(storm.driver.trace_hash())
    assert hashes[0] == hashes[1]
