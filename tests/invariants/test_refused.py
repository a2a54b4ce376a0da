"""Refusals that end a producer, though its transaction gives no reason."""

from __future__ import annotations

from typing import Any

import pytest

from kcluster.broker.coordinator.transactions import transaction as t
from kcluster.broker.coordinator.transactions.transaction import Transaction, TransactionState
from kcluster.contract import Request
from kcluster.invariants.refused import error_in, refused_for_nothing
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from tests.invariants.test_broken_cores import names, run

EMPTY, ONGOING = TransactionState.EMPTY, TransactionState.ONGOING
PREPARED, COMMITTED = TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT
ABORTED = TransactionState.COMPLETE_ABORT
V1, V2 = 4, 5


def known(state: TransactionState, epoch: int = 3, producer_id: int = 7) -> Transaction:
    return Transaction("shop", producer_id, epoch, 1_000, state, 0)


def asked(api: ApiKey, version: int, body: Any) -> Request:
    return Request(1, int(api), version, 1, "shop", body)


def end(epoch: int, is_commit: bool, version: int = V2) -> Request:
    return asked(ApiKey.END_TXN, version, m.EndTxnRequest("shop", 7, epoch, is_commit))


def init(producer_id: int, epoch: int) -> Request:
    return asked(ApiKey.INIT_PRODUCER_ID, 4, m.InitProducerIdRequest("shop", 1, producer_id, epoch))


def is_unfounded(request: Request, state: Transaction | None) -> bool:
    """Whether this refusal has no reason."""
    return refused_for_nothing(request, ErrorCode.INVALID_TXN_STATE, state) is not None


@pytest.mark.parametrize(
    ("request_", "state"),
    [
        (end(3, True), known(ONGOING)),
        (end(3, False, V1), known(ONGOING)),
        (end(2, True), known(COMMITTED)),
        (end(2, True), known(PREPARED)),
        (end(2, False), known(ABORTED)),
        (end(3, True, V1), known(COMMITTED)),
        (end(3, False), known(COMMITTED)),
        (end(3, False), known(EMPTY)),
        (init(-1, -1), known(ONGOING)),
        (init(7, 3), known(ONGOING)),
    ],
)
def test_refusal__without_a_reason(request_: Request, state: Transaction) -> None:
    assert is_unfounded(request_, state)
    assert refused_for_nothing(request_, ErrorCode.CONCURRENT_TRANSACTIONS, state) is None


@pytest.mark.parametrize(
    ("request_", "state"),
    [
        (end(3, True), None),
        (end(3, True), known(ONGOING, producer_id=8)),
        (end(2, True), known(ONGOING)),
        (end(2, False), known(COMMITTED)),
        (end(1, True), known(COMMITTED)),
        (end(3, True), known(COMMITTED)),
        (end(3, True), known(EMPTY)),
        (end(3, True), known(PREPARED)),
        (end(3, False, V1), known(COMMITTED)),
        (end(2, True, V1), known(COMMITTED)),
        (end(3, True, V1), known(EMPTY)),
        (init(7, 2), known(COMMITTED)),
        (init(7, t.LAST_EPOCH), known(EMPTY, epoch=t.LAST_EPOCH)),
    ],
)
def test_refusal__with_a_reason(request_: Request, state: Transaction | None) -> None:
    assert not is_unfounded(request_, state)


def test_refusal__of_partitions_has_their_error() -> None:
    kind = m.AddPartitionsToTxnResponse
    row = kind.AddPartitionsToTxnPartitionResult(0, ErrorCode.PRODUCER_FENCED)
    body = m.AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="shop",
        v3_and_below_producer_id=7,
        v3_and_below_producer_epoch=3,
    )
    request = asked(ApiKey.ADD_PARTITIONS_TO_TXN, 3, body)
    topic = kind.AddPartitionsToTxnTopicResult("orders", [row])
    error = error_in(request, kind(results_by_topic_v3_and_below=[topic]))
    assert error is ErrorCode.PRODUCER_FENCED
    assert refused_for_nothing(request, error, known(ONGOING)) is not None
    assert refused_for_nothing(request, error, known(ONGOING, epoch=4)) is None


LOST_ANSWERS = """\
topology:
  brokers: 3
  profile: fast
  topics: {orders: {partitions: 2, replication_factor: 3}}
  config: {transaction.state.log.num.partitions: 1}
workload:
  producers:
    - topic: orders
      name: shop
      rate: 40/s
      config: {request.timeout.ms: 500}
      transactions: {every: 4, abort: 40%}
duration: 3s
steps:
  - {at: 500ms, rule: {api: EndTxn, drop: reply, close: true, probability: 50%}, for: 2s}
"""


@pytest.mark.pure_python  # a class of the extension cannot be broken on purpose
def test_coordinator__that_refuses_the_end_that_it_has_decided(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert run(LOST_ANSWERS).passed
    sound = t.end

    def end_once(known: Transaction | None, *more: Any) -> Any:
        decided = sound(known, *more)
        is_repeated = isinstance(decided, t.RetriedRequest)
        return ErrorCode.INVALID_TXN_STATE if is_repeated else decided

    monkeypatch.setattr(t, "end", end_once)
    assert "producer-refused" in names(run(LOST_ANSWERS))
