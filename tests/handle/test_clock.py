"""The clock of a live cluster: pause, resume, step, slow motion, and what clients see of it."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

import pytest

from kcluster.config.topology.model import Topology
from kcluster.handle.cluster import Cluster
from kcluster.operations.errors import ClusterError
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.framing import encode_request_frame
from tests.rig.patience import PATIENCE_S

TOPICS = {"orders": {"partitions": 1, "replication_factor": 3, "assignment": [[1, 2, 3]]}}


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(Topology.of(brokers=3, topics=TOPICS, profile="fast")) as running:
        yield running


def let_machine_run(duration_ms: int) -> None:
    """Wait, by the machine's clock, as the clock of the cluster is what is tested."""
    until_s = time.monotonic() + duration_ms / 1000
    while time.monotonic() < until_s:
        pass


def asking(cluster: Cluster, broker: int = 1) -> socket.socket:
    """A client that has sent an ApiVersions request."""
    sock = socket.create_connection(cluster.plan.addresses[broker], timeout=PATIENCE_S)
    body = m.ApiVersionsRequest(client_software_name="test", client_software_version="1")
    sock.sendall(b"".join(encode_request_frame(ApiKey.API_VERSIONS, 3, 7, "shop", body)))
    return sock


def test_pause__time_stands_still_and_continues_where_it_stood(cluster: Cluster) -> None:
    paused = cluster.pause_clock()
    assert paused.paused
    assert cluster.clock() == paused
    assert cluster.status().at_ms == paused.now_ms
    resumed = cluster.resume_clock()
    assert not resumed.paused
    assert paused.now_ms <= resumed.now_ms < paused.now_ms + 20_000


def test_pause__a_client_is_answered_after_it(cluster: Cluster) -> None:
    served = asking(cluster)
    assert served.recv(4)
    cluster.pause_clock()
    late = asking(cluster)
    late.setblocking(False)
    before = cluster.call(lambda: len(cluster.driver.listeners[1][0].connections))
    with pytest.raises(BlockingIOError):
        late.recv(4)
    assert before == 1, "the second connection waits in the kernel"
    cluster.resume_clock()
    late.settimeout(PATIENCE_S)
    assert late.recv(4)
    served.close()
    late.close()


def test_pause__actions_take_effect_at_its_moment_and_their_consequences_wait(
    cluster: Cluster,
) -> None:
    at_ms = cluster.pause_clock().now_ms
    since = cluster.events()[-1].sequence
    assert cluster.kill(1) == (1,)
    down = cluster.events(since)
    assert [entry.kind for entry in down] == ["broker_down"]
    assert down[0].note.at_ms == at_ms
    assert cluster.leader("orders-0") == 1, "the controller has missed no heartbeat yet"
    with pytest.raises(ClusterError, match="and the clock is paused"):
        cluster.wait_for("leader(orders-0) = 2")
    cluster.resume_clock()
    cluster.wait_for("leader(orders-0) = 2")


def test_step__stops_in_the_moment_of_the_event(cluster: Cluster) -> None:
    cluster.pause_clock()
    cluster.kill(1)
    fenced = cluster.step("broker_fenced")
    assert fenced.kind == "broker_fenced"
    assert cluster.clock().paused
    assert cluster.clock().now_ms == fenced.note.at_ms
    cluster.pause(2)
    next_one = cluster.step("leader_elected of orders-0")
    assert next_one.note.at_ms > fenced.note.at_ms
    assert cluster.clock().now_ms == next_one.note.at_ms


def test_step__an_unknown_kind_is_refused_with_the_nearest(cluster: Cluster) -> None:
    with pytest.raises(ClusterError, match="did you mean leader_elected"):
        cluster.step("leader_electd")
    with pytest.raises(
        ClusterError, match=r"no event topic_created within .*; the clock is paused"
    ):
        cluster.step("topic_created", within_s=0.05)
    assert cluster.clock().paused


def test_speed__the_clock_is_slower_than_the_machines(cluster: Cluster) -> None:
    began_s, began_ms = time.monotonic(), cluster.set_speed(0.01).now_ms
    let_machine_run(50)
    took_ms, took_s = cluster.clock().now_ms - began_ms, time.monotonic() - began_s
    assert took_ms <= took_s * 1000 * 0.011 + 1
    assert cluster.set_speed(1).speed == 1
    for wrong in (0, 0.001, 2):
        with pytest.raises(ClusterError, match=r"must be from 0.01 to 1"):
            cluster.set_speed(wrong)


def test_speed__a_failover_takes_as_long_in_the_clusters_time(cluster: Cluster) -> None:
    cluster.set_speed(0.1)
    since = cluster.events()[-1].sequence
    cluster.kill(1)
    events = {entry.kind: entry.note.at_ms for entry in cluster.events(since)}
    session_ms = cluster.topology.broker_config(1).broker_session_timeout_ms
    assert events["broker_fenced"] - events["broker_down"] <= session_ms + 20


def test_pause__is_no_gap_in_the_verdict(cluster: Cluster) -> None:
    cluster.pause_clock()
    let_machine_run(20)
    cluster.resume_clock()
    verdict = cluster.verdict()
    assert (verdict.anomalies, verdict.violations) == ((), ())
    assert verdict.unavailable_ms("writes") == 0
