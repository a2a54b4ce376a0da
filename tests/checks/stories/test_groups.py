"""A streams member's assignment that was lost, and the later assignments that do not repeat it."""

from __future__ import annotations

from kcluster.evidence.causes import Cause
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.phases import RunResult
from kcluster.scenario.play.running import run_scenario

ENGINES = """
topology:
  brokers: 3
  topics: {orders: {partitions: 4, replication_factor: 3}, bills: {}}
workload:
  producers: {topic: orders, name: shop, rate: 20/s, keys: 20}
  processors:
    - {topic: orders, to: bills, name: engine, group: engines, members: 2, group_protocol: streams}
    - {topic: orders, to: bills, name: guest, group: engines, start: 12s, group_protocol: streams}
duration: 14s
steps:
  - {at: 2s, rule: {api: StreamsGroupHeartbeat, drop: reply, close: true}, for: 5s}
checks: {%s}
"""


def played(checks: str) -> RunResult:
    return run_scenario(Scenario.parse(ENGINES % checks), "virtual")


def test_lost_tasks__that_a_later_assignment_left_with_their_member() -> None:
    """A guest gets a task of one engine, which is told its tasks then.  The other engine keeps its
    tasks, and is told nothing."""
    verdict = played("anomalies: {unsettled-group: some}").verdict
    assert verdict.counts() == {"unsettled-group": 2}
    assert all(Cause.TASKS_SENT_ONCE in anomaly.causes for anomaly in verdict.anomalies)


def test_rest__is_not_asked_of_a_group_that_may_stay_unsettled() -> None:
    assert played("allowed_anomalies: unsettled-group").passed
    assert played("").failures == [
        "the verdict is invalid, not valid",
        "2 unsettled-group that were not expected",
    ]
