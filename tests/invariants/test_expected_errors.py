"""Answers with an error that has no meaning for their request."""

from __future__ import annotations

from typing import Any

import pytest

from kcluster.broker.handlers.data import produce
from kcluster.contract import Reply, Request
from kcluster.invariants.expected_errors import unexpected_error
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from tests.invariants.test_broken_cores import names, run


def found(api: ApiKey, asked: Any, answer: Any) -> list[str]:
    request = Request(7, int(api), 8, 0, "c", asked)
    one = unexpected_error(Reply(request, answer))
    return [] if one is None else [one.error]


def produced(error: ErrorCode) -> m.ProduceResponse:
    kind = m.ProduceResponse
    rows = [kind.PartitionProduceResponse(0), kind.PartitionProduceResponse(1, error)]
    return kind([kind.TopicProduceResponse("orders", partition_responses=rows)])


@pytest.mark.parametrize("error", ["NONE", "NOT_ENOUGH_REPLICAS", "CONCURRENT_TRANSACTIONS"])
def test_produce__errors_of_its_own(error: str) -> None:
    assert found(ApiKey.PRODUCE, m.ProduceRequest(), produced(ErrorCode[error])) == []


@pytest.mark.parametrize("error", ["NOT_COORDINATOR", "PRODUCER_FENCED", "NETWORK_EXCEPTION"])
def test_produce__errors_of_coordinators_and_of_connections(error: str) -> None:
    assert found(ApiKey.PRODUCE, m.ProduceRequest(), produced(ErrorCode[error])) == [error]


def test_end_of_a_transaction__error_of_a_partition() -> None:
    asked = m.EndTxnRequest("shop")
    fenced = m.EndTxnResponse(error_code=ErrorCode.PRODUCER_FENCED)
    refused = m.EndTxnResponse(error_code=ErrorCode.NOT_ENOUGH_REPLICAS)
    assert found(ApiKey.END_TXN, asked, fenced) == []
    assert found(ApiKey.END_TXN, asked, refused) == ["NOT_ENOUGH_REPLICAS"]


def test_answer__that_is_not_looked_at() -> None:
    assert found(ApiKey.METADATA, m.MetadataRequest(), m.MetadataResponse()) == []
    assert found(ApiKey.PRODUCE, m.ProduceRequest(), None) == []


MOVED = """\
topology:
  brokers: 3
  topics:
    orders: {assignment: [[1, 2, 3]]}
    __transaction_state: {assignment: [[2, 3, 1]]}
workload:
  producers: {topic: orders, name: shop, rate: 50/s, transactions: {every: 2}}
duration: 4s
steps:
  - {at: 500ms, node_rule: {api: AddPartitionsToTxn, of: request, delay: 100ms, jitter: 200ms}}
  - {at: 1s, move: {partition: __transaction_state-0, to: 3}}
  - {at: 1500ms, move: {partition: __transaction_state-0, to: 2}}
  - {at: 2s, move: {partition: __transaction_state-0, to: 3}}
  - {at: 2500ms, move: {partition: __transaction_state-0, to: 2}}
"""


@pytest.mark.pure_python  # a class of the extension cannot be broken on purpose
def test_leader__that_passes_on_the_error_of_a_coordinator(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(MOVED).passed
    monkeypatch.setattr(produce, "RETRIED_BY_PRODUCERS", ())
    assert "error-unexpected" in names(run(MOVED))
