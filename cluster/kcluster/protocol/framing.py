"""Frames of a connection, and the headers in front of requests and responses.

Owns: the 4-byte length before each frame, request headers v0-v2, response headers v0-v1.  Never:
sockets; bytes come in, frames and buffers go out.  Kafka: NetworkReceive, RequestHeader,
ResponseHeader, ApiKeys.requestHeaderVersion.

The header of a request can be read even if its API or version is unknown; the caller then decides
on the answer.  A real broker closes the connection.  The exception is ApiVersions: a version that
is too new is answered with UNSUPPORTED_VERSION in version 0:
`encode_response_frame(ApiKey.API_VERSIONS, 0, …)`.
"""

from __future__ import annotations

from collections import deque
from struct import Struct as Packer
from struct import error as StructError
from typing import Any, Final

from kcluster.protocol.apis import APIS, ApiKey, codec
from kcluster.protocol.codec.compiler import Codec
from kcluster.protocol.codec.primitives import Buffer, skip_tags
from kcluster.protocol.codec.schema import LAST_VERSION
from kcluster.protocol.errors import ProtocolError
from kcluster.structs import Untracked

Frames = deque[memoryview] | list[memoryview]

_FIRST_ALLOCATION_BYTES: Final = 1 << 12
_LARGE_BYTES: Final = 1 << 20
"""The first piece of memory for a frame.  Memory grows as bytes arrive: to four times their number,
for large frames to one and a half times.  So a client that announces 100 MB and sends nothing costs
4 KiB."""
_REST_BYTES_MIN: Final = 1 << 14
"""The least room for more bytes with which they are received directly into the frame."""

_SIZE: Final = Packer(">i")
_REQUEST_HEADER: Final = Packer(">hhih")
_FRAME_START: Final = Packer(">ihhih")
_unpack_size: Final = _SIZE.unpack_from
_unpack_header: Final = _REQUEST_HEADER.unpack_from
_View: Final = memoryview  # as in batches.py: compiled code does not look up a Final
_start: Final = Packer(">ii").pack
_start_flexible: Final = Packer(">iiB").pack
"""Length and header of a response, of header versions 0 and 1."""
_FLEXIBLE_FROM: Final = {
    key: line.flexible[0] if line.flexible[1] >= 0 else LAST_VERSION + 1
    for key, line in APIS.items()
}


class RequestHeader(Untracked):
    """The header before a request's body."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    body_position: int
    """The position in the frame at which the body begins."""


class FrameReader:
    """Splits a stream into frames.  Each frame is a memoryview of its own bytearray, so its records
    may be kept and changed in place."""

    __slots__ = ("_filled", "_frame", "_head", "_size", "max_size_bytes")

    def __init__(self, max_size_bytes: int) -> None:
        self.max_size_bytes = max_size_bytes
        self._head = b""
        self._frame: bytearray | None = None
        self._size = 0
        self._filled = 0

    def feed(self, chunk: Buffer, frames: Frames) -> None:
        """Append the frames that `chunk` completes to `frames`, in order.

        Raises ProtocolError for a length below 0 or above max_size_bytes, after appending the
        frames before it.  The reader cannot be used after that.
        """
        view = chunk if type(chunk) is _View else _View(chunk)
        at, end = 0, len(view)
        while at < end:
            if self._frame is not None:
                taken = self._fill(view[at:])
                at += taken
                if self._filled == self._size:
                    frames.append(self._finished())
                continue
            if not self._head and end - at >= 4:
                (size,) = _unpack_size(view, at)
                at += 4
            else:
                missing = 4 - len(self._head)
                self._head += bytes(view[at : at + missing])
                at += missing
                if len(self._head) < 4:
                    return
                (size,) = _SIZE.unpack(self._head)
                self._head = b""
            if not 0 <= size <= self.max_size_bytes:
                raise ProtocolError(f"frame of {size} bytes, limit {self.max_size_bytes}", 0)
            if end - at >= size:
                frames.append(_View(bytearray(view[at : at + size])))
                at += size
            else:
                self._size, self._filled = size, 0
                self._frame = bytearray(self._room_for(end - at))

    def buffer_for_rest(self) -> memoryview | None:
        """A buffer for the rest of an incomplete frame, if the frame has much room: receive into
        the buffer, then call `received`.  None: receive into memory of your own, and `feed` the
        bytes."""
        if self._frame is None or len(self._frame) - self._filled < _REST_BYTES_MIN:
            return None
        return _View(self._frame)[self._filled :]

    def received(self, count: int) -> memoryview | None:
        """`count` bytes were written into `buffer_for_rest()`; returns the frame if complete."""
        self._filled += count
        return self._finished() if self._filled == self._size else None

    def forget(self) -> None:
        """Free the memory of an incomplete frame whose rest will not come."""
        self._frame = None

    def _fill(self, view: memoryview) -> int:
        """Copy the bytes of `chunk` that belong to the frame; return their number."""
        assert self._frame is not None
        before, count = self._filled, min(len(view), self._size - self._filled)
        if before + count > len(self._frame):
            grown = bytearray(self._room_for(before + count))
            grown[:before] = _View(self._frame)[:before]
            self._frame = grown
        self._frame[before : before + count] = view[:count]
        self._filled = before + count
        return count

    def _room_for(self, arrived: int) -> int:
        """The bytes of memory for a frame of which `arrived` bytes have come."""
        wanted = 4 * arrived if arrived < _LARGE_BYTES else arrived + arrived // 2
        return min(self._size, max(_FIRST_ALLOCATION_BYTES, wanted))

    def _finished(self) -> memoryview:
        assert self._frame is not None
        frame, self._frame = self._frame, None
        return memoryview(frame)


# -------------------------------------------------------------------------------- broker's side


def decode_request_header(frame: Buffer, errors: str = "strict") -> RequestHeader:
    """The header of a request frame; the header of an unknown API is read as version 1.  `errors`:
    what becomes of a client id that is not UTF-8, as in bytes.decode."""
    try:
        api_key, api_version, correlation_id, size = _unpack_header(frame, 0)
        client_id = None
        position = 10
        if api_key == 7 and api_version == 0:  # ControlledShutdown v0 has the only header v0
            return RequestHeader(api_key, api_version, correlation_id, None, 8)
        if size >= 0:
            position += size
            client_id = str(frame[10:position], "utf-8", errors)
        if api_version >= _FLEXIBLE_FROM.get(api_key, 32768):
            count = frame[position]
            position += 1
            if count:
                position = skip_tags(frame, position, count)
        if position > len(frame):
            raise IndexError
    except (StructError, IndexError, ValueError):
        raise _header_error(frame) from None
    return RequestHeader(api_key, api_version, correlation_id, client_id, position)


def _header_error(frame: Buffer) -> ProtocolError:
    """The error of a request header."""
    if len(frame) < 10:
        return ProtocolError(f"{len(frame)} bytes are too few for a request header", 0)
    size = _REQUEST_HEADER.unpack_from(frame, 0)[3]
    end = 10 + max(size, 0)
    if end > len(frame):
        return ProtocolError(f"{size} bytes claimed, {len(frame) - 10} left", 8, "client_id")
    try:
        str(frame[10:end], "utf-8")
    except UnicodeDecodeError as error:
        return ProtocolError("not UTF-8", 10 + error.start, "client_id")
    return ProtocolError("the header's tagged fields do not fit", end, "tags")


def encode_response_frame(
    api_key: int, api_version: int, correlation_id: int, message: object
) -> list[Buffer]:
    """A response with length and header, as buffers to send one after the other."""
    api_codec = codec(api_key, api_version)
    return frame_response(api_codec, correlation_id, api_codec.encode_response(message))


def frame_response(codec: Codec, correlation_id: int, body: list[Buffer]) -> list[Buffer]:
    """Length and header before an encoded body; `body` is not changed."""
    first = body[0]
    size_bytes = len(first) if len(body) == 1 else sum(map(len, body))
    if codec.response_header_version:
        start = _start_flexible(size_bytes + 5, correlation_id, 0)
    else:
        start = _start(size_bytes + 4, correlation_id)
    return [start + first, *body[1:]]


# -------------------------------------------------------------------------------- client's side


def encode_request_frame(
    api_key: int, api_version: int, correlation_id: int, client_id: str | None, message: object
) -> list[Buffer]:
    """A request with length and header, as buffers to send one after the other."""
    api_codec = codec(api_key, api_version)
    body = api_codec.encode_request(message)
    if api_codec.request_header_version == 0:
        header = _FRAME_START.pack(0, api_key, api_version, correlation_id, 0)[:-2]
    elif client_id is None:
        header = _FRAME_START.pack(0, api_key, api_version, correlation_id, -1)
    else:
        name = client_id.encode()
        header = _FRAME_START.pack(0, api_key, api_version, correlation_id, len(name)) + name
    if api_codec.request_header_version == 2:
        header += b"\0"
    size = len(header) - 4 + sum(map(len, body))
    return [_SIZE.pack(size) + header[4:] + body[0], *body[1:]]


def decode_response_frame(api_key: int, api_version: int, frame: Buffer) -> tuple[int, Any]:
    """(correlation id, message) of a response frame."""
    api_codec = codec(api_key, api_version)
    if len(frame) < 4 + api_codec.response_header_version:
        raise ProtocolError(f"{len(frame)} bytes are too few for a response header", 0)
    (correlation_id,) = _SIZE.unpack_from(frame, 0)
    position = 4
    if api_codec.response_header_version:
        try:
            position = skip_tags(frame, 5, frame[4])
        except (IndexError, ValueError):
            raise ProtocolError("the header's tagged fields do not fit", 4, "tags") from None
        if position > len(frame):
            raise ProtocolError("the header's tagged fields do not fit", 4, "tags")
    return correlation_id, api_codec.decode_response(frame, position)


__all__ = [
    "ApiKey", "FrameReader", "RequestHeader", "decode_request_header", "decode_response_frame",
    "encode_request_frame", "encode_response_frame", "frame_response",
]  # fmt: skip
