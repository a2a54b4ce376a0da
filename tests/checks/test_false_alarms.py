"""Runs of the sound core that were once called invalid.  Each is valid, and says why it looked bad.

The checks that were wrong still find the broken cores of test_broken_coordinators.py and
tests/invariants/test_broken_cores.py.
"""

from __future__ import annotations

import pytest

from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.running import run_scenario

TORN_ON_COMPACTED = """
# No fault at all: a later transaction writes the same key, and the cleaner removes the older one.
topology:
  brokers: 3
  topics:
    table:
      assignment: [[1, 2, 3]]
      config:
        min.insync.replicas: 2
        cleanup.policy: compact
        segment.ms: 900
        min.cleanable.dirty.ratio: 0.01
  config: {log.cleaner.backoff.ms: 500}
workload:
  producers: {topic: table, name: keyed, rate: 30/s, keys: 10, transactions: {every: 6}}
duration: 8s
"""
COMPACTED_COPY = """
# A replica copies batches that its leader has cleaned, and leads: its own log was never cleaned.
topology:
  brokers: 3
  topics:
    table:
      assignment: [[1, 2, 3]]
      config:
        min.insync.replicas: 2
        cleanup.policy: compact
        segment.ms: 900
        min.cleanable.dirty.ratio: 0.01
  config:
    broker.session.timeout.ms: 3000
    broker.heartbeat.interval.ms: 700
    log.cleaner.backoff.ms: 500
workload:
  producers: {topic: table, name: plain, rate: 100/s, linger: 30ms, keys: 10}
duration: 12s
steps:
  - {at: 1s, kill: {brokers: 3, how: wipe}}
  - {at: 6s, start: 3}
  - {when: isr(table-0) = 3, within: 5s, move: {partition: table-0, to: 3}}
"""
COPIED_AS_CLEANED = """
# A replica that was away copies a log from which its leader has cleaned young records; before it
# cleans its own copy, a new config would have kept them.
topology:
  brokers: 3
  topics:
    table:
      assignment: [[1, 2, 3]]
      config:
        min.insync.replicas: 2
        cleanup.policy: compact
        segment.ms: 400
        min.cleanable.dirty.ratio: 0.01
        min.compaction.lag.ms: 1500
  config:
    log.cleaner.backoff.ms: 100
    replica.lag.time.max.ms: 1000
    broker.session.timeout.ms: 1000
    broker.heartbeat.interval.ms: 200
workload:
  producers: {topic: table, name: plain, rate: 20/s, keys: 6}
duration: 8s
steps:
  - {at: 1500ms, kill: 3}
  - {at: 5500ms, set_config: {topics: table, config: {min.compaction.lag.ms: 3000}}}
  - {after: 50ms, start: 3}
"""
LEAVE_WAITS_FOR_COMMIT = """
# A LeaveGroup waits for the commits before it; their coordinator is cut off, and dies.
topology:
  brokers: 3
  topics:
    orders: {assignment: [[2, 3]], config: {min.insync.replicas: 2}}
    __consumer_offsets: {assignment: [[1, 2, 3]], config: {min.insync.replicas: 2}}
workload:
  producers: {topic: orders, name: shop, rate: 20/s}
  consumers:
    - {topics: orders, name: a, group: g, commit: after_poll}
    - {topics: orders, name: b, group: g, stop: 11s, commit: after_poll}
duration: 16s
steps:
  - {at: 10500ms, isolate: {nodes: 1, others: [2, 3]}, for: 3s}
  - {at: 12s, kill: 1}
"""
NEXT_LIFE_WAITS = """
# The next process of a killed broker waits for the end of the session before it may register: until
# then the ISRs have a member that fetches nothing, and no transaction can be aborted.
topology:
  brokers: 3
  topics:
    orders: {assignment: [[2, 1, 3]], config: {min.insync.replicas: 2}}
    __transaction_state: {assignment: [[1, 2, 3]]}
  config:
    request.timeout.ms: 1200
    transaction.state.log.min.isr: 2
    transaction.abort.timed.out.transaction.cleanup.interval.ms: 500
workload:
  producers:
    - {topic: orders, name: shop, rate: 50/s, stop: 12s, transactions: {every: 10, timeout: 2s}}
duration: 15s
steps: [{when: 61st append of orders-0, kill: 3, for: 1s}]
"""
REMOVED_AND_BACK = """
# A replica is removed and comes back, with an empty log, before its slow leader knows of it: to the
# leader it is still in the ISR.
seed: 1189831570
topology:
  brokers: 4
  topics: {orders: {assignment: [[1, 2, 3], [2, 3, 4]], config: {min.insync.replicas: 2}}}
  config:
    broker.session.timeout.ms: 1000
    broker.heartbeat.interval.ms: 200
    replica.lag.time.max.ms: 1000
    replica.high.watermark.checkpoint.interval.ms: 500
workload:
  producers: {topic: orders, name: shop, rate: 10, in_flight: 1}
duration: 7s
steps:
  - {at: 4s, pause: 3, for: 5s}
  - {at: 5700ms, slow: {nodes: 2, latency: 100ms, jitter: 200ms}, for: 5s}
  - {at: 6s, reassign: {partition: orders-1, to: 2}, for: 200ms}
"""
FETCH_WITHOUT_ANSWER = """
# A rule drops the answer to a follower's fetch: the follower is in the ISR, and fetches nothing,
# until it is out of sync. The marker waits for it.
seed: 381
topology:
  brokers: 3
  topics:
    orders: {partitions: 2, replication_factor: 3, config: {min.insync.replicas: 2}}
    bills: {partitions: 1, replication_factor: 3}
  config:
    broker.session.timeout.ms: 2000
    broker.heartbeat.interval.ms: 400
    replica.lag.time.max.ms: 1500
    request.timeout.ms: 700
    transaction.state.log.num.partitions: 1
    transaction.state.log.min.isr: 2
    transaction.abort.timed.out.transaction.cleanup.interval.ms: 500
workload:
  producers:
    topic: orders
    name: new
    rate: 5
    keys: 10
    transactions: {every: 2, abort: 30%, timeout: 3s}
    config: {request.timeout.ms: 800, delivery.timeout.ms: 1200}
duration: 5s
steps:
  - {at: 2s, node_rule: {api: Fetch, from: 2, to: 1, drop: reply}, for: 2s}
  - {at: 2500ms, move: {partition: orders-0, to: 1}}
checks: {allowed_anomalies: [aborted-read, torn-transaction]}
"""
SHARE_SLOW_MEMBER = """
# A member of a share group is 1.5 s away; the leader moves while its answers are under way.
topology:
  brokers: 3
  topics:
    orders: {assignment: [[1, 2, 3]], config: {min.insync.replicas: 2}}
    __share_group_state: {assignment: [[3, 1, 2]]}
    __consumer_offsets: {assignment: [[3, 1, 2]]}
  config:
    group.share.min.record.lock.duration.ms: 1000
    group.share.record.lock.duration.ms: 2000
    group.share.delivery.count.limit: 10
workload:
  producers: {topic: orders, name: shop, rate: 60/s, start: 6s, stop: 14s}
  consumers:
    - {topics: orders, name: near, group: packing, share: true, config: {fetch.max.wait.ms: 100}}
    - {topics: orders, name: far, group: packing, share: true, config: {fetch.max.wait.ms: 100}}
duration: 18s
steps:
  - {at: 7s, slow: {nodes: far, latency: 1500ms}, for: 6s}
  - {at: 8500ms, move: {partition: orders-0, to: 2}}
  - {at: 9700ms, move: {partition: orders-0, to: 1}}
  - {at: 10300ms, move: {partition: orders-0, to: 2}}
  - {at: 11100ms, move: {partition: orders-0, to: 1}}
"""
PASSED_OVER_BY_RESET = """
# The leader of a share group moves before the first acknowledgement is stored: the next one begins
# at the end of the log again.
topology:
  brokers: 3
  profile: fast
  topics:
    orders: {assignment: [[1, 2, 3]]}
    __share_group_state: {assignment: [[3, 2]]}
    __consumer_offsets: {assignment: [[3, 2]]}
workload:
  producers: {topic: orders, name: shop, rate: 200/s, start: 450ms, stop: 1500ms}
  consumers: {topics: orders, name: packer, group: packing, share: true}
duration: 2s
steps:
  - {at: 100ms, slow: {nodes: packer, latency: 40ms}}
  - {at: 530ms, rule: {api: ShareFetch, broker: 1, drop: request}, for: 970ms}
  - {at: 700ms, move: {partition: orders-0, to: 2}}
checks: {verdict: invalid, anomalies: {passed-over: some}}
"""
PASSED_OVER_BY_SECOND_RESET = """
# The same twice: in between the leader confirms an acknowledgement of a record before its
# beginning, for which it stores nothing.
seed: 1873
topology:
  brokers: 2
  topics: {orders: {partitions: 1, replication_factor: 2}}
  config:
    request.timeout.ms: 300
    offsets.topic.num.partitions: 1
    offsets.topic.replication.factor: 2
    share.coordinator.state.topic.num.partitions: 1
    share.coordinator.state.topic.replication.factor: 2
    share.coordinator.state.topic.min.isr: 1
    group.share.min.record.lock.duration.ms: 1000
    group.share.record.lock.duration.ms: 1000
    group.share.delivery.count.limit: 10
    group.share.min.session.timeout.ms: 1000
    group.share.session.timeout.ms: 3000
    group.share.min.heartbeat.interval.ms: 300
    group.share.heartbeat.interval.ms: 500
workload:
  producers:
    - {topic: orders, name: shop, rate: 7, start: 500ms, stop: 3500ms}
    - {topic: orders, name: desk, rate: 7, start: 6s, stop: 8s}
  consumers:
    topics: orders
    name: packer
    group: packing
    share: true
    release: 20%
    members: 2
    config: {fetch.max.wait.ms: 200, max.poll.records: 3, metadata.max.age.ms: 400}
duration: 7s
steps:
  - {at: 2s, node_rule: {api: WriteShareGroupState, to: 1, delay: 1s, jitter: 2s}, for: 5s}
  - {at: 3500ms, move: {partition: orders-0, to: 1}}
  - {at: 3500ms, move: {partition: __share_group_state-0, to: 2}}
  - {at: 3500ms, move: {partition: orders-0, to: 2}}
  - {at: 3500ms, node_rule: {api: WriteShareGroupState, to: 2, delay: 1s, jitter: 2s}, for: 5s}
  - {at: 6s, when: append, within: 500ms, move: {partition: orders-0, to: 1}}
checks: {verdict: invalid, anomalies: {passed-over: some}}
"""
SHARE_LEADER_UNKNOWN = """
# A share partition's leader moves, and its only member learns that late: the answer to its Metadata
# request takes three seconds.  With this seed it asks a broker that it fetches nothing from.
seed: 3
topology:
  brokers: 3
  profile: fast
  topics:
    orders: {assignment: [[2, 3]]}
    __share_group_state: {assignment: [[1]]}
    __consumer_offsets: {assignment: [[1]]}
workload:
  producers: {topic: orders, name: shop, rate: 50/s, stop: 1500ms}
  consumers:
    {topics: orders, name: packer, group: packing, share: true, config: {request.timeout.ms: 5000}}
duration: 2s
steps:
  - {at: 990ms, rule: {api: Metadata, client: packer, delay: 3s}, for: 100ms}
  - {at: 1s, move: {partition: orders-0, to: 3}}
"""
SHARE_MEMBER_UNASSIGNED = """
# The only member of a share group is sent away, and joins again late: the answer to its heartbeat
# takes three seconds.
topology:
  brokers: 2
  profile: fast
  topics:
    orders: {assignment: [[1]]}
    __share_group_state: {assignment: [[2]]}
    __consumer_offsets: {assignment: [[2]]}
workload:
  producers: {topic: orders, name: shop, rate: 50/s, stop: 1500ms}
  consumers:
    {topics: orders, name: packer, group: packing, share: true, config: {request.timeout.ms: 5000}}
duration: 2s
steps:
  - {at: 1s, rule: {api: ShareGroupHeartbeat, answer: UNKNOWN_MEMBER_ID, nth: 1}}
  - {at: 1s, rule: {api: ShareGroupHeartbeat, delay: 3s, nth: 1}}
"""
PASSED_OVER_BY_LIMIT = """
# The answers with a share group's records are lost, as often as each may be delivered.
topology:
  brokers: 1
  profile: fast
  topics: {orders: {partitions: 1}}
  config: {group.share.delivery.count.limit: 2}
workload:
  producers: {topic: orders, name: shop, rate: 50/s, stop: 1200ms}
  consumers: {topics: orders, name: packer, group: packing, share: true}
duration: 1500ms
steps:
  - {at: 800ms, rule: {api: ShareFetch, drop: reply, close: true}, for: 300ms}
checks: {verdict: invalid, anomalies: {passed-over: some}}
"""
PASSED_OVER_TO_DEAD_LETTERS = """
# As above, for a group with a dead letter queue: that is where the records are.
topology:
  brokers: 1
  profile: fast
  topics:
    orders: {partitions: 1}
    dlq.orders: {config: {errors.deadletterqueue.group.enable: true}}
  config: {group.share.delivery.count.limit: 2}
workload:
  producers: {topic: orders, name: shop, rate: 50/s, stop: 1200ms}
  consumers: {topics: orders, name: packer, group: packing, share: true}
duration: 1500ms
steps:
  - at: 1ms
    set_config: {groups: packing, config: {errors.deadletterqueue.topic.name: dlq.orders}}
  - {at: 800ms, rule: {api: ShareFetch, drop: reply, close: true}, for: 300ms}
checks: {verdict: invalid, anomalies: {passed-over: some}}
"""
OWNED_TWICE_BY_POWER = """
# A coordinator loses power before its disk has the group: it gives all partitions to the first
# member that joins again, while the other one is cut off.
topology:
  brokers: 1
  profile: fast
  topics: {orders: {partitions: 2}}
  config: {group.initial.rebalance.delay.ms: 0}
workload:
  producers: {topic: orders, name: shop, rate: 20/s}
  consumers: {topics: orders, name: reader, group: readers, members: 2}
duration: 2s
steps:
  - {at: 700ms, isolate: reader-1, for: 1s}
  - {at: 800ms, kill: {brokers: 1, how: power}, for: 100ms}
"""
OWNED_TWICE_BY_MIGRATION = """
# A consumer group is made classic, and a consumer group again, while a member that is cut off still
# has to revoke a partition: the classic group's record has only what it should have.
topology:
  brokers: 1
  profile: fast
  topics: {orders: {partitions: 6}}
  config: {group.initial.rebalance.delay.ms: 0, group.consumer.assignment.interval.ms: 0}
workload:
  producers: {topic: orders, name: shop, rate: 20/s}
  consumers:
    - topics: orders
      name: old
      group: mixed
      members: 2
      config: {session.timeout.ms: 10000, max.poll.interval.ms: 10000}
    - {topics: orders, name: guest, group: mixed, group_protocol: consumer, start: 1s, stop: 1500ms}
    - {topics: orders, name: new, group: mixed, group_protocol: consumer, start: 2s}
duration: 3s
steps:
  - {at: 900ms, isolate: old-1, for: 2s}
"""
_MEMBER = """session.timeout.ms: 6000, heartbeat.interval.ms: 100, max.poll.interval.ms: 400,
  partition.assignment.strategy: roundrobin"""
STATIC_MEMBER_TOO_LATE = f"""
# A static member stands still for longer than its rebalance timeout.  Its coordinator keeps it, and
# goes on without it: the others get some of its partitions.
topology:
  brokers: 1
  profile: fast
  topics: {{orders: {{partitions: 6}}}}
  config: {{group.initial.rebalance.delay.ms: 0}}
workload:
  producers: {{topic: orders, name: shop, rate: 20/s}}
  consumers:
    - {{topics: orders, name: stays, group: g, config: {{{_MEMBER}}}}}
    - {{topics: orders, name: static, group: g, config: {{group.instance.id: desk, {_MEMBER}}}}}
    - {{topics: orders, name: guest, group: g, start: 300ms, stop: 900ms, config: {{{_MEMBER}}}}}
duration: 3s
steps:
  - {{at: 700ms, pause: client static, for: 1500ms}}
"""
LARGE_BATCH_DELETED = """
# The client that was paused sends 120 records in one batch, which exceeds the limit of 100. They
# are still in flight when retention has deleted them.
topology:
  brokers: 3
  topics:
    orders:
      partitions: 1
      replication_factor: 3
      config: {min.insync.replicas: 2, segment.ms: 300, retention.ms: 2500}
  config:
    log.retention.check.interval.ms: 200
    group.share.min.record.lock.duration.ms: 1000
    group.share.record.lock.duration.ms: 1500
    group.share.partition.max.record.locks: 100
workload:
  producers: {topic: orders, name: shop, rate: 40/s, linger: 50ms, in_flight: 1}
  consumers:
    topics: orders
    name: slow
    group: packing
    share: true
    release: 30%
    config: {max.poll.records: 5, share.acknowledgement.mode: explicit}
duration: 8s
steps:
  - {at: 1s, slow: {nodes: slow, latency: 60ms, jitter: 60ms}, for: 5s}
  - {at: 1500ms, pause: client shop, for: 3s}
  - {at: 5s, isolate: slow, for: 5s}
checks: {allowed_anomalies: passed-over}
"""
DELETED_BY_A_LEADER = """
# Broker 1 has offsets 6 to 20 that were never committed. The next leader commits others there,
# deletes them, and dies before it can tell broker 1 of its log start.
topology:
  brokers: 3
  topics:
    orders:
      partitions: 2
      replication_factor: 3
      config: {min.insync.replicas: 2, segment.bytes: 1048576, segment.ms: 300, retention.ms: 900}
  config:
    broker.session.timeout.ms: 2000
    broker.heartbeat.interval.ms: 400
    replica.lag.time.max.ms: 1500
    replica.high.watermark.checkpoint.interval.ms: 500
    log.retention.check.interval.ms: 200
    leader.imbalance.check.interval.seconds: 5
workload:
  producers:
    {topic: orders, name: shop, rate: 5/s, in_flight: 1, config: {request.timeout.ms: 3000}}
duration: 9s
seed: 8937
steps:
  - {at: 1s, isolate: 3, for: 2s}
  - {at: 2s, slow: {nodes: 2, latency: 200ms, jitter: 300ms}, for: 2s}
  - {at: 4s, isolate: {nodes: 3, others: 1}, for: 2s}
  - {at: 6s, kill: client shop, for: 5s}
  - {at: 6s, isolate: 3, for: 1500ms}
  - {at: 8500ms, kill: 3, for: 5s}
"""
DELETED_IN_A_BATCH = """
# Records are deleted to the middle of a batch. A member gets the whole batch, and what it says of
# the deleted records is not stored; so the next leader delivers them again.
topology:
  brokers: 3
  topics: {orders: {partitions: 1, replication_factor: 3, config: {min.insync.replicas: 2}}}
  config:
    offsets.topic.num.partitions: 1
    offsets.topic.replication.factor: 3
    share.coordinator.state.topic.num.partitions: 1
    share.coordinator.state.topic.replication.factor: 3
    group.share.min.record.lock.duration.ms: 1000
    group.share.record.lock.duration.ms: 1000
    group.share.min.session.timeout.ms: 1000
    group.share.session.timeout.ms: 3000
    group.share.min.heartbeat.interval.ms: 300
    group.share.heartbeat.interval.ms: 500
workload:
  producers: {topic: orders, name: shop, rate: 40/s, linger: 200ms, in_flight: 1}
  consumers:
    - topics: orders
      name: packer
      group: packing
      share: true
      release: 20%
      members: 2
      config: {fetch.max.wait.ms: 100, max.poll.records: 10}
    - topics: orders
      name: slow
      group: packing
      share: true
      release: 20%
      config: {fetch.max.wait.ms: 200, max.poll.records: 10, share.acknowledgement.mode: explicit}
duration: 7s
seed: 12684
steps:
  - {at: 1s, slow: {nodes: slow, latency: 40ms, jitter: 40ms}, for: 5s}
  - {at: 1s, pause: client packer-1, for: 5s}
  - {at: 2s, pause: client packer-2, for: 5s}
  - {at: 4s, delete_records: {partition: orders-0, before: 149}}
  - {at: 4500ms, move: {partition: orders-0, to: 3}}
checks: {allowed_anomalies: passed-over}
"""
LATE_SHARE_PARTITION = """
# A leader loads a share partition after all else is over, and then has retention to catch up with:
# only its second answer has records.
topology:
  brokers: 3
  topics:
    orders:
      assignment: [[3, 1, 2]]
      config: {min.insync.replicas: 2, segment.ms: 300, retention.ms: 2500}
    __share_group_state: {assignment: [[3, 1, 2]]}
  config:
    broker.session.timeout.ms: 2000
    broker.heartbeat.interval.ms: 400
    group.share.min.session.timeout.ms: 1000
    group.share.session.timeout.ms: 3000
    group.share.min.heartbeat.interval.ms: 300
    group.share.heartbeat.interval.ms: 500
    log.retention.check.interval.ms: 200
workload:
  producers:
    topic: orders
    name: shop
    rate: 5/s
    linger: 50ms
    in_flight: 1
    config: {request.timeout.ms: 2000}
  consumers:
    topics: orders
    name: slow
    group: packing
    share: true
    config: {fetch.max.wait.ms: 200, max.poll.records: 5}
duration: 8s
steps:
  - {at: 6s, kill: 3, for: 5s}
  - {at: 6500ms, move: {partition: orders-0, to: 2}}
"""
VALID = {
    "a compacted record is not torn from its transaction": TORN_ON_COMPACTED,
    "a copy of compacted batches lacks nothing": COMPACTED_COPY,
    "a copy of a cleaned log has nothing young to clean": COPIED_AS_CLEANED,
    "LeaveGroup may wait for commits": LEAVE_WAITS_FOR_COMMIT,
    "a broker that may not register yet holds transactions up": NEXT_LIFE_WAITS,
    "a static member that does not join in time has nothing": STATIC_MEMBER_TOO_LATE,
    "a leader may count on a replica that is gone and back": REMOVED_AND_BACK,
    "a marker waits for a follower whose fetch got no answer": FETCH_WITHOUT_ANSWER,
    "an answer of a replaced leader is no second delivery": SHARE_SLOW_MEMBER,
    "a member that looks for a new leader needs time": SHARE_LEADER_UNKNOWN,
    "a member that joins again needs time": SHARE_MEMBER_UNASSIGNED,
    "a share partition that is loaded last of all needs time": LATE_SHARE_PARTITION,
    "a batch that was deleted may have been large": LARGE_BATCH_DELETED,
    "what a leader had deleted is not lost": DELETED_BY_A_LEADER,
    "a deleted record may come with the rest of its batch": DELETED_IN_A_BATCH,
}


@pytest.mark.parametrize("text", VALID.values(), ids=VALID.keys())
def test_false_alarm__is_none(text: str) -> None:
    result = run_scenario(Scenario.parse(text), "virtual")
    assert result.passed, "\n".join(result.verdict.lines())


@pytest.mark.parametrize(
    "text", [PASSED_OVER_BY_RESET, PASSED_OVER_BY_SECOND_RESET], ids=["once", "twice"]
)
def test_passed_over__is_allowed_by_the_reset_before_the_first_acknowledgement(text: str) -> None:
    result = run_scenario(Scenario.parse(text), "virtual")
    assert result.passed, "\n".join(result.verdict.lines())
    assert {str(one.allowed) for one in result.verdict.anomalies} == {
        "share.auto.offset.reset=latest"
    }


def test_passed_over__is_allowed_by_the_delivery_count_limit() -> None:
    result = run_scenario(Scenario.parse(PASSED_OVER_BY_LIMIT), "virtual")
    assert result.passed, "\n".join(result.verdict.lines())
    assert {str(one.allowed) for one in result.verdict.anomalies} == {
        "group.share.delivery.count.limit"
    }


def test_passed_over__names_the_dead_letter_queue_that_has_the_records() -> None:
    result = run_scenario(Scenario.parse(PASSED_OVER_TO_DEAD_LETTERS), "virtual")
    assert result.passed, "\n".join(result.verdict.lines())
    (found,) = result.verdict.anomalies
    assert str(found.allowed) == "group.share.delivery.count.limit"
    assert "went to the dead letter queue dlq.orders-0" in "\n".join(
        result.verdict.lines(verbose=True)
    )


def test_owned_twice__is_allowed_where_power_was_lost_with_the_group() -> None:
    result = run_scenario(Scenario.parse(OWNED_TWICE_BY_POWER), "virtual")
    found = {one.name: str(one.allowed) for one in result.verdict.anomalies}
    assert found["owned-twice"] == "power lost before a flush"
    assert found["committed-offset-back"] == "power lost before a flush"


def test_owned_twice__is_allowed_where_a_group_became_classic_before_a_member_revoked() -> None:
    result = run_scenario(Scenario.parse(OWNED_TWICE_BY_MIGRATION), "virtual")
    (found,) = result.verdict.anomalies
    assert str(found.allowed) == "a consumer group made classic before a member had revoked"


LOST_FETCH = """
# A follower waits for the answer to its fetch, which a rule has dropped to the end: the marker is
# written, and not committed yet.
topology:
  brokers: 3
  topics: {orders: {partitions: 1, replication_factor: 3, config: {min.insync.replicas: 2}}}
  config:
    request.timeout.ms: 1200
    transaction.state.log.num.partitions: 1
    transaction.state.log.min.isr: 2
    transaction.abort.timed.out.transaction.cleanup.interval.ms: 500
workload:
  producers:
    - topic: orders
      name: old
      rate: 10/s
      in_flight: 1
      transactions: {every: 2, abort: 40%, timeout: 4s, version: 1}
      config: {request.timeout.ms: 500, delivery.timeout.ms: 700}
    - topic: orders
      name: new
      rate: 10/s
      in_flight: 1
      transactions: {every: 2, abort: 40%, timeout: 4s}
      config: {request.timeout.ms: 500, delivery.timeout.ms: 700}
duration: 6s
steps:
  - {at: 2s, node_rule: {api: WriteTxnMarkers, to: 1, delay: 300ms}, for: 2s}
  - {at: 3s, node_rule: {api: WriteTxnMarkers, to: 1, delay: 1800ms, jitter: 500ms}, for: 5s}
  - {at: 4s, move: {partition: orders-0, to: 3}}
  - {at: 4500ms, when: marker_written, move: {partition: orders-0, to: 1}}
  - {at: 5s, node_rule: {api: Fetch, from: 3, to: 1, drop: reply}, for: 5s}
checks: {allowed_anomalies: [aborted-read, torn-transaction, swapped-transaction]}
"""


def test_stuck_transaction__waits_for_a_request_that_a_rule_has_just_lost() -> None:
    result = run_scenario(Scenario.parse(LOST_FETCH), "virtual", 562505886)
    assert result.failures == []


REFUSED_MEMBER = """
# A second member is refused, and ends; when the first one leaves, no member is left to read.
topology: {brokers: 1, topics: {orders: {}}, config: {group.max.size: 1}}
workload:
  producers: {topic: orders, rate: 20/s}
  consumers:
    - {topics: orders, name: first, group: shop, stop: 4s}
    - {topics: orders, name: second, group: shop, start: 1s}
duration: 8s
"""


def test_unseen__records_are_not_where_a_member_was_refused_by_the_size_of_its_group() -> None:
    result = run_scenario(Scenario.parse(REFUSED_MEMBER), "virtual")
    assert result.passed, "\n".join(result.verdict.lines())
