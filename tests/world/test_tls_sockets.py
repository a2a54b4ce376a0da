"""TLS between two programs of a world: the standard library's SSLSocket, and asyncio's."""

from __future__ import annotations

import asyncio
import selectors
import socket
import ssl
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from kcluster.drivers.tls.contexts import ClientAuth, TlsSettings, server_context
from tests.drivers.tls.wire import AUTHORITY, client_context
from tests.world.rig import empty_world

pytestmark = pytest.mark.pure_python

LOCAL = AUTHORITY.for_broker(["localhost", "127.0.0.1"])
ADDRESS = ("127.0.0.1", 8443)


def served(auth: ClientAuth = ClientAuth.NONE) -> ssl.SSLContext:
    return server_context(TlsSettings(client_auth=auth), LOCAL, [AUTHORITY.certificate])


@contextmanager
def echoing(context: ssl.SSLContext) -> Iterator[threading.Thread]:
    """A server that sends back what one client sends."""
    listening = context.wrap_socket(socket.create_server(ADDRESS), server_side=True)

    def echo() -> None:
        with listening:
            try:
                accepted, _ = listening.accept()
            except ssl.SSLError:
                return
            with accepted:
                while data := accepted.recv(1000):
                    accepted.sendall(data)

    thread = threading.Thread(target=echo)
    thread.start()
    yield thread
    thread.join()


def test_tls__a_blocking_client_and_a_blocking_server() -> None:
    alice = AUTHORITY.for_client("alice")
    with empty_world(), echoing(served(ClientAuth.REQUIRED)):
        raw = socket.create_connection(ADDRESS)
        with client_context(alice).wrap_socket(raw, server_hostname="localhost") as sock:
            assert isinstance(sock, ssl.SSLSocket)
            sock.sendall(bytes(100_000))
            assert len(sock.makefile("rb").read(100_000)) == 100_000
            assert sock.version() == "TLSv1.3"
            assert sock.getpeercert() is not None
            assert raw.fileno() == -1  # as by detach
            sock.settimeout(0.5)
            with pytest.raises(TimeoutError):
                sock.recv(1)


def test_tls__a_client_that_does_not_block_waits_in_a_selector() -> None:
    with empty_world(), echoing(served()), selectors.DefaultSelector() as selector:
        raw = socket.create_connection(ADDRESS)
        raw.setblocking(False)
        sock = client_context().wrap_socket(
            raw, server_hostname="localhost", do_handshake_on_connect=False
        )
        selector.register(sock, selectors.EVENT_READ)
        waits = 0
        while True:
            try:
                sock.do_handshake()
                break
            except ssl.SSLWantReadError:
                waits += 1
                assert selector.select(5)
        assert waits
        assert sock.send(b"hello") == 5
        assert selector.select(5)
        assert sock.recv(3) == b"hel"
        assert sock.pending() == 2
        assert sock.recv(100) == b"lo"
        with pytest.raises(ssl.SSLWantReadError):
            sock.recv(100)
        sock.close()


def test_tls__a_wrong_name_is_refused() -> None:
    with empty_world(), echoing(served()):
        raw = socket.create_connection(ADDRESS)
        with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
            client_context().wrap_socket(raw, server_hostname="elsewhere")


def test_tls__a_socket_may_be_wrapped_before_it_connects() -> None:
    with empty_world(), echoing(served()):
        sock = client_context().wrap_socket(socket.socket(), server_hostname="localhost")
        sock.connect(ADDRESS)
        sock.sendall(b"x")
        assert sock.recv(1) == b"x"
        sock.close()


def test_tls__asyncio_has_it_too() -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.readexactly(5))
        writer.close()

    async def talk() -> bytes:
        async with await asyncio.start_server(echo, *ADDRESS, ssl=served()):
            reader, writer = await asyncio.open_connection(
                *ADDRESS, ssl=client_context(), server_hostname="localhost"
            )
            writer.write(b"hello")
            heard = await reader.read()
            writer.close()
            return heard

    with empty_world():
        assert asyncio.run(talk()) == b"hello"


def test_tls__https_of_the_standard_library() -> None:
    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"secret")

        def log_message(self, *arguments: object) -> None:
            pass

    with empty_world():
        server = HTTPServer(ADDRESS, Answer)
        server.socket = served().wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        with urllib.request.urlopen("https://localhost:8443/", context=client_context()) as answer:
            assert answer.read() == b"secret"
        thread.join()
        server.server_close()


def test_tls__after_a_world_sockets_are_the_kernels_again() -> None:
    with empty_world():
        pass
    here, there = socket.socketpair()
    with here, there:
        wrapped = client_context().wrap_socket(
            here, server_hostname="localhost", do_handshake_on_connect=False
        )
        assert type(wrapped) is ssl.SSLSocket
        wrapped.close()
