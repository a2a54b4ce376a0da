"""How connections end, over TCP and in memory: with a FIN, with a RST, or refused."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from kcluster.config.topology.model import Topology
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.framing import encode_request_frame
from tests.rig.byte_worlds import KINDS, ByteWorld
from tests.rig.lines import read_frame
from tests.rig.patience import PATIENCE_S
from tests.rig.requests import batch, fetch_partition, fetch_request, produce_request


@pytest.fixture(params=KINDS)
def world(request: pytest.FixtureRequest) -> Iterator[ByteWorld]:
    made = KINDS[request.param](Topology.of(brokers=1, topics={"orders": {}}))
    yield made
    made.finish()


def request_of(api_key: ApiKey, version: int, body: Any) -> bytes:
    return b"".join(encode_request_frame(api_key, version, 1, "test", body))


QUESTION = request_of(ApiKey.API_VERSIONS, 0, m.ApiVersionsRequest())
WAITING = request_of(
    ApiKey.FETCH, 11, fetch_request("orders", fetch_partition(), max_wait_ms=60_000)
)
LARGE = request_of(ApiKey.PRODUCE, 11, produce_request("orders", 0, batch(bytes(900_000))))


def until_connected(world: ByteWorld, count: int) -> None:
    cluster: Any = world.cluster
    cluster.wait_until(
        lambda: len(world.listener().connections) == count, PATIENCE_S, f"{count} connections"
    )


def test_kill__ends_a_connection_with_a_fin(world: ByteWorld) -> None:
    with world.connect() as idle, world.connect() as waiting:
        waiting.sendall(WAITING)
        idle.sendall(QUESTION)
        read_frame(idle)
        world.cluster.kill(1, wait=False)
        assert idle.recv(1) == b""
        assert waiting.recv(1) == b""
        with pytest.raises(ConnectionRefusedError):
            world.connect()


def test_kill__resets_connections_with_unread_requests_and_those_not_accepted(
    world: ByteWorld,
) -> None:
    with world.connect() as asking:
        asking.sendall(QUESTION)
        read_frame(asking)
        world.cluster.pause(1, wait=False)
        # However much of a frame is read at once: the next one stays unread.
        asking.sendall(LARGE + QUESTION)
        with world.connect() as not_accepted:
            world.cluster.kill(1, wait=False)
            for sock in (asking, not_accepted):
                with pytest.raises(ConnectionResetError):
                    sock.recv(1)
                assert sock.recv(1) == b""


def test_a_half_closed_client__loses_the_answer_that_it_still_waits_for(world: ByteWorld) -> None:
    with world.connect() as sock:
        sock.sendall(WAITING)
        until_connected(world, 1)
        sock.shutdown(socket.SHUT_WR)
        assert sock.recv(1) == b""
    until_connected(world, 0)


def test_a_client_that_closes__with_an_unread_answer_is_forgotten(world: ByteWorld) -> None:
    sock = world.connect()
    sock.sendall(QUESTION * 3)
    read_frame(sock)
    sock.close()
    until_connected(world, 0)
    assert world.lines == []


def test_an_idle_broker__sees_a_reset_and_says_nothing(world: ByteWorld) -> None:
    sock = world.connect()
    sock.sendall(QUESTION)
    read_frame(sock)
    until_connected(world, 1)
    sock.reset()
    until_connected(world, 0)
    assert world.lines == []
