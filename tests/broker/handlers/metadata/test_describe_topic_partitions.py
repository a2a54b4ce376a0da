"""DescribeTopicPartitions: order, pages, cursors."""

from __future__ import annotations

import pytest

from kcluster.broker.handlers.metadata.describe_topic_partitions import (
    build_describe_topic_partitions,
)
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from tests.rig.one_broker import OneBroker, broker_records, image_of, topic_records

IMAGE = image_of(
    broker_records(1, 2, 3, fenced=(3,)),
    topic_records("b", (1, 2), (2, 1), (1, 2)),
    topic_records("a", (1, 2, 3), isr=(1,), elr=(2,), last_known_elr=(3,)),
)


def describe(
    *names: str, limit: int = 2000, cursor: tuple[str, int] | None = None, broker_limit: int = 2000
) -> m.DescribeTopicPartitionsResponse:
    new = m.DescribeTopicPartitionsRequest
    request = new(
        topics=[new.TopicRequest(name=name) for name in names],
        response_partition_limit=limit,
        cursor=None if cursor is None else new.Cursor(*cursor),
    )
    return build_describe_topic_partitions(IMAGE, request, broker_limit)


def pages(response: m.DescribeTopicPartitionsResponse) -> list[tuple[str | None, list[int]]]:
    return [(t.name, [p.partition_index for p in t.partitions]) for t in response.topics]


def next_of(response: m.DescribeTopicPartitionsResponse) -> tuple[str, int] | None:
    cursor = response.next_cursor
    return None if cursor is None else (cursor.topic_name, cursor.partition_index)


def test_describe_topic_partitions__topics_come_in_alphabetical_order_each_once() -> None:
    response = describe("b", "nope", "a", "~bad", "b")
    assert [(topic.name, topic.error_code) for topic in response.topics] == [
        ("a", ErrorCode.NONE),
        ("b", ErrorCode.NONE),
        ("nope", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("~bad", ErrorCode.INVALID_TOPIC_EXCEPTION),
    ]
    assert response.next_cursor is None


def test_describe_topic_partitions__no_names_are_all_topics() -> None:
    assert pages(describe()) == [("a", [0]), ("b", [0, 1, 2])]


def test_describe_topic_partitions__has_eligible_and_last_known_leaders() -> None:
    partition = describe("a").topics[0].partitions[0]
    assert (partition.isr_nodes, partition.offline_replicas) == ([1], [3])
    assert (partition.eligible_leader_replicas, partition.last_known_elr) == ([2], [3])


@pytest.mark.parametrize(
    ("limit", "expected", "cursor"),
    [
        (1, [("a", [0])], ("b", 0)),
        (2, [("a", [0]), ("b", [0])], ("b", 1)),
        (4, [("a", [0]), ("b", [0, 1, 2])], None),
        (0, [("a", [0])], ("b", 0)),
        (-5, [("a", [0])], ("b", 0)),
    ],
)
def test_describe_topic_partitions__a_page_ends_at_the_limit_with_a_cursor(
    limit: int, expected: list[tuple[str, list[int]]], cursor: tuple[str, int] | None
) -> None:
    response = describe("b", "a", limit=limit)
    assert pages(response) == expected
    assert next_of(response) == cursor


def test_describe_topic_partitions__the_broker_also_has_a_limit() -> None:
    assert next_of(describe(broker_limit=3)) == ("b", 2)


def test_describe_topic_partitions__pages_add_up_to_the_full_list() -> None:
    cursor, seen = ("", 0), []
    for _ in range(4):
        response = describe(limit=1, cursor=cursor)
        seen += [(t.name, p.partition_index) for t in response.topics for p in t.partitions]
        if response.next_cursor is None:
            break
        cursor = (response.next_cursor.topic_name, response.next_cursor.partition_index)
    assert seen == [("a", 0), ("b", 0), ("b", 1), ("b", 2)]


def test_describe_topic_partitions__a_cursor_past_the_end_finds_no_partitions() -> None:
    assert pages(describe("b", cursor=("b", 9))) == [("b", [])]


@pytest.mark.parametrize("cursor", [("zzz", 0), ("a", -1)])
def test_describe_topic_partitions__a_bad_cursor_is_an_invalid_request(
    cursor: tuple[str, int],
) -> None:
    response = describe("b", "a", cursor=cursor)
    assert [t.error_code for t in response.topics] == [ErrorCode.INVALID_REQUEST] * 2


def test_describe_topic_partitions__is_served() -> None:
    one = OneBroker(broker_records(1), topic_records("mine", (1,)))
    response = one.ask(
        ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, m.DescribeTopicPartitionsRequest(topics=[])
    )
    assert pages(response) == [("mine", [0])]
