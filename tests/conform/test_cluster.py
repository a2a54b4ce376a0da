"""What is no Kafka cluster: it is reported within the limit, in one line."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from kcluster.conform.cluster import NotConformable, facts_of
from kcluster.proxy.upstream import Upstream, UpstreamError, UpstreamSecurity

LIMIT_MS = 300


@contextmanager
def server(serve: Callable[[socket.socket], None]) -> Iterator[Upstream]:
    """A server of one connection at a time, each given to `serve` and then closed."""
    listener = socket.create_server(("127.0.0.1", 0))
    done = threading.Event()

    def work() -> None:
        while True:
            try:
                accepted, _ = listener.accept()
            except OSError:
                return
            with accepted:
                if not done.is_set():
                    serve(accepted)

    thread = threading.Thread(target=work)
    thread.start()
    address = listener.getsockname()
    try:
        yield Upstream((address,), UpstreamSecurity())
    finally:
        done.set()
        socket.create_connection(address).close()
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


def test_facts__of_a_server_that_closes_at_once() -> None:
    with (
        server(lambda accepted: None) as upstream,
        pytest.raises(NotConformable, match="closed instead of an answer to ApiVersions"),
    ):
        facts_of(upstream, LIMIT_MS)


def test_facts__of_a_server_that_never_answers() -> None:
    def hang(accepted: socket.socket) -> None:
        while accepted.recv(1 << 10):
            pass

    with server(hang) as upstream, pytest.raises(NotConformable, match=r"no answer .* in 0.3 s"):
        facts_of(upstream, LIMIT_MS)


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\0\0\0\5hello"])
def test_facts__of_a_server_of_another_protocol(answer: bytes) -> None:
    def reply(accepted: socket.socket) -> None:
        accepted.recv(1 << 10)
        accepted.sendall(answer)

    with server(reply) as upstream, pytest.raises(NotConformable, match=r"127\.0\.0\.1:"):
        facts_of(upstream, LIMIT_MS)


def test_facts__where_nothing_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = listener.getsockname()
    with pytest.raises(UpstreamError, match="Connection refused"):
        facts_of(Upstream((address,), UpstreamSecurity()))
