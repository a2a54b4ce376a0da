"""A streams member's assignment that was lost, and the later assignments that do not repeat it; a
group whose topic cannot be created."""

from __future__ import annotations

import pytest

from kcluster.checks.settings import Setting
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
BRIEFLY_REPLACED = """
# The move makes broker 2 coordinator for a moment.  It cannot be reached, and lacks the assignment,
# which its own successor, broker 1 again, still has.
topology:
  brokers: 3
  topics:
    orders: {partitions: 4, replication_factor: 3, config: {min.insync.replicas: 2}}
    bills: {partitions: 2, replication_factor: 3, config: {min.insync.replicas: 2}}
  config:
    broker.session.timeout.ms: 2000
    broker.heartbeat.interval.ms: 400
    offsets.topic.num.partitions: 1
    transaction.state.log.num.partitions: 1
    group.streams.min.session.timeout.ms: 1000
    group.streams.session.timeout.ms: 2000
    group.streams.min.heartbeat.interval.ms: 300
    group.streams.heartbeat.interval.ms: 500
    group.streams.initial.rebalance.delay.ms: 100
workload:
  producers: {topic: orders, name: shop, rate: 5/s, keys: 20, in_flight: 1}
  processors:
    - {topic: orders, to: bills, group: engines, name: guest, start: 3s, group_protocol: streams}
duration: 9s
seed: 96161
steps:
  - {at: 5s, kill: client guest, for: 1500ms}
  - {at: 7500ms, isolate: 2, for: 5s}
  - {at: 9s, move: {partition: __consumer_offsets-0, to: 2}}
"""


def played(checks: str) -> RunResult:
    return run_scenario(Scenario.parse(ENGINES % checks), "virtual")


def test_lost_tasks__that_a_later_assignment_left_with_their_member() -> None:
    """A guest gets a task of one engine, which is told its tasks then.  The other engine keeps its
    tasks, and is told nothing."""
    verdict = played("anomalies: {unsettled-group: some}").verdict
    assert verdict.counts() == {"unsettled-group": 2}
    assert all(Cause.TASKS_SENT_ONCE in anomaly.causes for anomaly in verdict.anomalies)


def test_lost_tasks__with_a_coordinator_that_was_replaced_for_a_moment() -> None:
    verdict = run_scenario(Scenario.parse(BRIEFLY_REPLACED), "virtual", 96161).verdict
    assert verdict.anomalies
    assert {str(one.allowed) for one in verdict.anomalies} == {str(Setting.TASKS_SENT_ONCE)}


def test_rest__is_not_asked_of_a_group_that_may_stay_unsettled() -> None:
    assert played("allowed_anomalies: unsettled-group").passed
    assert played("").failures == [
        "the verdict is invalid, not valid",
        "2 unsettled-group that were not expected",
    ]


@pytest.mark.parametrize(
    ("config", "client", "told"),
    [
        (
            "offsets.topic.replication.factor",
            "consumers: {topics: orders, name: desk, group: shop}",
            "__consumer_offsets needs 3 replicas",
        ),
        (
            "share.coordinator.state.topic.replication.factor",
            "consumers: {topics: orders, name: desk, group: shop, share: true}",
            "__share_group_state needs 3 replicas",
        ),
        (
            "transaction.state.log.replication.factor",
            "processors: {topic: orders, to: bills, group: shop, group_protocol: consumer}",
            "__transaction_state needs 3 replicas",
        ),
    ],
)
def test_groups__are_not_served_where_their_topic_needs_more_brokers(
    config: str, client: str, told: str
) -> None:
    verdict = run_scenario(
        Scenario.parse(f"""
topology: {{brokers: 2, topics: {{orders: {{}}, bills: {{}}}}, config: {{{config}: 3}}}}
workload:
  producers: {{topic: orders, rate: 20/s}}
  {client}
duration: 2s
"""),
        "virtual",
    ).verdict
    (found,) = verdict.anomalies
    assert (found.name, found.allowed) == ("unsettled-group", Setting.TOO_FEW_BROKERS)
    assert [one.text for one in found.chain] == [f"{told}, and the cluster has 2 brokers"]
    assert found.causes == (Cause.TOO_FEW_BROKERS,)
