"""Offsets that a member of a consumer group commits in a transaction (KIP-447, KIP-848), and a
group that follows its coordinator, on three brokers."""

from __future__ import annotations

from typing import Any

import pytest

from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from tests.broker.coordinator.transactions.transaction_rig import GROUP, RawProducer, TransactionRig
from tests.rig.cluster import TOPIC

BOTH = pytest.mark.parametrize("v2", [False, True], ids=["v1", "v2"])


def beat(rig: TransactionRig, epoch: int) -> m.ConsumerGroupHeartbeatResponse:
    """A heartbeat of the only member; with epoch 0 it joins."""
    first: dict[str, Any] = (
        {"rebalance_timeout_ms": 1_000, "subscribed_topic_names": [TOPIC]} if not epoch else {}
    )
    body = m.ConsumerGroupHeartbeatRequest(
        group_id=GROUP,
        member_id="a",
        member_epoch=epoch,
        topic_partitions=[] if not epoch else None,
        **first,
    )
    answer = rig.ask_and_wait(rig.group_coordinator, ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, body)
    assert isinstance(answer, m.ConsumerGroupHeartbeatResponse)
    return answer


def started(rig: TransactionRig, v2: bool) -> RawProducer:
    producer = rig.producer(v2=v2)
    assert producer.init() == "NONE"
    if not v2:
        assert producer.add_offsets() == "NONE"
    return producer


@BOTH
def test_offsets_in_a_transaction__a_member_names_its_epoch(v2: bool) -> None:
    rig = TransactionRig()
    assert beat(rig, 0).member_epoch == 2
    producer = started(rig, v2)
    stale = "STALE_MEMBER_EPOCH" if v2 else "ILLEGAL_GENERATION"
    assert producer.commit_offset(1, member_id="a", generation_id=1) == stale
    assert producer.commit_offset(1, member_id="a", generation_id=3) == stale
    assert producer.commit_offset(1, member_id="b", generation_id=2) == "UNKNOWN_MEMBER_ID"
    assert producer.commit_offset(1, member_id="a", generation_id=2) == "NONE"
    assert producer.end() == "NONE"
    assert rig.committed_offset() == 1


@BOTH
def test_offsets_in_a_transaction__old_producers_do_not_say_who_commits(v2: bool) -> None:
    rig = TransactionRig()
    beat(rig, 0)
    producer = started(rig, v2)
    assert producer.commit_offset(7) == "NONE"
    assert producer.end() == "NONE"
    assert rig.committed_offset() == 7


def test_offsets_in_a_transaction__of_version_6_name_topics_by_id() -> None:
    rig = TransactionRig()
    producer = started(rig, v2=True)
    assert producer.commit_offset(1, topic_id=b"?" * 16) == "UNKNOWN_TOPIC_ID"
    assert producer.commit_offset(1, topic_id=bytes(16)) == "UNKNOWN_TOPIC_ID"
    assert producer.commit_offset(1, member_id="a", generation_id=2) == "GROUP_ID_NOT_FOUND"
    assert producer.commit_offset(1, 5, 2, member_id="a") == "ILLEGAL_GENERATION", "old producers"
    assert producer.commit_offset(9) == "NONE"
    assert producer.end() == "NONE"
    assert rig.committed_offset() == 9


def test_group__goes_on_with_the_next_coordinator() -> None:
    rig = TransactionRig()
    assert beat(rig, 0).member_epoch == 2
    first = rig.group_coordinator
    rig.kill(first)
    rig.wait(lambda: rig.group_coordinator not in (None, first))
    answer = beat(rig, 2)
    assert (answer.error_code, answer.member_epoch) == (ErrorCode.NONE, 2)
    assert answer.assignment is None, "nothing has changed for it"


def test_group__an_unanswered_heartbeat_left_nothing_or_all() -> None:
    rig = TransactionRig()
    beat(rig, 0)
    first = rig.group_coordinator
    rig.cut_off(first)
    body = m.ConsumerGroupHeartbeatRequest(
        group_id=GROUP,
        member_id="b",
        member_epoch=0,
        rebalance_timeout_ms=1_000,
        subscribed_topic_names=[TOPIC],
        topic_partitions=[],
    )
    lost = rig.ask(first, ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, body)
    rig.wait(lambda: rig.group_coordinator not in (None, first))
    described = rig.ask_and_wait(
        rig.group_coordinator,
        ApiKey.CONSUMER_GROUP_DESCRIBE,
        1,
        m.ConsumerGroupDescribeRequest(group_ids=[GROUP]),
    )
    assert [one.member_id for one in described.groups[0].members] == ["a"]
    assert beat(rig, 2).error_code == ErrorCode.NONE
    rig.heal()
    rig.wait(lambda: lost.body is not None)
    assert lost.body.error_code in (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE)
