"""The verbs of Cluster in virtual time, where no client code runs: they let time pass."""

from __future__ import annotations

from pathlib import Path

import pytest

from kcluster import do
from kcluster.config.topology.model import Topology
from kcluster.handle.world_cluster import WorldCluster
from kcluster.operations.errors import ClusterError, NotInTime
from kcluster.runs.directory import read_run
from kcluster.scenario.started import clients_started, start_client, stop_client

TOPICS = {"orders": {"assignment": [[1, 2, 3]]}}


@pytest.fixture
def cluster() -> WorldCluster:
    made = WorldCluster(Topology.of(brokers=3, topics=TOPICS, profile="kafka"), 1)
    made.open()
    return made


def test_verbs__take_the_time_that_the_cluster_takes(cluster: WorldCluster) -> None:
    assert cluster.bootstrap.startswith("brokers.kcluster:9092,")
    assert cluster.kill(1) == (1,)
    assert cluster.driver.now_ms() == 9_000, "the session of broker 1 has expired"
    assert cluster.leader("orders-0") == 2
    cluster.create_topic("payments", partitions=2, replication_factor=2)
    assert cluster.start(1) == (1,)
    cluster.wait_for("isr(orders-0) = 3", within="10s")
    assert cluster.rolling_restart() == (1, 2, 3)
    assert cluster.is_settled()
    assert "leader_elected" in {entry.kind for entry in cluster.events()}


def test_wait__ends_after_its_virtual_time(cluster: WorldCluster) -> None:
    before_ms = cluster.driver.now_ms()
    with pytest.raises(NotInTime, match=r"isr\(orders-0\) = 2"):
        cluster.wait_for("isr(orders-0) = 2", within="5m")
    assert cluster.driver.now_ms() == before_ms + 300_000
    with pytest.raises(ClusterError, match="nothing"):
        cluster.leader("nothing-0")


def test_a_run__is_judged_and_saved_as_one_in_virtual_time(
    cluster: WorldCluster, tmp_path: Path
) -> None:
    name = start_client(cluster, {"producer": {"topic": "orders", "rate": "20/s"}})
    undo = do(cluster, "isolate", nodes="leader(orders-0)")
    cluster.driver.advance(cluster.driver.now_us + 20_000_000, lambda: False)
    undo()
    cluster.driver.advance(cluster.driver.now_us + 20_000_000, lambda: False)
    stop_client(cluster, name)
    cluster.wait_until_settled()
    assert [one.is_running for one in clients_started(cluster)] == [False]
    verdict = cluster.verdict()
    assert verdict, verdict.lines()
    info = read_run(cluster.save(tmp_path))[0].info
    assert (info.clock, info.seed) == ("virtual", 1)


def test_steering__is_refused_in_one_line(cluster: WorldCluster) -> None:
    for steer in (cluster.pause_clock, cluster.step, lambda: cluster.set_speed(0.5)):
        with pytest.raises(ClusterError, match="the clock of virtual time cannot be"):
            steer()
    cluster.set_speed(1)
    status = cluster.resume_clock()
    assert (status.paused, status.speed) == (False, 1.0)


def test_close__ends_what_waits_and_refuses_the_rest(cluster: WorldCluster) -> None:
    future = cluster.driver.when(lambda: False)
    cluster.close()
    assert "stopped" in str(future.exception(0))
    with pytest.raises(ClusterError, match="is not running"):
        cluster.status()
