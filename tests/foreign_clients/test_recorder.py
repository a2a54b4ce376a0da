"""Real clients under a recorder: they keep no ledger, but the verdict includes them."""

from __future__ import annotations

from kafka import KafkaConsumer, KafkaProducer

from kcluster import Cluster, Topology
from kcluster.checks.verdict import judge
from kcluster.checks.verdict_facts import VALID
from kcluster.clients.ledger import Ledger
from kcluster.evidence.recorder import Recorder
from tests.rig.patience import PATIENCE_S


def test_recorder__real_clients_over_tcp_count_in_the_verdict() -> None:
    topics = {"orders": {"replication_factor": 3}}
    with Cluster(Topology.of(brokers=3, topics=topics, profile="fast")) as cluster:
        driver = cluster.driver
        recorder = driver.call(lambda: Recorder(driver.dispatcher, cluster.plan)).result(PATIENCE_S)
        servers = cluster.bootstrap.split(",")
        producer = KafkaProducer(bootstrap_servers=servers, acks="all")
        for number in range(20):
            producer.send("orders", b"%d" % number)
        producer.flush(PATIENCE_S)
        cluster.kill(cluster.leader("orders", 0))
        producer.send("orders", b"last").get(timeout=PATIENCE_S)
        producer.close()
        consumer = KafkaConsumer(
            "orders",
            bootstrap_servers=servers,
            auto_offset_reset="earliest",
            consumer_timeout_ms=10_000,
        )
        got = [next(consumer).value for _ in range(21)]
        consumer.close()
        verdict = driver.call(lambda: judge(recorder, Ledger())).result(PATIENCE_S)
    assert len(got) == 21
    assert (verdict.outcome, verdict.sent, verdict.acked) == (VALID, 21, 21), verdict.lines()
    assert verdict.read >= 21
