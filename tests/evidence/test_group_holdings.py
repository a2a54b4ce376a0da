"""A partition that two members of a group have: found for each kind of group that promises one."""

from __future__ import annotations

import pytest

from kcluster.broker.coordinator.classic_members import Roster
from kcluster.broker.coordinator.streams.tasks import Holders
from kcluster.config.topology.model import Topology
from kcluster.evidence.group_holdings import held_twice
from kcluster.evidence.recorder import Recorder
from kcluster.protocol.errors import ErrorCode
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.phases import RunResult
from kcluster.scenario.play.running import run_scenario
from tests.broker.coordinator.streams.declared import declared, part
from tests.broker.coordinator.streams.streams_members import StreamsThread, settle
from tests.broker.coordinator.test_real_brokers import coordinator
from tests.rig.cluster import VirtualRig

pytestmark = pytest.mark.pure_python  # a class of the extension cannot be broken on purpose

CLASSIC = """\
# Classic members come and go, and their coordinator dies.
topology:
  brokers: 3
  profile: fast
  topics: {orders: {partitions: 4, replication_factor: 3}}
workload:
  producers: {topic: orders, name: shop, rate: 200/s, keys: 20}
  consumers:
    - {topics: orders, name: first, group: billing, config: CONFIG}
    - {topics: orders, name: second, group: billing, start: 500ms, config: CONFIG}
    - {topics: orders, name: guest, group: billing, start: 1s, stop: 1500ms, config: CONFIG}
duration: 2s
steps:
  - {at: 700ms, kill: coordinator(billing), for: 500ms}
checks: {verdict: valid}
"""
DELETED = """\
topology:
  brokers: 1
  topics:
    fees: {partitions: 1, replication_factor: 1}
    orders: {partitions: 1, replication_factor: 1}
    bills: {partitions: 1, replication_factor: 1}
  config: {auto.create.topics.enable: false}
workload:
  producers: {topic: fees, name: shop, rate: 5/s}
  consumers:
    - {topics: [orders, bills], name: first, group: billing, group_protocol: consumer}
    - {topics: [orders, bills], name: second, group: billing, group_protocol: consumer, start: 1s}
duration: 12s
steps: [{at: 9s, delete_topic: orders}, {at: 9s, delete_topic: bills}]
"""
"""Of topics that are gone, the answers have ids without names."""
BACK_UNDER_ITS_OLD_ID = """\
# A classic member of a consumer group is removed while nothing can be written, and joins again with
# the partitions that it had, before it knows.
topology:
  brokers: 3
  topics: {orders: {partitions: 6, replication_factor: 3, config: {min.insync.replicas: 2}}}
  config:
    broker.session.timeout.ms: 2000
    broker.heartbeat.interval.ms: 400
    offsets.topic.num.partitions: 1
    offsets.topic.replication.factor: 3
    group.consumer.migration.policy: bidirectional
    group.initial.rebalance.delay.ms: 0
    group.min.session.timeout.ms: 1000
    group.consumer.min.session.timeout.ms: 1000
    group.consumer.session.timeout.ms: 2500
    group.consumer.min.heartbeat.interval.ms: 300
    group.consumer.heartbeat.interval.ms: 500
    group.consumer.assignment.interval.ms: 0
workload:
  producers: {topic: orders, name: shop, rate: 5/s, in_flight: 1}
  consumers:
    - topics: orders
      name: new
      group: mixed
      group_protocol: consumer
      members: 2
      config: {max.poll.interval.ms: 3000}
    - topics: orders
      name: guest
      group: mixed
      group_protocol: consumer
      start: 2s
      stop: 4500ms
      config: {max.poll.interval.ms: 3000}
    - topics: orders
      name: old
      group: mixed
      start: 500ms
      config:
        session.timeout.ms: 2500
        heartbeat.interval.ms: 300
        max.poll.interval.ms: 3000
        partition.assignment.strategy: cooperative-sticky
duration: 5s
seed: 76
steps:
  - {at: 1810ms, kill: 3, for: 1s}
  - {at: 2300ms, kill: 2, for: 5s}
  - at: 3s
    for: 5s
    rule:
      api: [ConsumerGroupHeartbeat, JoinGroup, SyncGroup, Heartbeat]
      probability: 20%
      drop: reply
      close: true
  - {at: 4100ms, kill: 3, for: 5s}
checks: {allowed_anomalies: committed-offset-back}
"""
ASSIGNORS = ("range", "cooperative-sticky")


def played(assignor: str) -> RunResult:
    config = f"{{partition.assignment.strategy: {assignor}}}"
    return run_scenario(Scenario.parse(CLASSIC.replace("CONFIG", config)), "virtual")


@pytest.mark.parametrize("assignor", ASSIGNORS)
def test_holdings__classic_members_never_share_a_partition(assignor: str) -> None:
    assert played(assignor).passed


def test_holdings__of_topics_that_are_gone_are_not_compared() -> None:
    assert "owned-twice" not in run_scenario(Scenario.parse(DELETED), "virtual").verdict.counts()


def test_holdings__end_with_the_removal_of_a_member_whatever_it_says_then() -> None:
    result = run_scenario(Scenario.parse(BACK_UNDER_ITS_OLD_ID), "virtual")
    assert result.failures == []


@pytest.mark.parametrize("assignor", ASSIGNORS)
def test_holdings__a_join_phase_that_does_not_wait_gives_partitions_twice(
    assignor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Members that have not joined again are forgotten at once, and still have their partitions."""
    late = Roster.late

    def forget(self: Roster) -> list[str]:
        for member_id in late(self):
            self.remove(member_id)
        return []

    monkeypatch.setattr(Roster, "late", forget)
    monkeypatch.setattr(Roster, "all_have_joined", property(lambda _: True))
    assert "owned-twice" in played(assignor).verdict.counts()


@pytest.mark.parametrize("is_broken", [False, True])
def test_holdings__of_streams_are_the_partitions_of_active_tasks(
    is_broken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broken core forgets which process has a task, and gives it to another one."""
    if is_broken:
        monkeypatch.setattr(Holders, "active", lambda *_: None)
    rig = VirtualRig(
        Topology.of(brokers=3, topics={"lines": {"partitions": 4}}, profile="fast"), seed=5
    )
    recorder = Recorder(rig.dispatcher, rig.plan)
    rig.open()
    rig.run_for(500)
    broker = coordinator(rig, via=1)
    rig.run_for(200)
    topology = declared(part("0", ["lines"]))
    a, b = StreamsThread(broker, "a", topology), StreamsThread(broker, "b", topology)
    assert a.join() is ErrorCode.NONE
    rig.run_for(30)
    settle(a)
    assert b.join() is ErrorCode.NONE
    rig.run_for(30)
    settle(b, a)
    found = [(one.partition, one.holder, one.other) for one in held_twice(recorder)]
    assert found == ([(("lines", 2), "a", "b"), (("lines", 3), "a", "b")] if is_broken else [])
