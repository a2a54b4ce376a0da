"""The invariants that no mutation in tests/property breaks, each broken by hand."""

from __future__ import annotations

from typing import Any

import pytest

from kcluster.config.kafka.definitions import BrokerConfig, TopicConfig
from kcluster.contract import Request
from kcluster.invariants.invariants import Invariants
from kcluster.invariants.observed import Committed, ObservedPartition
from kcluster.invariants.replies import Patience
from kcluster.invariants.rules import (
    epoch_violations,
    extend,
    first_lacking,
    joins_lacking,
    leader_violations,
    producer_violations,
    registration_violations,
    replica_violations,
)
from kcluster.invariants.violations import VIOLATIONS
from kcluster.metadata.records import BrokerRegistration, PartitionRegistration
from kcluster.partition.log.log import Log
from kcluster.partition.producers import ProducerStates
from kcluster.partition.replica import Replica
from kcluster.principals import BrokerEndpoint
from kcluster.protocol.records.batches import parse_batches
from kcluster.protocol.records.records import Record, build_batch


def registration(**changes: Any) -> PartitionRegistration:
    fields: dict[str, Any] = {
        "topic_id": b"t" * 16,
        "partition": 0,
        "replicas": (1, 2, 3),
        "isr": (1, 2),
        "leader": 1,
        "leader_epoch": 3,
        "partition_epoch": 5,
    }
    return PartitionRegistration(**(fields | changes))


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"isr": (1, 4)}, "isr-not-replicas"),
        ({"isr": (2,)}, "leader-not-in-isr"),
        ({"elr": (2,)}, "elr-overlaps-isr"),
        ({"leader_epoch": 2}, "epoch-back"),
        ({"leader": 2}, "two-leaders"),
        ({"leader": 3, "isr": (3,), "leader_epoch": 4}, "unclean-unasked"),
    ],
)
def test_registration__each_violation_is_named(changes: dict[str, Any], name: str) -> None:
    found = registration_violations(registration(**changes), registration())
    assert [violation for violation, _ in found] == [name]


def leader(broker: int) -> Replica:
    config = TopicConfig.resolve(BrokerConfig.resolve(), {})
    first = registration(leader=broker, isr=(broker,))
    replica = Replica("t", first, broker, Log(b"t" * 16, 0), config, {}, {}, 30_000, {})
    replica.lead(first, 0)
    return replica


def append(replica: Replica) -> None:
    batch = build_batch([Record(0, 0, None, b"v", ())])
    replica.append_as_leader(memoryview(batch), 1, 0)


def names(invariants: Invariants) -> list[str]:
    assert {found.name for found in invariants.violations} <= set(VIOLATIONS)
    return [found.name for found in invariants.violations]


def test_two_leaders__of_one_epoch_are_a_violation() -> None:
    invariants = Invariants()
    invariants.observe(0, 1, 0, [leader(1)])
    invariants.observe(0, 2, 0, [leader(2)])
    assert names(invariants) == ["two-leaders"]


def two_replicas() -> tuple[Invariants, Replica, ObservedPartition]:
    """Leader 1 with one committed record, and follower 2 in the ISR, whose log is empty."""
    invariants, config = Invariants(), TopicConfig.resolve(BrokerConfig.resolve(), {})
    both = registration(replicas=(1, 2))
    first, second = (
        Replica("t", both, broker, Log(b"t" * 16, 0), config, {}, {}, 30_000, {})
        for broker in (1, 2)
    )
    first.lead(both, 0)
    second.follow(both)
    invariants.observe(0, 1, 0, [first])
    invariants.observe(0, 2, 0, [second])
    append(first)
    return invariants, first, invariants.partition("t", first.key)


@pytest.mark.parametrize(
    ("lost_epoch", "violations"),
    [(None, ["watermark-above-isr"]), (6, ["watermark-above-isr"]), (7, [])],
    ids=["kept its disk", "lost before it fetched", "lost since it fetched"],
)
def test_watermark__above_a_member_that_lost_its_disk_after_its_fetch_is_exempt(
    lost_epoch: int | None, violations: list[str]
) -> None:
    invariants, first, _ = two_replicas()
    if lost_epoch is not None:
        invariants.on_loss(2, lost_epoch)
    first.record_fetch(2, 7, 1, 0, 2)
    invariants.observe(2, 1, 0, [first])
    assert names(invariants) == violations


@pytest.mark.parametrize(
    ("lost_epoch", "violations"),
    [(None, ["joined-lacking"]), (6, ["joined-lacking"]), (7, [])],
    ids=["kept its disk", "known to have returned", "not yet known to be down"],
)
def test_isr__is_joined_only_with_all_that_is_committed(
    lost_epoch: int | None, violations: list[str]
) -> None:
    """KIP-903: a broker that has returned with an empty disk is not the one that had caught up."""
    _, _, observed = two_replicas()
    observed.committed.end = 1
    if lost_epoch is not None:
        observed.lost[2] = lost_epoch
    alone = registration(replicas=(1, 2), isr=(1,))
    both = registration(replicas=(1, 2), partition_epoch=6)
    brokers = {2: BrokerRegistration(2, 7, (BrokerEndpoint("host", 9092),), None, fenced=False)}
    assert [name for name, _ in joins_lacking(observed, both, alone, brokers)] == violations


def test_committed__a_batch_counts_though_a_high_watermark_once_lay_within_it() -> None:
    replica, committed = leader(1), Committed()
    batch = build_batch([Record(at, 0, None, b"v", ()) for at in range(3)])
    replica.append_as_leader(memoryview(batch), 1, 0)
    for watermark in (2, 3):
        replica.high_watermark = watermark
        extend(committed, replica)
    assert (list(committed.batches), committed.end) == ([0], 3)
    assert first_lacking(leader(2).log, committed) == 0


def test_committed__a_batch_is_lacking_though_the_log_starts_within_it() -> None:
    """DeleteRecords up to an offset within a batch, and then a power loss."""
    replica, committed = leader(1), Committed()
    batch = build_batch([Record(at, 0, None, b"v", ()) for at in range(3)])
    replica.append_as_leader(memoryview(batch), 1, 0)
    extend(committed, replica)
    replica.advance_log_start(1)
    assert first_lacking(replica.log, committed) is None
    replica.truncate_fully_and_start_at(1)
    assert first_lacking(replica.log, committed) == 0


def test_committed__a_log_that_ends_in_the_cleaned_part_lacks_all_from_its_end_on() -> None:
    replica, committed = leader(1), Committed()
    for _ in range(4):
        append(replica)
    extend(committed, replica)
    replica.truncate_to(1)
    assert first_lacking(replica.log, committed, 3) == 1


def test_leader__that_drops_records_within_its_epoch_is_a_violation() -> None:
    invariants, replica = Invariants(), leader(1)
    append(replica)
    invariants.observe(0, 1, 0, [replica])
    replica.truncate_to(0)
    invariants.observe(1, 1, 0, [replica])
    assert names(invariants) == ["watermark-back", "leader-truncated"]


def test_leader__whose_log_start_decreases_is_a_violation() -> None:
    invariants, replica = Invariants(), leader(1)
    append(replica)
    replica.advance_log_start(1)
    invariants.observe(0, 1, 0, [replica])
    replica.log.log_start_offset = 0
    invariants.observe(1, 1, 0, [replica])
    assert names(invariants) == ["start-back"]


def test_leader__begins_its_epoch_without_knowledge_of_followers() -> None:
    _, replica, _ = two_replicas()
    replica.record_fetch(2, 7, 1, 0, 2)
    assert [name for name, _ in leader_violations(replica, True)] == ["progress-outdated"]
    assert list(leader_violations(replica, False)) == []
    replica.follow(registration(replicas=(1, 2), leader=2, leader_epoch=4, partition_epoch=6))
    replica.lead(registration(replicas=(1, 2), leader_epoch=5, partition_epoch=7), 3)
    assert list(leader_violations(replica, True)) == []


def test_epochs__a_leader_has_its_own_in_its_cache() -> None:
    """KAFKA-7164: without it, followers truncate by an epoch that has ended."""
    replica = leader(1)
    assert list(leader_violations(replica, True)) == []
    replica.log.epochs.clear()
    assert [name for name, _ in leader_violations(replica, True)] == ["epochs-differ"]


def test_epochs__the_cache_has_those_of_the_records() -> None:
    invariants, replica, observed = two_replicas()
    assert list(epoch_violations(replica.log)) == []
    replica.log.epochs.assign(4, 0)
    assert [name for name, _ in epoch_violations(replica.log)] == ["epochs-differ"]
    observed.registration = registration(replicas=(1, 2))
    invariants.check_epochs(9)
    assert names(invariants) == ["epochs-differ"]


def log_of_two_batches() -> tuple[Log, ProducerStates]:
    """Batches of producer 7 at 1,000 and at 3,000 ms, and a table that knows the second one."""
    log, table = Log(b"t" * 16, 0), ProducerStates()
    for at_ms, sequence in ((1_000, 0), (3_000, 1)):
        encoded = build_batch(
            [Record(0, at_ms, None, b"v", ())],
            producer_id=7,
            producer_epoch=0,
            base_sequence=sequence,
        )
        (batch,) = parse_batches(encoded)
        batch.base_offset = batch.last_offset = sequence
        log.append_as_follower([batch])
    table.update(batch)
    return log, table


@pytest.mark.parametrize(
    ("expiration_ms", "violations"), [(2_500, []), (2_501, ["producers-differ"])]
)
def test_producers__that_came_back_may_have_lost_what_they_sent_before(
    expiration_ms: int, violations: list[str]
) -> None:
    log, table = log_of_two_batches()
    assert [name for name, _ in producer_violations(log, 3_500, 2_501)] == []
    log.producer_table = table
    found = producer_violations(log, 3_500, expiration_ms)
    assert [name for name, _ in found] == violations


def test_cleaned__offsets_that_were_truncated_are_not() -> None:
    replica = leader(1)
    append(replica)
    replica.log.first_dirty_offset = 1
    assert list(replica_violations(replica)) == []
    replica.truncate_to(0)
    replica.log.first_dirty_offset = 1
    assert [name for name, _ in replica_violations(replica)] == ["cleaned-above-end"]


def test_watermark__below_the_log_start_is_a_violation() -> None:
    invariants, replica = Invariants(), leader(1)
    append(replica)
    replica.advance_log_start(1)
    replica.high_watermark = 0
    invariants.observe(0, 1, 0, [replica])
    assert names(invariants) == ["watermark-below-start"]


def test_metadata__that_goes_back_is_a_violation() -> None:
    invariants = Invariants()
    invariants.observe_offset(0, 1, 0, 9)
    invariants.observe_offset(1, 1, 1, 3)
    assert names(invariants) == [], "a restart begins again"
    invariants.observe_offset(2, 1, 1, 2)
    assert names(invariants) == ["metadata-back"]


def test_replies__each_request_gets_exactly_one() -> None:
    invariants = Invariants()
    request = Request(7, 18, 0, 1, None, None)
    invariants.replies.on_request(1, request, 0)
    invariants.check_unanswered(10_000, Patience(5_000, 0))
    assert names(invariants) == ["no-reply"]
    invariants.on_reply(1, request, 10_001)
    invariants.on_reply(1, request, 10_002)
    assert names(invariants) == ["no-reply", "two-replies"]


def test_no_reply__a_disconnected_client_is_owed_none() -> None:
    invariants = Invariants()
    invariants.replies.on_request(1, Request(7, 18, 0, 1, None, None), 0)
    invariants.replies.on_end(1_000, connection=7)
    invariants.check_unanswered(10_000, Patience(5_000, 0))
    assert names(invariants) == []
