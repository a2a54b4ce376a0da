"""What clients and brokers may do to a proxy: nothing of it ends it, or costs it much memory."""

from __future__ import annotations

import random
import re
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.framing import (
    decode_response_frame,
    encode_request_frame,
    encode_response_frame,
)
from kcluster.proxy.proxy import KafkaProxy, ProxySettings
from kcluster.proxy.running import ProxyStopped, RunningProxy
from kcluster.proxy.streams import MAX_UNSENT_BYTES
from kcluster.proxy.upstream import UpstreamError
from tests.rig.patience import PATIENCE_S
from tests.rig.proxied import PlainClient, Proxied, proxy_before

SILENCE_S = 0.2
VERSIONS = m.ApiVersionsRequest(client_software_name="test", client_software_version="1")


def works(three: Proxied) -> bool:
    with three.client() as client:
        return bool(client.ask(m.MetadataRequest(topics=None)).brokers)


def open_connections(three: Proxied) -> int:
    return three.running.call(lambda proxy: len(proxy.connections))


GARBAGE = {
    "half a length": b"\0\0",
    "half a frame": struct.pack(">ihhi", 500, 3, 9, 1),
    "a frame of 2 GB": struct.pack(">i", 2**31 - 1),
    "a length below zero": struct.pack(">i", -5),
    "an empty frame": struct.pack(">i", 0),
    "a header that ends": struct.pack(">ihhi", 8, 3, 9, 1),
    "an API that nobody knows": struct.pack(">ihhih", 10, 999, 0, 1, -1),
    "a version that nobody knows": struct.pack(">ihhihb", 11, 3, 99, 1, -1, 0),
    "http": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "tls": bytes.fromhex("16030100c8010000c4030300000000000000000000"),
}


@pytest.mark.parametrize("name", GARBAGE)
def test_connection__garbage_ends_its_own_connection_at_most(three: Proxied, name: str) -> None:
    with three.client() as client:
        client.socket.sendall(GARBAGE[name])
        client.socket.shutdown(socket.SHUT_WR)
        client.is_closed()
    assert works(three)


def test_connection__random_bytes_end_their_own_connection_at_most(three: Proxied) -> None:
    rng = random.Random(7)
    for _ in range(40):
        with three.client() as client:
            body = rng.randbytes(rng.randrange(60))
            head = struct.pack(">hhih", rng.randrange(80), rng.randrange(12), 1, -1)
            client.socket.sendall(struct.pack(">i", len(head + body)) + head + body)
            client.socket.shutdown(socket.SHUT_WR)
            while not client.is_closed():
                pass
    assert works(three)


def test_connection__an_announced_frame_costs_no_memory_before_it_comes(three: Proxied) -> None:
    clients = [three.client() for _ in range(50)]
    for client in clients:
        client.socket.sendall(struct.pack(">i", 90 << 20) + b"x")
    assert works(three)
    for client in clients:
        client.socket.close()


def test_connection__a_client_that_leaves_takes_its_upstream_with_it(three: Proxied) -> None:
    with three.client() as client:
        client.ask(VERSIONS)
        number = max(three.running.call(lambda proxy: list(proxy.connections)))
    while number in three.running.call(lambda proxy: list(proxy.connections)):
        pass
    assert works(three)


def test_connection__a_client_that_does_not_read_stops_being_read(three: Proxied) -> None:
    """Each answer is larger than its request, so they fill whatever lies between."""
    request = b"".join(encode_request_frame(18, 3, 1, "deaf", VERSIONS)) * 1_000
    with three.client() as deaf:
        deaf.socket.settimeout(SILENCE_S)
        with pytest.raises(TimeoutError):
            deaf.socket.sendall(request * 1_000)
        held = three.running.call(lambda proxy: [x.held_bytes for x in proxy.connections.values()])
        assert max(held) < 2 * MAX_UNSENT_BYTES
        assert works(three)


def test_connection__many_connections_at_once(three: Proxied) -> None:
    clients = [three.client(client_id=f"c{number}") for number in range(300)]
    sent = [client.send(VERSIONS) for client in clients]
    answers = [c.receive(each) for c, each in zip(clients, sent, strict=True)]
    assert all(answer.error_code == 0 for answer in answers)
    for client in clients:
        client.socket.close()


def test_connection__an_api_versions_request_from_the_future_is_answered_in_version_0(
    three: Proxied,
) -> None:
    with three.client() as client:
        frame = struct.pack(">hhih", 18, 900, 7, -1) + b"\0" + b"what comes then"
        client.socket.sendall(struct.pack(">i", len(frame)) + frame)
        number, answer = decode_response_frame(ApiKey.API_VERSIONS, 0, client.frame())
        assert (number, answer.error_code) == (7, 35)
        assert answer.api_keys


def test_connection__an_api_versions_request_below_version_0_is_answered_in_version_0(
    three: Proxied,
) -> None:
    with three.client() as client:
        frame = struct.pack(">hhih", 18, -1, 7, -1)
        client.socket.sendall(struct.pack(">i", len(frame)) + frame)
        number, answer = decode_response_frame(ApiKey.API_VERSIONS, 0, client.frame())
        assert (number, answer.error_code) == (7, 35)


def test_connection__a_client_id_that_is_not_utf_8_is_for_the_broker_to_judge() -> None:
    """Apache Kafka answers, and reads a replacement character; a simulated broker closes."""
    answer_bytes = b"".join(encode_response_frame(12, 0, 7, m.HeartbeatResponse()))
    with (
        answering(answer_bytes) as (bootstrap, got),
        proxy_before(bootstrap) as found,
        found.client(1) as client,
    ):
        frame = struct.pack(">hhih", 12, 0, 7, 2) + b"a\xff" + bytes(10)
        client.socket.sendall(struct.pack(">i", len(frame)) + frame)
        number, answer = decode_response_frame(12, 0, client.frame())
    assert (number, answer.error_code) == (7, 0)
    assert any(b"a\xff" in each for each in got)


# ---------------------------------------------------------------------- brokers that misbehave


@contextmanager
def answering(answer: bytes) -> Iterator[tuple[str, list[bytes]]]:
    """A broker that answers everything with these bytes, after Metadata."""
    server = socket.create_server(("127.0.0.1", 0))
    host, port = server.getsockname()
    got: list[bytes] = []

    def serve() -> None:
        while True:
            try:
                sock, _ = server.accept()
            except OSError:
                return
            sock.settimeout(PATIENCE_S)
            with sock:
                data = sock.recv(1 << 16)
                got.append(data)
                if data[4:6] == b"\0\3":  # the proxy's Metadata
                    body = m.MetadataResponse(
                        brokers=[m.MetadataResponse.MetadataResponseBroker(1, host, port)]
                    )
                    sock.sendall(b"".join(encode_response_frame(3, 1, 1, body)))
                else:
                    sock.sendall(answer)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"{host}:{port}", got
    finally:
        server.shutdown(socket.SHUT_RDWR)
        server.close()
        thread.join(PATIENCE_S)


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"\0\0",
        struct.pack(">i", -1),
        struct.pack(">ii", 4, 99),
        struct.pack(">ii", 4, 1),
        struct.pack(">ii", 4, 1) * 2,
        struct.pack(">iib", 5, 1, 127),
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
    ],
)
def test_connection__a_broker_that_answers_nonsense_ends_one_connection(answer: bytes) -> None:
    with answering(answer) as (bootstrap, got), proxy_before(bootstrap) as found:
        for _ in range(2):
            with found.client(1) as client:
                client.send(VERSIONS)
                while not client.is_closed():
                    pass
        assert len(got) == 3


NOT_KAFKAS = {
    "its bytes are HTTP": b"HTTP/1.1 400 Bad Request\r\n\r\n",
    "its bytes are TLS": bytes.fromhex("15030300020246"),
    "a frame of -5 bytes": struct.pack(">i", -5),
}


@pytest.mark.parametrize("problem", NOT_KAFKAS)
def test_upstream__an_answer_to_the_proxy_that_is_not_kafkas_is_named(problem: str) -> None:
    def ask(proxy: KafkaProxy) -> None:
        with proxy.upstream.open() as own:
            own.ask(m.ListGroupsRequest())

    with (
        answering(NOT_KAFKAS[problem]) as (bootstrap, _),
        proxy_before(bootstrap) as found,
        pytest.raises(UpstreamError, match=f"the answer is not Kafka's: {problem}"),
    ):
        found.running.call(ask)


# --------------------------------------------------------------------------- a changing cluster


@contextmanager
def naming(places: dict[int, tuple[str, int]]) -> Iterator[tuple[str, int]]:
    """A broker that answers each request as a Metadata v1, with the brokers of the moment."""
    server = socket.create_server(("127.0.0.1", 0))

    def answer(sock: socket.socket) -> None:
        with sock, suppress(ConnectionError):
            while request := sock.recv(1 << 16):
                (number,) = struct.unpack_from(">i", request, 8)
                brokers = [
                    m.MetadataResponse.MetadataResponseBroker(key, *place)
                    for key, place in places.items()
                ]
                body = m.MetadataResponse(brokers=brokers)
                sock.sendall(b"".join(encode_response_frame(3, 1, number, body)))

    def serve() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=answer, args=(server.accept()[0],), daemon=True).start()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield server.getsockname()
    finally:
        server.shutdown(socket.SHUT_RDWR)
        server.close()
        thread.join(PATIENCE_S)


def test_connection__brokers_come_move_and_go() -> None:
    """A broker keeps its port of the proxy for good, wherever it is in the cluster."""
    places: dict[int, tuple[str, int]] = {}
    asked = m.MetadataRequest(topics=None)
    with naming(places) as first, naming(places) as second:
        places[1] = first
        with proxy_before(f"{first[0]}:{first[1]}") as found, found.client() as client:
            assert [x.node_id for x in client.ask(asked, 1).brokers] == [1]
            places[2] = second
            assert {x.node_id: x.port for x in client.ask(asked, 1).brokers} == {
                1: found.broker(1)[1],
                2: found.broker(2)[1],
            }
            before = found.broker(2)
            server = socket.create_server(("127.0.0.1", 0))
            places[2] = server.getsockname()
            client.ask(asked, 1)
            assert found.broker(2) == before
            with found.client(2), server:
                server.settimeout(PATIENCE_S)
                server.accept()[0].close()  # the client of port 2 comes to the new place
            del places[2]
            assert [x.node_id for x in client.ask(asked, 1).brokers] == [1]
            with found.client(2) as late:
                assert late.is_closed()


# ------------------------------------------------------------------------------ start and end


def test_running__a_cluster_that_is_not_there_is_a_clear_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        place = server.getsockname()
    with pytest.raises(UpstreamError, match=f"127.0.0.1:{place[1]}: Connection refused"):
        RunningProxy(ProxySettings((place,), base_port=0))


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_running__a_proxy_is_not_put_before_itself(host: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(UpstreamError, match=f"{host}:{port} is the proxy itself, not a cluster"):
        RunningProxy(ProxySettings(((host, port),), base_port=port))


def test_running__another_machine_must_be_allowed() -> None:
    with pytest.raises(UpstreamError, match=re.escape("add --allow kafka.example")):
        RunningProxy(ProxySettings((("kafka.example", 9092),), base_port=0))


def test_running__a_stopped_proxy_has_no_ports_and_takes_no_calls(three: Proxied) -> None:
    with proxy_before(three.upstream.bootstrap) as found:
        ports = [found.broker(key) for key in (1, 2, 3)]
        client = found.client(1)
        client.ask(VERSIONS)
    assert client.is_closed()
    client.socket.close()
    for place in ports:
        with pytest.raises(ConnectionRefusedError):
            PlainClient(place)
    with pytest.raises(ProxyStopped):
        found.running.call(lambda proxy: proxy)
    found.running.stop()
