"""ListOffsets, OffsetForLeaderEpoch, DeleteRecords: where a log begins, ends and changed hands."""

from __future__ import annotations

from typing import Any

import pytest

from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from tests.rig.one_broker import (
    TOPIC,
    OneBroker,
    broker_records,
    leader,
    topic_config,
    topic_records,
)
from tests.rig.requests import batch


def list_offset(broker: OneBroker, timestamp: int, version: int = 9, **more: Any) -> Any:
    """(error, timestamp, offset, leader epoch) of one partition."""
    fields = {"partition_index": 0, "timestamp": timestamp} | more
    partition = m.ListOffsetsRequest.ListOffsetsPartition(**fields)
    topic = m.ListOffsetsRequest.ListOffsetsTopic(TOPIC, [partition])
    response = broker.ask(
        ApiKey.LIST_OFFSETS, version, m.ListOffsetsRequest(replica_id=-1, topics=[topic])
    )
    (answer,) = response.topics[0].partitions
    error = ErrorCode(answer.error_code).name
    return error, answer.timestamp, answer.offset, answer.leader_epoch


@pytest.mark.parametrize(
    ("timestamp", "answer"),
    [
        (-1, ("NONE", -1, 4, 5)),
        (-2, ("NONE", -1, 0, 5)),
        (-3, ("NONE", 300, 2, 5)),
        (-4, ("NONE", -1, 0, 5)),
        (-5, ("NONE", -1, -1, -1)),
        (-7, ("UNSUPPORTED_VERSION", -1, -1, -1)),
        (0, ("NONE", 100, 0, 5)),
        (101, ("NONE", 200, 1, 5)),
        (250, ("NONE", 300, 2, 5)),
        (301, ("NONE", -1, -1, -1)),
    ],
)
def test_list_offsets__by_timestamp(timestamp: int, answer: Any) -> None:
    broker = leader()
    for at_ms in (100, 200, 300, 250):
        broker.produce(batch(b"v", timestamp_ms=at_ms))
    assert list_offset(broker, timestamp) == answer


def test_list_offsets__a_timestamp_of_a_later_version_is_unsupported() -> None:
    assert list_offset(leader(), -3, version=6)[0] == "UNSUPPORTED_VERSION"
    assert list_offset(leader(), -6, version=9)[0] == "UNSUPPORTED_VERSION"


def test_list_offsets__checks_the_leader_and_its_epoch() -> None:
    assert list_offset(leader(), -1, partition_index=9)[0] == "UNKNOWN_TOPIC_OR_PARTITION"
    assert list_offset(leader(), -1, current_leader_epoch=4)[0] == "FENCED_LEADER_EPOCH"
    follower = OneBroker(broker_records(1, 2), topic_records(TOPIC, (2, 1)))
    assert list_offset(follower, -1)[0] == "NOT_LEADER_OR_FOLLOWER"


def test_list_offsets__a_new_leader_does_not_know_yet_what_is_committed() -> None:
    broker = OneBroker(broker_records(1, 2), topic_records(TOPIC, (1, 2)))
    broker.produce(batch(b"v"), acks=1)
    assert list_offset(broker, -1)[:3] == ("NONE", -1, 0)
    again = topic_records(TOPIC, (1, 2), leader_epoch=6, partition_epoch=8)[1:]
    broker.apply(again, broker.now_ms)
    assert list_offset(broker, -1)[0] == "OFFSET_NOT_AVAILABLE"


@pytest.mark.parametrize(
    ("epoch", "answer"),
    [(5, (5, 1)), (7, (5, 1)), (8, (8, 2)), (9, (-1, -1)), (4, (4, 0)), (-1, (-1, -1))],
)
def test_offset_for_leader_epoch__ends_where_the_next_epoch_began(epoch: int, answer: Any) -> None:
    broker = leader()
    broker.produce(batch(b"v"))
    broker.apply(topic_records(TOPIC, (1,), leader_epoch=8, partition_epoch=9)[1:], broker.now_ms)
    broker.produce(batch(b"v"))
    request = m.OffsetForLeaderEpochRequest
    partition = request.OffsetForLeaderPartition(partition=0, leader_epoch=epoch)
    body = request(replica_id=-2, topics=[request.OffsetForLeaderTopic(TOPIC, [partition])])
    response = broker.ask(ApiKey.OFFSET_FOR_LEADER_EPOCH, 4, body)
    (found,) = response.topics[0].partitions
    assert (found.leader_epoch, found.end_offset) == answer


def delete_before(broker: OneBroker, offset: int, partition: int = 0) -> Any:
    request = m.DeleteRecordsRequest
    topic = request.DeleteRecordsTopic(TOPIC, [request.DeleteRecordsPartition(partition, offset)])
    return broker.ask(ApiKey.DELETE_RECORDS, 2, request(topics=[topic], timeout_ms=1_000))


@pytest.mark.parametrize(
    ("offset", "answer"),
    [
        (1, ("NONE", 1)),
        (0, ("NONE", 0)),
        (-1, ("NONE", 2)),
        (3, ("OFFSET_OUT_OF_RANGE", -1)),
        (-2, ("OFFSET_OUT_OF_RANGE", -1)),
    ],
)
def test_delete_records__moves_the_log_start(offset: int, answer: Any) -> None:
    broker = leader()
    broker.produce(batch(b"v"))
    broker.produce(batch(b"v"))
    (found,) = delete_before(broker, offset).topics[0].partitions
    assert (ErrorCode(found.error_code).name, found.low_watermark) == answer


def test_delete_records__of_a_compacted_topic_is_against_the_policy() -> None:
    config = topic_config(TOPIC, "cleanup.policy", "compact")
    broker = OneBroker(broker_records(1), topic_records(TOPIC, (1,)), [config])
    (found,) = delete_before(broker, 0).topics[0].partitions
    assert found.error_code == ErrorCode.POLICY_VIOLATION


def test_delete_records__waits_for_the_followers_and_times_out() -> None:
    broker = OneBroker(broker_records(1, 2), topic_records(TOPIC, (1, 2)))
    assert delete_before(broker, 0) is None
    (found,) = broker.pass_time(1_000).topics[0].partitions
    assert found.error_code == ErrorCode.REQUEST_TIMED_OUT
