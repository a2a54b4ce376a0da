"""Versions that 4.0 removed, and how brokers of older releases differ."""

from __future__ import annotations

from typing import Any

import pytest

from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.records.records import Record, build_batch
from kcluster.protocol.releases import releases
from tests.rig.one_broker import OneBroker, broker_records, topic_config, topic_records

LATEST, EARLIEST = -1, -2


def one_of(version: str, *more: Any, **configs: Any) -> OneBroker:
    records = [broker_records(1), topic_records("orders", (1,)), *more]
    one = OneBroker(*records, **configs)
    one.broker.release = releases()[version]
    return one


# -------------------------------------------------------------------------------- ListOffsets


def offsets_v0(one: OneBroker, timestamp: int, most: int = 10, partition: int = 0) -> Any:
    item = m.ListOffsetsRequest.ListOffsetsPartition(
        partition_index=partition, timestamp=timestamp, max_num_offsets=most
    )
    topic = m.ListOffsetsRequest.ListOffsetsTopic(name="orders", partitions=[item])
    body = m.ListOffsetsRequest(replica_id=-1, topics=[topic])
    return one.ask(ApiKey.LIST_OFFSETS, 0, body).topics[0].partitions[0]


@pytest.fixture
def three_segments() -> OneBroker:
    """Base offsets 0, 1, 2, written to at 1000, 2000 and 3000; the end is 3."""
    one = one_of("2.8", [topic_config("orders", "segment.ms", "500")])
    replica = one.broker.leader_replica("orders", 0)
    assert not isinstance(replica, ErrorCode)
    for second in (1, 2, 3):
        one.now_ms = second * 1_000
        appended = replica.append_as_leader(
            memoryview(build_batch([Record(0, one.now_ms, b"k", b"x" * 20)])), 1, one.now_ms
        )
        assert not appended.error
    one.broker.replicas.touch(replica)
    one.pass_time(1)
    assert replica.high_watermark == 3
    return one


@pytest.mark.parametrize(
    ("timestamp", "most", "offsets"),
    [
        (LATEST, 1, [3]),
        (LATEST, 10, [3, 2, 1, 0]),
        (EARLIEST, 10, [0]),
        (2_000, 10, [1, 0]),
        (2_999, 1, [1]),
        (999, 10, []),
        (99_999, 2, [3, 2]),
        (LATEST, 0, []),
    ],
)
def test_list_offsets_v0__returns_the_offsets_of_segments(
    three_segments: OneBroker, timestamp: int, most: int, offsets: list[int]
) -> None:
    answer = offsets_v0(three_segments, timestamp, most)
    assert (answer.error_code, answer.old_style_offsets) == (ErrorCode.NONE, offsets)


def test_list_offsets_v0__of_an_empty_log_is_its_start() -> None:
    assert offsets_v0(one_of("2.8"), LATEST).old_style_offsets == [0]


def test_list_offsets_v0__consumers_see_nothing_above_the_high_watermark(
    three_segments: OneBroker,
) -> None:
    replica = three_segments.broker.leader_replica("orders", 0)
    assert not isinstance(replica, ErrorCode)
    replica.high_watermark = 1
    assert offsets_v0(three_segments, LATEST).old_style_offsets == [1, 1, 0]


def test_list_offsets_v0__errors() -> None:
    one = one_of("2.8")
    assert offsets_v0(one, -3).old_style_offsets == []
    one.broker.release = releases()["3.9"]
    assert offsets_v0(one, -3).error_code == ErrorCode.UNSUPPORTED_VERSION
    assert offsets_v0(one, LATEST, most=-1).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert offsets_v0(one, LATEST, partition=9).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


# -------------------------------------------------------------------------------- controller


def create_orders() -> m.CreateTopicsRequest:
    topic = m.CreateTopicsRequest.CreatableTopic(name="new", num_partitions=1, replication_factor=1)
    return m.CreateTopicsRequest(topics=[topic], timeout_ms=1_000)


@pytest.mark.parametrize(("version", "error"), [("3.2", ErrorCode.NOT_CONTROLLER), ("3.3", None)])
def test_create_topics__zookeeper_brokers_that_are_not_the_controller_refuse(
    version: str, error: ErrorCode | None
) -> None:
    one = OneBroker(broker_records(0, 1))
    one.broker.release = releases()[version]
    answer = one.ask(ApiKey.CREATE_TOPICS, 0, create_orders())
    assert (answer and answer.topics[0].error_code) == error
    assert len(one.asked) == (error is None)


@pytest.mark.parametrize(("version", "expected"), [("2.3", (0, -1)), ("2.4", (-1, -1))])
def test_create_topics__defaults_came_with_2_4(version: str, expected: tuple[int, int]) -> None:
    one = one_of(version)
    topic = m.CreateTopicsRequest.CreatableTopic(name="n", num_partitions=-1, replication_factor=-1)
    assert one.ask(ApiKey.CREATE_TOPICS, 0, m.CreateTopicsRequest([topic], 1_000)) is None
    (sent,) = one.asked[0].message.body.topics
    assert (sent.num_partitions, sent.replication_factor) == expected


def test_create_topics__the_zookeeper_controller_is_listed_and_serves() -> None:
    one = OneBroker(broker_records(0, 1, 2, fenced=(0,)))
    one.broker.release = releases()["2.8"]
    for version in (1, 8):
        described = one.ask(ApiKey.METADATA, version, m.MetadataRequest(topics=[]))
        assert described.controller_id == 1
    assert one.ask(ApiKey.DESCRIBE_CLUSTER, 0, m.DescribeClusterRequest()).controller_id == 1
    assert one.ask(ApiKey.CREATE_TOPICS, 0, create_orders()) is None
    result = m.CreateTopicsResponse.CreatableTopicResult(name="new")
    assert one.controller_answers(m.CreateTopicsResponse(topics=[result])).topics == [result]


@pytest.mark.parametrize(
    ("version", "error"),
    [("2.8", ErrorCode.LEADER_NOT_AVAILABLE), ("3.3", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)],
)
def test_metadata__the_error_for_a_topic_being_created_depends_on_zookeeper(
    version: str, error: ErrorCode
) -> None:
    one = one_of(version)
    request = m.MetadataRequest(topics=[m.MetadataRequest.MetadataRequestTopic(name="new")])
    assert one.ask(ApiKey.METADATA, 1, request).topics[0].error_code == error
    assert len(one.asked) == 1


# -------------------------------------------------------------------------------- configs


def test_describe_configs_v0__marks_defaults() -> None:
    one = one_of("1.0", [topic_config("orders", "retention.ms", "5")])
    resource = m.DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=2, resource_name="orders", configuration_keys=None
    )
    (result,) = one.ask(
        ApiKey.DESCRIBE_CONFIGS, 0, m.DescribeConfigsRequest(resources=[resource])
    ).results
    not_default = {config.name for config in result.configs if not config.is_default}
    assert not_default == {"retention.ms"}
