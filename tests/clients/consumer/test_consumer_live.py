"""The same consumers over TCP, on a live cluster."""

from __future__ import annotations

from functools import partial

from kcluster.clients.consumer.consumer import Consumer
from kcluster.clients.consumer.settings import ConsumerPlan, ConsumerSettings
from kcluster.clients.ledger import Ledger
from kcluster.clients.producer.producer import Producer
from kcluster.clients.producer.settings import ProducerPlan, ProducerSettings
from kcluster.config.topology.model import Topology
from kcluster.handle.cluster import Cluster
from tests.drivers.wires.test_both_clocks import live_clients
from tests.rig.patience import PATIENCE_S

COUNT = 600


def test_consumer_live__a_group_reads_all_while_leader_and_coordinator_die() -> None:
    topology = Topology.of(
        brokers=3, topics={"orders": {"partitions": 3, "replication_factor": 3}}, profile="fast"
    )
    ledger = Ledger()
    producer = Producer(
        "p",
        ledger,
        ProducerPlan(rate_per_s=500.0, keys=20, count=COUNT),
        ProducerSettings(retry_backoff_ms=5),
    )
    settings = ConsumerSettings(
        group_id="g",
        auto_offset_reset="earliest",
        session_timeout_ms=450,
        heartbeat_interval_ms=30,
        auto_commit_interval_ms=50,
        retry_backoff_ms=5,
        fetch_max_wait_ms=20,
        metadata_max_age_ms=1_000,
        request_timeout_ms=1_000,
    )
    consumers = [
        Consumer(name, ledger, ConsumerPlan(topics=("orders",)), settings) for name in ("a", "b")
    ]
    with Cluster(topology, seed=1) as cluster, live_clients(cluster) as clients:
        driver = cluster.driver
        for client in (producer, *consumers):
            driver.call(partial(clients.add_client, client)).result(PATIENCE_S)
        cluster.wait_until(lambda: len(ledger.reads) > 100, 10, "nothing is read")
        cluster.kill(cluster.leader("orders", 0))
        cluster.wait_until(lambda: producer.is_done, 20, "no end")
        cluster.wait_until(lambda: len(ledger.reads) >= COUNT, 20, "not all is read")
        for consumer in consumers:
            driver.call(partial(consumer.stop, driver.now_ms())).result(PATIENCE_S)
        cluster.wait_until(lambda: all(one.is_done for one in consumers), 10, "they do not close")
    read = {(one.partition, one.offset) for one in ledger.reads}
    assert len(read) == COUNT
    assert {one.value for one in ledger.reads} == {send.value for send in ledger.sends}
    assert any(one.is_commit for one in ledger.commits)
