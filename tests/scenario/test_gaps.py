"""The gaps of a partition: how its leader was lost, and what ends the gap."""

from __future__ import annotations

import pytest

from kcluster.scenario.gaps import Gap, gaps_of
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.virtual import VirtualRun

START = """
topology: {brokers: 3, topics: {orders: {assignment: [[1, 2, 3]]}}}
workload: {producers: {topic: orders, rate: 20/s, acks: ACKS}}
duration: 40s
steps:
"""


def gaps(*steps: str, acks: str = "all", until_ms: int = 36_000) -> list[Gap]:
    """The gaps after these steps; times since the start of the run."""
    lines = "".join(f"  - {{{step}}}\n" for step in steps)
    run = VirtualRun(Scenario.parse(START.replace("ACKS", acks) + lines), 1)
    run.advance(until_ms)
    began_ms = run.stage.dispatcher.now_ms - until_ms
    return [gap.since(began_ms) for gap in gaps_of(run.run.recorder, ("orders", 0))]


@pytest.mark.parametrize("loss", ["kill: 1", "pause: 1", "isolate: 1"])
def test_gap__lasts_until_a_producer_reaches_the_next_leader(loss: str) -> None:
    (gap,) = gaps(f"at: 2s, {loss}")
    assert (gap.leader, gap.from_ms) == (1, 2_000)
    assert gap.noticed_ms is not None
    assert 8_000 < gap.noticed_ms <= 11_000
    assert gap.elected_ms == gap.noticed_ms
    assert gap.written_ms is not None
    assert gap.elected_ms < gap.written_ms
    assert gap.duration_ms == gap.written_ms - 2_000


def test_gap__is_open_until_the_loss_is_noticed_and_while_no_other_replica_may_lead() -> None:
    assert gaps("at: 2s, kill: 1", until_ms=5_000) == [Gap(1, 2_000)]
    followers = "at: 2s, kill: [2, 3]"
    (gap,) = gaps(followers, "at: 16s, kill: 1")
    assert gap.noticed_ms is not None
    assert (gap.elected_ms, gap.duration_ms) == (None, None)


def test_gap__a_leader_that_hands_over_leaves_none() -> None:
    assert gaps("at: 2s, kill: {brokers: 1, how: clean}") == []
    assert gaps("at: 2s, kill: 3") == []


def test_gap__without_acks_ends_with_the_first_append() -> None:
    (gap,) = gaps("at: 2s, kill: 1", acks="0")
    assert gap.written_ms is not None


def test_gap__of_each_loss_in_order() -> None:
    found = gaps("at: 1s, kill: 1", "at: 12s, start: 1", "at: 16s, kill: 2")
    assert [gap.leader for gap in found] == [1, 2]
