"""Runs of the sound core that are invalid, with a reason: a setting, a fault or an administrator.

The anomalies were once called bugs, because their cause was not known.
"""

from __future__ import annotations

import pytest

from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.running import run_scenario

COMMITTED_BACK_BY_DELAY = """
# A rule holds a commit for longer than its client waits: the client commits again, and on.
topology:
  brokers: 1
  profile: fast
  topics: {orders: {partitions: 1}}
  config: {group.initial.rebalance.delay.ms: 0}
workload:
  producers: {topic: orders, name: shop, rate: 50/s, stop: 1s}
  consumers:
    - topics: orders
      name: reader
      group: readers
      commit: after_poll
      config: {request.timeout.ms: 200, session.timeout.ms: 6000}
    - {topics: orders, name: later, group: readers, start: 1200ms}
duration: 2s
steps:
  - {at: 500ms, rule: {api: OffsetCommit, delay: 600ms, nth: 1}}
checks: {verdict: invalid, anomalies: {committed-offset-back: 1}}
"""
COMMITTED_BACK_BY_OVERTAKING = """
# A slow link holds a commit. Its client commits again, on a new connection.
topology:
  brokers: 1
  profile: fast
  topics: {orders: {partitions: 1}}
  config: {group.initial.rebalance.delay.ms: 0}
workload:
  producers: {topic: orders, name: shop, rate: 50/s, stop: 1s}
  consumers:
    - topics: orders
      name: reader
      group: readers
      commit: after_poll
      config: {request.timeout.ms: 200, session.timeout.ms: 6000}
    - {topics: orders, name: later, group: readers, start: 2s}
duration: 3s
steps:
  - {at: 600ms, slow: {nodes: reader, latency: 700ms}, for: 60ms}
checks: {verdict: invalid, anomalies: {committed-offset-back: 1}}
"""
COMMITTED_BACK_BY_DELETION = """
# An offset is committed again. The commit waits for a replica that is cut off, and is acked when
# the group has been deleted.
topology:
  brokers: 2
  topics: {orders: {partitions: 1}}
  config:
    replica.lag.time.max.ms: 3000
    offsets.topic.num.partitions: 1
    offsets.topic.replication.factor: 2
    group.initial.rebalance.delay.ms: 0
    group.min.session.timeout.ms: 1000
workload:
  producers: {topic: orders, name: shop, rate: 5/s, stop: 1s}
  consumers:
    - {topics: orders, name: first, group: readers, commit: after_poll, stop: 2s}
    - topics: orders
      name: second
      group: readers
      start: 3s
      stop: 5s
      config: {session.timeout.ms: 1000, heartbeat.interval.ms: 300}
    - {topics: orders, name: third, group: readers, start: 7500ms}
duration: 9s
steps:
  - at: 4900ms
    isolate: {nodes: coordinator(readers), others: followers(__consumer_offsets-0)}
    for: 4s
  - {at: 7s, delete_group: readers}
checks: {verdict: invalid, anomalies: {committed-offset-back: 1}}
"""
DELIVERED_AGAIN_BY_LATE_RESET = """
# The last step of a reset takes 1.5 s. When it comes, a member has accepted all records; the state
# begins anew with the state epoch that it has, and the next leader delivers all again.
topology:
  brokers: 2
  topics: {orders: {assignment: [[1, 2]]}}
  config:
    group.share.min.record.lock.duration.ms: 1000
    group.share.record.lock.duration.ms: 1500
    group.share.min.session.timeout.ms: 1000
    group.share.session.timeout.ms: 2000
    group.share.min.heartbeat.interval.ms: 300
    group.share.heartbeat.interval.ms: 500
workload:
  producers: {topic: orders, name: shop, rate: 30/s, in_flight: 1, stop: 3s}
  consumers:
    - {topics: orders, name: first, group: packing, share: true, stop: 2s}
    - {topics: orders, name: second, group: packing, share: true, start: 4s}
duration: 7s
steps:
  - {at: 2500ms, reset_offsets: {group: packing, topic: orders, to: earliest}}
  - {at: 3s, node_rule: {api: InitializeShareGroupState, delay: 1500ms}, for: 2s}
  - {at: 3500ms, reset_offsets: {group: packing, topic: orders, to: earliest}}
  - {at: 6s, move: {partition: orders-0, to: 2}}
checks: {verdict: invalid, anomalies: {delivered-after-ack: some}}
"""
OWNED_TWICE_BY_REVIVED_RECORDS = """
# Broker 1 cannot commit that it has removed its members. Broker 3 coordinates the group for 100 ms,
# does not know of it, and writes nothing; then broker 1 leads again, and its records count.
topology:
  brokers: 3
  topics: {orders: {partitions: 6, replication_factor: 3, config: {min.insync.replicas: 2}}}
  config:
    broker.session.timeout.ms: 3000
    broker.heartbeat.interval.ms: 700
    replica.lag.time.max.ms: 4000
    leader.imbalance.check.interval.seconds: 5
    offsets.topic.num.partitions: 2
    offsets.topic.replication.factor: 3
    group.initial.rebalance.delay.ms: 0
    group.min.session.timeout.ms: 1000
    group.consumer.min.session.timeout.ms: 1000
    group.consumer.session.timeout.ms: 3000
    group.consumer.min.heartbeat.interval.ms: 500
    group.consumer.heartbeat.interval.ms: 1000
workload:
  producers:
    {topic: orders, name: shop, rate: 40/s, in_flight: 1, config: {request.timeout.ms: 3000}}
  consumers:
    - topics: orders
      name: sticky
      group: classic
      commit: after_poll
      config: {session.timeout.ms: 3000, heartbeat.interval.ms: 1000, max.poll.interval.ms: 4000}
    - topics: orders
      name: guest
      group: classic
      start: 3s
      stop: 7s
      config: {session.timeout.ms: 3000, heartbeat.interval.ms: 1000, max.poll.interval.ms: 4000}
    - topics: orders
      name: new
      group: epochs
      group_protocol: consumer
      members: 3
      config: {max.poll.interval.ms: 4000}
    - topics: orders
      name: caller
      group: epochs
      group_protocol: consumer
      start: 2s
      stop: 6s
      commit: after_poll
      config: {max.poll.interval.ms: 4000}
    - topics: orders
      name: first
      group: epochs
      group_protocol: consumer
      start: 1s
      stop: 5s
      config: {group.instance.id: till, max.poll.interval.ms: 4000}
duration: 10s
seed: 11862
steps:
  - {at: 5100ms, when: append, within: 500ms, isolate: {nodes: 1, others: 3}, for: 4s}
  - {at: 9900ms, move: {partition: __consumer_offsets-0, to: 3}}
checks:
  verdict: invalid
  anomalies: {owned-twice: some}
"""
LOST_BY_SAME_SEQUENCE = """
# Brokers cannot replicate a batch in time, while its producer commits. The transaction is aborted,
# and the next one has the same epoch, and a batch with the same sequence: the leader takes it for a
# copy of the first one. With transactions of version 2, each has its own epoch (KIP-890).
topology:
  brokers: 3
  topics: {orders: {partitions: 4, replication_factor: 3, config: {min.insync.replicas: 2}}}
  config:
    broker.session.timeout.ms: 2000
    broker.heartbeat.interval.ms: 400
    transaction.state.log.num.partitions: 1
    transaction.state.log.replication.factor: 3
    transaction.state.log.min.isr: 2
    transaction.abort.timed.out.transaction.cleanup.interval.ms: 500
workload:
  producers:
    - topic: orders
      name: two
      rate: 20/s
      start: 1s
      transactions: {every: 2, abort: 20%, id: till, timeout: 4s, version: 1}
      config: {request.timeout.ms: 500, delivery.timeout.ms: 600}
    - topic: orders
      name: alone
      rate: 20/s
      keys: 20
      in_flight: 1
      transactions: {every: 2, timeout: 4s, version: 1}
      config: {request.timeout.ms: 400, delivery.timeout.ms: 9000}
duration: 6s
seed: 11922
steps:
  - at: 4250ms
    rule:
      api: [InitProducerId, AddPartitionsToTxn, EndTxn]
      probability: 30%
      drop: reply
      close: true
    for: 250ms
  - {at: 4500ms, rule: {api: Produce, client: nobody, drop: request}, for: 5s}
  - at: 4510ms
    when: append
    within: 500ms
    node_rule: {api: Fetch, from: 3, to: 1, drop: reply}
    for: 500ms
  - at: 4520ms
    rule:
      api: [InitProducerId, AddPartitionsToTxn, EndTxn]
      probability: 30%
      drop: reply
      close: true
    for: 500ms
checks:
  verdict: invalid
  anomalies: {lost-write: some}
"""


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        (COMMITTED_BACK_BY_DELAY, "a commit delayed by a fault rule"),
        (COMMITTED_BACK_BY_OVERTAKING, "a commit overtaken by the client's next one"),
        (COMMITTED_BACK_BY_DELETION, "a group deleted by an administrator"),
        (DELIVERED_AGAIN_BY_LATE_RESET, "offsets reset by an administrator"),
        (LOST_BY_SAME_SEQUENCE, "a client with transactions of version 1"),
        (OWNED_TWICE_BY_REVIVED_RECORDS, "uncommitted records of a leader that came back"),
    ],
    ids=[
        "delayed",
        "overtaken",
        "deleted before the ack",
        "reset late",
        "same sequence",
        "revived",
    ],
)
def test_anomaly__is_allowed(text: str, allowed: str) -> None:
    result = run_scenario(Scenario.parse(text), "virtual")
    assert result.passed, "\n".join(result.verdict.lines())
    assert {str(one.allowed) for one in result.verdict.anomalies} == {allowed}
