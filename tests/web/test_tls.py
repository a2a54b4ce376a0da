"""The HTTP API by TLS: requests, waits whose client leaves, and bytes that are no handshake."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from kcluster.drivers.tls.authority import Authority
from kcluster.drivers.tls.credentials import certificates_pem
from kcluster.operations.errors import ClusterError
from kcluster.web.server import WebServer
from kcluster.web.tls import CertificateFiles
from tests.rig.patience import PATIENCE_S
from tests.web.api_client import FAST, serving


class Secured:
    """A server with a certificate, and a client that trusts its CA."""

    def __init__(self, server: WebServer, trusted: Path) -> None:
        self.server = server
        self._context = ssl.create_default_context(cafile=str(trusted))

    def connect(self, version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> ssl.SSLSocket:
        self._context.maximum_version = version
        plain = socket.create_connection(("127.0.0.1", self.server.port), PATIENCE_S)
        return self._context.wrap_socket(plain, server_hostname="127.0.0.1")

    def ask(
        self, method: str, path: str, body: object = None, token: str = ""
    ) -> tuple[int, bytes]:
        """The status and the body of an answer."""
        connection = http.client.HTTPSConnection(
            "127.0.0.1", self.server.port, timeout=PATIENCE_S, context=self._context
        )
        sent = {"Authorization": f"Bearer {token or self.server.token}"}
        data = None
        if body is not None:
            sent["Content-Type"], data = "application/json", json.dumps(body)
        connection.request(method, path, data, sent)
        response = connection.getresponse()
        answer = response.status, response.read()
        connection.close()
        return answer


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    folder = tmp_path_factory.mktemp("tls")
    authority = Authority()
    own, trusted = folder / "server.pem", folder / "ca.pem"
    own.write_bytes(authority.for_broker(["127.0.0.1"]).pem())
    trusted.write_bytes(certificates_pem([authority.certificate]))
    with serving(tls=CertificateFiles(own)) as (server, _):
        yield Secured(server, trusted)


def test_tls__a_cluster_is_made_and_asked(secured: Secured) -> None:
    assert secured.server.url.startswith("https://127.0.0.1:")
    status, body = secured.ask("POST", "/v1/clusters", {"topology": FAST, "seed": 1})
    assert status == 201
    assert secured.ask("GET", f"/v1/clusters/{json.loads(body)['id']}")[0] == 200
    assert secured.ask("GET", "/v1/clusters", token="wrong")[0] == 401


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_tls__a_client_that_leaves_takes_its_wait_with_it(
    secured: Secured, version: ssl.TLSVersion
) -> None:
    _, body = secured.ask("POST", "/v1/clusters", {"topology": FAST, "seed": 1})
    path = f"/v1/clusters/{json.loads(body)['id']}/wait"
    wanted = json.dumps({"until": "isr(orders-0) = 9", "within": "25s"}).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Authorization: Bearer {secured.server.token}\r\nContent-Length: {len(wanted)}\r\n\r\n"
    )
    with secured.connect(version) as sock:
        sock.sendall(head.encode() + wanted)
        until(lambda: secured.server.requests > 0)
        sock.settimeout(0.05)
        with suppress(OSError):
            sock.unwrap()  # says goodbye, and does not wait for the answer
        until(lambda: secured.server.requests == 0)


@pytest.mark.parametrize("sent", [b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", b"\x16\x03", b""])
def test_tls__bytes_that_are_no_handshake_end_their_connection_alone(
    secured: Secured, sent: bytes
) -> None:
    address = "127.0.0.1", secured.server.port
    with socket.create_connection(address, PATIENCE_S) as sock, suppress(OSError):
        sock.sendall(sent)
        sock.shutdown(socket.SHUT_WR)  # the server may have closed it
        while sock.recv(1024):
            pass
    assert secured.ask("GET", "/v1/clusters")[0] == 200


def test_tls__wrong_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match=r"none\.pem: No such file or directory"):
        CertificateFiles(tmp_path / "none.pem").context()
    (tmp_path / "text.pem").write_text("no certificate")
    with pytest.raises(ClusterError, match=r"text\.pem with the key in .*text\.pem: "):
        CertificateFiles(tmp_path / "text.pem").context()
    locked = tmp_path / "locked.pem"
    locked.write_bytes(Authority().for_broker(["localhost"]).pem(b"secret"))
    with pytest.raises(ClusterError, match="is encrypted; give one without a password"):
        CertificateFiles(locked).context()


def until(holds: Callable[[], bool]) -> None:
    """Wait until it holds; the server works in other threads."""
    end_s, pause = time.monotonic() + PATIENCE_S, threading.Event()
    while not holds():
        assert time.monotonic() < end_s
        pause.wait(0.005)
