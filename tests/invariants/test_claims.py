"""What coordinators confirm of what producers and leaders claim."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kcluster.broker.coordinator.transactions import transaction as t
from kcluster.contract import PeerRequest, PeerResponse, Reply, Request
from kcluster.invariants.claims import ProducerClaims
from kcluster.invariants.replayed import Decisions
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from tests.invariants.test_broken_cores import names, run

PRODUCER = 7
PLACE = ("orders", 0)


@pytest.fixture
def decisions() -> Decisions:
    return Decisions()


@pytest.fixture
def claims(decisions: Decisions) -> ProducerClaims:
    return ProducerClaims(decisions)


def put(decisions: Decisions, state: t.TransactionState, epoch: int) -> None:
    """Commit a state of the transactional id; an open transaction has one partition."""
    new = t.Transaction(
        transactional_id="till",
        producer_id=PRODUCER,
        producer_epoch=epoch,
        timeout_ms=1_000,
        state=state,
        partitions=frozenset([PLACE] if state is t.ONGOING else ()),
        last_update_ms=0,
    )
    decisions.put("till", new, 0)


# -------------------------------------------------------------------------------- zombies


def asks(epoch: int, producer_id: int = PRODUCER) -> Request:
    body = m.InitProducerIdRequest("till", 1_000, producer_id, epoch)
    return Request(1, int(ApiKey.INIT_PRODUCER_ID), 5, 1, "a", body)


def begins_anew(claims: ProducerClaims, epoch: int) -> None:
    request = asks(-1, -1)
    claims.on_request(1, request)
    given = m.InitProducerIdResponse(producer_id=PRODUCER, producer_epoch=epoch)
    assert list(claims.on_decided(Reply(request, given))) == []


def ends(epoch: int, version: int) -> Request:
    return Request(
        1, int(ApiKey.END_TXN), version, 1, "a", m.EndTxnRequest("till", PRODUCER, epoch, True)
    )


def served(
    claims: ProducerClaims, request: Request, error: ErrorCode = ErrorCode.NONE
) -> list[str]:
    claims.on_request(1, request)
    answer: m.Message = m.InitProducerIdResponse(error_code=error)
    if request.api_key == ApiKey.END_TXN:
        answer = m.EndTxnResponse(error_code=error)
    return [broken[0] for _, broken in claims.on_decided(Reply(request, answer))]


@pytest.mark.parametrize("epoch", [0, 3])
def test_zombie__is_served(claims: ProducerClaims, epoch: int) -> None:
    begins_anew(claims, 4)
    assert served(claims, asks(epoch)) == ["zombie-served"]
    assert served(claims, ends(epoch, 4)) == ["zombie-served"]


def test_zombie__is_refused(claims: ProducerClaims) -> None:
    begins_anew(claims, 4)
    assert served(claims, asks(3), ErrorCode.PRODUCER_FENCED) == []


def test_zombie__of_another_producer_id_is_not_known(claims: ProducerClaims) -> None:
    begins_anew(claims, 4)
    assert served(claims, asks(3, PRODUCER + 1)) == []


def test_producer__that_goes_on_is_served(claims: ProducerClaims) -> None:
    begins_anew(claims, 4)
    assert served(claims, asks(4)) == []
    assert served(claims, asks(5)) == []


def test_request__that_came_before_the_other_began(claims: ProducerClaims) -> None:
    request = asks(3)
    claims.on_request(1, request)
    begins_anew(claims, 4)
    assert list(claims.on_decided(Reply(request, m.InitProducerIdResponse()))) == []


def test_end__of_version_2_is_confirmed_in_the_epoch_before(claims: ProducerClaims) -> None:
    """As in Kafka: whoever has ended the last transaction."""
    begins_anew(claims, 4)
    assert served(claims, ends(3, 5)) == []
    assert served(claims, ends(2, 5)) == ["zombie-served"]


def test_zombie__of_a_log_that_was_lost(claims: ProducerClaims, decisions: Decisions) -> None:
    begins_anew(claims, 4)
    decisions.is_whole = False
    assert served(claims, asks(3)) == []


# -------------------------------------------------------------------------- verifications


def verified(
    claims: ProducerClaims,
    epoch: int,
    place: tuple[str, int] = PLACE,
    error: ErrorCode = ErrorCode.NONE,
) -> list[str]:
    asked, given = m.AddPartitionsToTxnRequest, m.AddPartitionsToTxnResponse
    topic, index = place
    wanted = asked.AddPartitionsToTxnTransaction(
        transactional_id="till",
        producer_id=PRODUCER,
        producer_epoch=epoch,
        verify_only=True,
        topics=[asked.AddPartitionsToTxnTopic(name=topic, partitions=[index])],
    )
    claims.on_peer_request(PeerRequest(2, 9, asked(transactions=[wanted])))
    row = given.AddPartitionsToTxnPartitionResult(index, int(error))
    result = given.AddPartitionsToTxnResult(
        "till", [given.AddPartitionsToTxnTopicResult(topic, [row])]
    )
    answer = PeerResponse(1, 9, given(results_by_transaction=[result]))
    return [name for name, _, _ in claims.on_peer_response(2, 9, answer)]


def test_verification__of_the_open_transaction(
    claims: ProducerClaims, decisions: Decisions
) -> None:
    put(decisions, t.ONGOING, 3)
    assert verified(claims, 3) == []


@pytest.mark.parametrize(("epoch", "place"), [(2, PLACE), (3, ("orders", 1)), (3, ("bills", 0))])
def test_verification__of_something_else(
    claims: ProducerClaims, decisions: Decisions, epoch: int, place: tuple[str, int]
) -> None:
    put(decisions, t.ONGOING, 3)
    assert verified(claims, epoch, place) == ["verified-otherwise"]
    assert verified(claims, epoch, place, ErrorCode.TRANSACTION_ABORTABLE) == []


@pytest.mark.parametrize("state", [t.EMPTY, t.COMPLETE_COMMIT, t.PREPARE_COMMIT])
def test_verification__without_an_open_transaction(
    claims: ProducerClaims, decisions: Decisions, state: t.TransactionState
) -> None:
    assert verified(claims, 3) == ["verified-otherwise"]
    put(decisions, state, 3)
    assert verified(claims, 3) == ["verified-otherwise"]


def test_verification__by_a_log_that_was_lost(claims: ProducerClaims, decisions: Decisions) -> None:
    decisions.is_whole = False
    assert verified(claims, 3) == []


# -------------------------------------------------------------------------- broken cores

TAKEN_OVER = """\
topology: {brokers: 3, profile: fast, topics: {orders: {assignment: [[1, 2, 3]]}}}
workload:
  producers:
    - topic: orders
      name: one
      rate: 20/s
      config: {request.timeout.ms: 1500, delivery.timeout.ms: 1600}
      transactions: {every: 200, id: till, timeout: 20s, version: 1}
    - topic: orders
      name: two
      rate: 20/s
      start: 3200ms
      transactions: {every: 2, id: till, version: 1}
duration: 6s
steps:
  - {at: 1s, rule: {api: Produce, client: one, drop: request, close: true}, for: 2s}
  - {at: 1s, rule: {api: InitProducerId, client: one, delay: 1s, of: request}, for: 4s}
"""
"""A producer wants to go on in a new epoch, and asks for it late: another one has begun."""

LATE_COPY = """\
topology:
  brokers: 3
  profile: fast
  topics:
    orders: {assignment: [[1, 2, 3], [1, 2, 3], [1, 2, 3], [1, 2, 3]]}
    __transaction_state: {assignment: [[2, 3, 1]]}
workload:
  producers:
    topic: orders
    name: shop
    rate: 20/s
    keys: 20
    in_flight: 1
    config: {request.timeout.ms: 200}
    transactions: {every: 2, version: 1}
duration: 5s
steps:
  - at: 1s
    rule: {api: Produce, delay: 500ms, jitter: 500ms, of: request, probability: 40%}
    for: 3s
"""
"""Batches that were sent again in time come once more, in a later transaction."""


@pytest.mark.pure_python  # a class of the extension cannot be broken on purpose
def test_coordinator__that_takes_any_older_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    init = t.init

    def welcoming(known: t.Transaction | None, *rest: object) -> t.Decision:
        decided = init(known, *rest)  # type: ignore[arg-type]  # whatever the coordinator gives
        if decided is ErrorCode.PRODUCER_FENCED and known is not None:
            return replace(known, state=t.EMPTY, producer_epoch=known.producer_epoch + 1)
        return decided

    assert names(run(TAKEN_OVER)) == set()
    monkeypatch.setattr(t, "init", welcoming)
    assert "zombie-served" in names(run(TAKEN_OVER))


@pytest.mark.pure_python  # a class of the extension cannot be broken on purpose
def test_coordinator__that_verifies_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    assert names(run(LATE_COPY)) == set()
    monkeypatch.setattr(t, "verify", lambda *_: ErrorCode.NONE)
    assert "verified-otherwise" in names(run(LATE_COPY))
