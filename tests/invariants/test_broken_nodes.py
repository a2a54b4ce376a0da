"""Broken brokers and controllers that a look from time to time finds, and sound ones, in which it
finds nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kcluster.broker.handlers.data import list_offsets
from kcluster.broker.handlers.metadata import describe_topic_partitions, metadata
from kcluster.broker.publisher import MetadataPublisher
from kcluster.broker.quotas.client_quotas import ClientQuotas
from kcluster.broker.replication import maintenance
from kcluster.broker.replication.isr import IsrChanges
from kcluster.broker.replication.maintenance import Maintenance
from kcluster.contract import Request
from kcluster.controller.membership.liveness import Sessions
from kcluster.controller.membership.producer_ids import ProducerIdBlocks
from kcluster.controller.partitions.elect_leaders import LeaderElections
from kcluster.controller.partitions.partitions import Partitions
from kcluster.metadata.delta import MetadataDelta
from kcluster.metadata.image import MetadataImage, TopicImage
from kcluster.metadata.records import PartitionRegistration
from kcluster.partition.epochs import EpochCache
from kcluster.partition.log import compaction, retention
from kcluster.partition.log.log import Log
from kcluster.partition.log.segment import Segment
from kcluster.partition.replica import Replica
from kcluster.protocol import messages as m
from kcluster.protocol.records.batches import Batch
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.phases import RunResult
from kcluster.scenario.play.running import run_scenario
from kcluster.timers import NEVER_MS

pytestmark = pytest.mark.pure_python  # a class of the extension cannot be broken on purpose

Break = Callable[[pytest.MonkeyPatch], None]


def run(text: str) -> RunResult:
    return run_scenario(Scenario.parse(text), "virtual")


def texts(result: RunResult, name: str) -> list[str]:
    return [found.text for found in result.verdict.violations if found.name == name]


CHANGES: str = """\
topology:
  brokers: 3
  topics:
    orders: {partitions: 4, replication_factor: 3, config: {min.insync.replicas: 2}}
    bills: {partitions: 1, replication_factor: 3}
workload: {producers: {topic: orders, rate: 20/s}}
duration: 20s
steps:
  - {at: 3s, set_config: {topics: orders, config: {min.insync.replicas: 1}}}
  - {at: 5s, delete_topic: bills}
  - {at: 7s, kill: 3, for: 8s}
"""


def keep_deleted_topics(monkeypatch: pytest.MonkeyPatch) -> None:
    apply_to = MetadataDelta.apply_to

    def apply_and_keep(delta: MetadataDelta, image: MetadataImage) -> None:
        apply_to(delta, image)
        for name, topic_id in delta.removed:
            image.topics[name] = TopicImage(name, topic_id, [])

    monkeypatch.setattr(MetadataDelta, "apply_to", apply_and_keep)


def forget_configs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MetadataPublisher, "_reconfigure", lambda *_: None)


def keep_min_isr(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Partitions, "min_isr", lambda *_: 2)


def turn_the_first_page_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def first_page(topic: str, _partition: int) -> m.DescribeTopicPartitionsResponse.Cursor:
        return m.DescribeTopicPartitionsResponse.Cursor(topic_name=topic, partition_index=1)

    monkeypatch.setattr(describe_topic_partitions, "_cursor", first_page)


def name_no_offline_leader(monkeypatch: pytest.MonkeyPatch) -> None:
    partitions = metadata._partitions

    def without_isr(*args: Any) -> list[m.MetadataResponse.MetadataResponsePartition]:
        rows = partitions(*args)
        for row in rows:
            row.isr_nodes = row.replica_nodes
        return rows

    monkeypatch.setattr(metadata, "_partitions", without_isr)


@pytest.mark.parametrize(
    ("break_it", "name", "text"),
    [
        (keep_deleted_topics, "metadata-differs", "topic bills"),
        (forget_configs, "config-differs", "min_insync_replicas of orders-"),
        (keep_min_isr, "config-differs", "min.insync.replicas of bills at the controller: 2"),
        (turn_the_first_page_again, "answer-differs", "pages of DescribeTopicPartitions"),
        (name_no_offline_leader, "answer-differs", "orders in Metadata"),
    ],
)
def test_node__that_makes_something_else_of_its_metadata(
    break_it: Break, name: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(CHANGES).passed
    break_it(monkeypatch)
    found = texts(run(CHANGES), name)
    assert found
    assert found[0].startswith(text), found[0]


TRANSACTIONS: str = """\
topology: {brokers: 3, topics: {orders: {partitions: 1, replication_factor: 3}}}
workload: {producers: {topic: orders, rate: 50/s, transactions: {every: 200}}}
duration: 12s
"""


def test_leader__that_lists_what_no_read_committed_consumer_may_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert run(TRANSACTIONS).passed
    monkeypatch.setattr(list_offsets, "READ_COMMITTED", 2)
    found = texts(run(TRANSACTIONS), "answer-differs")
    assert found[0].startswith("the latest offset for read_committed: ")


def test_leader__that_finds_no_timestamp(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(list_offsets, "_find_offset", lambda *_: (5, 0, 0))
    found = texts(run(TRANSACTIONS), "answer-differs")
    assert any(text.startswith("the offset for the ") for text in found), found


MOVES: str = """\
topology:
  brokers: 3
  topics: {orders: {assignment: [[1, 2, 3]]}}
  config: {leader.imbalance.check.interval.seconds: 2}
workload:
  producers:
    - {topic: orders, name: shop, rate: 20/s}
    - {topic: orders, name: desk, rate: 20/s}
    - {topic: orders, name: bank, rate: 20/s}
    - {topic: orders, name: post, rate: 20/s, transactions: {every: 5}}
duration: 15s
steps:
  - {at: 4s, move: {partition: orders-0, to: 2}}
"""


def test_controller__that_forgets_the_preferred_leader(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(MOVES).passed
    monkeypatch.setattr(LeaderElections, "_check", lambda *_: False)
    (found, *_) = texts(run(MOVES), "preferred-overdue")
    assert found.endswith(", though the preferred leader 1 was in sync and active")


def test_controller__that_gives_one_block_of_producer_ids_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def the_first(*_: Any) -> m.AllocateProducerIdsResponse:
        return m.AllocateProducerIdsResponse(producer_id_start=0, producer_id_len=1000)

    monkeypatch.setattr(ProducerIdBlocks, "allocate_producer_ids", the_first)
    (found, *_) = texts(run(MOVES), "producer-id-twice")
    assert found.startswith("producer id 0 was given to ")


def test_leader__that_gives_an_old_epoch_the_end_of_its_log(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    end_offset_for = EpochCache.end_offset_for

    def end_of_log(cache: EpochCache, epoch: int, log_end_offset: int) -> tuple[int, int]:
        return end_offset_for(cache, epoch, log_end_offset)[0], log_end_offset

    monkeypatch.setattr(EpochCache, "end_offset_for", end_of_log)
    found = texts(run(MOVES), "answer-differs")
    assert found[0].startswith("the end of a leader epoch: epoch 0 up to ")


SLOW_FOLLOWER: str = """\
topology:
  brokers: 3
  topics: {orders: {assignment: [[1, 2, 3]], config: {min.insync.replicas: 2}}}
  config: {replica.lag.time.max.ms: 1000, broker.session.timeout.ms: 30000}
workload: {producers: {topic: orders, rate: 100/s, acks: 1}}
duration: 15s
steps:
  - {at: 3s, isolate: {nodes: 3, others: 1}, for: 8s}
"""


def test_leader__that_keeps_a_follower_without_records_in_the_isr(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert run(SLOW_FOLLOWER).passed
    monkeypatch.setattr(IsrChanges, "propose_shrink", lambda *_: None)
    (found, *_) = texts(run(SLOW_FOLLOWER), "isr-laggard")
    assert found.startswith("broker 3 stayed in the ISR [1, 2, 3], though it lacked the records")


def test_leader__that_drops_a_follower_which_keeps_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def is_lagging(_: Replica, follower: Any, end: int, _now_ms: int) -> bool:
        return bool(follower.log_end_offset != end)

    story = SLOW_FOLLOWER.replace("rate: 100/s", "rate: 3/s").replace(
        "isolate: {nodes: 3, others: 1}", "slow: {nodes: 3, others: 1, latency: 100ms}"
    )
    assert run(story).passed
    monkeypatch.setattr(Replica, "_is_lagging", is_lagging)
    (found, *_) = texts(run(story), "isr-hasty")
    assert "was to leave the ISR [1, 2, 3], though it had every record" in found


def test_leader__that_commits_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    story = SLOW_FOLLOWER.replace("nodes: 3, others: 1", 'nodes: "2, 3", others: 1')
    assert run(story).passed
    advance = Replica.advance_high_watermark

    def advance_alone(replica: Replica, now_ms: int) -> bool:
        min_isr, replica.min_isr = replica.min_isr, 1
        moved = advance(replica, now_ms)
        replica.min_isr = min_isr
        return moved

    monkeypatch.setattr(Replica, "advance_high_watermark", advance_alone)
    (found, *_) = texts(run(story), "watermark-below-min-isr")
    assert found == "members of the ISR 1, min.insync.replicas 2"


def test_log__that_keeps_the_time_of_truncated_records(monkeypatch: pytest.MonkeyPatch) -> None:
    story = SLOW_FOLLOWER.replace("{at: 3s, isolate: {nodes: 3, others: 1}, for: 8s}", MOVED_AWAY)
    assert run(story).verdict.violations == ()
    replace = Segment.replace

    def replace_batches(segment: Segment, batches: list[Any]) -> None:
        newest = segment.max_timestamp
        replace(segment, batches)
        segment.max_timestamp = newest

    monkeypatch.setattr(Segment, "replace", replace_batches)
    (found, *_) = texts(run(story), "times-differ")
    assert found.startswith("the segment at offset 0 has ")


MOVED_AWAY = """{at: 3s, isolate: {nodes: 1, others: "2, 3"}, for: 3s}
  - {at: 3500ms, move: {partition: orders-0, to: 2}}"""

DELETED: str = """\
topology:
  brokers: 3
  topics: {orders: {assignment: [[1, 2, 3]], config: {retention.ms: 2000, segment.ms: 500}}}
  config: {log.retention.check.interval.ms: 500}
workload: {producers: {topic: orders, rate: 50/s}}
duration: 15s
steps:
  - {at: 5s, delete_records: orders-0}
"""


def test_log__that_keeps_segments_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(DELETED).passed
    monkeypatch.setattr(Maintenance, "_apply_retention", lambda *_: NEVER_MS)
    (found, *_) = texts(run(DELETED), "retention-overdue")
    assert found.startswith("the segment at offset ")
    assert found.endswith(" ms, and is still there")


def test_leader__that_waits_for_a_deletion_that_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Replica, "low_watermark", lambda _: -1)
    (found, *_) = texts(run(DELETED), "deletion-held-back")
    assert found.endswith(", but DeleteRecords still waits")


def test_log__that_deletes_what_is_not_old(monkeypatch: pytest.MonkeyPatch) -> None:
    story = DELETED.partition("steps:")[0]
    assert run(story).passed
    monkeypatch.setattr(retention, "_over_age", lambda *_: lambda *_: True)
    (found, *_) = texts(run(story), "retention-hasty")
    assert found.endswith("; retention.ms is 2000, retention.bytes is -1")


LIMITED: str = DELETED.partition("steps:")[0].replace(
    "retention.ms: 2000", "retention.ms: -1, retention.bytes: 20000"
)


def test_log__that_deletes_more_than_is_above_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(LIMITED).passed
    sound = retention._over_size
    monkeypatch.setattr(retention, "_over_size", lambda log, most: sound(log, most // 2))
    (found, *_) = texts(run(LIMITED), "retention-hasty")
    assert found.endswith("; retention.ms is -1, retention.bytes is 20000")


DELETED_IN_PART: str = """\
topology: {brokers: 3, topics: {orders: {assignment: [[1, 2, 3]]}}}
workload: {producers: {topic: orders, rate: 50/s}}
duration: 12s
steps:
  - {at: 3s, delete_records: orders-0}
  - {at: 5s, isolate: {nodes: 1, others: "2, 3"}, for: 3s}
  - {at: 5200ms, delete_records: orders-0}
  - {at: 5500ms, move: {partition: orders-0, to: 2}}
"""


def test_deletion__that_is_confirmed_before_all_replicas_have_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert run(DELETED_IN_PART).verdict.violations == ()
    monkeypatch.setattr(Replica, "low_watermark", lambda replica: replica.log.log_start_offset)
    (found, *_) = texts(run(DELETED_IN_PART), "deletion-undone")
    assert found.startswith("the log of its leader begins at ")


def test_leader__that_finds_deleted_records_by_their_time(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(DELETED_IN_PART).verdict.violations == ()
    find = Log.offset_for_timestamp

    def find_any(log: Log, timestamp_ms: int, record_max: int = 0) -> object:
        start, log.log_start_offset = log.log_start_offset, 0
        found = find(log, timestamp_ms, record_max)
        log.log_start_offset = start
        return found

    monkeypatch.setattr(Log, "offset_for_timestamp", find_any)
    found = texts(run(DELETED_IN_PART), "answer-differs")
    assert found[0].startswith("the offset for timestamp "), found


OVER_QUOTA: str = """\
topology:
  brokers: 3
  topics: {orders: {partitions: 1, replication_factor: 3}}
  config: {quota.window.num: 2}
workload:
  producers: {topic: orders, rate: 60/s, size: 300, batch_size: 400, in_flight: 5}
duration: 8s
steps:
  - {at: 100ms, slow: {nodes: all, others: clients, latency: 20ms}}
  - {at: 2s, set_config: {clients: all, config: {producer_byte_rate: 4000}}, for: 3s}
"""


def test_broker__that_serves_a_client_before_its_throttle_time_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert run(OVER_QUOTA).passed
    holds = ClientQuotas.holds

    def hold_nobody(quotas: ClientQuotas, request: Request, now_ms: int) -> bool:
        quotas._muted_until_ms.clear()
        return holds(quotas, request, now_ms)

    monkeypatch.setattr(ClientQuotas, "holds", hold_nobody)
    (found, *_) = texts(run(OVER_QUOTA), "throttle-ignored")
    assert found.startswith("ProduceRequest of connection ")


RESTARTED: str = """\
topology: {brokers: 3, topics: {orders: {partitions: 1, replication_factor: 3}}}
workload: {producers: {topic: orders, rate: 5/s}}
duration: 20s
steps:
  - {at: 3s, restart: {brokers: 3, how: kill, down: 200ms}}
"""


def test_controller__that_registers_a_broker_too_early(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(RESTARTED).passed
    monkeypatch.setattr(Sessions, "is_valid", lambda *_: False)
    (found, *_) = texts(run(RESTARTED), "registered-early")
    assert found.startswith("a process was registered "), found


SHRUNK: str = """\
topology:
  brokers: 3
  topics: {orders: {assignment: [[1, 2]], config: {min.insync.replicas: 2}}}
workload: {producers: {topic: orders, rate: 20/s}}
duration: 10s
steps:
  - {at: 3s, reassign: {partition: orders-0, to: [1]}}
"""


def test_leader__that_counts_the_replicas_before_a_reassignment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert run(SHRUNK).passed
    take = Replica._take

    def take_and_keep(replica: Replica, registration: PartitionRegistration) -> None:
        min_isr = replica.min_isr
        take(replica, registration)
        replica.min_isr = min_isr

    monkeypatch.setattr(Replica, "_take", take_and_keep)
    (found, *_) = texts(run(SHRUNK), "refused-in-sync")
    assert found == "members of the ISR 1, min.insync.replicas 1"


def test_leader__that_drops_a_follower_on_a_slow_link(monkeypatch: pytest.MonkeyPatch) -> None:
    story = SLOW_FOLLOWER.replace(
        "isolate: {nodes: 3, others: 1}", "slow: {nodes: 3, others: 1, latency: 100ms}"
    )
    assert run(story).passed
    record_fetch = Replica.record_fetch

    def record_at_the_end_only(replica: Replica, follower: int, *args: Any) -> bool:
        progress = replica.followers[follower]
        progress.leader_end_at_last_fetch = NEVER_MS
        return record_fetch(replica, follower, *args)

    monkeypatch.setattr(Replica, "record_fetch", record_at_the_end_only)
    assert texts(run(story), "isr-hasty")


COMPACTED: str = """\
topology:
  brokers: 3
  topics:
    orders:
      assignment: [[1, 2, 3]]
      config:
        {min.insync.replicas: 2, cleanup.policy: compact, segment.ms: 200, delete.retention.ms: 100,
         max.compaction.lag.ms: 500}
  config:
    {log.cleaner.backoff.ms: 50, broker.session.timeout.ms: 30000, replica.lag.time.max.ms: 30000}
workload: {producers: {topic: orders, rate: 10/s, keys: 5, acks: 1}}
duration: 8s
steps:
  - {at: 3s, isolate: {nodes: "2, 3", others: 1}, for: 3s}
"""


def test_cleaner__that_removes_the_end_of_what_is_committed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert run(COMPACTED).passed
    clean_batch = compaction._clean_batch

    def without_end(batch: Batch, work: Any) -> Batch | None:
        is_end = batch.last_offset + 1 == work.high_watermark
        return None if is_end else clean_batch(batch, work)

    monkeypatch.setattr(compaction, "_clean_batch", without_end)
    assert texts(run(COMPACTED), "end-compacted")


def test_cleaner__that_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maintenance, "compact", lambda *_: 0)
    (found, *_) = texts(run(COMPACTED), "compaction-overdue")
    assert found.endswith("and was not cleaned; max.compaction.lag.ms is 500")


QUOTA_COMES_AND_GOES = """\
topology: {brokers: 1, topics: {orders: {partitions: 1, replication_factor: 1}}}
workload: {producers: {topic: orders, name: shop, rate: 20/s}}
duration: 9s
steps:
  - {at: 1s, set_config: {clients: all, config: {producer_byte_rate: 90000}}}
  - {at: 7s, set_config: {clients: all, config: {producer_byte_rate: 70000}}}
"""


def test_quota__that_a_broker_does_not_notice(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(QUOTA_COMES_AND_GOES).passed

    def on_changed(quotas: ClientQuotas) -> None:
        quotas.is_active = True

    monkeypatch.setattr(ClientQuotas, "on_changed", on_changed)
    (found, *_) = texts(run(QUOTA_COMES_AND_GOES), "quota-differs")
    assert found.endswith(": 90000 in memory, 70000 in the log")


EXPIRES_AND_IS_COMPACTED = """\
topology:
  brokers: 1
  topics:
    orders:
      partitions: 1
      replication_factor: 1
      config: {cleanup.policy: "compact,delete", segment.ms: 200, retention.ms: 1000}
  config: {log.retention.check.interval.ms: 300, log.initial.task.delay.ms: 100}
workload: {producers: {topic: orders, rate: 10/s, keys: 5}}
duration: 8s
"""


def test_retention__that_a_compacted_log_does_not_have(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(EXPIRES_AND_IS_COMPACTED).passed
    monkeypatch.setattr(maintenance, "expire", lambda *_: 0)
    assert texts(run(EXPIRES_AND_IS_COMPACTED), "retention-overdue")
