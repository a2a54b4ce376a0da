"""TLS at a broker's end: a handshake, and records both ways, over a stream in memory.

Owns: these cases and their input.  Never: measures time (micro.py).  Both ends are in this process,
so a handshake has the client's cost as well, which is about three times the broker's.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import Final

from bench.micro_cases import Call, Case
from kcluster.drivers.memory.acceptor import BrokerSocket, EndWatcher
from kcluster.drivers.memory.stream import StreamEnd, stream_pair
from kcluster.drivers.sockets.connection import ByteSocket, IoWatcher
from kcluster.drivers.tls.authority import Authority
from kcluster.drivers.tls.contexts import TlsSettings, server_context
from kcluster.drivers.tls.credentials import certificates_pem
from kcluster.drivers.tls.tls_socket import ROOM_BYTES, TlsSocket

PIECE_BYTES: Final = 64 << 10
NAME: Final = "localhost"


class Clock:
    """A clock that stands still."""

    now_us = 0

    def at(self, at_us: int, callback: Callable[[], object]) -> None:
        """Never."""


class Host:
    """The acceptor of the broker's end."""

    is_open = True

    def __init__(self) -> None:
        authority = Authority()
        self.context = server_context(TlsSettings(), authority.for_broker([NAME]), None)
        self.room = memoryview(bytearray(ROOM_BYTES))
        trusted = certificates_pem([authority.certificate]).decode()
        self.client = ssl.create_default_context(cadata=trusted)

    def watch_socket(self, sock: ByteSocket, mode: int) -> IoWatcher:
        """A watcher that never calls."""
        assert isinstance(sock, BrokerSocket)
        return EndWatcher(Clock(), sock, mode)

    def soon(self, callback: Callable[[], object]) -> None:
        """Never."""


class Pair:
    """Both ends of a connection."""

    def __init__(self, host: Host) -> None:
        self.end: StreamEnd
        self.end, there = stream_pair()
        self.broker = TlsSocket(BrokerSocket(there), host)
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.client = host.client.wrap_bio(self.incoming, self.outgoing, server_hostname=NAME)
        self.buffer = memoryview(bytearray(2 * PIECE_BYTES))

    def to_broker(self) -> int:
        """Carry what the client has written; the plaintext that the broker reads."""
        self.end.write(self.outgoing.read())
        try:
            return self.broker.recv_into(self.buffer)
        except BlockingIOError:
            return 0

    def shake_hands(self) -> None:
        """Make the handshake."""
        for _ in range(2):
            try:
                self.client.do_handshake()
            except ssl.SSLWantReadError:
                self.to_broker()
                self.incoming.write(self.end.read(PIECE_BYTES))
        self.to_broker()


def handshake() -> Call:
    """A handshake of TLS 1.3, both ends."""
    host = Host()
    return lambda: Pair(host).shake_hands()


def _secured() -> Pair:
    pair = Pair(Host())
    pair.shake_hands()
    return pair


def sending() -> Call:
    """The broker encrypts and writes 64 KiB."""
    pair, body = _secured(), bytes(PIECE_BYTES)

    def call() -> None:
        assert pair.broker.send(body) == PIECE_BYTES
        pair.end.read(2 * PIECE_BYTES)

    return call


def receiving() -> Call:
    """The client encrypts 64 KiB, and the broker reads them."""
    pair, body = _secured(), bytes(PIECE_BYTES)

    def call() -> None:
        pair.client.write(body)
        assert pair.to_broker() == PIECE_BYTES

    return call


def tls_cases() -> dict[str, Case]:
    """Every case by its name."""
    return {
        "TLS: a handshake, both ends": handshake,
        "TLS: the broker sends 64 KiB": sending,
        "TLS: the broker receives 64 KiB, which the client encrypts": receiving,
    }
