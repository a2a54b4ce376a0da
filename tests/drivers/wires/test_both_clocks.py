"""The same workload in virtual time and over TCP: the same ledger."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from kcluster.clients.ledger import Ledger, Outcome, Partition
from kcluster.clients.logins import SSL_HANDSHAKE_FAILED
from kcluster.clients.producer.producer import Producer
from kcluster.clients.producer.settings import ProducerPlan, ProducerSettings
from kcluster.drivers.wires.tcp import LiveClients
from kcluster.handle.cluster import Cluster
from kcluster.network.node_ids import FIRST_CLIENT_ID
from tests.clients.worlds import final_values, outcomes, started, topology
from tests.rig.patience import PATIENCE_S

COUNT = 300
WORKLOAD = ProducerPlan(rate_per_s=300, size_bytes=50, keys=9, count=COUNT)
SETTINGS = ProducerSettings(request_timeout_ms=2_000, delivery_timeout_ms=30_000)
VICTIM = 2


@contextmanager
def live_clients(cluster: Cluster) -> Iterator[LiveClients]:
    clients = cluster.driver.call(lambda: LiveClients(cluster.driver, 1)).result(PATIENCE_S)
    try:
        yield clients
    finally:
        cluster.driver.call(clients.close).result(PATIENCE_S)


def run_live(
    kafka_version: str | None, *, kill: bool
) -> tuple[Ledger, dict[Partition, list[bytes]]]:
    ledger = Ledger()
    producer = Producer("p", ledger, WORKLOAD, SETTINGS)
    changed = {} if kafka_version is None else {"kafka_version": kafka_version}
    with Cluster(topology(partitions=3, **changed), seed=1) as cluster:
        with live_clients(cluster) as clients:
            cluster.driver.call(lambda: clients.add_client(producer)).result(PATIENCE_S)
            cluster.wait_until(lambda: producer.acked > COUNT // 3, PATIENCE_S, "no acks")
            if kill:
                cluster.kill(VICTIM)
            cluster.wait_until(lambda: producer.is_done, 20, "no end")
        plan, dispatcher = cluster.plan, cluster.driver.dispatcher
        found = cluster.driver.call(lambda: final_values(plan, dispatcher)).result(PATIENCE_S)
    return ledger, found


def run_virtual(*, kill: bool) -> tuple[Ledger, dict[Partition, list[bytes]]]:
    ledger = Ledger()
    producer = Producer("p", ledger, WORKLOAD, SETTINGS)
    driver = started(partitions=3)
    driver.add_client(producer)
    assert driver.run_until_condition(lambda: producer.acked > COUNT // 3, 10_000)
    if kill:
        driver.kill(VICTIM)
    assert driver.run_until_condition(lambda: producer.is_done, 20_000)
    return ledger, final_values(driver.plan, driver.dispatcher)


@pytest.mark.parametrize("kill", [False, True])
def test_both_clocks__the_same_ledger_and_the_same_logs(kill: bool) -> None:
    live, live_log = run_live(None, kill=kill)
    virtual, virtual_log = run_virtual(kill=kill)
    assert outcomes(live) == outcomes(virtual) == {Outcome.ACKED: COUNT}
    assert live_log == virtual_log
    assert Counter(send.partition for send in live.sends) == {
        partition: len(values) for partition, values in live_log.items()
    }


def test_live_clients__an_old_broker_lists_its_versions_in_version_0() -> None:
    live, _ = run_live("2.1", kill=False)
    assert outcomes(live) == {Outcome.ACKED: COUNT}


def test_live_clients__a_cut_link_drops_messages_and_latency_is_kept() -> None:
    ledger = Ledger()
    settings = ProducerSettings(linger_ms=0, request_timeout_ms=300, delivery_timeout_ms=20_000)
    producer = Producer("p", ledger, ProducerPlan(rate_per_s=100, count=60), settings)
    one_way_ms = 20
    with Cluster(topology(), seed=1) as cluster, live_clients(cluster) as clients:
        driver = cluster.driver
        for broker in cluster.broker_ids:
            driver.dispatcher.fabric.set_latency(FIRST_CLIENT_ID, broker, one_way_ms)
        wire = driver.call(lambda: clients.add_client(producer)).result(PATIENCE_S)
        cluster.wait_until(lambda: producer.acked > 10, 10, "no acks")
        leader = cluster.leader("orders", 0)
        driver.call(lambda: cluster.verbs.links.cut(wire.client_id, leader)).result(PATIENCE_S)
        cluster.wait_until(
            lambda: any(error.error == "REQUEST_TIMED_OUT" for error in ledger.errors),
            10,
            "no timeout",
        )
        driver.call(cluster.verbs.links.heal).result(PATIENCE_S)
        cluster.wait_until(lambda: producer.is_done, 20, "no end")
    assert outcomes(ledger) == {Outcome.ACKED: 60}
    assert min(send.ended_ms - send.sent_ms for send in ledger.sends) >= 2 * one_way_ms
    assert max(send.attempts for send in ledger.sends) > 1


SECURED: dict[str, Any] = {
    "listeners": {"CLIENT": {"protocol": "SASL_SSL"}},
    "security": {"tls": "auto", "users": {"alice": "alice-secret"}},
}


def test_live_clients__log_in_by_sasl_over_tls_again_at_the_next_leader() -> None:
    ledger = Ledger()
    producer = Producer("p", ledger, ProducerPlan(rate_per_s=300, size_bytes=3_000, count=100))
    with Cluster(topology(**SECURED), seed=1) as cluster, live_clients(cluster) as clients:
        cluster.driver.call(lambda: clients.add_client(producer)).result(PATIENCE_S)
        cluster.wait_until(lambda: producer.acked > 30, PATIENCE_S, "no acks")
        cluster.kill(cluster.leader("orders", 0))
        cluster.wait_until(lambda: producer.is_done, PATIENCE_S, "no end")
    assert outcomes(ledger) == {Outcome.ACKED: 100}
    assert {error.error for error in ledger.errors} <= {"DISCONNECTED", "NOT_LEADER_OR_FOLLOWER"}


def test_live_clients__refuse_an_expired_certificate() -> None:
    ledger = Ledger()
    producer = Producer("p", ledger, ProducerPlan(rate_per_s=300, count=10))
    with Cluster(topology(**SECURED), seed=1) as cluster, live_clients(cluster) as clients:
        cluster.perform("certificate", brokers="all", state="expired")
        cluster.driver.call(lambda: clients.add_client(producer)).result(PATIENCE_S)
        cluster.wait_until(lambda: producer.is_done, PATIENCE_S, "no end")
    assert {send.error for send in ledger.sends} <= {SSL_HANDSHAKE_FAILED}
    assert {error.error for error in ledger.errors} >= {SSL_HANDSHAKE_FAILED}


def test_virtual_clients__refuse_an_expired_certificate() -> None:
    ledger = Ledger()
    producer = Producer("p", ledger, ProducerPlan(rate_per_s=300, count=10))
    driver = started(**SECURED)
    driver.perform("certificate", brokers="all", state="expired")
    driver.add_client(producer)
    driver.run_for(200)
    assert producer.is_done
    assert {error.error for error in ledger.errors} >= {SSL_HANDSHAKE_FAILED}
