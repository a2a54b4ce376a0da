"""Limits of a listener that change while it listens: max.connections, max.connections.per.ip."""

from __future__ import annotations

import socket
import struct
from typing import Any

from kcluster.config.topology.model import Topology
from kcluster.handle.cluster import Cluster
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.framing import decode_response_frame, encode_request_frame

REQUEST = m.IncrementalAlterConfigsRequest
BROKER = 4


def send(sock: socket.socket, api_key: ApiKey, version: int, body: Any) -> None:
    sock.sendall(b"".join(encode_request_frame(api_key, version, 7, "test", body)))


def receive(sock: socket.socket, api_key: ApiKey, version: int) -> Any:
    with sock.makefile("rb") as stream:
        (size,) = struct.unpack(">i", stream.read(4))
        return decode_response_frame(api_key, version, stream.read(size))[1]


def alter(sock: socket.socket, name: str, value: str) -> None:
    """Broker 1 is to take this config."""
    config = REQUEST.AlterableConfig(name=name, value=value)
    resource = REQUEST.AlterConfigsResource(BROKER, "1", [config])
    send(sock, ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, REQUEST(resources=[resource]))
    answer = receive(sock, ApiKey.INCREMENTAL_ALTER_CONFIGS, 1)
    assert not answer.responses[0].error_code, answer


def is_served(sock: socket.socket) -> bool:
    send(sock, ApiKey.API_VERSIONS, 0, m.ApiVersionsRequest())
    try:
        return bool(receive(sock, ApiKey.API_VERSIONS, 0).api_keys)
    except (ConnectionError, struct.error):
        return False


def test_dynamic_limits__a_changed_max_connections_applies_at_once() -> None:
    with Cluster(Topology.of(brokers=1, config={"max.connections": "1"})) as cluster:
        address = cluster.plan.addresses[1]
        with (
            socket.create_connection(address, 5) as first,
            socket.create_connection(address, 5) as second,
        ):
            assert is_served(first)
            alter(first, "max.connections", "2")
            assert is_served(second)  # it has waited


def test_dynamic_limits__a_changed_max_connections_per_ip_applies_at_once() -> None:
    with Cluster(Topology.of(brokers=1)) as cluster:
        address = cluster.plan.addresses[1]
        with socket.create_connection(address, 5) as first:
            alter(first, "max.connections.per.ip", "1")
            with socket.create_connection(address, 5) as second:
                assert not is_served(second)
            alter(first, "max.connections.per.ip", "2")
            with socket.create_connection(address, 5) as third:
                assert is_served(third)
