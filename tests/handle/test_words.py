"""Words for nodes and conditions in both handles: the same as in scenario files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kcluster.config.topology.model import Topology
from kcluster.events.network import NetworkShaped
from kcluster.handle.cluster import Cluster
from kcluster.operations.errors import ClusterError
from kcluster.testing.handles import TestedCluster, VirtualCluster

TOPICS = {"orders": {"assignment": [[1, 2, 3]]}}
TOPOLOGY = Topology.of(brokers=3, topics=TOPICS, profile="fast")


@pytest.fixture
def live() -> Iterator[Cluster]:
    with TestedCluster(TOPOLOGY, 1, "test") as running:
        yield running


@pytest.fixture
def virtual() -> VirtualCluster:
    cluster = VirtualCluster(TOPOLOGY, 1, "test")
    cluster.wait_for("settled")
    return cluster


@pytest.fixture(params=["live", "virtual"])
def cluster(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue(request.param)


def test_kill__takes_ids_lists_and_words(cluster: Any) -> None:
    cluster.kill("leader(orders-0)")
    cluster.wait_for("leader(orders-0) = 2", within="5s")
    cluster.kill([2])
    cluster.wait_for("broker 3 leads orders-0", within=5.0)
    cluster.start("down")
    cluster.wait_for("isr(orders-0) = 3", within="20s")
    cluster.move("orders-0", to=1)
    cluster.wait_for("leader(orders-0) = 1")
    with pytest.raises(ClusterError, match=r"leader\(nope\): not a partition|nope: not a part"):
        cluster.kill("leader(nope)")
    with pytest.raises(ClusterError, match="broker-1: no such node"):
        cluster.kill("broker-1")


def test_restart__brokers_in_turn_lose_no_replica(cluster: Any) -> None:
    cluster.restart(1)
    cluster.wait_for("settled")
    cluster.rolling_restart()
    cluster.wait_for("settled")
    paused = cluster.find("leader(orders-0)")
    cluster.pause("leader(orders-0)")
    cluster.resume(paused)


def test_verbs__for_several_brokers_do_the_rest(cluster: Any) -> None:
    def states() -> list[str]:
        return [broker.state for broker in cluster.status().brokers]

    cluster.kill(1)
    cluster.kill("all")
    assert states() == ["down", "down", "down"]
    cluster.start("all")
    cluster.wait_for("settled", within="20s")
    cluster.start("all")
    cluster.pause(3)
    cluster.pause("2,3")
    assert states() == ["up", "paused", "paused"]
    cluster.resume("all")
    cluster.wait_for("settled", within="20s")
    cluster.kill(1)
    cluster.wait_for("isr(orders-0) = 2", within="20s")
    cluster.restart("all")
    assert states() == ["down", "up", "up"]
    cluster.do("start", "all")
    assert states() == ["up", "up", "up"]
    cluster.start("down")
    cluster.do("start", "down")
    with pytest.raises(ClusterError, match="broker 1 is up"):
        cluster.start(1)


def test_wait_for__says_how_it_stands(cluster: Any) -> None:
    with pytest.raises(ClusterError, match=r"after 0\.05 s: it is 3 \(1, 2, 3\)"):
        cluster.wait_for("isr(orders-0) < 3", within="50ms")
    with pytest.raises(ClusterError, match=r"within: 10 what\? Write 10ms, 10s or 10m"):
        cluster.wait_for("settled", within="10")
    with pytest.raises(ClusterError, match="not a condition"):
        cluster.wait_for("isr of orders")


def test_wait_for__settled_names_who_is_missing(cluster: Any) -> None:
    cluster.kill(3)
    with pytest.raises(ClusterError, match="not in service: broker 3"):
        cluster.wait_for("settled", within="50ms")


def test_wait_for__an_event_counts_from_now_or_since_a_sequence(live: Cluster) -> None:
    before = live.events()[-1].sequence
    live.kill(1)
    live.wait_for("event leader_elected of orders-0", since=before, within="1s")
    with pytest.raises(ClusterError, match="there was no such event"):
        live.wait_for("event leader_elected", within="20ms")


def test_topics__are_created_and_deleted(live: Cluster) -> None:
    live.create_topic("invoices", 2, config={"min.insync.replicas": "2"})
    assert live.leader("invoices-1") in (1, 2, 3)
    with pytest.raises(ClusterError, match="TOPIC_ALREADY_EXISTS"):
        live.create_topic("invoices")
    live.delete_topic("invoices")
    with pytest.raises(ClusterError, match="there is no topic"):
        live.leader("invoices-1")


def test_slow_link__of_several_nodes_slows_the_links_among_them_too(
    virtual: VirtualCluster,
) -> None:
    with virtual.slow_link("all", latency_ms=5):
        shaped = [note.event for note in virtual.notes if isinstance(note.event, NetworkShaped)]
        assert {(1, 2), (2, 1), (1, 3000), (3000, 3)} <= set(shaped[0].links)
    assert not virtual.plan.fabric.shaped


def test_settled__a_follower_that_lacks_records_and_is_cut_off_has_to_leave_the_isr(
    virtual: VirtualCluster,
) -> None:
    settled = virtual.verbs.settled
    virtual.producer("orders", rate="100/s")
    virtual.run_for(100)
    virtual.cut(1, 3)
    assert settled.has_noticed()
    virtual.run_for(20)
    assert not settled.has_noticed()
    assert virtual.run_until_condition(settled.is_settled, 2_000)
    virtual.wait_for("isr(orders-0) = 2", within="0ms")
    virtual.heal()
    assert not settled.is_settled()
    assert virtual.run_until_condition(settled.is_settled, 2_000)
    virtual.wait_for("isr(orders-0) = 3", within="0ms")
