"""A client's connection through the proxy: its frames go to the broker, the answers come back.

Owns: the order of requests and answers, the exchanges under way, what of an answer is replaced.
Never: decides which rule applies (gate.py), opens a port (listeners.py), writes the record
(recording.py).  Kafka: no counterpart; KafkaChannel on either side of it.

Frames pass as they are, whole: of a request only the header is read, of an answer its correlation
id.  Answers of three kinds are decoded before they are sent: with brokers' addresses, with versions
of APIs that the proxy does not know, and those that a rule changes.

While there are rules, a connection's next request is taken once the previous one is answered, as a
broker does it (contract.py, 6); without rules, as it comes.
"""

from __future__ import annotations

import socket
import time
from collections import deque
from collections.abc import Callable
from functools import cache
from typing import Final, Protocol

import gevent
from msgspec import Struct, structs

from kcluster.protocol import messages as m
from kcluster.protocol.apis import APIS, ApiKey, is_known
from kcluster.protocol.codec.primitives import Buffer
from kcluster.protocol.errors import ProtocolError
from kcluster.protocol.framing import (
    decode_response_frame,
    encode_request_frame,
    encode_response_frame,
)
from kcluster.protocol.messages import Message
from kcluster.proxy.addresses import Address, address_paths, names_none, rewrite
from kcluster.proxy.exchange import BARE_TOKEN, Exchange, bare_token, correlation_id_of, exchange_of
from kcluster.proxy.logins import BareTokens, refusal_of_mechanism
from kcluster.proxy.streams import SIZE, ByteEnd, FrameStream, framed
from kcluster.proxy.upstream import UpstreamError
from kcluster.proxy.versions import PlainAnswers, capped, make_too_new

MAX_REQUEST_BYTES: Final = 100 << 20
"""Kafka's default of socket.request.max.bytes."""
MAX_ANSWER_BYTES: Final = (1 << 31) - 1
MAX_PENDING: Final = 10_000
"""The requests of a connection that may wait for answers; later ones are not read."""
_API_VERSIONS: Final = int(ApiKey.API_VERSIONS)
_SASL_HANDSHAKE: Final = int(ApiKey.SASL_HANDSHAKE)


@cache
def is_read(api_key: int, version: int) -> bool:
    """Whether an answer is decoded before it is sent: those that may have addresses, and those of
    Fetch, which open the sessions that rules know."""
    if not is_known(api_key, version):
        return False
    return api_key == ApiKey.FETCH or bool(address_paths(api_key, version))


class RequestGate(Protocol):
    """The rules, for connections."""

    @property
    def is_active(self) -> bool:
        """Whether there are rules."""

    def admits(self, connection: ProxiedConnection, exchange: Exchange, frame: memoryview) -> bool:
        """Whether the request is forwarded now, unchanged; if not, the gate handles it."""


class PassingRecorder(Protocol):
    """The record, for connections."""

    def asked(self, broker_id: int, exchange: Exchange, frame: memoryview) -> None:
        """Take note of a request that was forwarded."""

    def answered(
        self,
        connection: ProxiedConnection,
        exchange: Exchange,
        size_bytes: int,
        body: Message | None,
        frame: memoryview | None,
    ) -> None:
        """Take note of the end of an exchange.  `size_bytes`: -1 if the client got no answer;
        `body`: the answer, if it was decoded; `frame`: its bytes, for one that was not."""


class ProxyHost(Protocol):
    """The proxy, for its connections."""

    @property
    def gate(self) -> RequestGate: ...
    @property
    def recorder(self) -> PassingRecorder: ...
    @property
    def plain_versions(self) -> PlainAnswers:
        """The ApiVersions answers that pass as they are."""

    @property
    def room(self) -> memoryview:
        """The memory into which all connections read."""

    def connect(self, broker_id: int) -> tuple[ByteEnd, int]:
        """A connection to a broker, and the broker's id if it is known; UpstreamError."""

    def secure(self, sock: socket.socket) -> ByteEnd:
        """The client's end, once its TLS handshake has ended; OSError if it fails."""

    def advertised_host(self, sock: socket.socket) -> str:
        """The host under which a client has reached the proxy."""

    def learn(self, broker_id: int, address: Address) -> int:
        """The port that stands for a broker."""

    def log(self, line: str) -> None:
        """Write a line for the user."""

    @property
    def log_broken(self) -> Callable[[str], None]:
        """Writes a line about a connection that broke."""

    def forget(self, connection: ProxiedConnection) -> None:
        """Forget a connection that is closed."""


class _Passed(Struct, gc=False):
    """An answer for the client, to be recorded.  `body`: the answer, if it was decoded."""

    exchange: Exchange
    size_bytes: int
    body: Message | None
    frame: memoryview


class ProxiedConnection:
    """One client's connection.  `broker_id`: the broker, BOOTSTRAP if it is not known."""

    def __init__(self, host: ProxyHost, broker_id: int, sock: socket.socket, number: int) -> None:
        self.number = number
        self.broker_id = broker_id
        self.is_open = True
        self.began_ms = time.time_ns() // 1_000_000
        self._host = host
        self._socket = sock
        self._advertised = host.advertised_host(sock)
        self._client: FrameStream | None = None
        self._upstream: FrameStream | None = None
        self._arrived: deque[memoryview] = deque()
        """Requests that were read and not yet taken."""
        self._pending: deque[Exchange] = deque()
        """Exchanges that the broker has not answered, in order."""
        self._waits = 0
        """The number of reasons for which no request is taken."""
        self._is_silent = False
        self._bare_tokens = BareTokens()
        self._greenlet = gevent.spawn(self._open)

    def _open(self) -> None:
        """Connect to the broker, then pass frames on.  The client's bytes wait meanwhile."""
        host = self._host
        try:
            client_end = host.secure(self._socket)
        except OSError as error:
            self._socket.close()
            host.log(f"connection {self.number}: no TLS: {error.strerror or error}")
            self._forget()
            return
        try:
            upstream_end, self.broker_id = host.connect(self.broker_id)
        except UpstreamError:
            client_end.close()  # as a broker that is not there; the proxy has reported it
            self._forget()
            return
        if not self.is_open:
            client_end.close()
            upstream_end.close()
            return
        self._client = FrameStream(
            client_end, host.room, MAX_REQUEST_BYTES, self._on_requests, self._on_client_end,
            self._regulate,
        )  # fmt: skip
        self._upstream = FrameStream(
            upstream_end, host.room, MAX_ANSWER_BYTES, self._on_answers, self._on_upstream_end,
            self._regulate,
        )  # fmt: skip
        self._regulate()

    @property
    def held_bytes(self) -> int:
        """The bytes that one end has sent and the other has not taken."""
        streams = (self._client, self._upstream)
        return sum(stream.unsent_bytes for stream in streams if stream is not None)

    # ----------------------------------------------------------------------------- requests

    def _on_requests(self, frames: list[memoryview]) -> None:
        self._arrived += frames
        self._pump()

    def _pump(self) -> None:
        """Take the requests that may be taken now."""
        arrived, gate = self._arrived, self._host.gate
        out: list[Buffer] = []
        forwarded: list[tuple[Exchange, memoryview]] = []
        while arrived and not self._waits and self.is_open:
            is_active = gate.is_active
            if len(self._pending) >= (1 if is_active else MAX_PENDING):
                break
            frame = arrived.popleft()
            exchange = self._taken(frame)
            if exchange is None:
                break
            if is_active and not gate.admits(self, exchange, frame):
                continue
            out += framed(frame)
            if exchange.is_answered:
                self._pending.append(exchange)
            forwarded.append((exchange, frame))
        if out and self._upstream is not None:
            self._upstream.send(out)
        for exchange, frame in forwarded:
            self._record_asked(exchange, frame)
        self._regulate()

    def _taken(self, frame: memoryview) -> Exchange | None:
        """The exchange that a request begins; None if the proxy answers it, or closes the
        connection."""
        now_ms, now_s = time.time_ns() // 1_000_000, time.perf_counter()
        if self._bare_tokens.is_next:
            self._bare_tokens.sent()
            return bare_token(frame, now_ms, now_s)
        try:
            exchange = exchange_of(frame, now_ms, now_s)
        except ProtocolError as error:
            self.close(f"a request that is not Kafka's: {error}")
            return None
        key, version = exchange.api_key, exchange.api_version
        if key == _API_VERSIONS and not is_known(key, version):
            if version > 0:
                make_too_new(frame)
            exchange.api_version = 0  # that of the broker's answer
        elif key == _SASL_HANDSHAKE:
            refusal = refusal_of_mechanism(exchange, frame)
            if refusal is not None:
                self.close(refusal)
                return None
            self._bare_tokens.on_request(exchange, frame)
        return exchange

    def forward(self, exchange: Exchange, buffers: list[Buffer], frame: memoryview) -> None:
        """Forward a request after all, whole or as changed by a rule.  `buffers`: with the
        length; `frame`: as the client sent it."""
        if self._upstream is None or not self.is_open:
            return
        if exchange.is_answered:
            self._pending.append(exchange)
        self._upstream.send(buffers)
        self._record_asked(exchange, frame)

    def wait(self) -> Callable[[], None]:
        """Take no more requests until the returned function is called."""
        self._waits += 1

        def go_on() -> None:
            self._waits -= 1
            if self.is_open:
                self._pump()

        self._regulate()
        return go_on

    def silence(self) -> None:
        """Take no more requests, and pass on no more answers, until the connection closes."""
        self._is_silent = True
        self._waits += 1
        self._regulate()

    def _record_asked(self, exchange: Exchange, frame: memoryview) -> None:
        recorder = self._host.recorder
        recorder.asked(self.broker_id, exchange, frame)
        if not exchange.is_answered:
            recorder.answered(self, exchange, -1, None, None)

    # ------------------------------------------------------------------------------ answers

    def _on_answers(self, frames: list[memoryview]) -> None:
        out: list[Buffer] = []
        passed: list[_Passed] = []
        problem = ""
        for frame in frames:
            if not self._pending:
                problem = "the broker sent an answer without a request"
                break
            exchange = self._pending.popleft()
            if exchange.api_key == BARE_TOKEN:
                out += framed(frame)
            elif exchange.is_own:
                self._answered_own(exchange, frame)
            elif correlation_id_of(frame) != exchange.correlation_id:
                self._pending.appendleft(exchange)  # it has no answer
                problem = "the broker's answers are not in the order of the requests"
                break
            else:
                self._answered(exchange, frame, out, passed)
            if not self.is_open:
                break
        is_sent = self.is_open and not self._is_silent
        if out and is_sent and self._client is not None:
            self._client.send(out)
        recorder = self._host.recorder
        for each in passed:
            size_bytes = each.size_bytes if is_sent else -1
            recorder.answered(self, each.exchange, size_bytes, each.body, each.frame)
        if problem:
            self.close(problem)
        self._pump()

    def ask(self, exchange: Exchange, body: Message, on_answer: Callable[[Message], None]) -> None:
        """Send the broker a request of the proxy's own, in the version of a client's."""
        if self._upstream is None or not self.is_open:
            return
        key, version, number = exchange.api_key, exchange.api_version, exchange.correlation_id
        own = structs.replace(exchange, is_own=True, is_answered=True, kept=None)
        own.on_answer = on_answer
        self._pending.append(own)
        self._upstream.send(encode_request_frame(key, version, number, exchange.client_id, body))

    def _answered_own(self, exchange: Exchange, frame: memoryview) -> None:
        body = self._decoded(exchange, frame)
        if body is None or exchange.on_answer is None:
            self.close("the broker's answer to the proxy cannot be read")
        else:
            exchange.on_answer(body)

    def _answered(
        self, exchange: Exchange, frame: memoryview, out: list[Buffer], passed: list[_Passed]
    ) -> None:
        """Add the answer to the bytes for the client, changed if it must be, and to those that are
        recorded once they are sent."""
        key, version = exchange.api_key, exchange.api_version
        body: Message | None = None
        is_changed = False
        if (
            (is_read(key, version) and not names_none(key, version, frame))
            or (key == _API_VERSIONS and frame[SIZE.size :] not in self._host.plain_versions)
            or exchange.on_answer is not None
        ) and is_known(key, version):
            body = self._decoded(exchange, frame)
            if body is not None:
                is_changed = self._rewritten(exchange, body)
            if key == _API_VERSIONS and not is_changed:
                self._host.plain_versions.add(frame[SIZE.size :])
        if exchange.on_answer is not None and body is not None:
            changed = exchange.on_answer(body)
            if changed is None:
                if not exchange.is_held:
                    self._host.recorder.answered(self, exchange, -1, body, None)
                return
            is_changed, body = True, changed
        size_bytes = len(frame)
        if is_changed and body is not None:
            buffers = self._encoded(exchange, body)
            size_bytes = sum(map(len, buffers)) - SIZE.size
            out += buffers
        else:
            out += framed(frame)
        passed.append(_Passed(exchange, size_bytes, body, frame))

    def _encoded(self, exchange: Exchange, body: Message) -> list[Buffer]:
        return encode_response_frame(
            exchange.api_key, exchange.api_version, exchange.correlation_id, body
        )

    def _decoded(self, exchange: Exchange, frame: memoryview) -> Message | None:
        """The answer's body; None if it cannot be read, so that it passes as it is."""
        key = exchange.api_key
        body: Message
        try:
            _, body = decode_response_frame(key, exchange.api_version, frame)
            return body
        except ProtocolError as error:
            if key != ApiKey.API_VERSIONS:
                name = APIS[key].name
                self._host.log(f"connection {self.number}: {name} passes unread: {error}")
                return None
        try:
            _, body = decode_response_frame(key, 0, frame)
        except ProtocolError:
            return None
        exchange.api_version = 0  # a broker that is older than the request answers in version 0
        return body

    def _rewritten(self, exchange: Exchange, body: Message) -> bool:
        """Replace in an answer what clients must not see; returns whether there is any."""
        if isinstance(body, m.ApiVersionsResponse):
            return capped(body)
        return rewrite(exchange.api_key, exchange.api_version, body, self._address_of)

    def _address_of(self, broker_id: int, host: str, port: int) -> Address:
        return self._advertised, self._host.learn(broker_id, (host, port))

    def answer(self, exchange: Exchange, body: Message | None) -> None:
        """Answer a request in place of the broker, or with what the broker has answered before;
        nothing is sent without a body."""
        buffers = [] if body is None else self._encoded(exchange, body)
        self._send(buffers)
        size_bytes = sum(map(len, buffers)) - SIZE.size if buffers else -1
        self._host.recorder.answered(self, exchange, size_bytes, body, None)

    def _send(self, buffers: list[Buffer]) -> None:
        if buffers and self.is_open and not self._is_silent and self._client is not None:
            self._client.send(buffers)
            self._regulate()

    # --------------------------------------------------------------------- both directions

    def _regulate(self) -> None:
        """Read from each end only what the other end, or this connection, can take."""
        client, upstream = self._client, self._upstream
        if client is None or upstream is None or not self.is_open:
            return
        is_held = bool(self._waits) or bool(self._arrived)
        client.read(not is_held and not upstream.is_full)
        upstream.read(not client.is_full)

    def _on_client_end(self, reason: str) -> None:
        if reason:
            self._host.log_broken(f"connection {self.number} from a client: {reason}")
        self._end(is_client_gone=True)

    def _on_upstream_end(self, reason: str) -> None:
        if reason:
            self._host.log_broken(f"connection {self.number} to broker {self.broker_id}: {reason}")
        self._end(is_client_gone=False)

    def close(self, reason: str) -> None:
        """Close both ends at once."""
        if self.is_open:
            if reason:
                self._host.log(f"connection {self.number} closed: {reason}")
            self._end(is_client_gone=True)

    def _end(self, *, is_client_gone: bool) -> None:
        """Close both ends.  Bytes for the end that is still there leave first."""
        if not self.is_open:
            return
        self.is_open = False
        client, upstream = self._client, self._upstream
        if client is not None and upstream is not None:
            if is_client_gone:
                client.close()
                upstream.close_when_sent()
            else:
                upstream.close()
                client.close_when_sent()
        for exchange in self._pending:
            if exchange.is_own:
                continue
            self._host.recorder.answered(self, exchange, -1, None, None)
        self._forget()

    def _forget(self) -> None:
        self.is_open = False
        self._arrived.clear()
        self._pending.clear()
        self._host.forget(self)
