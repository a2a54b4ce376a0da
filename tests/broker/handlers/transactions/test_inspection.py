"""DescribeProducers, DescribeTransactions, ListTransactions."""

from __future__ import annotations

from typing import Any

import pytest

from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from tests.rig.one_broker import TOPIC, OneBroker, broker_records, leader, topic_records
from tests.rig.requests import batch


def producers(one: OneBroker, topic: str, *partitions: int) -> list[Any]:
    wanted = m.DescribeProducersRequest.TopicRequest(topic, list(partitions))
    body = m.DescribeProducersRequest([wanted])
    return list(one.ask(ApiKey.DESCRIBE_PRODUCERS, 0, body).topics[0].partitions)


def sent(producer_id: int, epoch: int, sequence: int, *values: bytes) -> bytes:
    return batch(*values, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)


def test_describe_producers__returns_their_last_batches() -> None:
    one = leader()
    one.produce(batch(b"of nobody"))
    one.produce(sent(7, 3, 0, b"a", b"b"))
    one.produce(sent(5, 0, 4, b"c"))
    one.produce(sent(7, 4, 0, b"d"))
    (partition,) = producers(one, TOPIC, 0)
    assert partition.error_code == ErrorCode.NONE
    assert [
        (p.producer_id, p.producer_epoch, p.last_sequence, p.last_timestamp)
        for p in partition.active_producers
    ] == [(5, 0, 4, 1_000), (7, 4, 0, 1_000)]
    assert {
        (p.coordinator_epoch, p.current_txn_start_offset) for p in partition.active_producers
    } == {(-1, -1)}


def test_describe_producers__each_partition_has_its_error() -> None:
    # Broker 1 follows in partition 1 and has no part in partition 2.
    one = OneBroker(broker_records(1, 2), topic_records(TOPIC, (1,), (2, 1), (2,)))
    answers = producers(one, TOPIC, 0, 1, 2, 9)
    assert [ErrorCode(answer.error_code).name for answer in answers] == [
        "NONE",
        "NONE",
        "NOT_LEADER_OR_FOLLOWER",
        "UNKNOWN_TOPIC_OR_PARTITION",
    ]
    assert {answer.error_message for answer in answers} == {None}


@pytest.mark.parametrize(
    ("topic", "error"),
    [
        ("none", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("a b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("", ErrorCode.INVALID_TOPIC_EXCEPTION),
    ],
)
def test_describe_producers__an_unknown_topic_has_an_error_message(
    topic: str, error: ErrorCode
) -> None:
    (answer,) = producers(leader(), topic, 0)
    assert answer.error_code == error
    assert answer.error_message


def test_describe_transactions__no_broker_coordinates_them() -> None:
    body = m.DescribeTransactionsRequest(transactional_ids=["a", "", "a"])
    answer = leader().ask(ApiKey.DESCRIBE_TRANSACTIONS, 0, body)
    assert [(s.transactional_id, s.error_code) for s in answer.transaction_states] == [
        ("a", ErrorCode.NOT_COORDINATOR),
        ("", ErrorCode.INVALID_REQUEST),
        ("a", ErrorCode.NOT_COORDINATOR),
    ]


def test_describe_transactions__the_leader_of_their_partition_has_none() -> None:
    # "a" hashes to 97, an odd number: partition 1.
    topic = topic_records("__transaction_state", (2,), (1,))
    one = OneBroker(broker_records(1, 2), topic)
    body = m.DescribeTransactionsRequest(transactional_ids=["a", "b"])
    answer = one.ask(ApiKey.DESCRIBE_TRANSACTIONS, 0, body)
    assert [state.error_code for state in answer.transaction_states] == [
        ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
        ErrorCode.NOT_COORDINATOR,
    ]


@pytest.mark.parametrize("version", [0, 1, 2])
def test_list_transactions__there_are_none(version: int) -> None:
    body = m.ListTransactionsRequest(state_filters=["Ongoing", "Gone", "ongoing", "Dead"])
    answer = leader().ask(ApiKey.LIST_TRANSACTIONS, version, body)
    assert (answer.error_code, answer.transaction_states) == (ErrorCode.NONE, [])
    assert answer.unknown_state_filters == ["Gone", "ongoing"]


@pytest.mark.parametrize(
    ("pattern", "error"),
    [("a(", ErrorCode.INVALID_REGULAR_EXPRESSION), ("a.*", ErrorCode.NONE), ("", ErrorCode.NONE)],
)
def test_list_transactions__the_pattern_is_checked(pattern: str, error: ErrorCode) -> None:
    body = m.ListTransactionsRequest(transactional_id_pattern=pattern)
    assert leader().ask(ApiKey.LIST_TRANSACTIONS, 2, body).error_code == error
