"""Runs of scenarios: steps in order, undone in time, repeated; failed actions are reported."""

from __future__ import annotations

import gc

import pytest

from kcluster.events.partitions import LeaderElected
from kcluster.evidence.recorder import Recorder
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.running import run_scenario
from tests.scenario.played import HEAD, process_events, run


def test_steps__are_played_in_order_and_undone_after_their_time() -> None:
    result = run("steps: [{at: 5s, kill: 2, for: 3s}, {after: 1s, pause: 3, for: 1s}]")
    assert process_events(result) == [
        (5_000, "broker 2 down"),
        (6_000, "broker 3 paused"),
        (7_000, "broker 3 resumed"),
        (8_000, "broker 2 started"),
    ]
    assert result.passed


def test_steps__wait_for_a_condition_and_use_a_name() -> None:
    result = run(
        "steps: [{at: 1s, kill: leader(orders-0), as: old}, {when: leader(orders-0) != 1, wait: },"
        " {after: 2s, start: old}]"
    )
    down, started = process_events(result)
    assert (down[1], started[1]) == ("broker 1 down", "broker 1 started")
    elected = next(note for note in result.notes if isinstance(note.event, LeaderElected))
    assert started[0] == elected.at_ms - result.began_ms + 2_000


def test_steps__a_name_means_the_broker_that_was_drawn() -> None:
    for seed in range(1, 9):
        steps = "steps: [{at: 1s, kill: any broker, as: victim}, {at: 15s, start: victim}]"
        result = run_scenario(Scenario.parse(HEAD + steps), "virtual", seed)
        down, started = process_events(result)
        assert started[1] == down[1].replace("down", "started")
        assert [f"broker {node} down" for node in result.played[0].nodes] == [down[1]]


def test_steps__repeat_at_an_interval() -> None:
    result = run("steps: [{at: 1s, every: 2s, times: 3, pause: 2, for: 500ms}]")
    assert [at for at, text in process_events(result) if text.endswith("paused")] == [
        1_000,
        3_000,
        5_000,
    ]


def test_steps__random_times_follow_from_the_seed() -> None:
    scenario = Scenario.parse(HEAD + "steps: [{at: 1s..30s, pause: any broker, for: 1s}]")
    drawn = {seed: process_events(run_scenario(scenario, "virtual", seed)) for seed in (1, 2, 3, 1)}
    assert len({str(each) for each in drawn.values()}) == 3


def test_steps__wait_for_a_number_of_acks() -> None:
    result = run("steps: [{when: 100 acked, pause: 3, for: 1s}]")
    at_ms, _ = process_events(result)[0]
    assert 9_900 <= at_ms <= 10_100


def test_steps__remaining_faults_are_repaired_at_the_end() -> None:
    result = run("steps: [{at: 5s, kill: 2}, {at: 6s, isolate: 3}]")
    assert result.verdict.outcome == "valid"
    assert process_events(result)[-1][1] == "broker 2 started"


def test_steps__without_healing_the_verdict_is_unknown() -> None:
    result = run("heal: false\nsteps: [{at: 5s, kill: 2}]\nchecks: {verdict: unknown}")
    assert result.passed


def test_steps__an_action_that_cannot_be_performed_is_reported() -> None:
    result = run("steps: [{at: 5s, start: 2}, {at: 6s, kill: down}]")
    assert result.has_problems
    assert "start (line 4): broker 2 is up" in result.failures[0]
    assert "down: there is no such broker now" in result.failures[1]


def test_steps__a_restart_that_cannot_be_completed_is_a_problem_of_the_run() -> None:
    result = run(
        "steps: [{at: 1s, kill: controller, as: node, for: 1s},"
        " {at: 5s, restart: {brokers: node, new_address: true}}]"
    )
    assert result.failures == ["restart (line 4): the controller has no address to change"]
    result = run(
        "steps: [{at: 1s, restart: {brokers: 2, down: 3s}}, {after: 1s, start: 2},"
        " {after: 1s, fill_disk: 2, for: 10s}]"
    )
    assert result.failures == ["restart: broker 2 cannot start: its disk is full"]


def test_steps__a_condition_that_never_holds_is_reported() -> None:
    result = run("steps: [{at: 5s, wait: }, {when: isr(orders-0) < 2, kill: 1}]")
    assert result.failures == [
        "kill (line 4) waited for isr(orders-0) < 2, which did not hold (it is 3)"
    ]


def test_checks__each_failed_check_is_reported() -> None:
    result = run(
        "steps: [{at: 5s, kill: 2, for: 1s}]\nchecks: {acked: '< 10', errors: [NOT_CONTROLLER],"
        " no_events: [broker_down], at_end: [isr(orders-0) < 3], anomalies: {lost-write: 1}}"
    )
    text = "\n".join(result.failures)
    assert "the verdict is valid, not invalid" in text
    assert "anomalies.lost-write: there are 0, not 1" in text
    assert "no client received NOT_CONTROLLER" in text
    assert "no_events: broker_down" in text
    assert "at_end: isr(orders-0) < 3 does not hold (it is 3)" in text
    assert "acked: 401, not < 10" in text


def test_run__the_same_verdict_on_both_clocks() -> None:
    text = """\
topology: {brokers: 3, profile: fast, topics: {orders: {assignment: [[1, 2, 3]]}}}
workload:
  producers: {topic: orders, rate: 200/s, count: 100}
  consumers: {topics: orders, group: readers}
duration: 1s
steps: [{at: 200ms, kill: leader(orders-0), for: 300ms}]
checks: {acked: 100, read: ">= 100"}
"""
    for clock in ("virtual", "live"):
        result = run_scenario(Scenario.parse(text), clock)
        assert result.passed, (clock, result.failures)
        assert result.verdict.outcome == "valid"


def test_run__waits_until_the_last_record_with_acks_0_has_arrived() -> None:
    text = """\
topology: {brokers: 3, topics: {orders: {assignment: [[1, 2, 3]]}}}
workload: {producers: {topic: orders, rate: 10/s, acks: 0}}
duration: 5s
checks: {acked: 51}
"""
    result = run_scenario(Scenario.parse(text), "virtual")
    assert result.verdict.outcome == "valid"


@pytest.mark.parametrize("stop", ["{at: 31s, stop: 2, for: 100ms}", "{at: 39500ms, stop: 2}"])
def test_repair__starts_a_broker_that_is_still_shutting_down(stop: str) -> None:
    slow = "{at: 30s, slow: {nodes: 2, others: controller, latency: 300ms}}"
    result = run(f"steps: [{slow}, {stop}]")
    assert result.failures == []
    (down_ms, _), (started_ms, text) = process_events(result)
    assert (started_ms, text) == (down_ms, "broker 2 started")


def test_run__waits_for_the_log_end_since_a_new_leader_s_high_watermark_lags() -> None:
    text = """\
topology:
  brokers: 3
  topics: {orders: {assignment: [[1, 2, 3]]}}
  network: {links: [{between: [1, 2], latency_ms: 700}, {between: [2, 3], latency_ms: 700}]}
workload:
  producers: {topic: orders, rate: 100/s, acks: 1}
  consumers: {topics: orders, group: readers}
duration: 10s
steps: [{at: 9900ms, move: {partition: orders-0, to: 2}}]
checks: {anomalies: {lost-write: 80}}
"""
    result = run_scenario(Scenario.parse(text), "virtual")
    assert result.failures == [], "acks=1 loses records in the move; the others are all read"


def test_run__waits_for_a_member_that_has_not_received_its_assignment() -> None:
    text = """\
topology: {brokers: 3, topics: {orders: {partitions: 2}}}
workload:
  producers: {topic: orders, rate: 100/s}
  consumers:
    - {topics: orders, name: early, group: readers, config: {heartbeat.interval.ms: 300}}
    - {topics: orders, name: late, group: readers, start: 9s}
duration: 10s
steps: [{at: 9010ms, slow: {nodes: late, latency: 1500ms}}]
checks: {verdict: valid}
"""
    result = run_scenario(Scenario.parse(text), "virtual")
    assert result.failures == []


def test_runs__what_was_recorded_is_freed_without_the_garbage_collector() -> None:
    """Most objects of a run are the record of it, and a search plays thousands of runs."""

    def recorders() -> int:
        return sum(isinstance(each, Recorder) for each in gc.get_objects())

    gc.collect()
    gc.disable()
    try:
        before = recorders()
        result = run("steps: [{at: 2s, kill: 2, for: 1s}]", "virtual")
        assert (result.passed, recorders()) == (True, before + 1)
        del result
        assert recorders() == before
    finally:
        gc.enable()
