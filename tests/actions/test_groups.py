"""Members that are evicted and groups that rebalance, in scenarios and by hand."""

from __future__ import annotations

import pytest

from kcluster.config.topology.model import Topology
from kcluster.events import MembersEvicted, RebalanceRequested
from kcluster.events.clients import GroupMemberJoined
from kcluster.evidence.lookups import of_type
from kcluster.handle.world_cluster import WorldCluster
from kcluster.operations.errors import ClusterError
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.perform import do
from kcluster.scenario.play.phases import RunResult
from kcluster.scenario.play.running import run_scenario
from kcluster.scenario.recorded import scenario_of

TOPOLOGY = "{brokers: 1, profile: fast, topics: {orders: {partitions: 2}}}"
TEXT = """
topology: %s
workload:
  producers: {topic: orders, name: shop, rate: 20/s}
  consumers: {topics: orders, group: billing, name: reader, members: 2, %s}
duration: 3s
steps:
  - {at: 1500ms, evict: {group: billing, member: %s}}
  - {at: 2s, rebalance: billing}
"""
KINDS = ["group_protocol: classic", "group_protocol: consumer", "share: true"]


def played(kind: str, member: str = "all") -> RunResult:
    return run_scenario(Scenario.parse(TEXT % (TOPOLOGY, kind, member)), "virtual")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("member", "count"), [("all", 2), ("reader-2", 1)])
def test_evict__members_join_again_and_nothing_is_lost(kind: str, member: str, count: int) -> None:
    result = played(kind, member)
    assert result.failures == []
    ((note, evicted),) = of_type(result.notes, MembersEvicted)
    assert (evicted.group, len(evicted.members)) == ("billing", count)
    joined = of_type(result.notes, GroupMemberJoined)
    again = {one.client_id for at, one in joined if at.at_ms >= note.at_ms}
    assert len(again - {"kcluster"}) == count
    assert len(of_type(result.notes, RebalanceRequested)) == 1
    assert not result.verdict.anomalies


@pytest.mark.parametrize(
    ("step", "problem"),
    [
        ("evict: {group: billing, member: nope}", "nope in group billing"),
        ("evict: {group: bilin, member: all}", "did you mean billing"),
        ("rebalance: bilin", "did you mean billing"),
    ],
)
def test_evict__what_is_not_there_is_refused(step: str, problem: str) -> None:
    text = TEXT.replace("rebalance: billing", step)
    (found,) = run_scenario(Scenario.parse(text % (TOPOLOGY, KINDS[0], "all")), "virtual").failures
    assert problem in found


def test_evict__by_hand_before_any_group() -> None:
    running = WorldCluster(Topology.parse(TOPOLOGY), 1, record=False)
    running.open()
    with pytest.raises(ClusterError, match="no group has been used yet"):
        do(running, "rebalance", "billing")
    with pytest.raises(ClusterError, match="no group has been used yet"):
        do(running, "evict", group="billing", member="all")
    running.close()


def test_evict__a_record_repeats_it() -> None:
    result = played(KINDS[0], "reader-2")
    notes = result.notes
    recorded = Scenario.parse(scenario_of(notes, Topology.parse(TOPOLOGY), "x", notes[0].at_ms))
    assert [step.verb for step in recorded.steps] == ["evict", "rebalance"]
