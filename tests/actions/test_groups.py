"""What an administrator does to groups, in scenarios and by hand: members are evicted, groups
rebalance, offsets are reset, groups are deleted."""

from __future__ import annotations

import pytest

from kcluster.config.topology.model import Topology
from kcluster.events import GroupDeleted, MembersEvicted, OffsetsReset, RebalanceRequested
from kcluster.events.clients import GroupMemberJoined, PartitionOffset
from kcluster.evidence.lookups import of_type
from kcluster.handle.world_cluster import WorldCluster
from kcluster.operations.errors import ClusterError
from kcluster.scenario.language.loader import ScenarioError
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


AWAY = """
# The members of a group leave, an administrator changes the group, and another member comes.
topology: %s
workload:
  producers: {topic: orders, name: shop, rate: 40/s, keys: 2}
  consumers:
    - {topics: orders, group: billing, name: reader, stop: 2s, %s}
    - {topics: orders, group: billing, name: late, start: 4s, %s}
duration: 6s
steps:
  - {at: 3s, %s}
"""
EARLIEST = "config: {auto.offset.reset: earliest}"
MEMBERS = {
    "classic": f"group_protocol: classic, {EARLIEST}",
    "consumer": f"group_protocol: consumer, {EARLIEST}",
    "streams": f"group_protocol: streams, {EARLIEST}",
    "share": "share: true",
}


def played_away(kind: str, step: str) -> RunResult:
    members = MEMBERS[kind]
    text = AWAY % (TOPOLOGY, members, members, step)
    return run_scenario(Scenario.parse(text), "virtual")


def found_in(result: RunResult) -> set[tuple[str, str]]:
    """The anomalies and the settings that allow them.  No invariant is broken."""
    assert not result.verdict.violations, result.verdict.lines()
    return {(one.name, str(one.allowed)) for one in result.verdict.anomalies}


RESET, DELETED = "offsets reset by an administrator", "a group deleted by an administrator"
BACK = {
    "classic": "committed-offset-back",
    "consumer": "committed-offset-back",
    "streams": "committed-offset-back",
    "share": "delivered-after-ack",
}


@pytest.mark.parametrize("kind", MEMBERS)
def test_reset_offsets__the_next_member_gets_the_records_again(kind: str) -> None:
    result = played_away(kind, "reset_offsets: {group: billing, topic: orders, to: earliest}")
    ((_, reset),) = of_type(result.notes, OffsetsReset)
    assert reset.offsets == (PartitionOffset(0, 0), PartitionOffset(1, 0))
    assert found_in(result) == {(BACK[kind], RESET)}


@pytest.mark.parametrize(("kind", "missed"), [("consumer", "unseen"), ("share", "passed-over")])
def test_reset_offsets__to_the_end_passes_records_over(kind: str, missed: str) -> None:
    result = played_away(kind, "reset_offsets: {group: billing, topic: orders, to: latest}")
    assert found_in(result) == {(missed, RESET)}


def test_reset_offsets__an_offset_stays_within_the_log() -> None:
    step = "reset_offsets: {group: billing, topic: orders, partition: 1, to: 1000000}"
    result = played_away("classic", step)
    ((_, reset),) = of_type(result.notes, OffsetsReset)
    ((partition, offset),) = [(one.partition, one.offset) for one in reset.offsets]
    assert (partition, reset.asked) == (1, 1_000_000)
    assert 0 < offset < 1_000


@pytest.mark.parametrize("kind", ["classic", "consumer", "streams"])
def test_delete_group__the_next_member_begins_anew(kind: str) -> None:
    result = played_away(kind, "delete_group: billing")
    assert len(of_type(result.notes, GroupDeleted)) == 1
    assert found_in(result) == {("committed-offset-back", DELETED)}


def test_delete_group__of_a_share_group_which_then_begins_at_the_end() -> None:
    result = played_away("share", "delete_group: billing")
    assert found_in(result) == {("passed-over", DELETED)}


def test_reset_offsets__of_a_share_group_that_is_being_deleted() -> None:
    """AlterShareGroupOffsets makes the group again if it comes after the deletion."""
    reset = "reset_offsets: {group: billing, topic: orders, to: 0}"
    result = played_away("share", f"delete_group: billing}}\n  - {{at: 3s, {reset}")
    assert {name for name, _ in found_in(result)} <= {"delivered-after-ack"}
    assert all(one.allowed for one in result.verdict.anomalies)


@pytest.mark.parametrize("kind", [*KINDS, "group_protocol: streams"])
@pytest.mark.parametrize(
    ("step", "problem"),
    [
        ("delete_group: billing", "delete_group billing: NON_EMPTY_GROUP: "),
        (
            "reset_offsets: {group: billing, topic: orders, to: earliest}",
            "group billing has members: it must be inactive, and is Stable",
        ),
    ],
)
def test_groups_with_members__keep_their_offsets(kind: str, step: str, problem: str) -> None:
    text = TEXT.replace("rebalance: billing", step)
    result = run_scenario(Scenario.parse(text % (TOPOLOGY, kind, "all")), "virtual")
    (found,) = result.failures
    assert problem in found
    assert not of_type(result.notes, GroupDeleted)
    assert not of_type(result.notes, OffsetsReset)
    assert not result.verdict.anomalies


@pytest.mark.parametrize(
    ("step", "problem"),
    [
        ("delete_group: bilin", "did you mean billing"),
        ("reset_offsets: {group: bilin, topic: orders, to: 0}", "did you mean billing"),
        ("reset_offsets: {group: billing, topic: order, to: 0}", "did you mean orders"),
        ("reset_offsets: {group: billing, topic: orders, partition: 7, to: 0}", "partition 7"),
    ],
)
def test_changes_of_groups__what_is_not_there_is_refused(step: str, problem: str) -> None:
    (found,) = played_away("classic", step).failures
    assert problem in found


def test_reset_offsets__a_word_that_is_no_offset_is_shown_in_the_file() -> None:
    with pytest.raises(ScenarioError, match=r"earlist: no such offset; did you mean earliest\?"):
        played_away("classic", "reset_offsets: {group: billing, topic: orders, to: earlist}")


@pytest.mark.parametrize(
    "step",
    [
        "delete_group: billing",
        "reset_offsets: {group: billing, topic: orders, to: 3, partition: 1}",
    ],
)
def test_changes_of_groups__a_record_repeats_them(step: str) -> None:
    notes = played_away("classic", step).notes
    text = scenario_of(notes, Topology.parse(TOPOLOGY), "x", notes[0].at_ms)
    (recorded,) = Scenario.parse(text).steps
    (wanted,) = Scenario.parse(f"topology: {TOPOLOGY}\nsteps: [{{{step}}}]").steps
    assert recorded.action == wanted.action
