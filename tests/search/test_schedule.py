"""Schedules: what a seed draws, within the bounds of the scenario; the file of a schedule."""

from __future__ import annotations

import pytest

from kcluster.actions.admin import Reassign
from kcluster.actions.node_rules import AddNodeRule
from kcluster.actions.rules import AddRule
from kcluster.operations.targets import AnyTarget
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.language.writing import text_of_scenario
from kcluster.search.schedule import FIXED, draw, scenario_of
from kcluster.search.widened import movable_partitions
from kcluster.search.words import step_text
from tests.search.spaces import FAULTS, LOSING, space


def test_draw__the_seed_decides() -> None:
    of = space(FAULTS)
    assert draw(of, 7) == draw(of, 7)
    assert len({draw(of, seed) for seed in range(20)}) == 20


@pytest.mark.parametrize("seed", range(20))
def test_draw__every_step_has_one_moment_and_named_nodes(seed: int) -> None:
    for planned in draw(space(FAULTS), seed).steps:
        assert not planned.step.is_drawn
        fields = planned.step.action.__struct_fields__
        values = [getattr(planned.step.action, name) for name in fields]
        assert not any(isinstance(each, AnyTarget) for value in values for each in (value,))


def test_draw__a_lone_broker_is_cut_off_from_no_other_broker() -> None:
    """Such a fault is not drawn; and the file of every schedule can be read."""
    alone = space(
        "topology: {brokers: 1, topics: {orders: {}}}\n"
        "workload: {producers: {topic: orders, rate: 5/s}}\n"
        "duration: 10s\n"
    )
    for seed in range(20):
        Scenario.parse(text_of_scenario(scenario_of(alone, draw(alone, seed))))


@pytest.mark.parametrize("seed", range(20))
def test_draw__no_more_faults_at_once_than_the_profile_admits(seed: int) -> None:
    faults = [step for step in draw(space(FAULTS), seed).steps if step.kind != FIXED]
    assert faults
    for fault in faults:
        begun = [one for one in faults if one.at_ms <= fault.at_ms]
        active = [one for one in begun if one.at_ms + one.lasts_ms > fault.at_ms]
        assert len(active) <= 2


def test_draw__faults_that_wait_for_sync_are_skipped_without_it() -> None:
    faults = [one.step for one in draw(space(FAULTS), 1).steps if one.kind != FIXED]
    assert {str(step.options.only_if) for step in faults} == {"settled"}
    assert all(step.options.if_possible for step in faults)


def test_draw__the_times_of_the_scenario_s_own_steps_are_drawn_within_their_ranges() -> None:
    of = space(LOSING)
    assert not of.sources
    pauses = {draw(of, seed).steps[0].at_ms for seed in range(20)}
    assert len(pauses) > 10
    assert min(pauses) >= 2_000
    assert max(pauses) <= 3_000


def test_space__a_scenario_that_leaves_nothing_open_gets_overlapping_faults() -> None:
    of = space(LOSING.replace("2s..3s", "2s").replace("5s..12s", "12s"))
    assert [source.profile.at_once for source in of.sources] == [3]
    assert draw(of, 1).steps[-1].kind != FIXED


def test_space__replicas_move_and_requests_are_lost_where_the_search_chooses_the_faults() -> None:
    of = space(LOSING.replace("2s..3s", "2s").replace("5s..12s", "12s"))
    steps = [one.step for seed in range(20) for one in draw(of, seed).steps if one.kind != FIXED]
    moves = [step.action for step in steps if isinstance(step.action, Reassign)]
    assert moves
    assert all(sorted(map(str, move.to)) == ["1", "2", "3"] for move in moves)
    rules = [step.action for step in steps if isinstance(step.action, AddRule)]
    assert {rule.api for rule in rules} == {("Produce",), ("Metadata",)}
    assert 0.02 < len(rules) / len(steps) < 0.25


def test_draw__some_faults_wait_for_a_moment_inside_a_broker() -> None:
    of = space(FAULTS)
    assert {each.shown for each in of.moments} == {"append", "commit_written", "group_written"}
    steps = [one for seed in range(20) for one in draw(of, seed).steps if one.kind != FIXED]
    waiting = [one for one in steps if one.waits_ms]
    assert 0.05 < len(waiting) / len(steps) < 0.3
    assert {one.step.trigger.when for one in waiting} == set(of.moments)
    ends_ms = [one.at_ms + one.waits_ms for one in waiting]
    assert max(ends_ms) < of.scenario.duration_ms


def test_space__rules_between_nodes_only_beside_other_faults_of_the_network() -> None:
    (source,) = space(FAULTS).sources
    rules = [kind.action for kind in source.profile.kinds if isinstance(kind.action, AddNodeRule)]
    assert {"AlterPartition", "BrokerHeartbeat"} <= {api for rule in rules for api in rule.api}
    share = sum(kind.weight for kind in source.profile.kinds if kind.verb == "node_rule") / sum(
        kind.weight for kind in source.profile.kinds
    )
    assert 0 < share <= 1 / 8
    killing = FAULTS.replace("- {isolate: {nodes: any broker, others: any broker}}", "")
    (source,) = space(killing).sources
    assert {kind.verb for kind in source.profile.kinds} == {"kill"}


def test_space__clients_die_and_stand_still_where_brokers_do() -> None:
    of = space(LOSING.replace("2s..3s", "2s").replace("5s..12s", "12s"))
    assert of.clients == ("shop",)
    steps = [one.step for seed in range(20) for one in draw(of, seed).steps if one.kind != FIXED]
    of_clients = [step for step in steps if "client shop" in step_text(step)]
    assert {step.verb for step in of_clients} == {"kill", "pause", "stop"}
    assert 0.05 < len(of_clients) / len(steps) < 0.25
    (source,) = space(FAULTS.replace("kill: any broker", "lose: any broker")).sources
    assert {kind.verb for kind in source.profile.kinds} == {"lose", "isolate", "node_rule"}


def test_space__leaders_of_the_internal_topics_in_use_may_move() -> None:
    assert list(movable_partitions(Scenario.parse(FAULTS))) == [
        ("orders", 0),
        ("orders", 1),
        ("__consumer_offsets", 0),
    ]


@pytest.mark.parametrize("text", [FAULTS, LOSING])
def test_scenario_of__its_file_is_the_same_scenario(text: str) -> None:
    of = space(text)
    for seed in range(10):
        scenario = scenario_of(of, draw(of, seed))
        written = text_of_scenario(scenario)
        assert text_of_scenario(Scenario.parse(written)) == written
        assert [step.trigger for step in Scenario.parse(written).steps] == [
            step.trigger for step in scenario.steps
        ]


def test_step_text__of_a_fault_that_waits_for_a_moment() -> None:
    waiting = "  - {at: 13s, when: append, within: 500ms, kill: 2, for: 1s}\n"
    step = Scenario.parse(LOSING + waiting).steps[-1]
    assert step_text(step) == "kill 2 at the 1st append since +13s for 1s"
