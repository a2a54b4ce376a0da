"""Frames to Requests and Replies to bytes, for one broker: the wire side of a broker, without I/O.

Owns: the acceptance of requests, and the cache of answers by request bytes.  Never: reads or writes
a socket (drivers/sockets/connection.py does), decides an answer (handlers do).  Kafka:
SocketServer.Processor.processCompletedReceives, RequestContext.parseRequest.

A request that this broker does not serve raises ProtocolError, which closes the connection: an
unknown API key, a version that is not served, a body that does not decode.  An ApiVersions request
newer than ours is the exception: it is answered in version 0 with the versions served (KIP-511).
The broker's release decides on the served versions (versions.py).

On a SASL listener each connection has a login (security/sasl/authenticator.py), which admits its
requests: before the client has logged in, at the end of its session, and when it logs in again.

Equal requests get equal bytes: an answer that depends on the metadata image alone is kept, as it
was written to the wire, until the image changes.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct as Packing
from typing import TYPE_CHECKING, Final, Protocol, final

from msgspec import structs

from kcluster.broker.handlers.metadata.api_versions import too_new
from kcluster.broker.telemetry import client_metrics
from kcluster.broker.versions import served as served_versions
from kcluster.contract import LoginFailed, Reply, Request
from kcluster.metadata.image import MetadataImage
from kcluster.principals import UNAUTHENTICATED, ClientIdentity, Principal
from kcluster.protocol.apis import APIS, ApiKey, codec
from kcluster.protocol.codec.compiler import Codec
from kcluster.protocol.error_answers import ErrorAnswers
from kcluster.protocol.errors import ErrorCode, ProtocolError, StringTooLong
from kcluster.protocol.framing import decode_request_header, encode_response_frame, frame_response
from kcluster.protocol.messages import message_class
from kcluster.protocol.releases import Release

if TYPE_CHECKING:
    from kcluster.broker.logins import Logins
    from kcluster.security.sasl.authenticator import SaslAuthenticator

Buffer = bytes | bytearray | memoryview

IMAGE_ONLY_APIS: Final = frozenset(
    {
        ApiKey.API_VERSIONS,
        ApiKey.METADATA,
        ApiKey.DESCRIBE_CLUSTER,
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
    }
)
"""APIs that are answered from the metadata image alone: equal requests get equal answers until the
image changes."""

MAX_CACHED_ANSWERS: Final = 256
MAX_CACHED_SIZE_BYTES: Final = 8 << 20
MAX_CACHED_QUESTION_BYTES: Final = 16 << 10

_START: Final = Packing(">hhi")
_CORRELATION_ID: Final = Packing(">i")
_unpack_start: Final = _START.unpack_from


class Quotas(Protocol):
    """A broker's quotas.  `is_active`: clients may be throttled, so the broker must see all of
    their requests."""

    is_active: bool


class ChannelBroker(Protocol):
    """A channel's interface to a broker (broker/node.py)."""

    @property
    def image(self) -> MetadataImage: ...
    @property
    def release(self) -> Release: ...
    @property
    def quotas(self) -> Quotas: ...
    @property
    def access(self) -> object | None: ...


@final
class _Served:
    """The functions that read and answer one API in one version.

    The functions of `codec` are looked up at each use, because at first they are stand-ins that
    compile the real functions.
    """

    __slots__ = ("cacheable", "codec")

    def __init__(self, codec: Codec, cacheable: bool) -> None:
        self.codec = codec
        self.cacheable = cacheable


class Channel:
    """All connections to one listener of one life of one broker.

    `keeps_answers`: whether a repeated request may be answered without the broker; `identity`: the
    listener's clients, before they log in; `logins`: the broker's, for a listener with security.
    """

    def __init__(
        self,
        broker: ChannelBroker,
        keeps_answers: Callable[[], bool] = lambda: True,
        identity: ClientIdentity = UNAUTHENTICATED,
        logins: Logins | None = None,
    ) -> None:
        self.identity = identity
        self._broker = broker
        self._secured_clients = logins
        self._logins = logins if identity.protocol.has_sasl else None
        self._quotas = broker.quotas
        self._keeps_answers = keeps_answers
        self._served: dict[int, _Served] = {}
        self._answers: dict[bytes, tuple[bytes, bytes]] = {}
        """The answer before and after the correlation id, by request bytes without that id."""
        self._answers_size_bytes = 0
        self._answers_offset = -1
        self._certified: dict[int, ClientIdentity] = {}
        """The identities of clients that have shown a certificate, by connection."""
        self._questions: dict[int, bytes] = {}
        """The key under which a connection's pending answer may be kept, by connection."""

    def receive(
        self, frame: memoryview, connection_id: int, client_host: str, now_ms: int
    ) -> Request | list[Buffer] | LoginFailed:
        """The request in a frame, or the bytes of its answer if they are cached, or the end of its
        client's login.  Raises ProtocolError if the connection must be closed."""
        identity = self.identity if not self._certified else self.identity_of(connection_id)
        if self._logins is not None:
            login = self._logins.of(connection_id, identity)
            before = self._receive_in_login(login, frame, connection_id, client_host, now_ms)
            if before is not None:
                return before
            identity = login.identity
        if len(frame) < _START.size:
            raise ProtocolError(f"a request of {len(frame)} bytes has no header", 0)
        api_key, api_version, correlation_id = _unpack_start(frame)
        served = self._served.get(api_key << 16 | api_version & 0xFFFF)
        if served is None:
            served = self._find(api_key, api_version)
            if served is None:
                # As in Kafka 4.3.1, the header of such a request must be complete.
                decode_request_header(frame)
                return self._answer_in_version_0(correlation_id)
        if (
            served.cacheable
            and not self._quotas.is_active
            and self._keeps_answers()
            and len(frame) <= MAX_CACHED_QUESTION_BYTES
        ):
            if self._answers_offset != self._broker.image.offset:
                self._forget_answers()
            key = bytes(frame[:4]) + frame[8:]
            answer = self._answers.get(key)
            if answer is not None:
                return [b"".join((answer[0], _CORRELATION_ID.pack(correlation_id), answer[1]))]
            self._questions[connection_id] = key
        header = decode_request_header(frame)
        body = served.codec.decode_request(frame, header.body_position)
        return Request(
            connection_id,
            api_key,
            api_version,
            correlation_id,
            header.client_id,
            body,
            client_host,
            now_ms,
            identity,
        )

    def answer(self, reply: Reply) -> list[Buffer]:
        """The bytes of an answer with its length; empty where the client expects none.  Raises
        ProtocolError if the connection must be closed."""
        request = reply.request
        key = self._questions.pop(request.connection_id, None) if self._questions else None
        if reply.body is None:
            return []
        if self._logins is not None:
            token = self._answer_in_login(self._logins, reply)
            if token is not None:
                return token
        # The codec with which `receive` read the request.
        served = self._served.get(request.api_key << 16 | request.api_version & 0xFFFF)
        if served is None:  # a rule answers a too new ApiVersions request in version 0
            served = self._find(request.api_key, request.api_version)
            assert served is not None, request
        spoken = served.codec
        try:
            body: list[Buffer] = spoken.encode_response(reply.body)
        except StringTooLong as too_long:
            key, body = None, self._answer_instead(request, spoken, str(too_long))
        buffers: list[Buffer] = frame_response(spoken, request.correlation_id, body)
        if key is not None and not _has_errors(reply.body) and self._is_for_all(request.api_key):
            self._keep(key, buffers)
        return buffers

    def _answer_instead(self, request: Request, spoken: Codec, reason: str) -> list[Buffer]:
        """The answer if the real one cannot be written, because it repeats a client's long name.
        Kafka: RequestHandlerHelper.handleError, after the writer's exception."""
        answers = self._error_answers(request, ErrorCode.UNKNOWN_SERVER_ERROR)
        instead = answers.answer(request.body)
        if instead is None:
            raise ProtocolError(f"the answer has {reason}", 0)
        body: list[Buffer] = spoken.encode_response(instead)
        return body

    def _error_answers(self, request: Request, error: ErrorCode) -> ErrorAnswers:
        names = self._broker.image.topic_names
        return ErrorAnswers(request.api_key, request.api_version, error, names.get)

    def secured(self) -> None:
        """Take note of a successful TLS handshake."""
        if self._secured_clients is not None:
            self._secured_clients.secured(self.identity)

    def certified(self, connection_id: int, principal: Principal, until_ms: int) -> None:
        """Take note of the principal that a client's certificate gives it.  `until_ms`: the
        certificate's end, in ms since 1970."""
        self._certified[connection_id] = structs.replace(
            self.identity, principal=principal, certificate_until_ms=until_ms
        )

    def identity_of(self, connection_id: int) -> ClientIdentity:
        """Who the client of a connection is, as far as the listener knows."""
        return self._certified.get(connection_id, self.identity)

    def connection_closed(self, connection_id: int) -> None:
        """Forget a connection's pending answer and its client."""
        self._questions.pop(connection_id, None)
        self._certified.pop(connection_id, None)

    # ------------------------------------------------------------------------- SASL listeners

    def is_logged_in(self, connection_id: int) -> bool:
        """Whether a connection's client may send large requests."""
        return self._logins is None or self._logins.of(connection_id, self.identity).is_complete

    def login_limit_bytes(self, request_max_bytes: int) -> int:
        """The size of the largest request of a client that has not logged in."""
        if self._logins is None:
            return request_max_bytes
        limit_bytes = self._logins.settings[self.identity.listener].max_receive_bytes
        return min(limit_bytes, request_max_bytes)

    def unreadable(self, connection_id: int, client_host: str, detail: str) -> LoginFailed | None:
        """The end of the login of a client that sent no frame; None if the connection has no login
        that could fail."""
        if self._logins is None or self.is_logged_in(connection_id):
            return None
        return self._logins.unreadable(connection_id, self.identity, client_host, detail)

    def _receive_in_login(
        self,
        login: SaslAuthenticator,
        frame: memoryview,
        connection_id: int,
        client_host: str,
        now_ms: int,
    ) -> Request | list[Buffer] | LoginFailed | None:
        """The request in the frame of a client that has not logged in, or the end of its login.
        None: the client has logged in, and its request is served as all others."""
        assert self._logins is not None
        api_key = _START.unpack_from(frame)[0] if len(frame) >= _START.size else -1
        failure = login.admit(api_key, len(frame), now_ms)
        if failure is None:
            if login.is_complete:
                return None
            if login.takes_raw_tokens:
                return self._logins.raw_token(login, frame, connection_id, client_host, now_ms)
        failed = None
        if failure is not None:
            failed = self._logins.failed(failure, connection_id, client_host)
            if not failure.is_answered:
                return failed
        try:
            received = self._decode(frame, connection_id, client_host, now_ms, login.identity)
        except ProtocolError as error:
            return self._logins.malformed(login, connection_id, client_host, str(error))
        if failed is None or not isinstance(received, Request):
            return received
        answers = self._error_answers(received, ErrorCode.ILLEGAL_SASL_STATE)
        blank = message_class(f"{APIS[received.api_key].name}Response")
        failed.request, failed.answer = received, answers.answer(received.body) or blank()
        return failed

    def _decode(
        self,
        frame: memoryview,
        connection_id: int,
        client_host: str,
        now_ms: int,
        identity: ClientIdentity,
    ) -> Request | list[Buffer]:
        """The request in a frame, or the answer to a too new ApiVersions request."""
        header = decode_request_header(frame)
        key, version = header.api_key, header.api_version
        served = self._served.get(key << 16 | version & 0xFFFF) or self._find(key, version)
        if served is None:
            return self._answer_in_version_0(header.correlation_id)
        body = served.codec.decode_request(frame, header.body_position)
        return Request(
            connection_id,
            key,
            version,
            header.correlation_id,
            header.client_id,
            body,
            client_host,
            now_ms,
            identity,
        )

    def _answer_in_login(self, logins: Logins, reply: Reply) -> list[Buffer] | None:
        """The bytes of the answer to a bare token; None for any other answer."""
        request = reply.request
        login = logins.get(request.connection_id)
        if login is None:
            return None
        if login.awaits_raw_answer:
            login.awaits_raw_answer = False
            token = bytes(reply.body.auth_bytes)
            return [len(token).to_bytes(4, "big") + token]
        if request.api_key == ApiKey.API_VERSIONS and not reply.body.error_code:
            login.versions_answered()
        return None

    def _find(self, api_key: int, api_version: int) -> _Served | None:
        """The codec of this API and version; None for an ApiVersions request newer than ours."""
        versions = served_versions(self._broker.release, api_key)
        if versions is None:
            raise ProtocolError(f"API key {api_key} is not served", 0)
        if not versions[0] <= api_version <= versions[1]:
            if api_key == ApiKey.API_VERSIONS:
                return None
            raise ProtocolError(
                f"{ApiKey(api_key).name} version {api_version} is not served"
                f" ({versions[0]} to {versions[1]} are)",
                2,
            )
        # With an authorizer, answers depend on the client.
        is_cacheable = api_key in IMAGE_ONLY_APIS and self._broker.access is None
        served = _Served(codec(api_key, api_version), is_cacheable)
        self._served[api_key << 16 | api_version] = served
        return served

    def _answer_in_version_0(self, correlation_id: int) -> list[Buffer]:
        answer = too_new(self._broker.release)
        return encode_response_frame(ApiKey.API_VERSIONS, 0, correlation_id, answer)

    def _is_for_all(self, api_key: int) -> bool:
        """Whether the answer may be reused.  ApiVersions must reach its handler while there are
        subscriptions to clients' metrics, because the handler then records each client's
        software."""
        return api_key != ApiKey.API_VERSIONS or not client_metrics(self._broker.image)

    def _keep(self, key: bytes, buffers: list[Buffer]) -> None:
        if self._answers_offset != self._broker.image.offset:
            self._forget_answers()
        frame = b"".join(buffers)
        size_bytes = len(key) + len(frame)
        if (
            len(self._answers) >= MAX_CACHED_ANSWERS
            or self._answers_size_bytes + size_bytes > MAX_CACHED_SIZE_BYTES
        ):
            return
        self._answers[key] = (frame[:4], frame[8:])
        self._answers_size_bytes += size_bytes

    def _forget_answers(self) -> None:
        self._answers.clear()
        self._answers_size_bytes = 0
        self._answers_offset = self._broker.image.offset


def _has_errors(body: object) -> bool:
    """Whether an answer contains an error.  The handler of an answer with errors may also have
    requested a topic, so the next equal request must reach the broker."""
    if getattr(body, "error_code", 0):
        return True
    return any(topic.error_code for topic in getattr(body, "topics", None) or ())
