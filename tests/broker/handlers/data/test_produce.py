"""Produce: what is checked, in which order, and what the response contains."""

from __future__ import annotations

from typing import Any

import pytest

from kcluster.contract import CloseConnection, Reply, Request
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.records.records import read_records
from tests.rig.one_broker import (
    TOPIC,
    OneBroker,
    broker_records,
    leader,
    produce_body,
    topic_config,
    topic_records,
)
from tests.rig.requests import batch
from tests.rig.requests import fetch_partition as wanted


def test_produce__returns_the_offset_of_the_first_record() -> None:
    broker = leader()
    assert broker.produce(batch(b"a", b"b")).base_offset == 0
    assert broker.produce(batch(b"c")).base_offset == 2


def test_produce__stores_the_received_bytes() -> None:
    broker = leader()
    broker.produce(batch(b"a"))
    broker.produce(batch(b"b", b"c"))
    (data,) = broker.fetch(wanted(offset=1)).responses[0].partitions
    records = [record for one in data.records for record in read_records(one)]
    assert [(record.offset, record.value) for record in records] == [(1, b"b"), (2, b"c")]


@pytest.mark.parametrize(
    ("error", "records", "more"),
    [
        ("UNKNOWN_TOPIC_OR_PARTITION", batch(b"a"), {"topic": "nope"}),
        ("UNKNOWN_TOPIC_OR_PARTITION", batch(b"a"), {"partition": 7}),
        ("UNKNOWN_TOPIC_OR_PARTITION", batch(b"a"), {"partition": -1}),
        ("UNKNOWN_TOPIC_OR_PARTITION", batch(b"a"), {"topic": "nope", "acks": 2}),
        ("UNKNOWN_TOPIC_ID", batch(b"a"), {"topic": "nope", "version": 13}),
        ("INVALID_REQUIRED_ACKS", batch(b"a"), {"acks": 2}),
        ("INVALID_RECORD", b"", {}),
        ("INVALID_RECORD", None, {}),
        ("INVALID_RECORD", batch(b"a") + batch(b"b"), {}),
        ("CORRUPT_MESSAGE", batch(b"a")[:-1] + b"\xff", {}),
        ("MESSAGE_TOO_LARGE", batch(b"x" * 1_100_000), {}),
        ("UNSUPPORTED_COMPRESSION_TYPE", batch(b"a", compression="zstd"), {"version": 6}),
        ("NONE", batch(b"a", compression="zstd"), {"version": 7}),
        (
            "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
            batch(b"a", transactional=True, producer_id=1, producer_epoch=0, base_sequence=0),
            {},
        ),
    ],
)
def test_produce__errors(error: str, records: Any, more: dict[str, Any]) -> None:
    answer = leader().produce(records, **more)
    assert ErrorCode(answer.error_code).name == error
    assert (answer.base_offset == -1) == (error != "NONE")


def test_produce__a_timestamp_far_ahead_is_refused_with_a_message_per_record() -> None:
    broker = OneBroker(
        broker_records(1),
        topic_records(TOPIC, (1,)),
        [topic_config(TOPIC, "message.timestamp.after.max.ms", "1000")],
    )
    answer = broker.produce(batch(b"a", timestamp_ms=10**12))
    assert answer.error_code == ErrorCode.INVALID_TIMESTAMP
    assert [error.batch_index for error in answer.record_errors] == [0]
    assert answer.error_message


def test_produce__to_a_follower_names_the_leader_since_version_10() -> None:
    broker = OneBroker(broker_records(1, 2), topic_records(TOPIC, (2, 1)))
    response = broker.ask(ApiKey.PRODUCE, 10, produce_body(batch(b"a")))
    answer = response.responses[0].partition_responses[0]
    assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (answer.current_leader.leader_id, answer.current_leader.leader_epoch) == (2, 5)
    assert [(node.node_id, node.port) for node in response.node_endpoints] == [(2, 9092)]
    older = broker.ask(ApiKey.PRODUCE, 9, produce_body(batch(b"a")))
    assert older.responses[0].partition_responses[0].current_leader.leader_id == -1


def test_produce__one_bad_partition_does_not_stop_the_others() -> None:
    broker = leader(partitions=2)
    body = produce_body(batch(b"a"))
    body.topic_data[0].partition_data += (
        produce_body(batch(b"b"), partition=9).topic_data[0].partition_data
    )
    answers = broker.ask(ApiKey.PRODUCE, 9, body).responses[0].partition_responses
    assert [ErrorCode(answer.error_code).name for answer in answers] == [
        "NONE",
        "UNKNOWN_TOPIC_OR_PARTITION",
    ]


def test_produce__acks_0_is_not_answered_but_an_error_closes_the_connection() -> None:
    broker = leader()

    def effects(body: Any) -> list[Any]:
        request = Request(1, ApiKey.PRODUCE, 9, 1, "test", body)
        all_of_them = broker.broker.step(broker.now_ms, request)
        return [effect for effect in all_of_them if isinstance(effect, Reply | CloseConnection)]

    (reply,) = effects(produce_body(memoryview(bytearray(batch(b"a"))), acks=0))
    assert reply.body is None
    close, reply = effects(produce_body(batch(b"a"), acks=0, topic="nope"))
    assert isinstance(close, CloseConnection)
    assert "UNKNOWN_TOPIC_OR_PARTITION" in close.reason
    assert reply.body is None


def test_produce__acks_all_waits_for_the_isr_and_times_out() -> None:
    broker = OneBroker(broker_records(1, 2), topic_records(TOPIC, (1, 2)))
    assert broker.ask(ApiKey.PRODUCE, 9, produce_body(batch(b"a"))) is None
    response = broker.pass_time(5_000)
    answer = response.responses[0].partition_responses[0]
    assert answer.error_code == ErrorCode.REQUEST_TIMED_OUT


def test_produce__the_last_batch_of_a_partition_named_twice_is_used() -> None:
    broker = OneBroker(broker_records(1, 2), topic_records(TOPIC, (1, 2)))
    body = produce_body(batch(b"a"))
    body.topic_data[0].partition_data += (
        produce_body(batch(b"b", b"c")).topic_data[0].partition_data
    )
    body.topic_data += produce_body(None, topic="empty").topic_data
    body.topic_data[1].partition_data = []
    assert broker.ask(ApiKey.PRODUCE, 9, body) is None
    (replica,) = broker.broker.replicas.all()
    assert replica.log.log_end_offset == 2
    replica.record_fetch(2, 2, 2, 0, broker.now_ms)
    broker.broker.replicas.touch(replica)
    (topic,) = broker.pass_time(1).responses
    assert [(x.error_code, x.base_offset) for x in topic.partition_responses] == [(0, 0)]


def test_produce__acks_1_does_not_wait() -> None:
    broker = OneBroker(broker_records(1, 2), topic_records(TOPIC, (1, 2)))
    assert broker.produce(batch(b"a"), acks=1).error_code == ErrorCode.NONE


def test_produce__a_leader_that_loses_leadership_answers_waiting_requests() -> None:
    broker = OneBroker(broker_records(1, 2), topic_records(TOPIC, (1, 2)))
    assert broker.ask(ApiKey.PRODUCE, 9, produce_body(batch(b"a"))) is None
    moved = topic_records(TOPIC, (1, 2), isr=(2, 1), leader_epoch=6, partition_epoch=8)[1:]
    broker.apply(moved, broker.now_ms)
    answer = broker.pass_time(1).responses[0].partition_responses[0]
    assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


class Idempotent:
    """Batches of one producer id, as a test numbers them."""

    def __init__(self) -> None:
        self.broker = leader()

    def send(self, sequence: int, epoch: int = 0, values: int = 1) -> Any:
        values_of = [b"v"] * values
        numbered = batch(*values_of, producer_id=7, producer_epoch=epoch, base_sequence=sequence)
        return self.broker.produce(numbered)


def test_idempotence__a_repeated_batch_gets_its_first_offset_and_is_not_appended() -> None:
    producer = Idempotent()
    producer.send(0, values=2)
    assert producer.send(2).base_offset == 2
    again = producer.send(2)
    assert (again.error_code, again.base_offset) == (ErrorCode.NONE, 2)
    assert producer.send(3).base_offset == 3


def test_idempotence__a_gap_is_out_of_order() -> None:
    producer = Idempotent()
    producer.send(0)
    assert producer.send(2).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_idempotence__an_older_epoch_is_refused_a_newer_one_starts_at_0() -> None:
    producer = Idempotent()
    producer.send(0, epoch=3)
    assert producer.send(1, epoch=2).error_code == ErrorCode.INVALID_PRODUCER_EPOCH
    assert producer.send(1, epoch=4).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert producer.send(0, epoch=4).error_code == ErrorCode.NONE
