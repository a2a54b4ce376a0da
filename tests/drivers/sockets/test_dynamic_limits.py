"""Limits of a listener that change while it listens: max.connections, max.connections.per.ip."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kcluster.config.topology.model import Topology
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.framing import decode_response_frame, encode_request_frame
from tests.rig.byte_worlds import KINDS, ByteWorld
from tests.rig.lines import read_frame

REQUEST = m.IncrementalAlterConfigsRequest
BROKER = 4


def send(sock: Any, api_key: ApiKey, version: int, body: Any) -> None:
    sock.sendall(b"".join(encode_request_frame(api_key, version, 7, "test", body)))


def receive(sock: Any, api_key: ApiKey, version: int) -> Any:
    return decode_response_frame(api_key, version, read_frame(sock))[1]


def alter(sock: Any, name: str, value: str) -> None:
    """Broker 1 is to take this config."""
    config = REQUEST.AlterableConfig(name=name, value=value)
    resource = REQUEST.AlterConfigsResource(BROKER, "1", [config])
    send(sock, ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, REQUEST(resources=[resource]))
    answer = receive(sock, ApiKey.INCREMENTAL_ALTER_CONFIGS, 1)
    assert not answer.responses[0].error_code, answer


def is_served(sock: Any) -> bool:
    send(sock, ApiKey.API_VERSIONS, 0, m.ApiVersionsRequest())
    try:
        return bool(receive(sock, ApiKey.API_VERSIONS, 0).api_keys)
    except (ConnectionError, AssertionError):
        return False


@pytest.fixture(params=KINDS)
def make_world(request: pytest.FixtureRequest) -> Iterator[Callable[..., ByteWorld]]:
    made: list[ByteWorld] = []

    def make(**config: str) -> ByteWorld:
        made.append(KINDS[request.param](Topology.of(brokers=1, config=config)))
        return made[-1]

    yield make
    for world in made:
        world.finish()


def test_dynamic_limits__a_changed_max_connections_applies_at_once(
    make_world: Callable[..., ByteWorld],
) -> None:
    world = make_world(**{"max.connections": "1"})
    with world.connect() as first, world.connect() as second:
        assert is_served(first)
        alter(first, "max.connections", "2")
        assert is_served(second)  # it has waited


def test_dynamic_limits__a_changed_max_connections_per_ip_applies_at_once(
    make_world: Callable[..., ByteWorld],
) -> None:
    world = make_world()
    with world.connect() as first:
        alter(first, "max.connections.per.ip", "1")
        with world.connect() as second:
            assert not is_served(second)
        alter(first, "max.connections.per.ip", "2")
        with world.connect() as third:
            assert is_served(third)
