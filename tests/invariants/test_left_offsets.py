"""Offsets of deleted topics that their coordinator has kept."""

from __future__ import annotations

import pytest

from kcluster.broker.coordinator.shard import GroupShard
from tests.invariants.test_broken_cores import names, run

pytestmark = pytest.mark.pure_python  # a class of the extension cannot be broken on purpose

STORY = """\
# A topic is deleted of which a group has committed offsets, and created again.
topology:
  brokers: 3
  topics: {orders: {partitions: 2, replication_factor: 3}}
  config: {offsets.topic.num.partitions: 1, group.initial.rebalance.delay.ms: 0}
workload:
  producers: {topic: orders, rate: 20/s, stop: 2s}
  consumers: {topics: orders, name: reader, group: billing, commit: after_poll, stop: 2500ms}
duration: 5s
steps:
  - {at: 3s, recreate_topic: orders}
"""
IN_A_TRANSACTION = """\
# The offsets are in a transaction that is open when their topic is deleted.
topology:
  brokers: 3
  topics: {orders: {partitions: 1, replication_factor: 3}, bills: {partitions: 1}}
  config: {offsets.topic.num.partitions: 1, group.initial.rebalance.delay.ms: 0}
workload:
  producers: {topic: orders, rate: 20/s, stop: 2s}
  processors: {topic: orders, to: bills, name: engine, group: engines}
duration: 6s
steps:
  - {at: 1s, rule: {api: EndTxn, delay: 2s, of: request}, for: 1s}
  - {at: 2500ms, recreate_topic: orders}
checks: {allowed_anomalies: [unseen, processed-twice]}
"""
TOO_FEW_REPLICAS = """\
# The coordinator cannot write when the topic is deleted, so its offsets stay.
topology:
  brokers: 3
  topics: {orders: {assignment: [[1]]}}
  config: {offsets.topic.num.partitions: 1, group.initial.rebalance.delay.ms: 0}
workload:
  producers: {topic: orders, rate: 20/s, stop: 2s}
  consumers: {topics: orders, name: reader, group: billing, commit: after_poll, stop: 2500ms}
duration: 40s
steps:
  - {at: 3s, set_config: {topics: __consumer_offsets, config: {min.insync.replicas: 2}}}
  - {at: 4s, stop: followers(__consumer_offsets-0), as: others}
  - {at: 20s, recreate_topic: orders}
  - {at: 25s, start: others}
"""


@pytest.mark.parametrize("story", [STORY, IN_A_TRANSACTION, TOO_FEW_REPLICAS])
def test_left_offsets__end_with_their_topic_where_the_log_takes_records(story: str) -> None:
    assert "offset-left" not in names(run(story))


@pytest.mark.parametrize("story", [STORY, IN_A_TRANSACTION])
def test_left_offsets__stay(story: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GroupShard, "forget_topic", lambda _self, _name, _now_ms: None)
    assert "offset-left" in names(run(story))
