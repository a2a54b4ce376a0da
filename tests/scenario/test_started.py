"""Clients that are started on a running cluster."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kcluster.clients.ledger import Ledger
from kcluster.config.topology.model import Topology
from kcluster.drivers.wires.tcp import LiveClients
from kcluster.handle.cluster import Cluster
from kcluster.operations.errors import ClusterError
from kcluster.scenario.language.loader import ScenarioError
from kcluster.scenario.language.model import ProducerSpec
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.perform import do
from kcluster.scenario.play.workload import make_producer
from kcluster.scenario.recorded import scenario_of
from kcluster.scenario.started import clients_started, recorded_clients, start_client, stop_client

TOPICS = {"orders": {"partitions": 1, "replication_factor": 3, "assignment": [[1, 2, 3]]}}


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(Topology.of(brokers=3, topics=TOPICS, profile="fast")) as running:
        yield running


def test_started__a_producer_and_a_consumer_by_their_names(cluster: Cluster) -> None:
    producer = start_client(cluster, {"producer": {"topic": "orders", "rate": "200/s"}})
    consumer = start_client(cluster, {"consumer": {"topic": "orders", "group": "billing"}})
    assert (producer, consumer) == ("producer-1", "consumer-1")
    cluster.wait_for("high_watermark(orders-0) >= 20")
    cluster.wait_for("event group_assigned", since=0)
    stop_client(cluster, producer)
    verdict = cluster.verdict()
    assert verdict.acked >= 20
    assert (verdict.anomalies, verdict.violations) == ((), ())
    rows, _ = cluster.recorded_since(-1)
    assert {row.client for row in rows["exchanges"]} == {"producer-1", "consumer-1"}
    assert {row.client for row in rows["appends"]} == {"producer-1"}
    assert [member.client for member in rows["groups"][-1].members] == ["consumer-1"]
    assert [one.is_running for one in clients_started(cluster)] == [False, True]


def test_started__transactions_share_groups_and_processors_too(cluster: Cluster) -> None:
    cluster.create_topic("paid")
    spec = {"topic": "orders", "transactions": {"every": 5}, "name": "shop", "rate": "200/s"}
    assert start_client(cluster, {"producer": spec}) == "shop"
    start_client(cluster, {"consumer": {"topics": "orders", "group": "s", "share": True}})
    start_client(cluster, {"processor": {"topic": "orders", "to": "paid", "group": "p"}})
    cluster.wait_for("log_end(paid-0) >= 5", within="20s")


def test_started__targets_may_name_it(cluster: Cluster) -> None:
    start_client(cluster, {"producer": {"topic": "orders", "rate": "200/s"}})
    cluster.wait_for("high_watermark(orders-0) >= 1")
    undo = do(cluster, "isolate", "producer-1")
    before = cluster.logs("orders", 0).replicas[0].log_end_offset
    undo()
    cluster.wait_for(f"high_watermark(orders-0) > {before + 5}", within="20s")


def test_started__wrong_words_are_refused_with_their_path(cluster: Cluster) -> None:
    with pytest.raises(ScenarioError, match=r"ratee: .*did you mean rate\?"):
        start_client(cluster, {"producer": {"topic": "orders", "ratee": "1/s"}})
    with pytest.raises(ScenarioError, match=r"did you mean producer\?"):
        start_client(cluster, {"produser": {"topic": "orders"}})
    with pytest.raises(ScenarioError, match="topic"):
        start_client(cluster, {"producer": {}})
    start_client(cluster, {"producer": {"topic": "orders", "name": "shop"}})
    with pytest.raises(ClusterError, match="a client shop runs already"):
        start_client(cluster, {"producer": {"topic": "orders", "name": "shop"}})
    with pytest.raises(ClusterError, match=r"shopp: .*did you mean shop\?"):
        stop_client(cluster, "shopp")


def test_started__they_stand_still_while_the_clock_is_paused(cluster: Cluster) -> None:
    start_client(cluster, {"producer": {"topic": "orders", "rate": "200/s"}})
    cluster.wait_for("high_watermark(orders-0) >= 1")
    cluster.pause_clock()
    ends = [cluster.logs("orders", 0).replicas[0].log_end_offset for _ in range(3)]
    assert len(set(ends)) == 1
    start_client(cluster, {"producer": {"topic": "orders", "rate": "200/s"}})
    cluster.resume_clock()
    cluster.wait_for(f"high_watermark(orders-0) > {ends[0] + 20}")


def test_started__the_scenario_of_a_recorded_cluster_has_it(cluster: Cluster) -> None:
    began_ms = cluster.recorder.began_ms
    start_client(cluster, {"producer": {"topic": "orders", "rate": "20/s", "name": "shop"}})
    start_client(cluster, {"consumer": {"topic": "orders", "group": "billing"}})
    stop_client(cluster, "shop")
    clients = recorded_clients(cluster, began_ms)
    text = scenario_of(cluster.recorder.notes, cluster.topology, "lab", began_ms, clients)
    workload = Scenario.parse(text).workload
    (producer,), (consumer,) = workload.producers, workload.consumers
    assert (producer.name, producer.rate_per_s, consumer.group) == ("shop", 20, "billing")
    assert producer.stop_ms is not None
    assert consumer.stop_ms is None


def test_started__sockets_are_closed_with_the_cluster_also_while_it_is_paused() -> None:
    with Cluster(Topology.of(brokers=3, topics=TOPICS, profile="fast")) as cluster:
        clients = cluster.call(lambda: LiveClients(cluster.driver, 1))
        shop = make_producer(ProducerSpec(topic="orders", name="shop"), "fast", Ledger())
        cluster.call(lambda: clients.add_client(shop))
        cluster.wait_for("high_watermark(orders-0) >= 1")
        cluster.pause_clock()
        assert clients.sockets
    assert not clients.sockets
