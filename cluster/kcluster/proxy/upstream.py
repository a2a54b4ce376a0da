"""Connections to the cluster behind the proxy, until they can carry a client's requests.

Owns: connecting, TLS and the proxy's own login; the proxy's own requests.  Never: passes on a
client's bytes (connection.py), reads the user's file.
Kafka: NetworkClient's bootstrap, SaslClientAuthenticator, SslTransportLayer.

Everything here waits in the calling greenlet, for CONNECT_TIMEOUT_S at most.
"""

from __future__ import annotations

import random
import socket
import ssl
from fnmatch import fnmatchcase
from typing import Final

import gevent
import gevent.socket
from msgspec import Struct

from kcluster.hosts import is_loopback
from kcluster.protocol import messages as m
from kcluster.protocol.apis import APIS, ApiKey
from kcluster.protocol.errors import ProtocolError
from kcluster.protocol.framing import decode_response_frame, encode_request_frame
from kcluster.protocol.messages import Message
from kcluster.proxy.addresses import Address
from kcluster.proxy.streams import SIZE, ByteEnd, PlainEnd, foreign_protocol, secured
from kcluster.security.client_access import ClientAccess
from kcluster.security.sasl.client_authenticator import ClientAuthenticator, ClientSaslState

CONNECT_TIMEOUT_S: Final = 10.0
"""Kafka's socket.connection.setup.timeout.ms."""
MAX_ANSWER_BYTES: Final = 100 << 20
CLIENT_ID: Final = "kcluster-proxy"
BROKERS_VERSION: Final = 1
"""The oldest version of Metadata that can leave out topics; every broker since 0.10 serves it."""
TOPICS_VERSION: Final = 7
"""The oldest version with leader epochs; every broker since 2.1 serves it."""
VERSIONS_VERSION: Final = 0
"""The version of ApiVersions that every broker serves."""
_REQUESTS: Final = {f"{line.name}Request": key for key, line in APIS.items()}
"""The API of each request, by the name of its class."""


class UpstreamError(Exception):
    """The error for a cluster that cannot be reached or refuses the proxy; str() is one line."""


class UpstreamSilent(UpstreamError):
    """The error for a broker that closed the connection instead of an answer, as brokers do that
    demand a login."""


class UpstreamSecurity(Struct, frozen=True):
    """How the proxy connects.  `tls`: None without TLS; `login`: None if clients log in themselves,
    or need no login."""

    tls: ssl.SSLContext | None = None
    login: ClientAccess | None = None


class Upstream:
    """The way to the cluster's brokers."""

    def __init__(
        self,
        bootstrap: tuple[Address, ...],
        security: UpstreamSecurity,
        allowed: tuple[str, ...] = (),
    ) -> None:
        """`allowed`: patterns of the hosts besides this machine that may be reached."""
        self.bootstrap = bootstrap
        self._security = security
        self._allowed = allowed

    def connect(self, address: Address) -> ByteEnd:
        """A connection to a broker, which has logged in if the proxy does; UpstreamError with the
        reason if there is none."""
        place = f"{address[0]}:{address[1]}"
        if not self.may_reach(address[0]):
            raise UpstreamError(
                f"{place} is not this machine; a proxy changes what its clients do there: if you"
                f" mean it, add --allow {address[0]}"
            )
        reason = f"no connection within {CONNECT_TIMEOUT_S:g} s"
        with gevent.Timeout(CONNECT_TIMEOUT_S, UpstreamError(f"{place}: {reason}")):
            try:
                end = self._connected(address)
            except (OSError, UnicodeError) as error:
                text = getattr(error, "strerror", None) or str(error)
                raise UpstreamError(f"{place}: {text}") from None
            try:
                if self._security.login is not None:
                    _log_in(end, self._security.login, place)
            except BaseException:
                end.close()
                raise
            return end

    @property
    def logs_in(self) -> bool:
        """Whether connections log in before they are used."""
        return self._security.login is not None

    def without_login(self) -> Upstream:
        """The same way, for connections that log in themselves."""
        return Upstream(self.bootstrap, UpstreamSecurity(self._security.tls), self._allowed)

    def may_reach(self, host: str) -> bool:
        """Whether a host is this machine, or one that is allowed."""
        return is_loopback(host) or any(fnmatchcase(host, each) for each in self._allowed)

    def connect_to_any(self) -> tuple[ByteEnd, Address]:
        """A connection to the first of the bootstrap servers that can be reached, and its
        address."""
        problems = []
        for address in self.bootstrap:
            try:
                return self.connect(address), address
            except UpstreamError as error:
                problems.append(str(error))
        raise UpstreamError("; ".join(problems))

    def open(self, address: Address | None = None) -> OwnConnection:
        """A connection for the proxy's own requests: to a broker, or to the first bootstrap server
        that can be reached.  UpstreamError if there is none."""
        if address is None:
            end, address = self.connect_to_any()
        else:
            end = self.connect(address)
        return OwnConnection(end, f"{address[0]}:{address[1]}")

    def brokers(self) -> dict[int, Address]:
        """The brokers of the cluster and their addresses."""
        answer = self._metadata(BROKERS_VERSION, m.MetadataRequest(topics=[]))
        return {each.node_id: (each.host, each.port) for each in answer.brokers}

    def metadata(self) -> m.MetadataResponse:
        """The brokers and all topics of the cluster."""
        return self._metadata(TOPICS_VERSION, m.MetadataRequest(topics=None))

    def _metadata(self, version: int, request: m.MetadataRequest) -> m.MetadataResponse:
        end, _ = self.connect_to_any()
        try:
            with gevent.Timeout(CONNECT_TIMEOUT_S, UpstreamError("no answer to Metadata")):
                answer = _ask(end, ApiKey.METADATA, version, request)
        finally:
            end.close()
        assert isinstance(answer, m.MetadataResponse)
        return answer

    def _connected(self, address: Address) -> ByteEnd:
        sock = gevent.socket.create_connection(address)
        plain = socket.socket(sock.family, sock.type, sock.proto, fileno=sock.detach())
        plain.setblocking(False)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        context = self._security.tls
        if context is None:
            return PlainEnd(plain)
        try:
            return secured(
                plain, context, server_side=False, name=address[0], timeout_s=CONNECT_TIMEOUT_S
            )
        except ssl.SSLError as error:
            reason = (error.reason or "handshake failed").replace("_", " ").lower()
            detail = getattr(error, "verify_message", "")
            raise OSError(0, f"TLS: {reason}{f': {detail}' if detail else ''}") from None


class OwnConnection:
    """A connection that carries requests of the proxy's own, each in the newest version that both
    ends know; a context manager."""

    def __init__(self, end: ByteEnd, place: str) -> None:
        self._end = end
        self._place = place
        self._newest: dict[int, int] = {}
        """The broker's newest version of each API; empty until it is asked."""

    def __enter__(self) -> OwnConnection:
        return self

    def __exit__(self, *_: object) -> None:
        self._end.close()

    def ask(self, body: Message) -> Message:
        """The answer to a request; UpstreamError if there is none."""
        key, version = self._api(body)
        return _ask(self._end, key, version, body)

    def send(self, body: Message) -> None:
        """Send a request whose answer is not awaited."""
        key, version = self._api(body)
        _send(self._end, key, version, body)

    def _api(self, body: Message) -> tuple[int, int]:
        if not self._newest:
            versions = _ask(
                self._end, ApiKey.API_VERSIONS, VERSIONS_VERSION, m.ApiVersionsRequest()
            )
            assert isinstance(versions, m.ApiVersionsResponse)
            self._newest = {line.api_key: line.max_version for line in versions.api_keys}
        key = _REQUESTS[type(body).__name__]
        oldest, newest = APIS[key].all_versions
        version = min(newest, self._newest.get(key, -1))
        if version < oldest:
            raise UpstreamError(f"{self._place} does not serve {APIS[key].name}")
        return key, version


def _log_in(end: ByteEnd, access: ClientAccess, place: str) -> None:
    """Log in on a new connection; UpstreamError if the broker refuses."""
    login = ClientAuthenticator(access, random.SystemRandom())
    question = login.begin()
    while True:
        answer = _ask(end, question.api_key, question.version, question.body)
        following = login.take(answer, 0)
        if login.state is ClientSaslState.FAILED:
            detail = f": {login.detail}" if login.detail else ""
            raise UpstreamError(f"{place}: {login.error.name}{detail}")
        if following is None:
            return
        question = following


def _ask(end: ByteEnd, api_key: int, version: int, body: Message) -> Message:
    """The answer to a request of the proxy's own."""
    _send(end, api_key, version, body)
    start = _read(end, SIZE.size)
    size = SIZE.unpack(start)[0]
    if not 0 <= size <= MAX_ANSWER_BYTES:
        problem = foreign_protocol(start) or f"a frame of {size} bytes"
        raise UpstreamError(f"the answer is not Kafka's: {problem}")
    frame = _read(end, size)
    answer: Message
    try:
        _, answer = decode_response_frame(api_key, version, frame)
        return answer
    except ProtocolError:
        if api_key != ApiKey.API_VERSIONS:
            raise UpstreamError("an answer that is not Kafka's") from None
    try:
        _, answer = decode_response_frame(api_key, 0, frame)  # a broker older than the request
        return answer
    except ProtocolError:
        raise UpstreamError("an answer that is not Kafka's") from None


def _send(end: ByteEnd, api_key: int, version: int, body: Message) -> None:
    buffers = encode_request_frame(api_key, version, 1, CLIENT_ID, body)
    data = memoryview(b"".join(buffers))
    while data:
        try:
            data = data[end.write([data]) :]
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            gevent.socket.wait_write(end.fileno())
        except OSError as error:
            raise UpstreamError(error.strerror or "the connection broke") from None


def _read(end: ByteEnd, count: int) -> memoryview:
    data = memoryview(bytearray(count))
    filled = 0
    while filled < count:
        try:
            taken = end.recv_into(data[filled:])
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            gevent.socket.wait_read(end.fileno())
            continue
        except OSError as error:
            raise UpstreamError(error.strerror or "the connection broke") from None
        if not taken:
            raise UpstreamSilent("the broker closed the connection without an answer")
        filled += taken
    return data
