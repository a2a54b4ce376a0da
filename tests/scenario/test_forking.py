"""Forks of a live cluster: its past, played again, and what would follow from a choice."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kcluster.actions.brokers import KillBrokers
from kcluster.actions.network import Isolate
from kcluster.actions.recording import RecordedStep, these
from kcluster.clients.ledger import Ledger
from kcluster.config.topology.model import Topology
from kcluster.events.brokers import ControllerDown
from kcluster.handle.cluster import Cluster
from kcluster.operations.errors import ClusterError
from kcluster.scenario.forking import fork_cluster, shorten
from kcluster.scenario.language.loader import parse_action
from kcluster.scenario.language.model import ProducerSpec
from kcluster.scenario.perform import do, running_stage
from kcluster.scenario.play.workload import make_producer
from kcluster.scenario.recorded import RecordedClient
from kcluster.scenario.started import start_client, stop_client

EVENT = ControllerDown()
TOPICS = {"orders": {"partitions": 1, "replication_factor": 3, "assignment": [[1, 2, 3]]}}


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(Topology.of(brokers=3, topics=TOPICS, profile="fast"), seed=5) as running:
        yield running


def test_fork__what_the_cluster_would_lose_and_has_not_lost(cluster: Cluster) -> None:
    start_client(cluster, {"producer": {"topic": "orders", "rate": "200/s", "acks": 1}})
    cluster.wait_for("high_watermark(orders-0) >= 20")
    do(cluster, "slow", nodes="followers(orders-0)", latency="20ms")
    cluster.wait_for("high_watermark(orders-0) >= 60")
    cluster.pause_clock()
    futures = fork_cluster(cluster, [parse_action("kill: leader(orders-0)")], None, 1_000)
    assert futures.here.verdict.outcome == "valid"
    assert {found.name for found in futures.there.verdict.anomalies} == {"lost-write"}
    assert futures.assumptions == ()
    assert cluster.leader("orders-0") == 1, "nothing has happened to the cluster itself"


def test_fork__actions_so_far_are_part_of_the_past(cluster: Cluster) -> None:
    start_client(cluster, {"producer": {"topic": "orders", "rate": "100/s"}})
    cluster.kill(1)
    cluster.wait_for("leader(orders-0) = 2")
    early_ms = cluster.clock().now_ms
    cluster.wait_for("high_watermark(orders-0) >= 20")
    cluster.start(1)
    cluster.kill(2)
    stop_client(cluster, "producer-1")
    late = fork_cluster(cluster, [parse_action("kill: 3")], None, 500)
    assert late.here.record.leaders[-1].leader != -1
    early = fork_cluster(cluster, [parse_action("start: 1")], early_ms, 500)
    assert early.there.problems == ()
    assert early.here.record.leaders[-1].leader == 2
    with pytest.raises(ClusterError, match="is not a moment of this cluster"):
        fork_cluster(cluster, [], 1, 500)


def test_fork__says_what_stands_in_for_clients_from_outside(cluster: Cluster) -> None:
    spec = ProducerSpec(topic="orders", name="shop", rate_per_s=200.0, count=20)
    shop = make_producer(spec, "fast", Ledger())
    cluster.call(lambda: running_stage(cluster).add_outside_client("shop", shop))
    cluster.wait_for("high_watermark(orders-0) >= 20")
    futures = fork_cluster(cluster, [], None, 500)
    (line,) = futures.assumptions
    assert line.startswith("shop: a producer of kcluster stands in for it (acks=all, ")
    assert futures.here.verdict.acked > 0


def test_fork__stretches_in_which_nobody_did_anything_are_played_shorter() -> None:
    steps = [
        RecordedStep(1_000, KillBrokers(these([1])), EVENT),
        RecordedStep(600_000, Isolate(these([2])), EVENT, for_ms=500_000),
    ]
    clients = [RecordedClient("producers", {}, 2_000, 610_000)]
    assert shorten(steps, clients, 1_200_000, quiet_ms=90_000) == 1_200_000 - 92_000 - 190_000
    assert [(step.at_ms, step.for_ms) for step in steps] == [(1_000, None), (92_000, 100_000)]
    assert (clients[0].start_ms, clients[0].stop_ms) == (2_000, 102_000)
