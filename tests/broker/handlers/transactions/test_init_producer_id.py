"""InitProducerId: blocks of ids, and the requests that get none."""

from __future__ import annotations

from typing import Any

import pytest

from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from tests.rig.one_broker import OneBroker

NONE = ErrorCode.NONE
LOADING = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


def block(start: int, length: int = 1000) -> m.AllocateProducerIdsResponse:
    return m.AllocateProducerIdsResponse(producer_id_start=start, producer_id_len=length)


def init(one: OneBroker, version: int = 4, **fields: Any) -> m.InitProducerIdResponse | None:
    values: dict[str, Any] = {
        "transactional_id": None,
        "producer_id": -1,
        "producer_epoch": -1,
    } | fields
    answer: m.InitProducerIdResponse | None = one.ask(
        ApiKey.INIT_PRODUCER_ID, version, m.InitProducerIdRequest(**values)
    )
    return answer


@pytest.fixture
def supplied(one: OneBroker) -> OneBroker:
    """A broker with ids 7001 to 7999 left."""
    init(one)
    one.controller_answers(block(7000))
    return one


def test_producer_ids__the_first_producer_waits_for_the_first_block(one: OneBroker) -> None:
    assert init(one) is None
    assert one.asked[0].message.body.broker_id == 1
    response = one.controller_answers(block(7000))
    assert (response.error_code, response.producer_id, response.producer_epoch) == (NONE, 7000, 0)


@pytest.mark.parametrize("version", range(6))
def test_producer_ids__ids_of_a_block_are_assigned_one_by_one(
    supplied: OneBroker, version: int
) -> None:
    first, second = init(supplied, version), init(supplied, version)
    assert first is not None
    assert second is not None
    assert (first.producer_id, second.producer_id) == (7001, 7002)
    assert supplied.asked == []


def test_producer_ids__the_next_block_is_fetched_when_nine_tenths_are_used(
    supplied: OneBroker,
) -> None:
    for _ in range(899):
        init(supplied)
    assert supplied.asked == []
    init(supplied)
    assert len(supplied.asked) == 1
    assert supplied.controller_answers(block(9000)) is None
    last = [init(supplied) for _ in range(100)]
    assert [answer.producer_id for answer in last[-2:] if answer] == [7999, 9000]


def test_producer_ids__a_silent_controller_means_try_again(one: OneBroker) -> None:
    init(one)
    response = one.pass_time(one.config.broker_heartbeat_interval_ms)
    assert (response.error_code, response.producer_id) == (LOADING, -1)
    one.asked.clear()
    assert init(one) is None
    assert one.controller_answers(block(0)).producer_id == 0


def test_producer_ids__an_error_of_the_controller_means_try_again(one: OneBroker) -> None:
    init(one)
    stale = m.AllocateProducerIdsResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
    assert one.controller_answers(stale).error_code == LOADING


def test_producer_ids__an_old_id_of_an_idempotent_producer_gets_a_new_one(
    supplied: OneBroker,
) -> None:
    response = init(supplied, producer_id=5, producer_epoch=3)
    assert response is not None
    assert (response.producer_id, response.producer_epoch) == (7001, 0)


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"producer_id": 5}, ErrorCode.INVALID_REQUEST),
        ({"producer_epoch": 5}, ErrorCode.INVALID_REQUEST),
        ({"transactional_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"transactional_id": "t"}, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        (
            {"transactional_id": "t", "transaction_timeout_ms": 900_001},
            ErrorCode.INVALID_TRANSACTION_TIMEOUT,
        ),
        ({"transactional_id": "t", "transaction_timeout_ms": 60_000}, ErrorCode.NOT_COORDINATOR),
    ],
)
def test_producer_ids__requests_that_get_no_id(
    supplied: OneBroker, fields: dict[str, Any], error: ErrorCode
) -> None:
    response = init(supplied, **fields)
    assert response is not None
    assert (response.error_code, response.producer_id, response.producer_epoch) == (error, -1, -1)
