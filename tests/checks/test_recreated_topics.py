"""Topics that are deleted and created again: what counts is in the topic that is there now."""

from __future__ import annotations

import pytest

from kcluster.checks.settings import Setting
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.phases import RunResult
from kcluster.scenario.play.running import run_scenario

HEAD = """\
topology:
  brokers: 3
  topics: {orders: {partitions: 2, replication_factor: 3, config: {min.insync.replicas: 2}}TOPICS}
  config:
    broker.session.timeout.ms: 2000
    broker.heartbeat.interval.ms: 400
    offsets.topic.num.partitions: 1
    group.initial.rebalance.delay.ms: 0
    group.consumer.min.heartbeat.interval.ms: 500
    group.consumer.heartbeat.interval.ms: 1000
"""
GROUP = """\
workload:
  producers: {topic: orders, name: shop, rate: 7/s, in_flight: 1}
  consumers:
    topics: orders
    name: old
    group: classic
    members: MEMBERS
    config: {session.timeout.ms: 6000, heartbeat.interval.ms: 1000}
"""


def run(text: str, seed: int = 1, topics: str = "") -> RunResult:
    head = HEAD.replace("TOPICS", topics)
    return run_scenario(Scenario.parse(head + text), "virtual", seed)


@pytest.mark.parametrize("seed", range(1, 9))
def test_recreated__a_record_that_is_sent_again_to_the_new_topic_is_no_phantom(seed: int) -> None:
    """Its first attempt is in the deleted topic, and its second one in the topic that is there
    now."""
    result = run(
        """\
workload:
  producers:
    topic: orders
    name: shop
    rate: 7/s
    in_flight: 1
    config: {request.timeout.ms: 1500, delivery.timeout.ms: 60000}
duration: 6s
steps:
  - {at: 5s, kill: 1, for: 5s}
  - {at: 6s, recreate_topic: orders}
""",
        seed,
    )
    assert (result.passed, result.verdict.counts()) == (True, {})
    assert result.verdict.unknown == 0


@pytest.mark.parametrize("duration", ["5s", "8s"])
def test_recreated__a_group_that_goes_on_from_the_deleted_topic_is_told_so(duration: str) -> None:
    """A commit after the deletion is taken, because the topic has the same name; the position that
    a member takes from it is beyond the new log, so it goes on at the end of that.  In the longer
    run the new log grows beyond that position."""
    result = run(
        GROUP.replace("MEMBERS", "1")
        + f"duration: {duration}\n"
        + """\
steps:
  - {at: 2s, add_partitions: {topic: orders, to: 3}}
  - {at: 3s, recreate_topic: orders}
  - {at: 4800ms, evict: {group: classic, member: all}}
"""
    )
    found = {(one.name, one.allowed) for one in result.verdict.anomalies}
    assert found == {("unseen", Setting.RECREATED)}


def test_recreated__a_member_reports_what_it_was_given_and_not_the_new_topic() -> None:
    """The new topic may go to another member at once.  Kafka's consumer has its assignment by the
    ids of topics (LocalAssignment)."""
    result = run(
        """\
workload:
  consumers:
    topics: [orders, bills]
    name: new
    group: epochs
    group_protocol: consumer
    members: 2
  producers: {topic: bills, rate: 5/s}
duration: 2s
steps: [{at: 1s, recreate_topic: bills}]
""",
        seed=7,
        topics=", bills: {partitions: 2, replication_factor: 3}",
    )
    assert result.verdict.counts() == {}


def test_recreated__a_leader_that_was_paused_serves_the_deleted_topic_until_it_knows() -> None:
    result = run(
        """\
workload:
  producers:
    {topic: orders, name: shop, rate: 7/s, in_flight: 1, config: {request.timeout.ms: 1500}}
  consumers: {topics: [orders, bills], name: new, group: epochs, group_protocol: consumer}
duration: 9s
steps:
  - {at: 1s, kill: 3, for: 4s}
  - {at: 4s, rolling_restart: {brokers: all brokers, down: 300ms}, for: 5s}
  - {at: 5s, when: append, within: 500ms, pause: 2, for: 5s}
  - {at: 7s, recreate_topic: orders}
""",
        seed=500029,
        topics=", bills: {partitions: 2, replication_factor: 3}",
    )
    found = {(one.name, one.allowed) for one in result.verdict.anomalies}
    assert found == {("inconsistent-offsets", Setting.RECREATED)}


def test_evicted__members_that_wait_for_a_rebalance_have_left() -> None:
    """Their waiting JoinGroups are answered UNKNOWN_MEMBER_ID."""
    result = run(
        GROUP.replace("MEMBERS", "2")
        + """\
duration: 9s
steps:
  - {at: 5s, kill: client old-2, for: 1s}
  - {at: 9s, evict: {group: classic, member: all}}
"""
    )
    assert result.verdict.violations == ()
