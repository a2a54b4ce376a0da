"""What a listener withstands, on real sockets and in memory: hostile, slow and many clients.

One cluster of each kind for most tests here; after each, a well-behaved client must still be
served.
"""

from __future__ import annotations

import random
import socket
import struct
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kcluster.config.topology.model import Topology
from kcluster.drivers.sockets.acceptor import ReservedPort
from kcluster.drivers.sockets.connection import READ_AHEAD_BYTES
from kcluster.drivers.sockets.listener import Limits, Listener
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.framing import decode_response_frame, encode_request_frame
from tests.rig.byte_worlds import KINDS, ByteWorld
from tests.rig.lines import read_frame
from tests.rig.patience import PATIENCE_S
from tests.rig.requests import batch, fetch_partition, fetch_request, produce_request

MAX_REQUEST_BYTES = 4 << 20


class Served:
    """A one-broker cluster and the ways to talk to its broker."""

    def __init__(self, world: ByteWorld) -> None:
        self.world = world
        self.cluster: Any = world.cluster
        self.lines = world.lines
        self.address = self.cluster.plan.addresses[1]

    @property
    def listener(self) -> Listener:
        return self.world.listener()

    def connect(self) -> Any:
        return self.world.connect()

    def send(self, data: bytes) -> bytes:
        """Send bytes without a half-close; return everything until the broker closes."""
        with self.connect() as sock:
            sock.sendall(data)
            return read_to_end(sock)

    def until(self, condition: Callable[[], bool], what: str) -> None:
        self.cluster.wait_until(condition, PATIENCE_S, what)

    def logged(self, words: str) -> bool:
        return any(words in line for line in self.lines)


def frame(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


def api_versions(correlation_id: int = 1, version: int = 0) -> bytes:
    body = m.ApiVersionsRequest(client_software_name="test", client_software_version="1")
    return b"".join(
        encode_request_frame(ApiKey.API_VERSIONS, version, correlation_id, "test", body)
    )


def fetch(max_wait_ms: int, correlation_id: int = 1, max_bytes: int = 50 << 20) -> bytes:
    partition = fetch_partition(partition_max_bytes=max_bytes)
    body = fetch_request("orders", partition, max_wait_ms=max_wait_ms, max_bytes=max_bytes)
    return b"".join(encode_request_frame(ApiKey.FETCH, 11, correlation_id, "test", body))


def produce(size_bytes: int, correlation_id: int = 1) -> bytes:
    body = produce_request("orders", 0, batch(bytes(size_bytes)))
    return b"".join(encode_request_frame(ApiKey.PRODUCE, 11, correlation_id, "test", body))


def read_to_end(sock: Any) -> bytes:
    data = b""
    try:
        while chunk := sock.recv(65536):
            data += chunk
    except ConnectionResetError:
        pass
    return data


def correlation_ids(answers: bytes) -> list[int]:
    found = []
    while answers:
        size, correlation_id = struct.unpack_from(">ii", answers)
        found.append(correlation_id)
        answers = answers[4 + size :]
    return found


@pytest.fixture(scope="module", params=KINDS)
def running(request: pytest.FixtureRequest) -> Iterator[Served]:
    config = {
        "socket.request.max.bytes": str(MAX_REQUEST_BYTES),
        "message.max.bytes": str(MAX_REQUEST_BYTES),
    }
    topology = Topology.of(brokers=1, topics={"orders": {}}, config=config)
    world = KINDS[request.param](topology)
    yield Served(world)
    world.finish()


@pytest.fixture
def served(running: Served) -> Iterator[Served]:
    running.lines.clear()
    yield running
    with running.connect() as sock:
        sock.sendall(api_versions(42))
        assert decode_response_frame(ApiKey.API_VERSIONS, 0, read_frame(sock))[0] == 42
    running.until(lambda: len(running.listener.connections) <= 1, "connections left open")
    assert not running.cluster.driver.bugs


# ------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (struct.pack(">i", -5), "frame of -5 bytes"),
        (struct.pack(">i", MAX_REQUEST_BYTES + 1), f"limit {MAX_REQUEST_BYTES}"),
        (frame(b""), "0 bytes has no header"),
        (frame(b"\0\x12"), "2 bytes has no header"),
        (frame(struct.pack(">hhih", 999, 0, 7, -1)), "API key 999 is not served"),
        (frame(struct.pack(">hhih", 0, 99, 7, -1)), "PRODUCE version 99 is not served"),
        (frame(struct.pack(">hhih", 56, 3, 7, -1)), "API key 56 is not served"),
        (frame(struct.pack(">hhih", 3, 4, 7, 200) + b"xx"), "client_id"),
        (frame(struct.pack(">hhih", 18, 99, 7, -1) + b"zzz"), "tag"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "frame of"),
    ],
)
def test_listener__a_malformed_request_closes_the_connection_with_one_line(
    served: Served, data: bytes, reason: str
) -> None:
    assert served.send(data) == b""
    assert len(served.lines) == 1
    assert reason in served.lines[0]


def test_listener__requests_before_the_bad_one_are_answered(served: Served) -> None:
    answers = served.send(api_versions(1) + api_versions(2) + frame(b"bad"))
    assert correlation_ids(answers) == [1, 2]


def test_listener__a_too_new_api_versions_request_gets_the_served_versions(served: Served) -> None:
    # As 4.4.0 answers it: error 35, API 18 from 0 to 5, in the form of version 0.
    with served.connect() as sock:
        sock.sendall(frame(struct.pack(">hhih", 18, 99, 7, -1) + b"\0"))
        assert read_frame(sock).hex() == "00000007002300000001001200000005"


def test_listener__random_bytes_only_close_their_own_connection(served: Served) -> None:
    rng = random.Random(1)
    good = [api_versions(1), fetch(0), produce(100)]
    with served.connect() as bystander:
        for _ in range(150):
            data = bytearray(rng.choice(good))
            for _ in range(rng.randrange(1, 8)):
                data[rng.randrange(4, len(data))] = rng.randrange(256)
            with served.connect() as sock:
                sock.sendall(data + rng.randbytes(rng.randrange(200)))
                sock.shutdown(socket.SHUT_WR)
                read_to_end(sock)
        bystander.sendall(api_versions(5))
        assert correlation_ids(frame(read_frame(bystander))) == [5]


# ---------------------------------------------------------------------------- slow and hostile


def test_listener__accepts_a_request_byte_by_byte(served: Served) -> None:
    with served.connect() as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in api_versions(3):
            sock.sendall(bytes([byte]))
        assert correlation_ids(frame(read_frame(sock))) == [3]


def test_listener__allocates_no_memory_for_a_claimed_size(served: Served) -> None:
    with served.connect() as sock:
        sock.sendall(struct.pack(">i", MAX_REQUEST_BYTES) + bytes(10))
        served.until(
            lambda: any(c._ahead_bytes == 14 for c in served.listener.connections.values()),
            "bytes not read",
        )
        (connection,) = served.listener.connections.values()
        assert len(connection._reader._frame or b"") <= 1 << 20


def test_listener__a_client_may_disconnect_inside_a_frame_or_a_wait(served: Served) -> None:
    with served.connect() as sock:
        sock.sendall(produce(1000)[:500])
    with served.connect() as sock:
        sock.sendall(fetch(60_000))
        served.until(
            lambda: any(c.awaits_reply for c in served.listener.connections.values()), "no wait"
        )
    with served.connect() as sock:
        sock.sendall(api_versions())
        sock.reset()
    served.until(lambda: not served.listener.connections, "connections left open")
    assert served.lines == []


def test_listener__answers_keep_the_order_while_one_request_waits(served: Served) -> None:
    with served.connect() as sock:
        sock.sendall(api_versions(1) + fetch(100, 2) + api_versions(3) + api_versions(4))
        ids = [struct.unpack_from(">i", read_frame(sock))[0] for _ in range(4)]
        assert ids == [1, 2, 3, 4]


def test_listener__reads_at_most_the_read_ahead_while_a_request_waits(served: Served) -> None:
    with served.connect() as sock:
        sock.sendall(fetch(400, 1))
        rest = api_versions(2) * 1_500_000
        sent = sock.send_what_fits(rest, 1 << 20)
        (connection,) = served.listener.connections.values()
        assert connection._ahead_bytes <= 2 * READ_AHEAD_BYTES
        assert sent < len(rest)


def test_listener__a_client_that_does_not_read_blocks_only_itself(served: Served) -> None:
    size_bytes = 1_000_000
    with served.connect() as sock:
        for _ in range(8):
            sock.sendall(produce(size_bytes))
            read_frame(sock)
    with served.connect() as greedy:
        greedy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 14)
        count = 40
        greedy.sendall(b"".join(fetch(0, at) for at in range(count)))
        with served.connect() as other:
            other.sendall(api_versions(9))
            assert correlation_ids(frame(read_frame(other))) == [9]
        unsent = max(c._unsent_bytes for c in served.listener.connections.values())
        assert unsent < 12 * size_bytes, "the socket buffers hold one answer, not forty"
        ids = [struct.unpack_from(">i", read_frame(greedy))[0] for _ in range(count)]
        assert ids == list(range(count))


# -------------------------------------------------------------------------------- many


def test_listener__many_connections_at_once_are_all_served(served: Served) -> None:
    socks = [served.connect() for _ in range(300)]
    for at, sock in enumerate(socks):
        sock.sendall(api_versions(at))
    for at, sock in enumerate(socks):
        assert correlation_ids(frame(read_frame(sock))) == [at]
        sock.close()


@pytest.fixture(params=KINDS)
def limited(request: pytest.FixtureRequest) -> Iterator[Callable[..., Served]]:
    opened: list[ByteWorld] = []

    def make(**limits: int) -> Served:
        config = {name.replace("_", "."): str(value) for name, value in limits.items()}
        opened.append(KINDS[request.param](Topology.of(brokers=1, config=config)))
        return Served(opened[-1])

    yield make
    for world in opened:
        world.finish()


def test_limits__beyond_max_connections_a_client_waits_for_a_free_slot(
    limited: Callable[..., Served],
) -> None:
    served = limited(max_connections=2)
    with served.connect() as first, served.connect() as second, served.connect() as third:
        for sock in (first, second, third):
            sock.sendall(api_versions(1))
        read_frame(first)
        read_frame(second)
        third.settimeout(0.1)
        with pytest.raises(TimeoutError):
            third.recv(1)
        third.settimeout(PATIENCE_S)
        first.close()
        read_frame(third)


def test_limits__connections_beyond_max_per_ip_are_closed(limited: Callable[..., Served]) -> None:
    served = limited(max_connections_per_ip=1)
    with served.connect() as first:
        first.sendall(api_versions(1))
        read_frame(first)
        assert served.send(b"") == b""
        assert served.logged("too many connections")


def test_limits__a_connection_idle_for_too_long_is_closed(limited: Callable[..., Served]) -> None:
    served = limited(connections_max_idle_ms=100)
    assert served.send(api_versions(1)) != b""


def test_kill__the_port_refuses_and_stays_reserved_until_the_broker_is_back(
    limited: Callable[..., Served],
) -> None:
    served = limited(broker_session_timeout_ms=200, broker_heartbeat_interval_ms=50)
    with served.connect() as sock:
        served.cluster.kill(1, wait=False)
        assert read_to_end(sock) == b""
    with pytest.raises(ConnectionRefusedError):
        served.connect()
    if served.world.clock == "live":
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind(served.address)
    served.cluster.start(1)
    with served.connect() as sock:
        sock.sendall(api_versions(1))
        read_frame(sock)


def test_pause__sockets_stay_open_and_are_served_after_resume(
    limited: Callable[..., Served],
) -> None:
    served = limited()
    with served.connect() as old:
        old.sendall(api_versions(1))
        read_frame(old)
        served.cluster.pause(1, wait=False)
        with served.connect() as new:
            for sock in (old, new):
                sock.sendall(api_versions(2))
                sock.settimeout(0.1)
                with pytest.raises(TimeoutError):
                    sock.recv(1)
                sock.settimeout(PATIENCE_S)
            served.cluster.resume(1)
            for sock in (old, new):
                read_frame(sock)


def test_limits__are_kafkas_defaults() -> None:
    limits = Limits()
    assert (limits.request_max_bytes, limits.max_idle_ms) == (104_857_600, 600_000)


def test_reserved_port__no_other_process_can_listen_while_the_broker_is_down() -> None:
    ours = ReservedPort("127.0.0.1", 0)
    try:
        for _ in range(2):  # before its first start, and between two
            with socket.socket() as other:
                other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                with pytest.raises(OSError, match="Address already in use"):
                    other.bind(("127.0.0.1", ours.port))
            bound = ours.bind()
            ours.listen(bound)
            bound.close()
    finally:
        ours.release()


def test_reserved_port__two_clusters_do_not_reserve_the_same() -> None:
    ours = ReservedPort("127.0.0.1", 0)
    try:
        with pytest.raises(OSError, match="Address already in use"):
            ReservedPort("127.0.0.1", ours.port)
    finally:
        ours.release()
