"""The record of a live cluster: what a client over TCP asks, is answered, and is not answered."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from kcluster.config.topology.model import Topology
from kcluster.handle.cluster import Cluster
from kcluster.operations.errors import ClusterError
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.framing import encode_request_frame
from tests.rig.patience import PATIENCE_S

TOPICS = {"orders": {"partitions": 1, "replication_factor": 3, "assignment": [[1, 2, 3]]}}
FETCH_VERSION = 12


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(Topology.of(brokers=3, topics=TOPICS, profile="fast")) as running:
        yield running


def ask(sock: socket.socket, api: ApiKey, version: int, body: Any) -> None:
    sock.sendall(b"".join(encode_request_frame(api, version, 1, "reader", body)))


def answered(sock: socket.socket) -> int:
    """Read one response; its size."""
    size = int.from_bytes(sock.recv(4, socket.MSG_WAITALL), "big")
    return len(sock.recv(size, socket.MSG_WAITALL))


def metadata() -> Any:
    return m.MetadataRequest(topics=[m.MetadataRequest.MetadataRequestTopic(name="orders")])


def long_poll() -> Any:
    partition = m.FetchRequest.FetchPartition(partition=0, partition_max_bytes=1_000)
    topics = [m.FetchRequest.FetchTopic(topic="orders", partitions=[partition])]
    return m.FetchRequest(max_wait_ms=60_000, min_bytes=1, topics=topics)


def rows(cluster: Cluster, table: str) -> list[Any]:
    cluster.pause_clock()  # the present millisecond must not be over between the two
    found = [*cluster.recorded_since(-1)[0][table], *cluster.recorded_now()[table]]
    cluster.resume_clock()
    return found


def test_recorded_since__has_what_a_client_asked_and_believes(cluster: Cluster) -> None:
    with socket.create_connection(cluster.plan.addresses[2], timeout=PATIENCE_S) as sock:
        ask(sock, ApiKey.METADATA, 9, metadata())
        assert answered(sock) > 0
    (exchange,) = rows(cluster, "exchanges")
    assert (exchange.client, exchange.broker, exchange.api) == ("reader", 2, "Metadata")
    assert (exchange.topic, exchange.partition, exchange.leader) == ("orders", 0, 1)
    (belief,) = rows(cluster, "beliefs")
    assert (belief.client, belief.topic, belief.leader, belief.leader_epoch) == (
        "reader", "orders", 1, 0,
    )  # fmt: skip


def test_recorded_since__a_request_whose_broker_dies_has_no_answer(cluster: Cluster) -> None:
    with socket.create_connection(cluster.plan.addresses[1], timeout=PATIENCE_S) as sock:
        ask(sock, ApiKey.METADATA, 9, metadata())
        answered(sock)
        ask(sock, ApiKey.FETCH, FETCH_VERSION, long_poll())
        waits = cluster.call(
            lambda: cluster.driver.when(
                lambda: any(
                    x.awaits_reply for x in cluster.driver.listeners[1][0].connections.values()
                )
            )
        )
        waits.result(PATIENCE_S)
        cluster.kill(1)
    (fetch,) = [row for row in rows(cluster, "exchanges") if row.api == "Fetch"]
    assert (fetch.client, fetch.broker, fetch.topic) == ("reader", 1, "orders")
    assert fetch.answered_ms == -1
    assert fetch.at_ms >= fetch.asked_ms


def test_moment__of_a_live_cluster(cluster: Cluster) -> None:
    cluster.kill(1)
    died_ms = next(x.note.at_ms for x in cluster.events() if x.kind == "broker_down")
    now = cluster.moment(cluster.status().at_ms)
    assert [str(one.state) for one in cluster.moment(died_ms - 1).brokers] == ["up", "up", "up"]
    assert [str(one.state) for one in now.brokers] == ["down", "up", "up"]
    assert now.partitions[0].leader == cluster.leader("orders-0")
    with pytest.raises(ClusterError, match="there is no record of 0 ms"):
        cluster.moment(0)
