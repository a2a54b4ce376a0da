"""A TLS connection in memory: a broker's TlsSocket at one end, Python's own TLS at the other.

Owns: the client's end, watchers that a test fires.  Never: asserts what a test is about.
"""

from __future__ import annotations

import ssl
import tempfile
from collections.abc import Callable
from typing import Any, Self, TypeVar

from kcluster.drivers.memory.acceptor import BrokerSocket
from kcluster.drivers.memory.stream import StreamEnd, stream_pair
from kcluster.drivers.sockets.connection import IoWatcher
from kcluster.drivers.tls.authority import Authority
from kcluster.drivers.tls.contexts import TlsSettings, server_context
from kcluster.drivers.tls.credentials import Credentials, certificates_pem
from kcluster.drivers.tls.tls_socket import TlsSocket

T = TypeVar("T")

NAME = "broker.kcluster"
AUTHORITY = Authority(fixed_size=True)
BROKER = AUTHORITY.for_broker([NAME, "127.0.0.1"])
_READ = 1


def client_context(credentials: Credentials | None = None, **settings: object) -> ssl.SSLContext:
    """A client's context that trusts the CA."""
    context = ssl.create_default_context(cadata=certificates_pem([AUTHORITY.certificate]).decode())
    for name, value in settings.items():
        setattr(context, name, value)
    if credentials is not None:
        load(context, credentials)
    return context


def load(context: ssl.SSLContext, credentials: Credentials) -> None:
    with tempfile.NamedTemporaryFile(suffix=".pem") as file:
        file.write(credentials.pem())
        file.flush()
        context.load_cert_chain(file.name)


class Watch:
    """A level-triggered watcher that the test fires."""

    def __init__(self, host: WireHost, end: StreamEnd, mode: int) -> None:
        self._host, self._end, self._mode = host, end, mode
        self.callback: Callable[[], object] | None = None

    @property
    def active(self) -> bool:
        return self.callback is not None

    def start(self, callback: Callable[[], object]) -> None:
        self.callback = callback
        self._host.watches[self] = None

    def stop(self) -> None:
        self.callback = None

    def close(self) -> None:
        self.stop()

    def fire(self) -> bool:
        is_ready = self._end.is_readable if self._mode == _READ else self._end.is_writable
        if self.callback is None or not is_ready:
            return False
        self.callback()
        return True


class WireHost:
    """The acceptor of the one connection."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self.context = context
        self.is_open = True
        self.room = memoryview(bytearray(8192))
        self.watches: dict[Watch, None] = {}
        self.due: list[Callable[[], object]] = []

    def watch_socket(self, sock: object, mode: int) -> IoWatcher:
        assert isinstance(sock, BrokerSocket)
        return Watch(self, sock.end, mode)

    def soon(self, callback: Callable[[], object]) -> None:
        self.due.append(callback)

    def turn(self) -> None:
        """Fire what is ready, once."""
        due, self.due = self.due, []
        for callback in due:
            callback()
        for watch in tuple(self.watches):
            watch.fire()


class TlsWire:
    """Both ends.  `sock`: the broker's; `tls`, `end`: the client's."""

    def __init__(
        self,
        settings: TlsSettings | None = None,
        client: ssl.SSLContext | None = None,
        broker: Credentials = BROKER,
        name: str = NAME,
    ) -> None:
        context = server_context(settings or TlsSettings(), broker, [AUTHORITY.certificate])
        self.host = WireHost(context)
        self.end, there = stream_pair()
        self.sock = TlsSocket(BrokerSocket(there), self.host)
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = (client or client_context()).wrap_bio(
            self.incoming, self.outgoing, server_hostname=name
        )
        self.carried: list[tuple[int, int]] = []
        """Sizes of ciphertext, to the broker and from it."""
        self.buffer = memoryview(bytearray(1 << 20))

    # ------------------------------------------------------------------------------- the client's

    def carry(self) -> None:
        """Exchange the client's ciphertext with its end."""
        data = self.outgoing.read()
        sent_bytes = len(data)
        while data:
            data = data[self.end.write(data) :]
        try:
            while arrived := self.end.read(1 << 20):
                self.incoming.write(arrived)
            self.incoming.write_eof()
        except BlockingIOError:
            pass
        self.carried.append((sent_bytes, self.incoming.pending))

    def says(self, data: bytes) -> None:
        self.tls.write(data)
        self.carry()

    def hears(self) -> bytes:
        """The plaintext that has arrived at the client."""
        self.carry()
        heard = b""
        try:
            while data := self.tls.read(1 << 20):
                heard += data
        except (ssl.SSLWantReadError, ssl.SSLZeroReturnError):
            pass
        return heard

    # ------------------------------------------------------------------------------- the broker's

    def reads(self) -> bytes | None:
        """What one read of the broker returns; None: nothing has arrived."""
        try:
            return bytes(self.buffer[: self.sock.recv_into(self.buffer)])
        except BlockingIOError:
            return None

    def shake_hands(self) -> TlsWire:
        """Finish the handshake; an error of either end is raised."""
        for _ in range(4):
            try:
                self.tls.do_handshake()
            except ssl.SSLWantReadError:
                self.carry()
            else:
                self.carry()
                assert self.reads() is None
                return self
            try:
                assert self.reads() is None
            finally:
                self.carry()
        raise AssertionError("the handshake does not end")


class TlsLine:
    """A client's TLS over a blocking socket of either clock."""

    def __init__(self, sock: Any, context: ssl.SSLContext, name: str = "localhost") -> None:
        self.sock = sock
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_hostname=name)
        try:
            self.until(self.tls.do_handshake)
        except OSError:
            sock.close()
            raise

    def until(self, call: Callable[[], T]) -> T:
        while True:
            try:
                return call()
            except ssl.SSLWantReadError:
                self.flush()
                data = self.sock.recv(1 << 16)
                self.incoming.write(data) if data else self.incoming.write_eof()
            finally:
                self.flush()

    def flush(self) -> None:
        data = self.outgoing.read()
        if data:
            self.sock.sendall(data)

    def sendall(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            left = left[self.tls.write(left[: 1 << 16]) :]
            self.flush()

    def recv(self, size_bytes: int) -> bytes:
        return self.until(lambda: self.tls.read(size_bytes))

    def settimeout(self, timeout_s: float | None) -> None:
        self.sock.settimeout(timeout_s)

    def close(self) -> None:
        self.sock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()
