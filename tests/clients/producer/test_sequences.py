"""Sequences and retries, as in the Java producer's TransactionManager and Sender."""

from __future__ import annotations

from kcluster.clients.ledger import Ledger, Outcome
from kcluster.clients.producer.producer import Producer
from kcluster.clients.producer.settings import ProducerPlan, ProducerSettings
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.messages import ProduceResponse
from tests.clients.producer.scripted import Brokers

IN_ORDER = ProducerSettings(linger_ms=0)


def producing(
    count: int, settings: ProducerSettings = IN_ORDER
) -> tuple[Brokers, Ledger, Producer]:
    """A batch of one record every 10 ms, at most five in flight."""
    ledger = Ledger()
    producer = Producer("p", ledger, ProducerPlan(rate_per_s=100, count=count), settings)
    brokers = Brokers(producer)
    brokers.run_until(10 * count)
    return brokers, ledger, producer


def shape(brokers: Brokers) -> list[tuple[int, int]]:
    return [(request.epoch, request.sequence) for request in brokers.produced]


def test_sequences__batches_in_flight_have_consecutive_sequences() -> None:
    brokers, ledger, producer = producing(3)
    assert shape(brokers) == [(0, 0), (0, 1), (0, 2)]
    for offset, request in enumerate(list(brokers.produced)):
        brokers.ack(request, offset)
    assert [send.offset for send in ledger.sends] == [0, 1, 2]
    assert producer.is_done
    assert producer.deadline_ms is None


def test_sequences__after_a_lost_connection_batches_go_one_at_a_time() -> None:
    brokers, _, _ = producing(3)
    brokers.hang_up(1)
    brokers.run_until(1_000)
    assert shape(brokers) == [(0, 0)]
    brokers.ack(brokers.produced[0], 0)
    assert shape(brokers) == [(0, 1)]


def test_sequences__a_duplicate_is_success_without_an_offset() -> None:
    brokers, ledger, _ = producing(1)
    brokers.refuse(brokers.produced[0], ErrorCode.DUPLICATE_SEQUENCE_NUMBER)
    assert [(send.outcome, send.offset) for send in ledger.sends] == [(Outcome.ACKED, -1)]


def test_sequences__out_of_order_is_expected_after_a_batch_that_waits_for_its_retry() -> None:
    brokers, _, producer = producing(2)
    first, second = brokers.produced
    brokers.refuse(first, ErrorCode.NOT_ENOUGH_REPLICAS)
    brokers.refuse(second, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    brokers.run_until(1_000)
    assert shape(brokers) == [(0, 0)]
    brokers.ack(brokers.produced[0], 0)
    assert shape(brokers) == [(0, 1)]
    assert producer.identity is not None
    assert not producer.identity.epoch_bumps


def test_sequences__out_of_order_right_after_the_last_acked_batch_starts_an_epoch() -> None:
    brokers, ledger, producer = producing(3)
    first, second, third = brokers.produced
    brokers.ack(first, 0)
    brokers.refuse(second, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    brokers.refuse(third, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    brokers.run_until(1_000)
    assert shape(brokers) == [(1, 0)]
    brokers.ack(brokers.produced[0], 1)
    assert shape(brokers) == [(1, 1)]
    brokers.ack(brokers.produced[0], 2)
    assert [send.offset for send in ledger.sends] == [0, 1, 2]
    assert producer.identity is not None
    assert [place for _, place in producer.identity.epoch_bumps] == ["orders-0"]


def test_sequences__unknown_producer_id_starts_an_epoch() -> None:
    brokers, _, _ = producing(2)
    first, second = brokers.produced
    brokers.ack(first, 0)
    brokers.refuse(second, ErrorCode.UNKNOWN_PRODUCER_ID)
    brokers.run_until(1_000)
    assert shape(brokers) == [(1, 0)]


def test_sequences__a_refused_batch_fails_and_the_next_ones_start_an_epoch() -> None:
    brokers, ledger, _ = producing(2)
    first, second = brokers.produced
    brokers.refuse(first, ErrorCode.MESSAGE_TOO_LARGE)
    brokers.refuse(second, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    brokers.run_until(1_000)
    assert shape(brokers) == [(1, 0)]
    brokers.ack(brokers.produced[0], 0)
    found = [(send.outcome, send.error) for send in ledger.sends]
    assert found == [
        (Outcome.FAILED, "MESSAGE_TOO_LARGE"),
        (Outcome.ACKED, "OUT_OF_ORDER_SEQUENCE_NUMBER"),
    ]


def test_sequences__an_expired_batch_starts_a_new_epoch() -> None:
    """The log's last sequence is unknown, so the producer must bump its epoch."""
    ledger = Ledger()
    settings = ProducerSettings(linger_ms=0, delivery_timeout_ms=2_000, request_timeout_ms=1_500)
    brokers = Brokers(Producer("p", ledger, ProducerPlan(rate_per_s=0.25, count=2), settings))
    brokers.hang_up(1)
    brokers.run_until(3_000)
    first = ledger.sends[0]
    assert (first.outcome, first.ended_ms) == (Outcome.UNKNOWN, 2_000)
    assert first.error == "REQUEST_TIMED_OUT"
    brokers.run_until(4_000)
    assert shape(brokers) == [(1, 0)]


def test_sequences__a_producer_id_is_requested_until_there_is_one() -> None:
    producer = Producer("p", Ledger(), ProducerPlan(rate_per_s=100, count=1), IN_ORDER)
    refusals = {ApiKey.INIT_PRODUCER_ID: [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS] * 2}
    brokers = Brokers(producer, refusals)
    assert not brokers.produced
    brokers.run_until(2_000)
    assert shape(brokers) == [(0, 0)]


def test_sequences__a_fatal_error_of_init_producer_id_fails_everything() -> None:
    ledger = Ledger()
    producer = Producer("p", ledger, ProducerPlan(rate_per_s=100, count=2), IN_ORDER)
    refusals = {ApiKey.INIT_PRODUCER_ID: [ErrorCode.CLUSTER_AUTHORIZATION_FAILED]}
    Brokers(producer, refusals).run_until(2_000)
    assert [send.outcome for send in ledger.sends] == [Outcome.FAILED, Outcome.FAILED]
    assert {send.error for send in ledger.sends} == {"CLUSTER_AUTHORIZATION_FAILED"}


def test_sender__not_leader_with_a_hint_goes_to_the_new_leader_without_backoff() -> None:
    brokers, ledger, _ = producing(1)
    brokers.leader, brokers.leader_epoch = 3, 1
    hint = ProduceResponse.LeaderIdAndEpoch(leader_id=3, leader_epoch=1)
    brokers.refuse(brokers.produced[0], ErrorCode.NOT_LEADER_OR_FOLLOWER, current_leader=hint)
    assert [request.broker_id for request in brokers.produced] == [3]
    assert brokers.now_ms == 10
    brokers.ack(brokers.produced[0], 5)
    assert [(error.api, error.error) for error in ledger.errors] == [
        ("Produce", "NOT_LEADER_OR_FOLLOWER")
    ]
    assert [(send.offset, send.attempts) for send in ledger.sends] == [(5, 2)]


def test_sender__without_idempotence_a_later_batch_overtakes_a_retry() -> None:
    """Incident S27."""
    settings = ProducerSettings(linger_ms=0, enable_idempotence=False)
    brokers, ledger, _ = producing(2, settings)
    first, second = brokers.produced
    brokers.refuse(first, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    brokers.ack(second, 0)
    brokers.run_until(1_000)
    brokers.ack(brokers.produced[0], 1)
    assert [send.offset for send in ledger.sends] == [1, 0]


def test_sender__with_one_request_in_flight_nothing_overtakes() -> None:
    settings = ProducerSettings(
        linger_ms=0, enable_idempotence=False, max_in_flight_requests_per_connection=1
    )
    brokers, _, _ = producing(3, settings)
    assert len(brokers.produced) == 1
    brokers.refuse(brokers.produced[0], ErrorCode.NOT_ENOUGH_REPLICAS)
    brokers.run_until(1_000)
    assert len(brokers.produced) == 1


def test_sender__a_non_retriable_error_fails_at_once_and_is_recorded() -> None:
    settings = ProducerSettings(linger_ms=0, acks=1)
    brokers, ledger, producer = producing(1, settings)
    brokers.refuse(brokers.produced[0], ErrorCode.INVALID_RECORD)
    assert [(send.outcome, send.attempts) for send in ledger.sends] == [(Outcome.FAILED, 1)]
    assert [error.error for error in ledger.errors] == ["INVALID_RECORD"]
    assert producer.failed == 1
    assert producer.is_done


def test_sender__exhausted_retries_end_a_batch() -> None:
    settings = ProducerSettings(linger_ms=0, acks=1, retries=2)
    brokers, ledger, _ = producing(1, settings)
    for _ in range(3):
        brokers.refuse(brokers.produced[0], ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
        brokers.run_until(brokers.now_ms + 2_000)
    assert [(send.outcome, send.attempts) for send in ledger.sends] == [(Outcome.UNKNOWN, 3)]


def test_sender__a_throttling_broker_gets_no_request_for_the_throttle_time() -> None:
    ledger = Ledger()
    brokers = Brokers(Producer("p", ledger, ProducerPlan(rate_per_s=10, count=2), IN_ORDER))
    brokers.ack(brokers.produced[0], 0, throttle_ms=400)
    brokers.run_until(399)
    assert not brokers.produced
    brokers.run_until(400)
    assert len(brokers.produced) == 1
