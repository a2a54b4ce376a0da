"""Forks of a live cluster: its past, played again, and what would follow from a choice."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kcluster.actions.brokers import KillBrokers
from kcluster.actions.network import Isolate
from kcluster.actions.recording import RecordedStep, these
from kcluster.clients.ledger import Ledger
from kcluster.config.topology.model import Topology
from kcluster.events.brokers import BrokerDown, ControllerDown
from kcluster.handle.cluster import Cluster
from kcluster.operations.errors import ClusterError
from kcluster.scenario.forking import Led, difference_texts, differences, fork_cluster, shorten
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


def test_fork__says_what_stands_in_where_no_client_was(cluster: Cluster) -> None:
    cluster.wait_for("leader(orders-0) = 1")
    (line,) = fork_cluster(cluster, [], None, 100).assumptions
    assert line == "no client was there: a producer of 50 records/s stands in for each topic"


def test_fork__the_leader_is_that_of_the_moment_after_an_idle_time_in_which_it_moved() -> None:
    """Once a second the controller gives leadership back to the preferred leader."""
    config = {"leader.imbalance.check.interval.seconds": 1}
    topology = Topology.of(brokers=3, topics=TOPICS, profile="fast", config=config)
    with Cluster(topology, seed=5) as cluster:
        cluster.kill(1)
        cluster.wait_for("leader(orders-0) = 2")
        cluster.start(1)
        cluster.wait_for("leader(orders-0) = 1")
        start_client(cluster, {"producer": {"topic": "orders", "rate": "100/s"}})
        cluster.wait_for("high_watermark(orders-0) >= 30")  # some time after the election
        cluster.pause_clock()
        futures = fork_cluster(cluster, [parse_action("kill: leader(orders-0)")], None, 1_000)
    killed = [row.event for row in futures.there.record.notes if row.at_ms >= futures.at_ms]
    assert next(each for each in killed if isinstance(each, BrokerDown)).broker == 1


def test_fork__idle_time_is_kept_except_whole_periods_of_a_long_past() -> None:
    """T4: five minutes and 3.5 s, with the preferred election at 300 s, are played as they were."""
    steps = [
        RecordedStep(1_000, KillBrokers(these([1])), EVENT),
        RecordedStep(4_000_000, Isolate(these([2])), EVENT, for_ms=500_000),
    ]
    clients = [RecordedClient("producers", {}, 2_000, 4_100_000)]
    skipped_ms = shorten(steps, clients, 4_600_000, quiet_ms=90_000, period_ms=300_000)
    assert skipped_ms == 12 * 300_000
    assert [(step.at_ms, step.for_ms) for step in steps] == [(1_000, None), (400_000, 500_000)]
    assert (clients[0].start_ms, clients[0].stop_ms) == (2_000, 500_000)
    assert shorten([], [], 303_500, quiet_ms=5_000, period_ms=300_000) == 0


def test_fork__a_few_of_many_partitions_that_differ_are_named() -> None:
    led: Led = (1, (1,))
    many = {("orders", number): [(0, led)] for number in range(1_000)}
    *named, last = difference_texts(differences(many, 10, {}, 10))
    assert len(named) == 5
    assert last == "995 more partitions differ"


def test_fork__pasts_differ_unless_it_is_only_timing() -> None:
    before: Led = (1, (1, 2, 3))
    after: Led = (3, (1, 2, 3))
    moved = {("orders", 0): [(0, before), (300_000, after)]}
    stayed = {("orders", 0): [(0, before)]}
    (found,) = differences(moved, 303_500, stayed, 303_500)
    assert (found.live, found.played, found.is_timing) == (after, before, False)
    (found,) = differences(moved, 299_900, moved, 300_000)
    assert found.is_timing
    assert differences(moved, 303_500, moved, 303_500) == []
    (found,) = differences(moved, 303_500, {}, 303_500)
    assert found.played is None


def test_fork__a_past_that_cannot_be_played_again_is_refused(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kcluster.scenario.forking.TIMING_MS", 0)
    cluster.kill(1)
    cluster.wait_for("leader(orders-0) = 2")
    cluster.pause_clock()
    cluster.call(cluster.recorder.notes.clear)  # as if the oldest events were no longer kept
    here = (
        "orders-0 is led by 2 with ISR 2, 3 in the cluster, and is led by 1 with ISR 1, 2, 3 when"
    )
    with pytest.raises(ClusterError, match=f"played again as it was: {here} the past is played"):
        fork_cluster(cluster, [], None, 500)
