"""A scenario for `fast` at a slower pace: the same story, with longer times."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kcluster.actions.network import Slow
from kcluster.actions.rules import AddRule
from kcluster.apache_kafka.properties import with_real_times
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.pace import AS_KAFKA, TENTH_OF_KAFKA, Pace
from kcluster.scenario.play.phases import RunResult
from kcluster.scenario.play.virtual import run_virtual

TEXT = """\
topology:
  brokers: 3
  profile: fast
  config: {connections.max.reauth.ms: 1500, num.partitions: 5}
  network: {default_latency_ms: 2}
  topics: {orders: {assignment: [[1, 2, 3]], config: {retention.ms: 200}}}
workload: {producers: {topic: orders, rate: 20/s}}
duration: 1s
steps:
  - {at: 200ms, slow: {nodes: 2, latency: 5ms}}
  - {at: 300ms, rule: {api: Produce, delay: 7ms, nth: 2}}
  - {at: 500ms, kill: leader(orders-0), for: 200ms}
"""

FAILOVER = """\
topology: {brokers: 3, profile: fast, topics: {orders: {assignment: [[1, 2, 3]]}}}
workload: {producers: {topic: orders, rate: 200/s}}
duration: 250ms
steps: [{at: 50ms, kill: leader(orders-0)}]
"""


def played(pace: Pace) -> RunResult:
    scenario = pace.stretched(Scenario.parse(FAILOVER))
    scenario = replace(scenario, topology=with_real_times(scenario.topology))
    return run_virtual(scenario, 1, lambda passed_ms, all_ms: None, pace=pace)


def test_stretched__every_time_of_the_file_is_longer_and_nothing_else() -> None:
    scenario = TENTH_OF_KAFKA.stretched(Scenario.parse(TEXT))
    topology = scenario.topology
    assert topology.config == {"connections.max.reauth.ms": "15000", "num.partitions": "5"}
    assert topology.network.default_latency_ms == 20
    assert [each.rate_per_s for each in scenario.workload.producers] == [2]
    assert topology.topics["orders"].config == {"retention.ms": "2000"}
    slow, rule, kill = (step.action for step in scenario.steps)
    assert isinstance(slow, Slow)
    assert slow.latency_ms == 50
    assert isinstance(rule, AddRule)
    assert (rule.delay_ms, rule.nth) == (70, 2)
    assert scenario.steps[2].action == kill
    assert scenario.steps[2].trigger == Scenario.parse(TEXT).steps[2].trigger


@pytest.mark.parametrize(
    ("pace", "session_ms"), [(TENTH_OF_KAFKA, 900), (AS_KAFKA, 9_000)], ids=["tenth", "kafka"]
)
def test_pace__the_same_story_with_the_times_of_a_real_kafka(pace: Pace, session_ms: int) -> None:
    result = played(pace)
    assert result.failures == []
    assert result.verdict.unavailable_ms("writes") == pytest.approx(session_ms, rel=0.2)
