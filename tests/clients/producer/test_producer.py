"""The project's own producer on a cluster in virtual time."""

from __future__ import annotations

from itertools import pairwise

from kcluster.clients.ledger import Ledger, Outcome
from kcluster.clients.producer.producer import Producer
from kcluster.clients.producer.settings import ACKS_ALL, ProducerPlan, ProducerSettings
from tests.clients.worlds import outcomes, started, values

FAST = ProducerSettings(linger_ms=0, request_timeout_ms=2_000, delivery_timeout_ms=20_000)
REPEATING = ProducerSettings(
    linger_ms=0, request_timeout_ms=2_000, delivery_timeout_ms=20_000, enable_idempotence=False
)


def test_producer__every_record_is_acked_and_in_the_log_in_order() -> None:
    driver, ledger = started(), Ledger()
    producer = Producer("p", ledger, ProducerPlan(rate_per_s=50, size_bytes=40, count=200))
    driver.add_client(producer)
    driver.run_for(10_000)
    assert outcomes(ledger) == {Outcome.ACKED: 200}
    assert driver.values(driver.leader_id) == values(ledger.sends)
    assert ledger.sends[7].value == b"p:7".ljust(40, b".")
    assert [send.offset for send in ledger.sends] == list(range(200))
    assert all(0 <= send.sent_ms < send.ended_ms for send in ledger.sends)
    assert producer.is_done
    assert ledger.errors == []


def test_producer__when_the_leader_dies_it_finds_the_next_and_loses_nothing() -> None:
    driver, ledger = started(), Ledger()
    driver.add_client(Producer("p", ledger, ProducerPlan(rate_per_s=100, count=500)))
    first = driver.leader_id
    driver.run_for(1_000)
    driver.kill(first)
    driver.run_for(20_000)
    assert driver.leader_id != first
    assert outcomes(ledger) == {Outcome.ACKED: 500}
    assert driver.values(driver.leader_id) == values(ledger.sends)
    assert any(error.error == "DISCONNECTED" for error in ledger.errors)


def _lose_responses(settings: ProducerSettings) -> tuple[list[bytes | None], Ledger]:
    """The leader's responses are lost for a second."""
    driver, ledger = started(), Ledger()
    producer = Producer("p", ledger, ProducerPlan(rate_per_s=10, count=20), settings)
    wire = driver.add_client(producer)
    driver.run_for(500)
    driver.cut(driver.leader_id, wire.client_id, one_way=True)
    driver.run_for(1_000)
    driver.heal()
    driver.run_for(20_000)
    return driver.values(driver.leader_id), ledger


def test_producer__a_lost_ack_makes_a_duplicate_without_idempotence() -> None:
    """Incident S26."""
    log, ledger = _lose_responses(REPEATING)
    assert outcomes(ledger) == {Outcome.ACKED: 20}
    assert len(log) > 20
    assert set(log) == set(values(ledger.sends))


def test_producer__a_lost_ack_makes_no_duplicate_with_idempotence() -> None:
    log, ledger = _lose_responses(FAST)
    assert outcomes(ledger) == {Outcome.ACKED: 20}
    assert log == values(ledger.sends)
    assert max(send.attempts for send in ledger.sends) > 1


def _kill_leader_with_five_in_flight(
    settings: ProducerSettings,
) -> tuple[list[bytes | None], Ledger]:
    driver, ledger = started(), Ledger()
    producer = Producer("p", ledger, ProducerPlan(rate_per_s=100, count=300), settings)
    wire = driver.add_client(producer)
    for broker in wire.broker_ids:
        driver.dispatcher.fabric.set_latency(wire.client_id, broker, 20)
    driver.run_for(1_000)
    driver.kill(driver.leader_id)
    driver.run_for(20_000)
    return driver.values(driver.leader_id), ledger


def test_producer__requests_in_flight_are_reordered_by_a_retry_without_idempotence() -> None:
    """Incident S27."""
    log, ledger = _kill_leader_with_five_in_flight(REPEATING)
    sent = values(ledger.sends)
    assert outcomes(ledger) == {Outcome.ACKED: 300}
    assert set(log) == set(sent)
    firsts = list(dict.fromkeys(log))
    assert firsts != sent


def test_producer__requests_in_flight_stay_in_order_with_idempotence() -> None:
    log, ledger = _kill_leader_with_five_in_flight(FAST)
    assert outcomes(ledger) == {Outcome.ACKED: 300}
    assert log == values(ledger.sends)


def test_producer__at_the_delivery_timeout_sent_records_are_unknown() -> None:
    driver, ledger = started(), Ledger()
    settings = ProducerSettings(linger_ms=0, request_timeout_ms=1_000, delivery_timeout_ms=3_000)
    producer = Producer("p", ledger, ProducerPlan(rate_per_s=10, count=80), settings)
    wire = driver.add_client(producer)
    driver.run_for(1_000)
    for broker in wire.broker_ids:
        driver.cut(wire.client_id, broker)
    driver.run_for(5_000)
    driver.heal()
    driver.run_for(30_000)
    found = outcomes(ledger)
    assert found[Outcome.UNKNOWN] > 0
    assert found[Outcome.FAILED] > 0
    ends = [send.ended_ms - send.sent_ms for send in ledger.sends]
    assert max(ends) <= 3_000
    acked = [send.value for send in ledger.sends if send.outcome is Outcome.ACKED]
    log = driver.values(driver.leader_id)
    assert [value for value in log if value in acked] == acked
    failed = {send.value for send in ledger.sends if send.outcome is Outcome.FAILED}
    assert not failed & set(log)
    assert len(set(log)) == len(log)
    assert ledger.sends[-1].outcome is Outcome.ACKED


def test_producer__acks_0_always_reports_success() -> None:
    driver, ledger = started(), Ledger()
    settings = ProducerSettings(linger_ms=0, acks=0)
    driver.add_client(Producer("p", ledger, ProducerPlan(rate_per_s=100, count=200), settings))
    driver.run_for(1_000)
    driver.kill(driver.leader_id)
    driver.run_for(10_000)
    assert outcomes(ledger) == {Outcome.ACKED: 200}
    assert {send.offset for send in ledger.sends} == {-1}
    assert 100 < len(driver.values(driver.leader_id)) < 200


def test_producer__send_blocks_without_metadata_and_gives_up_after_max_block() -> None:
    driver, ledger = started(), Ledger()
    settings = ProducerSettings(max_block_ms=2_000)
    workload = ProducerPlan(topics=("nowhere",), partitions=(9,), rate_per_s=10, count=2)
    driver.add_client(Producer("p", ledger, workload, settings))
    driver.run_for(10_000)
    assert [(x.outcome, x.ended_ms - x.sent_ms, x.error) for x in ledger.sends] == [
        (Outcome.FAILED, 2_000, "REQUEST_TIMED_OUT")
    ] * 2


def test_producer__full_buffer_memory_blocks_send_until_there_is_room() -> None:
    driver, ledger = started(), Ledger()
    settings = ProducerSettings(batch_size_bytes=1_000, buffer_memory_bytes=3_000)
    producer = Producer(
        "p", ledger, ProducerPlan(rate_per_s=200, size_bytes=600, count=100), settings
    )
    wire = driver.add_client(producer)
    driver.run_for(200)
    driver.cut(wire.client_id, driver.leader_id)
    driver.run_for(100)
    assert producer.application.is_out_of_memory
    driver.heal()
    driver.run_for(60_000)
    assert outcomes(ledger) == {Outcome.ACKED: 100}
    assert producer.sender.allocated_bytes == 0


def test_producer__lingering_records_share_a_batch() -> None:
    driver, ledger = started(), Ledger()
    settings = ProducerSettings(linger_ms=100, compression_type="gzip")
    driver.add_client(Producer("p", ledger, ProducerPlan(rate_per_s=100, count=50), settings))
    driver.run_for(5_000)
    assert driver.values(driver.leader_id) == values(ledger.sends)
    assert len({send.ended_ms for send in ledger.sends}) == 5


def test_producer__stop_sends_pending_records_and_abort_does_not() -> None:
    driver = started()
    stopped, aborted = Ledger(), Ledger()
    first = Producer("a", stopped, ProducerPlan(rate_per_s=100))
    second = Producer("b", aborted, ProducerPlan(rate_per_s=100), ProducerSettings(linger_ms=50))
    driver.add_client(first)
    driver.add_client(second)
    driver.run_for(1_030)
    first.stop(driver.now_ms)
    second.abort(driver.now_ms)
    assert second.is_done
    driver.run_for(1_000)
    assert first.is_done
    assert outcomes(stopped) == {Outcome.ACKED: len(stopped.sends)}
    assert outcomes(aborted)[Outcome.FAILED] > 0
    assert driver.run_until_idle(1_000)


def test_producer__recovers_after_all_brokers_were_down() -> None:
    """No known broker responds, so it starts again from its bootstrap servers (KIP-899)."""
    driver, ledger = started(), Ledger()
    producer = Producer("p", ledger, ProducerPlan(rate_per_s=20, count=200), FAST)
    wire = driver.add_client(producer)
    driver.run_for(1_000)
    for broker in wire.broker_ids:
        driver.kill(broker)
    driver.run_for(4_000)
    assert producer.pending > 0
    for broker in wire.broker_ids:
        driver.start(broker)
    driver.run_for(25_000)
    assert outcomes(ledger) == {Outcome.ACKED: 200}
    assert driver.values(driver.leader_id) == values(ledger.sends)
    refused = [error.at_ms for error in ledger.errors if error.api == "ApiVersions"]
    gaps = [after - before for before, after in pairwise(refused)]
    assert max(gaps) > 100, "it backs off"


def test_producer__talks_to_brokers_of_an_older_release() -> None:
    driver, ledger = started(kafka_version="2.8"), Ledger()
    driver.add_client(Producer("p", ledger, ProducerPlan(rate_per_s=100, count=20)))
    driver.run_for(3_000)
    assert outcomes(ledger) == {Outcome.ACKED: 20}


def test_producer__the_same_seed_is_the_same_ledger() -> None:
    def run() -> Ledger:
        driver, ledger = started(partitions=3, seed=5), Ledger()
        driver.add_client(Producer("p", ledger, ProducerPlan(rate_per_s=100, count=400)))
        driver.run_for(1_000)
        driver.kill(driver.leader_id)
        driver.run_for(15_000)
        return ledger

    first, second = run(), run()
    assert first.sends == second.sends
    assert first.errors == second.errors


def test_settings__report_values_that_kafka_refuses() -> None:
    assert ProducerSettings().problems() == []
    assert ProducerSettings().is_idempotent
    assert not ProducerSettings(acks=1).is_idempotent
    assert not ProducerSettings(max_in_flight_requests_per_connection=6).is_idempotent
    assert len(ProducerSettings(acks=1, enable_idempotence=True).problems()) == 1
    assert len(ProducerSettings(acks=7, delivery_timeout_ms=10, partitioner="x").problems()) == 3
    assert ProducerSettings().acks == ACKS_ALL
