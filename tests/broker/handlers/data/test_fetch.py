"""Fetch: limits, waiting, epochs."""

from __future__ import annotations

from typing import Any

import pytest

from kcluster.contract import ConnectionClosed
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from tests.rig.one_broker import (
    TOPIC,
    OneBroker,
    broker_records,
    leader,
    partition_results,
    produce_body,
    topic_records,
)
from tests.rig.requests import batch, fetch_partition

ONE = len(batch(b"v"))


def test_fetch__a_consumer_reads_up_to_the_watermark() -> None:
    broker = OneBroker(broker_records(1, 2), topic_records(TOPIC, (1, 2)))
    broker.produce(batch(b"v"), acks=1)
    assert partition_results(broker.fetch(fetch_partition())) == {0: ("NONE", 0)}


def test_fetch__the_first_batch_is_returned_however_large_and_no_other() -> None:
    broker = leader(partitions=2)
    for partition in (0, 1, 0, 1):
        broker.produce(batch(b"v"), partition=partition)
    small = broker.fetch(
        fetch_partition(0, partition_max_bytes=1), fetch_partition(1, partition_max_bytes=1)
    )
    assert partition_results(small) == {0: ("NONE", ONE), 1: ("NONE", 0)}
    whole = broker.fetch(fetch_partition(0), fetch_partition(1), max_bytes=ONE)
    assert partition_results(whole) == {0: ("NONE", ONE), 1: ("NONE", 0)}
    three = broker.fetch(fetch_partition(0), fetch_partition(1), max_bytes=3 * ONE)
    assert partition_results(three) == {0: ("NONE", 2 * ONE), 1: ("NONE", ONE)}


@pytest.mark.parametrize(
    ("error", "fields", "more"),
    [
        ("OFFSET_OUT_OF_RANGE", {"offset": 9}, {}),
        ("OFFSET_OUT_OF_RANGE", {"offset": -1}, {}),
        ("UNKNOWN_TOPIC_OR_PARTITION", {"partition": 4}, {}),
        ("UNKNOWN_TOPIC_OR_PARTITION", {}, {"topic": "nope"}),
        ("UNKNOWN_TOPIC_ID", {}, {"topic": "nope", "version": 13}),
        ("FENCED_LEADER_EPOCH", {"current_leader_epoch": 4}, {}),
        ("UNKNOWN_LEADER_EPOCH", {"current_leader_epoch": 6}, {}),
        ("NONE", {"current_leader_epoch": 5}, {}),
        ("OFFSET_OUT_OF_RANGE", {"offset": 1, "last_fetched_epoch": 9}, {}),
    ],
)
def test_fetch__errors_do_not_wait(
    error: str, fields: dict[str, Any], more: dict[str, Any]
) -> None:
    broker = leader()
    broker.produce(batch(b"v"))
    response = broker.fetch(fetch_partition(**fields), max_wait_ms=500, **more)
    (data,) = response.responses[0].partitions
    assert ErrorCode(data.error_code).name == error
    if error != "NONE":
        assert (data.high_watermark, data.log_start_offset) == (-1, -1)


def test_fetch__an_epoch_that_ended_earlier_is_reported_as_diverging() -> None:
    broker = leader()
    broker.produce(batch(b"v"))
    broker.apply(topic_records(TOPIC, (1,), leader_epoch=8, partition_epoch=9)[1:], 1_000)
    broker.produce(batch(b"v"))
    response = broker.fetch(fetch_partition(offset=2, last_fetched_epoch=6), max_wait_ms=500)
    (data,) = response.responses[0].partitions
    assert (data.diverging_epoch.epoch, data.diverging_epoch.end_offset) == (5, 1)
    assert not data.records


def test_fetch__from_a_follower_names_the_leader_since_version_16() -> None:
    broker = OneBroker(broker_records(1, 2), topic_records(TOPIC, (2, 1)))
    old_epoch = fetch_partition(current_leader_epoch=3)
    response = broker.fetch(old_epoch, version=16)
    (data,) = response.responses[0].partitions
    assert data.error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert (data.current_leader.leader_id, data.current_leader.leader_epoch) == (2, 5)
    assert [node.node_id for node in response.node_endpoints] == [2]


def test_fetch__any_replica_serves_consumers_since_version_11() -> None:
    broker = OneBroker(broker_records(1, 2), topic_records(TOPIC, (2, 1)))
    assert partition_results(broker.fetch(fetch_partition(), version=11)) == {0: ("NONE", 0)}
    assert partition_results(broker.fetch(fetch_partition(), version=10)) == {
        0: ("NOT_LEADER_OR_FOLLOWER", 0)
    }


# -------------------------------------------------------------------------------- waiting


def test_wait__ends_when_there_are_min_bytes() -> None:
    broker = leader()
    assert broker.fetch(fetch_partition(), max_wait_ms=500, min_bytes=2 * ONE) is None
    sent = [broker.ask_all(ApiKey.PRODUCE, 9, produce_body(batch(b"v"))) for _ in range(2)]
    assert [len(replies) for replies in sent] == [1, 2], "the second one is enough"


def test_wait__ends_at_the_timeout_with_the_available_records() -> None:
    broker = leader()
    assert broker.fetch(fetch_partition(), max_wait_ms=500) is None
    assert broker.pass_time(499) is None
    assert partition_results(broker.pass_time(1)) == {0: ("NONE", 0)}


def test_wait__ends_when_leadership_moves() -> None:
    broker = OneBroker(broker_records(1, 2), topic_records(TOPIC, (1, 2)))
    assert broker.fetch(fetch_partition(), max_wait_ms=500, version=10) is None
    moved = topic_records(TOPIC, (1, 2), isr=(2, 1), leader_epoch=6, partition_epoch=8)[1:]
    broker.apply(moved, broker.now_ms)
    assert partition_results(broker.pass_time(1)) == {0: ("NOT_LEADER_OR_FOLLOWER", 0)}


def test_wait__an_empty_fetch_is_answered_at_once() -> None:
    assert leader().fetch(max_wait_ms=500).responses == []


def test_wait__of_a_disconnected_client_ends_at_once() -> None:
    broker = leader()
    assert broker.fetch(fetch_partition(), max_wait_ms=2**31 - 1) is None
    broker.broker.step(broker.now_ms, ConnectionClosed(1))
    assert len(broker.broker.purgatory) == 0
    assert broker.ask_all(ApiKey.PRODUCE, 9, produce_body(batch(b"v")))[1:] == []
