"""The project's own clients at listeners with SASL, in virtual time."""

from __future__ import annotations

from typing import Any

import pytest

from kcluster.clients.consumer.consumer import Consumer
from kcluster.clients.consumer.settings import ConsumerPlan, ConsumerSettings
from kcluster.clients.ledger import Ledger, Outcome
from kcluster.clients.producer.producer import Producer, TransactionalProducer
from kcluster.clients.producer.settings import ProducerPlan, ProducerSettings, TransactionPlan
from kcluster.clients.share_consumer import ShareConsumer
from kcluster.config.topology.client_access import access_of
from kcluster.drivers.virtual_time import start_client
from kcluster.events import AuthenticationFailed
from kcluster.security.client_access import ClientAccess
from tests.clients.worlds import outcomes, started
from tests.rig.cluster import VirtualRig

REFUSED = "SASL_AUTHENTICATION_FAILED"
MECHANISMS = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]


def secured(protocol: str = "SASL_PLAINTEXT", **changed: Any) -> VirtualRig:
    """Three brokers whose only listener lets in alice and bob."""
    return started(
        listeners={"CLIENT": {"protocol": protocol}},
        security={"users": {"alice": "alice-secret", "bob": "bob-secret"}},
        **changed,
    )


def access(driver: VirtualRig, **changed: Any) -> ClientAccess:
    values = {"mechanism": "SCRAM-SHA-512", "user": "alice", "password": "alice-secret"}
    known = access_of(driver.plan.topology)
    return ClientAccess(known.listener, known.protocol, **(values | changed))


def add(driver: VirtualRig, client: Any, **changed: Any) -> Any:
    start_client(driver.time, driver.plan, client, access=access(driver, **changed))
    return client


def producer(ledger: Ledger, **changed: Any) -> Producer:
    values = {"rate_per_s": 100, "count": 300}
    return Producer("p", ledger, ProducerPlan(**(values | changed)))


def consumer(ledger: Ledger) -> Consumer:
    plan = ConsumerPlan(topics=("orders",))
    return Consumer("c", ledger, plan, ConsumerSettings(group_id="g", auto_offset_reset="earliest"))


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_login__clients_log_in_again_at_the_next_leader(mechanism: str) -> None:
    driver, ledger = secured(), Ledger()
    add(driver, producer(ledger), mechanism=mechanism)
    add(driver, consumer(ledger), mechanism=mechanism)
    driver.run_for(1_000)
    driver.kill(driver.leader_id)
    driver.run_for(3_000)
    assert outcomes(ledger) == {Outcome.ACKED: 300}
    assert len(ledger.reads) == 300
    assert not failures(driver)


def test_login__without_a_user_clients_are_the_first_of_the_topology() -> None:
    driver, ledger = secured(), Ledger()
    wire = driver.add_client(producer(ledger))
    driver.run_for(3_500)
    assert outcomes(ledger) == {Outcome.ACKED: 300}
    assert access_of(driver.plan.topology).user == "alice"
    assert wire.broker_ids == (1, 2, 3)


def test_login__a_wrong_password_ends_producers_before_their_first_record() -> None:
    driver, ledger = secured(), Ledger()
    plain = add(driver, producer(ledger), password="wrong")
    plan = ProducerPlan(rate_per_s=100, transactions=TransactionPlan(every=5))
    settings = ProducerSettings(transactional_id="t")
    transactional = add(driver, TransactionalProducer("t", ledger, plan, settings), password="no")
    driver.run_for(5_000)
    assert plain.is_done
    assert transactional.is_done
    assert {(send.outcome, send.error) for send in ledger.sends} == {(Outcome.FAILED, REFUSED)}
    refusals = {error.client for error in ledger.errors if error.error == REFUSED}
    assert refusals == {"p", "t"}
    assert driver.time.is_idle(), "nobody tries again"


def test_login__a_wrong_password_is_thrown_by_poll() -> None:
    driver, ledger = secured(), Ledger()
    reader = add(driver, consumer(ledger), user="bob")
    plan, settings = ConsumerPlan(topics=("orders",)), ConsumerSettings(group_id="s")
    sharer = add(driver, ShareConsumer("s", ledger, plan, settings), password="wrong")
    driver.run_for(2_000)
    assert reader.failed == sharer.failed == REFUSED
    assert reader.is_done
    assert sharer.is_done
    assert driver.time.is_idle(), "nobody tries again"
    assert {event.user for event in failures(driver)} == {"alice", "bob"}


def failures(driver: VirtualRig) -> list[AuthenticationFailed]:
    return [x.event for x in driver.notes if isinstance(x.event, AuthenticationFailed)]


def test_login__a_session_is_renewed_before_it_ends() -> None:
    driver, ledger = secured(config={"connections.max.reauth.ms": "1500"}), Ledger()
    add(driver, producer(ledger, rate_per_s=50))
    driver.run_for(7_000)
    assert outcomes(ledger) == {Outcome.ACKED: 300}
    assert not ledger.errors
    assert not failures(driver)


def test_login__a_quiet_client_renews_its_session_even_after_the_end() -> None:
    driver, ledger = secured(config={"connections.max.reauth.ms": "1500"}), Ledger()
    add(driver, producer(ledger, rate_per_s=0.4, count=3))
    driver.run_for(6_000)
    assert outcomes(ledger) == {Outcome.ACKED: 3}
    assert not ledger.errors
    assert not failures(driver)


def test_login__equal_runs_have_equal_traces() -> None:
    hashes = set()
    for _ in range(2):
        driver, ledger = secured(config={"connections.max.reauth.ms": "1500"}), Ledger()
        add(driver, producer(ledger))
        add(driver, consumer(ledger), user="bob", password="bob-secret", mechanism="PLAIN")
        driver.run_for(1_000)
        driver.kill(driver.leader_id)
        driver.run_for(3_000)
        hashes.add((driver.trace_hash(), driver.draw(), ledger.sends[-1].ended_ms))
    assert len(hashes) == 1


def first_ack_ms(protocol: str, mechanism: str) -> int:
    driver, ledger = secured(protocol, network={"default_latency_ms": 10}), Ledger()
    settings = ProducerSettings(linger_ms=0, enable_idempotence=False)
    plan = ProducerPlan(count=1, partitions=(0,))
    add(driver, Producer("p", ledger, plan, settings), mechanism=mechanism)
    driver.run_for(3_000)
    (send,) = ledger.sends
    return send.ended_ms - send.sent_ms


def test_login__its_messages_cost_round_trips() -> None:
    by_plain = first_ack_ms("SASL_PLAINTEXT", "PLAIN")
    by_scram = first_ack_ms("SASL_PLAINTEXT", "SCRAM-SHA-256")
    logins = (by_scram - by_plain) / 20
    assert logins in (1, 2), "SCRAM takes a round trip more on each connection"


def test_login__listeners_of_brokers_differ() -> None:
    of_users = {"CLIENT": {"protocol": "SASL_PLAINTEXT"}}
    brokers = [{"listeners": {**of_users, "OPEN": {"protocol": "PLAINTEXT"}}}]
    brokers += [{"listeners": of_users}] * 2
    driver = started(brokers=brokers, security={"users": {"alice": "alice-secret"}})
    ledger = Ledger()
    wire = driver.add_client(producer(ledger))
    assert wire.broker_ids == (1,)
    inside = start_client(
        driver.time,
        driver.plan,
        Producer("q", ledger, ProducerPlan(rate_per_s=100, count=10)),
        access=access_of(driver.plan.topology, "alice"),
    )
    assert inside.broker_ids == (1, 2, 3)
    driver.run_for(1_000)
    assert all(send.outcome is Outcome.ACKED for send in ledger.sends if send.producer == "q")
