"""Brokers with several listeners: clients get the addresses of the listener by which they came."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from bench.wire import Wire
from kcluster.config.topology.model import Topology
from kcluster.handle.cluster import Cluster
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode

LISTENERS = {
    "INTERNAL": {"protocol": "PLAINTEXT"},
    "EXTERNAL": {"protocol": "PLAINTEXT", "advertised": "kafka.example"},
}


@pytest.fixture(scope="module")
def running() -> Iterator[Cluster]:
    topology = Topology.of(
        brokers=[{}, {}, {"listeners": {"INTERNAL": {"protocol": "PLAINTEXT"}}}],
        listeners=LISTENERS,
        topics={"orders": {"assignment": [[3, 1], [1, 2]]}},
        profile="fast",
    )
    with Cluster(topology) as cluster:
        yield cluster


def ask(cluster: Cluster, listener: int, api: ApiKey, version: int, body: Any) -> Any:
    """Ask broker 1 by one of its listeners."""
    port = cluster.driver.ports[1][listener].port
    with Wire(("127.0.0.1", port)) as wire:
        return wire.ask(api, version, body)


def addresses(cluster: Cluster, name: str) -> dict[int, tuple[str, int]]:
    """The addresses of one listener, by broker id."""
    return {
        broker_id: (endpoint.host, endpoint.port)
        for broker_id, endpoints in cluster.plan.endpoints.items()
        for endpoint in endpoints
        if endpoint.listener == name
    }


@pytest.mark.parametrize("at", [0, 1], ids=list(LISTENERS))
def test_listeners__clients_are_sent_to_the_one_they_know(running: Cluster, at: int) -> None:
    expected = addresses(running, list(LISTENERS)[at])
    metadata = ask(running, at, ApiKey.METADATA, 12, m.MetadataRequest(topics=None))
    described = ask(running, at, ApiKey.DESCRIBE_CLUSTER, 1, m.DescribeClusterRequest())
    assert {one.node_id: (one.host, one.port) for one in metadata.brokers} == expected
    assert {one.broker_id: (one.host, one.port) for one in described.brokers} == expected
    if at == 1:
        assert {host for host, _ in expected.values()} == {"kafka.example"}


@pytest.mark.parametrize(
    ("version", "error"), [(5, ErrorCode.LEADER_NOT_AVAILABLE), (6, ErrorCode.LISTENER_NOT_FOUND)]
)
def test_listeners__a_leader_without_the_clients_listener_is_an_error(
    running: Cluster, version: int, error: ErrorCode
) -> None:
    answer = ask(running, 1, ApiKey.METADATA, version, m.MetadataRequest(topics=None))
    (orders,) = (topic for topic in answer.topics if topic.name == "orders")
    by_index = {one.partition_index: one for one in orders.partitions}
    assert (by_index[0].error_code, by_index[0].leader_id) == (error, -1)
    assert (by_index[1].error_code, by_index[1].leader_id) == (ErrorCode.NONE, 1)
