"""Partitions that were offline, elected uncleanly or below min.insync.replicas, used or not."""

from __future__ import annotations

import json

import pytest

from kcluster.checks.degraded import Degraded, DegradedKind, ReplicaState
from kcluster.checks.origins import Origin, OriginKind
from kcluster.checks.verdict import Verdict
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.phases import RunResult
from kcluster.scenario.play.running import run_scenario
from tests.rig.stage import Stage

RACK_B = """
name: rack_b
topology:
  profile: fast
  brokers:
    - {id: 1, rack: a}
    - {id: 2, rack: b}
    - {id: 3, rack: c}
    - {id: 4, rack: a}
    - {id: 5, rack: b}
  topics:
    orders: {partitions: 12, replication_factor: 3, min_insync_replicas: 2}
    audit:
      assignment: [[2, 3], [5, 3], [1, 4]]
      unclean_leader_election_enable: true
duration: 4s
workload:
  producers: [{topic: orders, rate: 50/s, acks: all}]
  consumers: [{topics: [orders], group: g}]
steps:
  - {at: 0.5s, stop: 3}
  - {at: 1s, kill: {brokers: rack b, how: power}}
  - {at: 1.5s, start: 3}
  - {at: 2s, start: {brokers: rack b}}
"""


@pytest.fixture(scope="module")
def rack_b() -> RunResult:
    return run_scenario(Scenario.parse(RACK_B), "virtual", 1)


def of_kind(verdict: Verdict, kind: DegradedKind) -> list[Degraded]:
    return [each for each in verdict.degraded if each.kind is kind]


def test_degraded__partitions_that_no_client_used_are_in_the_verdict_first(
    rack_b: RunResult,
) -> None:
    verdict = rack_b.verdict
    offline = of_kind(verdict, DegradedKind.OFFLINE)
    assert [each.partition for each in offline] == [("audit", 0), ("audit", 1)]
    first = offline[0]
    assert first.then_unclean
    assert first.is_over
    states = {each.broker: each.state for each in first.ineligible}
    assert states == {2: ReplicaState.DOWN, 3: ReplicaState.DOWN}
    began_ms = rack_b.began_ms
    assert first.origin == Origin(
        OriginKind.LOST_POWER, began_ms + 1_000, (2, 5), "b", first.from_ms
    )
    line = verdict.lines()[0]
    assert line.startswith("offline: audit-0, audit-1 for "), line
    assert "rack b lost power at +1 s; noticed at +1.0" in line
    assert "broker 3 down since +501 ms; then elected uncleanly" in line


def test_degraded__each_unclean_election_is_one_and_has_no_line_of_its_own(
    rack_b: RunResult,
) -> None:
    elected = of_kind(rack_b.verdict, DegradedKind.UNCLEAN_ELECTION)
    assert [each.partition for each in elected] == [("audit", 0), ("audit", 1)]
    assert not any(line.startswith("elected uncleanly") for line in rack_b.verdict.lines())


def test_degraded__below_min_insync_replicas_is_counted_by_topic(rack_b: RunResult) -> None:
    verdict = rack_b.verdict
    under = of_kind(verdict, DegradedKind.UNDER_MIN_ISR)
    assert {each.partition[0] for each in under} == {"orders"}
    (line, *_) = [x for x in verdict.lines() if x.startswith("below min.insync.replicas")]
    assert "all 12 partitions of orders for " in line
    assert verdict.partition_counts == {"audit": 3, "orders": 12}


def test_degraded__what_has_one_origin_is_one_line_and_all_fits_a_screen(rack_b: RunResult) -> None:
    lines = rack_b.verdict.lines()
    assert len(lines) <= 24
    assert lines[-1] == "valid: no anomaly, and every invariant held"
    reads = [line for line in lines if line.startswith("no reads") and "rack b" in line]
    assert len(reads) == 1, lines
    assert len(rack_b.verdict.lines(verbose=True)) > 40


def test_degraded__is_in_the_json(rack_b: RunResult) -> None:
    decoded = json.loads(rack_b.verdict.to_json())
    first = decoded["degraded"][0]
    assert (first["kind"], first["partition"]) == ("offline", ["audit", 0])
    assert first["origin"]["rack"] == "b"
    assert first["origin"]["kind"] == "lost_power"


def test_degraded__checks_fail_the_scenario() -> None:
    wanted = "checks: {no_offline: true, no_unclean_election: true, no_under_min_isr: true}\n"
    result = run_scenario(Scenario.parse(RACK_B + wanted), "virtual", 1)
    failed = {each.check: each.text for each in result.failed}
    assert failed["no_offline"] == "no_offline: audit-0, audit-1"
    assert failed["no_unclean_election"] == "no_unclean_election: audit-0, audit-1"
    assert failed["no_under_min_isr"].startswith("no_under_min_isr: orders-0, ")


def test_degraded__a_quiet_run_has_none_and_passes_these_checks() -> None:
    quiet = RACK_B[: RACK_B.index("steps:")].replace("4s", "1s")
    wanted = "checks: {no_offline: true, no_unclean_election: true, no_under_min_isr: true}\n"
    result = run_scenario(Scenario.parse(quiet + wanted), "virtual", 1)
    assert result.passed
    assert not result.verdict.degraded


def test_degraded__to_the_end_while_it_lasts() -> None:
    stage = Stage(**{"min.insync.replicas": 2})
    stage.hand().produce(1, [b"a"])
    stage.run_for(100)
    for broker in (3, 2, 1):
        stage.kill(broker)
        stage.run_for(5_000)
    verdict = stage.verdict(healed=False, began_ms=stage.began_ms)
    kinds = {each.kind: each for each in verdict.degraded}
    assert set(kinds) == {DegradedKind.OFFLINE, DegradedKind.UNDER_MIN_ISR}
    offline = kinds[DegradedKind.OFFLINE]
    assert not offline.is_over
    assert offline.to_ms == stage.now_ms
    assert verdict.lines()[0].startswith("offline: orders-0 for 2.5 s from +12.6 s on, to the end:")
    assert "broker 2 down since +5.1 s, broker 3 down since +100 ms" in verdict.lines()[0]


def test_degraded__since_begins_there() -> None:
    stage = Stage(**{"min.insync.replicas": 2})
    stage.hand().produce(1, [b"a"])
    stage.run_for(100)
    stage.kill(2)
    stage.kill(3)
    stage.run_for(10_000)
    since_ms = stage.now_ms - 1_000
    (under,) = stage.verdict(healed=False, since_ms=since_ms).degraded
    assert (under.from_ms, under.duration_ms) == (since_ms, 1_000)
    assert under.origin is not None
    assert under.origin.nodes == (2, 3)
    stage.start(2)
    stage.start(3)
    stage.run_for(10_000)
    assert not stage.verdict(since_ms=stage.now_ms - 1_000).degraded


def test_degraded__a_deleted_topic_is_not_offline_any_more() -> None:
    stage = Stage()
    stage.hand().produce(1, [b"a"])
    stage.assign_topic("audit", [[3]])
    stage.kill(3)
    stage.run_for(5_000)
    began_ms = stage.verdict(healed=False).degraded[0].from_ms
    body = m.DeleteTopicsRequest(
        topics=[m.DeleteTopicsRequest.DeleteTopicState(name="audit")], timeout_ms=5_000
    )
    stage.ask(1, ApiKey.DELETE_TOPICS, 6, body)
    stage.run_for(0)
    deleted_ms = stage.now_ms
    stage.run_for(5_000)
    found = stage.verdict(healed=False).degraded[0]
    assert (found.from_ms, found.to_ms, found.is_over) == (began_ms, deleted_ms, True)
