"""When a run is over: nothing in it may still be on its way."""

from __future__ import annotations

from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.running import run_scenario

LATE_LOAD = """
topology:
  brokers: 3
  topics: {orders: {partitions: 2, replication_factor: 3, config: {min.insync.replicas: 2}}}
  config:
    broker.session.timeout.ms: 3000
    broker.heartbeat.interval.ms: 700
    leader.imbalance.check.interval.seconds: 5
    share.coordinator.state.topic.num.partitions: 1
    share.coordinator.state.topic.min.isr: 2
    group.share.min.session.timeout.ms: 1000
    group.share.session.timeout.ms: 3000
    group.share.min.heartbeat.interval.ms: 500
    group.share.heartbeat.interval.ms: 1000
workload:
  producers: {topic: orders, name: shop, rate: 5/s, in_flight: 1}
  consumers:
    topics: orders
    name: late
    group: packing
    share: true
    start: 5s
    config: {fetch.max.wait.ms: 100}
duration: 11s
seed: 316
steps:
  - {at: 8s, stop: 1, for: 5s}
  - {at: 8580ms, stop: 2, for: 5s}
"""

BESIDE_ITS_GROUP = """
topology:
  brokers: 3
  topics: {orders: {partitions: 1}, bills: {partitions: 1}}
  config: {group.initial.rebalance.delay.ms: 0}
workload:
  producers: {topic: orders, rate: 5/s}
  processors: {topic: orders, to: bills, name: engine, group: engines}
  consumers: {partitions: orders-0, name: clerk, group: engines, commit: after_poll}
duration: 7s
steps:
  - {at: 5s, kill: client engine, for: 5s}
"""

COMPLETED_LATE = """
topology:
  brokers: 3
  topics: {orders: {assignment: [[1]], config: {min.insync.replicas: 1}}}
  config:
    broker.session.timeout.ms: 4000
    broker.heartbeat.interval.ms: 400
    request.timeout.ms: 1500
    transaction.state.log.num.partitions: 1
workload:
  producers:
    topic: orders
    name: shop
    rate: 10/s
    start: 1s
    count: 4
    transactions: {every: 4}
duration: 12s
steps:
  - {at: 950ms, node_rule: {api: WriteTxnMarkers, delay: 300ms}}
  - {when: event transaction_ended, kill: 3}
  - {at: 8s, start: 3}
"""


def test_rest__waits_until_the_leader_has_loaded_a_share_group() -> None:
    """Its state cannot be read for a while; then, 20 ms before the run looks whether it is over,
    another leader is elected, which nobody has asked for records yet."""
    result = run_scenario(Scenario.parse(LATE_LOAD), "virtual")
    assert result.failures == []


def test_rest__a_consumer_without_membership_reads_nothing_for_its_group() -> None:
    """A member that is back gets its partition before the run ends, though another consumer, which
    commits for the same group, has read to the end."""
    result = run_scenario(Scenario.parse(BESIDE_ITS_GROUP), "virtual")
    assert result.failures == []


def test_rest__a_transaction_is_completed_though_the_record_of_that_timed_out() -> None:
    """Its follower dies while the markers are on their way; the record is committed when that is
    out of the ISR, and no client asks the coordinator any more."""
    result = run_scenario(Scenario.parse(COMPLETED_LATE), "virtual")
    assert result.failures == []
