"""Frames to Requests and Replies to bytes, for one broker: the wire side of a broker, without I/O.

Owns: the acceptance of requests, and the cache of answers by request bytes.  Never: reads or writes
a socket (drivers/sockets/connection.py does), decides an answer (handlers do).  Kafka:
SocketServer.Processor.processCompletedReceives, RequestContext.parseRequest.

A request that this broker does not serve raises ProtocolError, which closes the connection: an
unknown API key, a version that is not served, a body that does not decode.  An ApiVersions request
newer than ours is the exception: it is answered in version 0 with the versions served (KIP-511).
The broker's release decides on the served versions (versions.py).

Equal requests get equal bytes: an answer that depends on the metadata image alone is kept, as it
was written to the wire, until the image changes.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct as Packing
from typing import Final, Protocol, final

from kcluster.broker.handlers.metadata.api_versions import too_new
from kcluster.broker.telemetry import client_metrics
from kcluster.broker.versions import served as served_versions
from kcluster.contract import Reply, Request
from kcluster.metadata.image import MetadataImage
from kcluster.protocol.apis import ApiKey, codec
from kcluster.protocol.codec.compiler import Codec
from kcluster.protocol.error_answers import ErrorAnswers
from kcluster.protocol.errors import ErrorCode, ProtocolError, StringTooLong
from kcluster.protocol.framing import decode_request_header, encode_response_frame, frame_response
from kcluster.protocol.releases import Release

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
    """All connections of one life of one broker.

    `keeps_answers`: whether a repeated request may be answered without the broker.
    """

    def __init__(
        self, broker: ChannelBroker, keeps_answers: Callable[[], bool] = lambda: True
    ) -> None:
        self._broker = broker
        self._quotas = broker.quotas
        self._keeps_answers = keeps_answers
        self._served: dict[int, _Served] = {}
        self._answers: dict[bytes, tuple[bytes, bytes]] = {}
        """The answer before and after the correlation id, by request bytes without that id."""
        self._answers_size_bytes = 0
        self._answers_offset = -1
        self._questions: dict[int, bytes] = {}
        """The key under which a connection's pending answer may be kept, by connection."""

    def receive(
        self, frame: memoryview, connection_id: int, client_host: str, now_ms: int
    ) -> Request | list[Buffer]:
        """The request in a frame, or the bytes of its answer if they are cached.  Raises
        ProtocolError if the connection must be closed."""
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
        )

    def answer(self, reply: Reply) -> list[Buffer]:
        """The bytes of an answer with its length; empty where the client expects none.  Raises
        ProtocolError if the connection must be closed."""
        request = reply.request
        key = self._questions.pop(request.connection_id, None) if self._questions else None
        if reply.body is None:
            return []
        # The codec with which `receive` read the request: only such requests are answered here.
        spoken = self._served[request.api_key << 16 | request.api_version & 0xFFFF].codec
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
        error, names = ErrorCode.UNKNOWN_SERVER_ERROR, self._broker.image.topic_names
        answers = ErrorAnswers(request.api_key, request.api_version, error, names.get)
        instead = answers.answer(request.body)
        if instead is None:
            raise ProtocolError(f"the answer has {reason}", 0)
        body: list[Buffer] = spoken.encode_response(instead)
        return body

    def connection_closed(self, connection_id: int) -> None:
        """Forget a connection's pending answer."""
        self._questions.pop(connection_id, None)

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
        served = _Served(codec(api_key, api_version), api_key in IMAGE_ONLY_APIS)
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
