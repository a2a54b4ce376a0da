"""Broken coordinators of groups that one short story shows, as in test_broken_cores.py."""

from __future__ import annotations

from typing import Any

import pytest

from kcluster.broker.coordinator.classic_group import ClassicGroup
from kcluster.broker.coordinator.classic_members import ClassicMember
from kcluster.broker.coordinator.consumer import heartbeat
from kcluster.broker.coordinator.consumer.group import ConsumerGroup
from kcluster.broker.coordinator.consumer.member import ConsumerMember
from kcluster.broker.coordinator.interface import Settled
from kcluster.broker.coordinator.modern.group import ModernGroup
from kcluster.protocol.errors import ErrorCode
from tests.invariants.test_broken_cores import names, run

pytestmark = pytest.mark.pure_python  # a class of the extension cannot be broken on purpose

STATIC_MEMBER_RETURNS = """\
topology: {brokers: 3, profile: fast, topics: {orders: {assignment: [[1, 2, 3]]}}}
workload:
  producers: {topic: orders, rate: 20/s}
  consumers:
    - {topics: orders, name: desk, group: billing, config: {group.instance.id: desk}}
    - {topics: orders, name: till, group: billing, config: {group.instance.id: till}}
duration: 8s
steps:
  - {at: 3s, kill: client till, for: 100ms}
  - {at: 5s, kill: coordinator(billing), for: 1s}
"""


def test_static_member__that_is_back_and_that_the_next_coordinator_does_not_know(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """KAFKA-10284: its new id was not stored, so the old one still had its place in the log."""
    assert run(STATIC_MEMBER_RETURNS).passed
    sound = ClassicGroup._replace_static

    def count_as_stored(self: ClassicGroup, _: Any, settled: Settled, now_ms: int) -> None:
        settled(ErrorCode.NONE, now_ms)

    def replace_static(self: ClassicGroup, *args: Any) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(ClassicGroup, "_store", count_as_stored)
            sound(self, *args)

    monkeypatch.setattr(ClassicGroup, "_replace_static", replace_static)
    assert "lost-member" in names(run(STATIC_MEMBER_RETURNS))


SHORT_SESSIONS = """\
  config:
    group.consumer.min.session.timeout.ms: 1000
    group.consumer.session.timeout.ms: 2000
    group.consumer.min.heartbeat.interval.ms: 500
    group.consumer.heartbeat.interval.ms: 500
"""
DIES_WHILE_NOTHING_IS_WRITTEN = f"""\
topology:
  brokers: 3
  topics:
    orders: {{assignment: [[3], [3]]}}
    __consumer_offsets: {{assignment: [[1, 2]], config: {{min.insync.replicas: 2}}}}
{SHORT_SESSIONS}
workload:
  producers: {{topic: orders, rate: 20/s, stop: 3s}}
  consumers: {{topics: orders, name: clerk, group: billing, group_protocol: consumer, members: 2}}
duration: 10s
steps:
  - {{at: 3s, stop: 2, for: 4s}}
  - {{at: 3500ms, kill: client clerk-2}}
"""


def test_group__that_fences_a_dead_member_only_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The coordinator's first write of it is refused, for want of replicas."""
    assert run(DIES_WHILE_NOTHING_IS_WRITTEN).passed
    sound = ModernGroup.expire

    def expire(self: ModernGroup[Any, Any], member_id: str, now_ms: int) -> None:
        sound(self, member_id, now_ms)
        self.timers.end_session(member_id)

    monkeypatch.setattr(ModernGroup, "expire", expire)
    result = run(DIES_WHILE_NOTHING_IS_WRITTEN)
    assert names(result) == set()
    assert "unsettled-group" in result.verdict.counts()


EMPTY_WHILE_ITS_COORDINATOR_MOVES = """\
topology:
  brokers: 3
  topics: {orders: {assignment: [[1, 2, 3]]}}
  config: {offsets.retention.minutes: 1, offsets.retention.check.interval.ms: 5000}
workload:
  producers: {topic: orders, rate: 10/s, stop: 3s}
  consumers: {topics: orders, name: clerk, group: billing, commit: after_poll}
duration: 95s
steps:
  - {at: 70s, stop: client clerk, for: 20s}
  - {at: 75s, kill: coordinator(billing), for: 10s}
"""
"""The group commits for the last time at 3 s, and is in use until 70 s."""


def test_group__whose_next_coordinator_does_not_know_since_when_it_is_empty(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert run(EMPTY_WHILE_ITS_COORDINATOR_MOVES).passed
    sound = ClassicGroup.replay

    def replay(self: ClassicGroup, record: Any) -> bool:
        before = self.state_since_ms
        is_stored = sound(self, record)
        self.state_since_ms = before
        return is_stored

    monkeypatch.setattr(ClassicGroup, "replay", replay)
    result = run(EMPTY_WHILE_ITS_COORDINATOR_MOVES)
    assert "committed-offset-back" in result.verdict.counts()


LEAVES_FOR_A_WHILE = f"""\
topology:
  brokers: 3
  topics: {{orders: {{assignment: [[3], [3]]}}, __consumer_offsets: {{assignment: [[1, 2]]}}}}
{SHORT_SESSIONS}
workload:
  producers: {{topic: orders, rate: 20/s, stop: 3s}}
  consumers:
    - {{topics: orders, name: clerk, group: billing, group_protocol: consumer}}
    - topics: orders
      name: lodger
      group: billing
      group_protocol: consumer
      stop: 3s
      config: {{group.instance.id: till}}
duration: 6s
"""


def test_static_member__that_says_it_will_be_back_and_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its session goes on while it is away: no other timer gives its partitions to others."""
    assert run(LEAVES_FOR_A_WHILE).passed
    sound = vars(heartbeat)["decide_leave"]

    def decide_leave(group: Any, body: Any, *rest: Any) -> Any:
        decided = sound(group, body, *rest)
        group.timers.end_session(body.member_id)
        return decided

    monkeypatch.setattr(heartbeat, "decide_leave", decide_leave)
    result = run(LEAVES_FOR_A_WHILE)
    assert names(result) == set()
    assert "unsettled-group" in result.verdict.counts()


JOINS_WHILE_ITS_COORDINATOR_MOVES = """\
topology:
  brokers: 3
  topics: {orders: {assignment: [[3]]}, __consumer_offsets: {assignment: [[1, 2]]}}
workload:
  producers: {topic: orders, rate: 20/s}
  consumers:
    - {topics: orders, name: silent, group: billing, commit: never}
    - {topics: orders, name: late, group: billing, start: 5s}
duration: 20s
steps:
  - {at: 4900ms, isolate: {nodes: silent}, for: 5s}
  - {at: 6s, move: {partition: __consumer_offsets-0, to: 2}}
"""


def test_coordinator__that_resigns_and_leaves_a_join_without_an_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The late member gives up by itself, long before a rebalance must have ended."""
    assert run(JOINS_WHILE_ITS_COORDINATOR_MOVES).passed
    sound = ClassicGroup.unload

    def unload(self: ClassicGroup, now_ms: int) -> None:
        for member in self.roster.members.values():
            member.join = member.sync = None
        sound(self, now_ms)

    monkeypatch.setattr(ClassicGroup, "unload", unload)
    result = run(JOINS_WHILE_ITS_COORDINATOR_MOVES)
    assert names(result) == {"no-reply"}


LEFT_TO_CLASSIC_MEMBERS = f"""\
topology:
  brokers: 3
  topics: {{orders: {{partitions: 4, replication_factor: 3}}}}
{SHORT_SESSIONS}    group.consumer.migration.policy: bidirectional
    group.consumer.assignment.interval.ms: 0
workload:
  producers: {{topic: orders, rate: 20/s}}
  consumers:
    - {{topics: orders, name: new, group: mixed, group_protocol: consumer, stop: 6s}}
    - {{topics: orders, name: old, group: mixed, start: 1s}}
duration: 9s
"""


def test_group__that_becomes_classic_and_does_not_rebalance(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert run(LEFT_TO_CLASSIC_MEMBERS).passed
    monkeypatch.setattr(ClassicGroup, "rebalance", lambda *_: None)
    assert "partition-dropped" in names(run(LEFT_TO_CLASSIC_MEMBERS))


UPGRADED = LEFT_TO_CLASSIC_MEMBERS.replace("stop: 6s", "start: 5s").replace(", start: 1s", "")


def test_group__that_gets_epochs_and_forgets_a_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(UPGRADED).passed
    sound = ConsumerGroup.target_of

    def target_of(self: ConsumerGroup, *args: Any) -> Any:
        return {
            member_id: {topic_id: some - {3} for topic_id, some in target.items()}
            for member_id, target in sound(self, *args).items()
        }

    monkeypatch.setattr(ConsumerGroup, "target_of", target_of)
    assert "partition-dropped" in names(run(UPGRADED))


WAITS_FOR_THE_LEADER = """\
topology:
  brokers: 1
  topics: {orders: {partitions: 4, replication_factor: 1}}
  config: {group.initial.rebalance.delay.ms: 0, group.min.session.timeout.ms: 500}
workload:
  producers: {topic: orders, rate: 20/s}
  consumers:
    - {topics: orders, name: slow, group: billing, config: {session.timeout.ms: 8000}}
    - topics: orders
      name: quick
      group: billing
      start: 2s
      config: {session.timeout.ms: 1000, heartbeat.interval.ms: 200}
    - {topics: orders, name: late, group: billing, start: 6s}
duration: 15s
steps:
  - at: 4s
    rule: {api: [JoinGroup, SyncGroup], client: slow, delay: 2500ms, of: request}
    for: 8s
"""


def test_member__that_has_to_send_heartbeats_while_it_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert names(run(WAITS_FOR_THE_LEADER)) == set()
    monkeypatch.setattr(ClassicMember, "excused_from_heartbeat", False)
    assert "removed-waiting" in names(run(WAITS_FOR_THE_LEADER))


KEPT = """\
topology:
  brokers: 1
  topics: {orders: {partitions: 4, replication_factor: 1}}
  config:
    group.consumer.min.session.timeout.ms: 1000
    group.consumer.session.timeout.ms: 3000
    group.consumer.min.heartbeat.interval.ms: 200
    group.consumer.heartbeat.interval.ms: 200
    group.consumer.assignment.interval.ms: 0
workload:
  producers: {topic: orders, rate: 40/s}
  consumers:
    - topics: orders
      name: stay
      group: epochs
      group_protocol: consumer
      config: {auto.commit.interval.ms: 200, request.timeout.ms: 600, fetch.max.wait.ms: 100}
    - {topics: orders, name: a, group: epochs, group_protocol: consumer, start: 2s, stop: 4s}
    - {topics: orders, name: b, group: epochs, group_protocol: consumer, start: 3s, stop: 5s}
duration: 8s
steps:
  - at: 1s
    rule:
      api: OffsetCommit
      client: stay
      delay: 800ms
      jitter: 1500ms
      of: request
      probability: 50%
    for: 6s
"""
"""The commits of a member are late, and it gets new epochs while it keeps two partitions."""


def test_commit__that_is_refused_though_the_partition_was_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert names(run(KEPT)) == set()
    monkeypatch.setattr(ConsumerMember, "assignment_epoch", lambda self, *_: self.epoch)
    assert "commit-refused" in names(run(KEPT))


MATCHED = """\
topology:
  brokers: 1
  topics: {orders: {partitions: 1, replication_factor: 1}}
  config: {auto.create.topics.enable: false}
workload:
  producers: {topic: orders, rate: 1/s}
  consumers:
    - topics: [orders, fees]
      name: clerk
      group: billing
      group_protocol: consumer
      by_pattern: true
duration: 40s
steps: [{at: 3s, create_topic: {name: fees}}]
"""


def test_topic__that_is_created_later_and_not_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert names(run(MATCHED)) == set()
    has_new = property(lambda self: self._topics_seen is None)
    monkeypatch.setattr(ConsumerGroup, "has_new_topics", has_new)
    assert "topic-unmatched" in names(run(MATCHED))
