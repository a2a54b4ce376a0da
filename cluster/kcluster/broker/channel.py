"""Frames to Requests and Replies to bytes, for one broker: the wire side of a broker, without I/O.

Owns: which requests a broker reads at all, and the cache of answers by request bytes.  Never: reads
or writes a socket (drivers/sockets/connection.py does), decides an answer (handlers do).
Kafka: SocketServer.Processor.processCompletedReceives, RequestContext.parseRequest.

What is not a request that this broker serves closes the connection, by ProtocolError: an unknown
API key, a version that is not served, a body that does not decode.  One exception: an ApiVersions
request newer than ours is answered in version 0 with the version to speak (KIP-511).
Which versions are served is a matter of the broker's release (versions.py).

Equal requests get equal bytes: an answer that depends on nothing but the metadata image is kept, as
it went to the wire, until the image moves on.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct as Packing
from typing import Any, Final, Protocol, final

from kcluster.broker.handlers.api_versions import too_new
from kcluster.broker.telemetry import client_metrics
from kcluster.broker.versions import served as served_versions
from kcluster.contract import Reply, Request
from kcluster.metadata.image import MetadataImage
from kcluster.protocol.apis import ApiKey, codec
from kcluster.protocol.codec.compiler import Codec
from kcluster.protocol.errors import ProtocolError
from kcluster.protocol.framing import (
    decode_request_header,
    encode_response_frame,
    frame_response,
)
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
"""Answered from the metadata image alone: equal questions have equal answers until it changes."""

MAX_CACHED_ANSWERS: Final = 256
MAX_CACHED_SIZE_BYTES: Final = 8 << 20
MAX_CACHED_QUESTION_BYTES: Final = 16 << 10

_START: Final = Packing(">hhi")
_CORRELATION_ID: Final = Packing(">i")
_unpack_start: Final = _START.unpack_from


class Quotas(Protocol):
    """`is_active`: clients may be throttled, so the broker must see all of their requests."""

    is_active: bool


class Broker(Protocol):
    """What a channel needs of `kcluster.broker.node.BrokerNode`."""

    image: MetadataImage
    release: Release

    @property
    def quotas(self) -> Quotas: ...


@final
class _Served:
    """How to read and answer one API in one version.

    `codec`: asked for its functions each time; what it has at first only compiles the real ones.
    """

    __slots__ = ("cacheable", "codec")

    def __init__(self, codec: Codec, cacheable: bool) -> None:
        self.codec = codec
        self.cacheable = cacheable


class Channel:
    """All connections of one life of one broker.

    `keeps_answers`: whether the broker need not see a question that it has answered before.
    """

    def __init__(self, broker: Broker, keeps_answers: Callable[[], bool] = lambda: True) -> None:
        self._broker = broker
        self._quotas = broker.quotas
        self._keeps_answers = keeps_answers
        self._served: dict[int, _Served] = {}
        self._answers: dict[bytes, tuple[bytes, bytes]] = {}
        """By request bytes but the correlation id: the answer's before and after that id."""
        self._answers_size_bytes = 0
        self._answers_offset = -1
        self._questions: dict[int, bytes] = {}
        """By connection: the key under which the answer that is due there may be kept."""

    def receive(
        self, frame: memoryview, connection_id: int, client_host: str, now_ms: int
    ) -> Request | list[Buffer]:
        """The request in a frame, or the bytes of the answer where that is known already.
        Raises ProtocolError if the connection is to be closed."""
        if len(frame) < _START.size:
            raise ProtocolError(f"a request of {len(frame)} bytes has no header", 0)
        api_key, api_version, correlation_id = _unpack_start(frame)
        served = self._served.get(api_key << 16 | api_version & 0xFFFF)
        if served is None:
            served = self._find(api_key, api_version)
            if served is None:
                # Its header must be whole all the same, as 4.3.1 has it.
                decode_request_header(frame)
                return self._speak_older(correlation_id)
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
            connection_id, api_key, api_version, correlation_id, header.client_id, body,
            client_host, now_ms,
        )  # fmt: skip

    def answer(self, reply: Reply) -> list[Buffer]:
        """The bytes of an answer, length included; none where the client expects none."""
        request = reply.request
        key = self._questions.pop(request.connection_id, None) if self._questions else None
        if reply.body is None:
            return []
        # What it was read by: only `receive` makes requests that are answered here.
        spoken = self._served[request.api_key << 16 | request.api_version & 0xFFFF].codec
        body: list[Buffer] = spoken.encode_response(reply.body)
        buffers: list[Buffer] = frame_response(spoken, request.correlation_id, body)
        if key is not None and not _has_errors(reply.body) and self._is_for_all(request.api_key):
            self._keep(key, buffers)
        return buffers

    def connection_closed(self, connection_id: int) -> None:
        """Forget what was due to a connection."""
        self._questions.pop(connection_id, None)

    def _find(self, api_key: int, api_version: int) -> _Served | None:
        """How to read this API and version; None for an ApiVersions request newer than ours."""
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

    def _speak_older(self, correlation_id: int) -> list[Buffer]:
        told = too_new(self._broker.release)
        return encode_response_frame(ApiKey.API_VERSIONS, 0, correlation_id, told)

    def _is_for_all(self, api_key: int) -> bool:
        """Whether the handler need not be asked again: it notes each client's software while
        somebody subscribes to clients' metrics."""
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


def _has_errors(body: Any) -> bool:
    """An answer with an error may come with an action (creating the topic asked for), so the next
    such question must reach the broker."""
    if getattr(body, "error_code", 0):
        return True
    return any(topic.error_code for topic in getattr(body, "topics", None) or ())
