"""A rolling upgrade, as a client sees it: what each broker lists, before and after."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator

import pytest

from kcluster.config.topology.model import Topology
from kcluster.handle.cluster import Cluster
from kcluster.operations.errors import ClusterError
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.framing import decode_response_frame, encode_request_frame


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    topics = {"orders": {"replication_factor": 2}}
    topology = Topology.of(
        brokers=2, topics=topics, profile="fast", kafka_version="2.8", host="127.0.0.1"
    )
    with Cluster(topology, seed=1) as running:
        yield running


def listed(cluster: Cluster, broker_id: int) -> dict[int, tuple[int, int]]:
    """What a broker lists to a newly connected client."""
    frame = b"".join(encode_request_frame(ApiKey.API_VERSIONS, 0, 7, "t", m.ApiVersionsRequest()))
    with socket.create_connection(cluster.plan.addresses[broker_id], 5) as connection:
        connection.sendall(frame)
        (size,) = struct.unpack(">i", connection.recv(4, socket.MSG_WAITALL))
        answer = memoryview(bytearray(connection.recv(size, socket.MSG_WAITALL)))
    _, body = decode_response_frame(ApiKey.API_VERSIONS, 0, answer)
    return {api.api_key: (api.min_version, api.max_version) for api in body.api_keys}


def test_start__as_a_newer_release_changes_the_list_of_this_broker_only(cluster: Cluster) -> None:
    assert [listed(cluster, id_)[ApiKey.FETCH] for id_ in (1, 2)] == [(0, 12), (0, 12)]
    cluster.kill(1, "clean")
    cluster.start(1, kafka_version="3.9.1")
    assert [listed(cluster, id_)[ApiKey.FETCH] for id_ in (1, 2)] == [(0, 17), (0, 12)]
    assert [broker.kafka_version for broker in cluster.status().brokers] == ["3.9", "2.8"]
    cluster.kill(1)
    cluster.start(1)
    assert listed(cluster, 1)[ApiKey.FETCH] == (0, 17)


def test_start__as_an_unknown_release_is_refused_and_changes_nothing(cluster: Cluster) -> None:
    cluster.kill(2)
    with pytest.raises(ClusterError, match=r"kafka_version=2\.9: .* the nearest is 2\.8"):
        cluster.start(2, kafka_version="2.9")
    cluster.start(2)
    assert listed(cluster, 2)[ApiKey.FETCH] == (0, 12)
