"""Members that are told what is not committed yet."""

from __future__ import annotations

from typing import Any

import pytest

from kcluster.broker.coordinator.interface import Settled
from kcluster.broker.coordinator.log_shard import LogShard
from kcluster.protocol.errors import ErrorCode
from tests.invariants.test_broken_cores import names, run

pytestmark = pytest.mark.pure_python  # a class of the extension cannot be broken on purpose

STORY = """\
# A coordinator is cut off from its followers while members join: a heartbeat that is repeated
# changes nothing.
topology:
  brokers: 3
  topics: {orders: {partitions: 3, replication_factor: 3}}
  config:
    offsets.topic.num.partitions: 1
    offsets.topic.replication.factor: 3
    group.initial.rebalance.delay.ms: 0
    group.consumer.min.heartbeat.interval.ms: 300
    group.consumer.heartbeat.interval.ms: 300
    group.streams.min.heartbeat.interval.ms: 300
    group.streams.heartbeat.interval.ms: 300
    group.streams.initial.rebalance.delay.ms: 100
    group.share.min.heartbeat.interval.ms: 300
    group.share.heartbeat.interval.ms: 300
workload:
  producers: {topic: orders, rate: 20/s}
  consumers:
    - {topics: orders, name: old, group: classic, config: {request.timeout.ms: 500}}
    - topics: orders
      name: new
      group: epochs
      group_protocol: consumer
      config: {request.timeout.ms: 500}
    - topics: orders
      name: guest
      group: epochs
      group_protocol: consumer
      start: 1500ms
      config: {request.timeout.ms: 500}
    - topics: orders
      name: flow
      group: engine
      group_protocol: streams
      config: {request.timeout.ms: 500}
    - {topics: orders, name: pack, group: shared, share: true, config: {request.timeout.ms: 500}}
duration: 6s
steps:
  - at: 1200ms
    for: 2s
    isolate: {nodes: coordinator(epochs), others: followers(__consumer_offsets-0)}
  - {at: 4s, move: {partition: __consumer_offsets-0, to: 2}}
checks: {allowed_anomalies: unsettled-group}
"""


def test_told__what_is_committed() -> None:
    assert run(STORY).passed


LOADED = """\
# Another broker leads for a moment while a generation is not committed. The coordinator loads it
# from its log, and answers SyncGroup at once, as Kafka's does.
topology:
  brokers: 3
  topics: {orders: {partitions: 2, replication_factor: 3}}
  config:
    offsets.topic.num.partitions: 1
    offsets.topic.replication.factor: 3
    group.initial.rebalance.delay.ms: 0
    group.min.session.timeout.ms: 1000
workload:
  producers: {topic: orders, name: shop, rate: 5/s}
  consumers:
    - topics: orders
      name: till
      group: static
      config: {group.instance.id: till, session.timeout.ms: 6000, heartbeat.interval.ms: 400}
    - topics: orders
      name: guest
      group: static
      start: 2s
      config: {session.timeout.ms: 3000, heartbeat.interval.ms: 400}
duration: 3s
seed: 3
steps:
  - {at: 2s, when: group_written, move: {partition: __consumer_offsets-0, to: 2}}
  - {at: 2s, move: {partition: __consumer_offsets-0, to: 3}}
"""


def test_told__of_a_generation_that_was_loaded() -> None:
    assert run(LOADED).passed


def test_told__before_it_is_committed(monkeypatch: pytest.MonkeyPatch) -> None:
    def at_once(self: LogShard[Any], on_settled: Settled, now_ms: int) -> None:
        on_settled(ErrorCode.NONE, now_ms)

    monkeypatch.setattr(LogShard, "after_writes", at_once)
    assert "told-uncommitted" in names(run(STORY))
