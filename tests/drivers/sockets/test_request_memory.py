"""What unfinished requests may take together: whoever sends much waits, and not for ever."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kcluster.config.topology.model import Topology
from kcluster.drivers.sockets.request_memory import DEFAULT_BYTES, STALL_MS, RequestMemory
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.framing import encode_request_frame
from tests.rig.byte_worlds import KINDS, ByteWorld, MemoryBytes
from tests.rig.patience import PATIENCE_S

LIMIT_BYTES = 1 << 20
BIG = b"".join(
    encode_request_frame(
        ApiKey.FIND_COORDINATOR,
        4,
        7,
        "big",
        m.FindCoordinatorRequest(coordinator_keys=["g" * 30_000] * 30),
    )
)
"""A request of 900 KB that is answered at once."""
PING = b"".join(encode_request_frame(ApiKey.API_VERSIONS, 0, 1, "small", m.ApiVersionsRequest()))


@pytest.fixture(params=KINDS)
def world(request: pytest.FixtureRequest) -> Iterator[ByteWorld]:
    config = {"queued.max.request.bytes": LIMIT_BYTES}
    world = KINDS[request.param](Topology.of(brokers=1, config=config))
    yield world
    world.finish()


def half(sock: Any, size_bytes: int) -> None:
    """Announce a large request and send this much of it."""
    sock.sendall(struct.pack(">i", 50 << 20) + bytes(size_bytes))


def until(world: ByteWorld, condition: Callable[[], bool]) -> None:
    cluster: Any = world.cluster
    cluster.wait_until(condition, PATIENCE_S, "memory")


def pings(world: ByteWorld) -> None:
    with world.connect() as sock:
        sock.sendall(PING)
        assert sock.recv(8)[4:] == b"\0\0\0\1"


def test_memory__a_small_request_is_served_while_large_ones_have_taken_it(world: ByteWorld) -> None:
    memory = world.listener().memory
    with world.connect() as first, world.connect() as second:
        for sock in (first, second):
            half(sock, 600_000)
        until(world, lambda: memory.is_exhausted)
        pings(world)
    until(world, lambda: memory.held_bytes == 0)
    assert not memory.is_exhausted


def test_memory__large_requests_are_served_one_after_the_other(world: ByteWorld) -> None:
    memory = world.listener().memory
    socks = [world.connect() for _ in range(4)]
    for sock in socks:
        sock.sendall(BIG[:600_000])
    until(world, lambda: memory.is_exhausted)
    for sock in reversed(socks):  # who came first ends last
        sock.sendall(BIG[600_000:])
    for sock in socks:
        assert sock.recv(8)[4:] == b"\0\0\0\7"
        sock.close()
    until(world, lambda: memory.held_bytes == 0)


def test_memory__a_request_larger_than_all_of_it_is_served() -> None:
    config = {"queued.max.request.bytes": 1_000}
    world = MemoryBytes(Topology.of(brokers=1, config=config))
    with world.connect() as sock:
        sock.sendall(BIG)
        assert sock.recv(8)[4:] == b"\0\0\0\7"


def test_memory__who_stalls_all_others_is_closed() -> None:
    config = {"queued.max.request.bytes": 500_000}
    world = MemoryBytes(Topology.of(brokers=1, config=config))
    driver = world.cluster.driver
    with world.connect() as staller, world.connect(timeout_s=60) as honest:
        half(staller, 600_000)
        until(world, lambda: world.listener().memory.is_exhausted)
        honest.sendall(BIG[:500_000])
        honest.sendall(BIG[500_000:])
        driver.advance(driver.now_us + STALL_MS * 500, lambda: False)
        assert not honest.end.is_readable
        assert honest.recv(8)[4:] == b"\0\0\0\7"
    assert any("others wait for its memory" in line for line in world.lines)


class Nobody:
    """Somebody who reads."""

    def __init__(self) -> None:
        self.calls = 0

    def read_on(self) -> None:
        self.calls += 1


@pytest.mark.parametrize(("limit_bytes", "held_bytes"), [(-1, DEFAULT_BYTES), (10, 10)])
def test_memory__is_exhausted_at_its_limit(limit_bytes: int, held_bytes: int) -> None:
    memory, reader = RequestMemory(limit_bytes), Nobody()
    memory.count(reader, held_bytes - 1, is_done=False)
    assert not memory.is_exhausted
    memory.count(reader, 1, is_done=False)
    assert memory.is_exhausted


def test_memory__the_first_reads_on_and_then_the_next() -> None:
    memory, first, second = RequestMemory(10), Nobody(), Nobody()
    for reader in (first, second):
        memory.count(reader, 10, is_done=False)
    assert memory.may_read(first)
    assert not memory.may_read(second)
    memory.count(first, -10, is_done=True)
    assert second.calls == 1
    assert memory.may_read(second)
    memory.count(second, -10, is_done=True)
    assert memory.first is None
