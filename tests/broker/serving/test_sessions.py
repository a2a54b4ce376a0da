"""Fetch sessions (KIP-227): only changes are returned; how sessions begin, end and are evicted."""

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
    fetch_body,
    leader,
    partition_results,
    produce_body,
    topic_id,
    topic_records,
)
from tests.rig.requests import batch, fetch_partition

ONE = len(batch(b"v"))


def begin(broker: OneBroker, *partitions: Any, **more: Any) -> int:
    """A full fetch that begins a session; its id."""
    session_id: int = broker.fetch(*partitions, session_epoch=0, **more).session_id
    assert session_id > 0
    return session_id


def test_session__returns_only_changes() -> None:
    broker = leader(partitions=3)
    session_id = begin(broker, fetch_partition(0), fetch_partition(1), fetch_partition(2))
    assert partition_results(broker.fetch(session_id=session_id, session_epoch=1)) == {}
    broker.produce(batch(b"v"), partition=1)
    assert partition_results(broker.fetch(session_id=session_id, session_epoch=2)) == {
        1: ("NONE", ONE)
    }


def test_session__repeats_records_until_their_offset_is_passed() -> None:
    broker = leader(partitions=2)
    session_id = begin(broker, fetch_partition(0), fetch_partition(1))
    broker.produce(batch(b"v"), partition=1)
    for epoch in (1, 2):
        again = broker.fetch(session_id=session_id, session_epoch=epoch)
        assert partition_results(again) == {1: ("NONE", ONE)}
    after = broker.fetch(fetch_partition(1, offset=1), session_id=session_id, session_epoch=3)
    assert partition_results(after) == {}


def test_session__records_above_the_limit_come_with_the_next_fetch() -> None:
    broker = leader(partitions=2)
    session_id = begin(broker, fetch_partition(0), fetch_partition(1))
    broker.produce(batch(b"v"), partition=0)
    broker.produce(batch(b"v"), partition=1)
    first = broker.fetch(session_id=session_id, session_epoch=1, max_bytes=ONE)
    assert partition_results(first)[0] == ("NONE", ONE)
    second = broker.fetch(
        fetch_partition(0, offset=1), session_id=session_id, session_epoch=2, max_bytes=ONE
    )
    assert partition_results(second)[1] == ("NONE", ONE)


def test_session__a_batch_above_the_rest_of_the_limit_is_not_forgotten() -> None:
    broker = leader(partitions=3)
    session_id = begin(broker, *map(fetch_partition, range(3)))
    for partition in (0, 1, 2) * 2:
        broker.produce(batch(b"v"), partition=partition)
    positions = dict.fromkeys(range(3), 0)
    moved: dict[int, int] = {}
    for epoch in range(1, 10):
        answer = broker.fetch(
            *(fetch_partition(partition, offset=offset) for partition, offset in moved.items()),
            session_id=session_id,
            session_epoch=epoch,
            max_bytes=ONE + ONE // 2,
        )
        served = [index for index, (_, size) in partition_results(answer).items() if size]
        moved = {index: positions[index] + 1 for index in served}
        positions.update(moved)
    assert positions == {0: 2, 1: 2, 2: 2}


def test_session__drops_forgotten_partitions() -> None:
    broker = leader(partitions=2)
    session_id = begin(broker, fetch_partition(0), fetch_partition(1))
    body = fetch_body(session_id=session_id, session_epoch=1)
    body.forgotten_topics_data = [type(body).ForgottenTopic(TOPIC, topic_id(TOPIC), [0])]
    broker.ask(ApiKey.FETCH, 12, body)
    broker.produce(batch(b"v"), partition=0)
    assert partition_results(broker.fetch(session_id=session_id, session_epoch=2)) == {}


@pytest.mark.parametrize(
    ("error", "other_id", "epoch", "version"),
    [
        ("FETCH_SESSION_ID_NOT_FOUND", 1, 1, 12),
        ("INVALID_FETCH_SESSION_EPOCH", 0, 5, 12),
        ("FETCH_SESSION_TOPIC_ID_ERROR", 0, 1, 13),
    ],
)
def test_session__errors(error: str, other_id: int, epoch: int, version: int) -> None:
    broker = leader()
    session_id = begin(broker, fetch_partition()) + other_id
    response = broker.fetch(session_id=session_id, session_epoch=epoch, version=version)
    assert ErrorCode(response.error_code).name == error


def test_session__is_closed_by_the_final_epoch() -> None:
    broker = leader()
    session_id = begin(broker, fetch_partition())
    assert broker.fetch(fetch_partition(), session_id=session_id, session_epoch=-1).session_id == 0
    gone = broker.fetch(session_id=session_id, session_epoch=1)
    assert gone.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_session__a_full_cache_serves_the_fetch_without_a_session() -> None:
    broker = leader(max_incremental_fetch_session_cache_slots=1)
    begin(broker, fetch_partition())
    second = broker.fetch(fetch_partition(), session_epoch=0)
    assert second.session_id == 0
    assert partition_results(second) == {0: ("NONE", 0)}


def test_session__an_evicted_session_is_no_longer_notified() -> None:
    broker = leader(max_incremental_fetch_session_cache_slots=1)
    session_id = begin(broker, fetch_partition())
    more = {"session_id": session_id, "session_epoch": 1, "min_bytes": 10 * ONE}
    assert broker.fetch(max_wait_ms=200_000, **more) is None
    broker.ask_all(ApiKey.PRODUCE, 9, produce_body(batch(b"v")))
    broker.pass_time(130_000)
    assert broker.ask_all(ApiKey.FETCH, 12, fetch_body(fetch_partition(), session_epoch=0))[
        0
    ].session_id
    broker.pass_time(70_000)
    (sessions,) = broker.broker.sessions.watchers.values()
    assert len(sessions) == 1


def test_session__a_disconnected_client_is_not_answered() -> None:
    broker = leader()
    session_id = begin(broker, fetch_partition())
    assert broker.fetch(session_id=session_id, session_epoch=1, max_wait_ms=500) is None
    broker.broker.step(broker.now_ms, ConnectionClosed(1))
    assert broker.pass_time(500) is None


def test_session__finds_a_partition_that_is_created_later() -> None:
    broker = OneBroker(broker_records(1))
    unknown = broker.fetch(fetch_partition(), session_epoch=0)
    assert partition_results(unknown) == {0: ("UNKNOWN_TOPIC_OR_PARTITION", 0)}
    broker.apply(topic_records(TOPIC, (1,)), broker.now_ms)
    found = broker.fetch(session_id=unknown.session_id, session_epoch=1)
    assert partition_results(found) == {0: ("NONE", 0)}
