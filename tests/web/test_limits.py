"""What strangers and slow clients may cost: waits, half requests, connections, threads."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import pytest
from msgspec.structs import replace

from kcluster.operations.errors import ClusterError
from kcluster.scenario.play.played import PlayedRun
from kcluster.web.complaints import Complaints
from kcluster.web.held import HeldCluster
from kcluster.web.limits import WebLimits
from kcluster.web.server import WebServer
from tests.rig.patience import PATIENCE_S
from tests.web.api_client import Answer, Api, serving

WAITS = 40
QUICK = WebLimits(
    idle_s=0.5, header_s=0.2, body_s=0.2, send_s=0.2, requests=WAITS, threads=4, threads_of_one=2
)


def said(capfd: pytest.CaptureFixture[str]) -> list[str]:
    """The lines on stderr, but those of librdkafka's threads, which earlier tests may have left."""
    return [line for line in capfd.readouterr().err.splitlines() if "|rdkafka#" not in line]


def request_bytes(
    api: Api,
    method: str,
    path: str,
    body: bytes = b"",
    *,
    length: int | None = None,
    fields: tuple[str, ...] = (),
    close: bool = False,
) -> bytes:
    """A request as it is sent.  `fields`: instead of its length; `close`: the connection ends."""
    lines = (
        f"{method} {path} HTTP/1.1",
        "Host: localhost",
        f"Authorization: Bearer {api.token}",
        "Content-Type: application/json",
        *(["Connection: close"] if close else []),
        *(fields or [f"Content-Length: {len(body) if length is None else length}"]),
    )
    return "\r\n".join((*lines, "", "")).encode() + body


def wait_bytes(api: Api, cluster: str, within: str = "25s") -> bytes:
    """A request that waits for what does not happen."""
    body = json.dumps({"until": "isr(orders-0) = 9", "within": within}).encode()
    return request_bytes(api, "POST", f"{cluster}/wait", body)


@contextmanager
def connected(api: Api, count: int, sent: bytes) -> Iterator[list[socket.socket]]:
    """Connections on which the same bytes were sent."""
    with ExitStack() as stack:
        found = []
        for _ in range(count):
            one = stack.enter_context(socket.create_connection(("127.0.0.1", api.port), PATIENCE_S))
            one.sendall(sent)
            found.append(one)
        yield found


def answered(connection: socket.socket) -> Answer:
    """The one answer on a connection that the server closes after it; status 0: without one."""
    data = b""
    while part := connection.recv(65536):
        data += part
    if not data:
        return Answer(0, {}, b"")
    head, _, body = data.partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines[1:])
    return Answer(int(lines[0].split()[1]), headers, body)


def until(holds: Callable[[], bool]) -> None:
    """Wait until it holds; the server works in other threads."""
    end_s, pause = time.monotonic() + PATIENCE_S, threading.Event()
    while not holds():
        assert time.monotonic() < end_s
        pause.wait(0.005)


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[WebServer, Api]]:
    with serving(limits=QUICK) as found:
        yield found


# ------------------------------------------------------------------------------------- waits


def test_limits__waits_stall_nobody_and_leave_with_their_clients(
    served: tuple[WebServer, Api],
) -> None:
    server, api = served
    leased, cluster = api.cluster(lease="1s"), api.cluster()
    with connected(api, WAITS, wait_bytes(api, cluster)) as waiting:
        until(lambda: server.requests == WAITS)
        # No place is left for what takes its time, and the cheap ones need none.
        refused = api.ask("GET", f"{cluster}/verdict")
        assert (refused.status, refused.headers["Retry-After"]) == (503, "1")
        assert api.ask("GET", cluster).status == 200
        until(lambda: not server.clusters.has(leased.rpartition("/")[2]))
        waiting.pop().close()
        until(lambda: server.requests < WAITS)
        assert api.ask("GET", f"{cluster}/verdict").status == 200
    until(lambda: server.requests == 0)
    assert api.ask("DELETE", cluster).status == 200


def test_limits__a_wait_that_is_left_is_forgotten_by_the_cluster(
    served: tuple[WebServer, Api],
) -> None:
    server, api = served
    path = api.cluster()
    cluster = server.clusters.get(path.rpartition("/")[2]).cluster
    until(lambda: not cluster.driver._conditions)  # those of the start
    with connected(api, 3, wait_bytes(api, path)):
        until(lambda: len(cluster.driver._conditions) == 3)
    until(lambda: not cluster.driver._conditions)
    api.ok("DELETE", path)


def test_limits__waiting_clients_share_the_hub_with_each_other(api: Api, cluster: str) -> None:
    """All of them are answered by one event."""
    body = json.dumps({"until": "event broker_down", "since": 0}).encode()
    sent = request_bytes(api, "POST", f"{cluster}/wait", body, close=True)
    with connected(api, 5, sent) as waiting:
        api.ok("POST", f"{cluster}/actions?wait=no", {"kill": 1})
        assert [answered(one).status for one in waiting] == [200] * 5


def test_limits__one_busy_cluster_does_not_occupy_the_threads_of_the_others(
    served: tuple[WebServer, Api],
) -> None:
    server, api = served
    busy, other = api.cluster(), api.cluster()
    cluster = server.clusters.get(busy.rpartition("/")[2]).cluster
    begun, go_on = threading.Event(), threading.Event()

    def wait() -> None:
        begun.set()
        go_on.wait(PATIENCE_S)

    cluster.driver.call(wait)
    assert begun.wait(PATIENCE_S)
    try:
        sent = request_bytes(api, "GET", f"{busy}/verdict")
        with connected(api, QUICK.threads, sent):
            until(lambda: server.requests == QUICK.threads)
            assert api.ok("GET", f"{other}/verdict")["outcome"] == "unknown"
    finally:
        go_on.set()
    until(lambda: server.requests == 0)
    for path in (busy, other):
        api.ok("DELETE", path)


def test_limits__a_lease_ends_though_another_cluster_cannot_be_stopped(
    served: tuple[WebServer, Api], capfd: pytest.CaptureFixture[str]
) -> None:
    server, api = served

    def fail() -> None:
        raise ClusterError("it does not stop")

    source = PlayedRun.__new__(PlayedRun)  # never looked at
    server.clusters.add(HeldCluster("stuck", source, lease_s=0.0, stop=fail))
    until(lambda: not server.clusters.has("stuck"))
    leased = api.cluster(lease="1s")
    until(lambda: not server.clusters.has(leased.rpartition("/")[2]))
    text = "kcluster: stuck, whose lease has expired, runs on: it does not stop\n"
    assert said(capfd) == text.splitlines()


# ------------------------------------------------------------------------------ half requests


@pytest.mark.parametrize(
    ("sent", "status", "detail"),
    [
        (b"GET /v1/clu", 0, ""),
        (b"GET /openapi.json HTTP/1.1\r\nHost: local", 408, "the header is not complete"),
        (b"GET /openapi.json HTTP/1.1\r\nX: " + b"x" * 40_000, 431, "the header has more than"),
        (b"GET /openapi.json HTTP/1.1\r\n" + b"X: 1\r\n" * 101 + b"\r\n", 400, "100 headers"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 0, ""),
        (b"SSH-2.0-OpenSSH_9.2\r\n", 400, "Invalid HTTP method"),
        (b"\x00\x00\x00\x10\x00\x12\x00\x03", 0, ""),
    ],
    ids=["line", "header", "large header", "many fields", "tls", "ssh", "kafka"],
)
def test_limits__what_is_no_request(
    served: tuple[WebServer, Api],
    sent: bytes,
    status: int,
    detail: str,
    capfd: pytest.CaptureFixture[str],
) -> None:
    _, api = served
    with connected(api, 1, sent) as (connection,):
        answer = answered(connection)
    assert answer.status == status
    assert not status or detail in answer.value["detail"]
    logged = said(capfd)
    assert len(logged) <= 1
    assert all(line.startswith("kcluster: ") and line.isprintable() for line in logged)


def test_limits__a_body_that_no_route_reads_is_skipped(served: tuple[WebServer, Api]) -> None:
    _, api = served
    sent = request_bytes(api, "GET", "/v1/clusters", b"not read")
    last = request_bytes(api, "GET", "/v1/clusters", close=True)
    with connected(api, 1, sent + last) as (connection,):
        data = b""
        while part := connection.recv(65536):
            data += part
    assert data.count(b"HTTP/1.1 200 OK") == 2


def test_limits__half_bodies_stall_nobody(served: tuple[WebServer, Api]) -> None:
    server, api = served
    half = request_bytes(api, "POST", "/v1/clusters", b"{", length=1_000)
    with connected(api, 40, half) as halves:
        assert api.ask("GET", "/v1/clusters").status == 200
        assert server.requests == 0
        for one in halves:
            answer = answered(one)
            assert (answer.status, answer.headers["Connection"]) == (408, "close")
    assert "the body has not arrived within" in answer.value["detail"]


def test_limits__a_client_that_leaves_in_its_body_is_no_error(
    served: tuple[WebServer, Api], capfd: pytest.CaptureFixture[str]
) -> None:
    _, api = served
    with connected(api, 1, request_bytes(api, "POST", "/v1/clusters", b"{", length=1_000)):
        pass
    assert api.ask("GET", "/v1/clusters").status == 200
    assert said(capfd) == []


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        (("Content-Length: 2", "Content-Length: 3"), 400),
        (("Content-Length: 2", "Content-Length: 2"), 400),
        (("Content-Length: 2, 2",), 400),
        (("Content-Length: +2",), 400),
        (("Content-Length: 1_0",), 400),
        (("Content-Length: -1",), 400),
        (("Content-Length: " + "9" * 5_000,), 400),
        (("Content-Length : 2",), 400),
        (("Content-Length:\r\n 2",), 400),
        (("Content-Length: 2", "Transfer-Encoding: chunked"), 400),
        (("Transfer-Encoding: chunked",), 411),
        (("Content-Length: 9999999999",), 413),
    ],
)
def test_limits__lengths_that_two_readers_could_understand_differently(
    served: tuple[WebServer, Api], fields: tuple[str, ...], status: int
) -> None:
    """RFC 9112, section 11.2."""
    server, api = served
    sent = request_bytes(api, "POST", "/v1/clusters", b"{}", fields=fields)
    with connected(api, 1, sent) as (connection,):
        answer = answered(connection)
    assert (answer.status, answer.headers["Connection"]) == (status, "close")
    assert server.clusters.all() == []


def test_limits__a_client_that_does_not_read_is_left(served: tuple[WebServer, Api]) -> None:
    server, api = served
    sent = request_bytes(api, "GET", "/openapi.json") * 400
    with connected(api, 1, sent) as (connection,):
        connection.settimeout(PATIENCE_S)
        until(lambda: server.connections == 0)
    assert api.ask("GET", "/openapi.json").status == 200


def test_limits__connections(capfd: pytest.CaptureFixture[str]) -> None:
    with serving(limits=replace(QUICK, connections=2, idle_s=60.0)) as (server, api):
        with connected(api, 2, b""):
            until(lambda: server.connections == 2)
            answer = api.ask("GET", "/v1/clusters")
            assert (answer.status, answer.value["detail"]) == (
                503,
                "2 connections are open; try again in 1 s",
            )
        until(lambda: server.connections == 0)
        assert api.ask("GET", "/v1/clusters").status == 200
    assert "kcluster: a connection from 127.0.0.1: 2 connections are open" in capfd.readouterr().err


# --------------------------------------------------------------------------------- complaints


def test_complaints__few_and_without_control_characters() -> None:
    lines: list[str] = []
    now_s = 0.0
    complaints = Complaints(lines.append, lambda: now_s)
    for _ in range(30):
        complaints.add("\x1b]0;owned\x07 \u202e" + "x" * 1_000)
    assert len(lines) == 10
    assert all(line.isprintable() and len(line) < 400 for line in lines)
    now_s = 10.0
    complaints.add("once more")
    assert lines[10:] == ["20 more requests could not be served", "once more"]
