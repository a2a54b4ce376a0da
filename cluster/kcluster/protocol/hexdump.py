"""A frame's bytes, each with field path, type and value, in the order of the careful decoder.

Owns: Dump, decoding a request or a response into spans, names beside numbers.  Never: prints
(cli/work/decode.py does).  Kafka: no counterpart; Wireshark's Kafka dissector is similar.

Every byte is in exactly one span.  In a malformed frame, the spans before the fault have the
decoded fields, and the last span has the rest.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from kcluster.protocol.apis import APIS, ApiKey, codec, is_known
from kcluster.protocol.codec.primitives import PACKERS, CarefulReader
from kcluster.protocol.codec.schema import FieldSchema, MessageSchema, StructSchema, message_schema
from kcluster.protocol.errors import ErrorCode, ProtocolError
from kcluster.protocol.hexdump_records import Span, record_spans
from kcluster.protocol.messages import message_class
from kcluster.protocol.uuids import uuid_text

__all__ = ["Dump", "Span", "dump_frames", "dump_request", "dump_response", "split_frames"]

LENGTH_BYTES: Final = 4
_ERRORS: Final = {int(error): error.name for error in ErrorCode}
_EMPTY: Final = StructSchema("Header", ())
_CORRELATION: Final = ("correlation_id", "int32")


class Dump(Struct):
    """One frame, decoded as far as possible.

    `spans`: in order, without gaps, with offsets in the bytes that were passed; `error`: the reason
    why the rest could not be decoded; None if everything was.
    """

    kind: str
    """"request" or "response"."""
    api_key: int
    api_version: int
    spans: list[Span]
    error: ProtocolError | None = None

    @property
    def title(self) -> str:
        """The dump's title, such as `Produce request v11`."""
        if self.api_key not in APIS:
            return f"{self.kind} of an unknown API"
        return f"{APIS[self.api_key].name} {self.kind} v{self.api_version}"


def split_frames(data: bytes) -> list[tuple[int, int]] | None:
    """(offset, size) of the frames in `data`, without the four bytes of size before each; None if
    these four bytes are missing, so that `data` is one frame."""
    frames, position = [], 0
    while position < len(data):
        size = int.from_bytes(data[position : position + LENGTH_BYTES], "big", signed=True)
        position += LENGTH_BYTES
        if size < 0 or position + size > len(data):
            return None
        frames.append((position, size))
        position += size
    return frames or None


def dump_frames(
    data: bytes, api: tuple[int, int] | None = None, sized: bool | None = None
) -> list[Dump]:
    """All frames of `data`.

    `api`: (key, version), if these are responses; `sized`: whether each frame has its size in the
    four bytes before it; None: to be found out.
    """
    frames = split_frames(data) if sized is not False else None
    if frames is None:
        if sized or (sized is None and api is None and _looks_cut_off(data)):
            return [_cut_off(data, api)]
        return [_dump(data, 0, api)]
    dumps = []
    for offset, size in frames:
        dump = _dump(data[offset : offset + size], offset, api)
        dump.spans.insert(0, Span(offset - LENGTH_BYTES, LENGTH_BYTES, "size", "int32", size))
        dumps.append(dump)
    return dumps


def _looks_cut_off(data: bytes) -> bool:
    """Whether the bytes are a size and the beginning of a request that is shorter than this
    size."""
    first, second, key, version = (int.from_bytes(data[x : x + 2], "big") for x in (0, 2, 4, 6))
    is_size = first == 0 or first not in APIS
    return is_size and not is_known(first, second) and len(data) >= 8 and is_known(key, version)


def _cut_off(data: bytes, api: tuple[int, int] | None) -> Dump:
    size = int.from_bytes(data[:LENGTH_BYTES], "big", signed=True)
    dump = _dump(data[LENGTH_BYTES:], LENGTH_BYTES, api)
    there = len(data) - LENGTH_BYTES
    text = f"{size} bytes claimed, {there} present"
    first = Span(0, min(len(data), LENGTH_BYTES), "size", "int32", size, problem=text)
    dump.spans.insert(0, first)
    dump.error = dump.error or ProtocolError(text, 0, "size")
    return dump


def _dump(frame: bytes, offset: int, api: tuple[int, int] | None) -> Dump:
    return dump_request(frame, offset) if api is None else dump_response(frame, *api, offset)


def dump_request(frame: bytes, offset: int = 0) -> Dump:
    """A request without its size; `offset`: its position in the whole input."""
    reader = _Tracer(frame, offset, "request")
    dump = Dump("request", -1, -1, reader.spans)
    try:
        dump.api_key = reader.named("api_key", "int16")
        dump.api_version = reader.named("api_version", "int16")
        if not is_known(dump.api_key, dump.api_version):
            raise reader.refuse(dump.api_key, dump.api_version)
        reader.named(*_CORRELATION)
        api_codec = codec(dump.api_key, dump.api_version)
        if api_codec.request_header_version >= 1:
            reader.client_id()
        if api_codec.request_header_version >= 2:
            reader.header_tags()
        reader.body(f"{APIS[dump.api_key].name}Request", dump.api_version)
    except ProtocolError as error:
        dump.error = error
    return _closed(dump, reader)


def dump_response(frame: bytes, api_key: int, api_version: int, offset: int = 0) -> Dump:
    """A response without its size, of an API and version that are known (`is_known`)."""
    reader = _Tracer(frame, offset, "response")
    dump = Dump("response", api_key, api_version, reader.spans)
    try:
        reader.named(*_CORRELATION)
        if codec(api_key, api_version).response_header_version:
            reader.header_tags()
        reader.body(f"{APIS[api_key].name}Response", api_version)
    except ProtocolError as error:
        dump.error = error
    return _closed(dump, reader)


def _closed(dump: Dump, reader: _Tracer) -> Dump:
    """The dump with spans for the bytes that belong to no value."""
    error, end, spans = dump.error, reader.start, []
    for span in reader.spans:
        if span.offset > end:
            spans.append(reader.gap(end, span.offset, "tags", "unknown tagged field"))
        spans.append(span)
        end = span.offset + span.size
    last, read = reader.start + len(reader.buffer), reader.start + reader.position
    if error is None and end < read:
        spans.append(reader.gap(end, read, "tags", "unknown tagged field"))
        end = read
    if end < last:
        if error is None:
            spans.append(reader.gap(end, last, "", "not read", "bytes after the last field"))
        else:
            spans.append(reader.gap(end, last, error.field_path, "not read", error.reason))
    dump.spans = spans
    if error is not None:
        dump.error = ProtocolError(error.reason, error.position + reader.start, error.field_path)
    return dump


class _Tracer(CarefulReader):
    """A careful decoder that records what it has read as spans."""

    __slots__ = ("name", "spans", "start")

    def __init__(self, frame: bytes, start: int, name: str) -> None:
        nothing = message_class("HeartbeatRequest")
        super().__init__(memoryview(frame), 0, 0, False, nothing)
        self.start = start
        self.name = name
        self.spans: list[Span] = []

    # -------------------------------------------------------------------------- header and body

    def named(self, name: str, kind: str) -> int:
        """Read a number of the header, which has a name."""
        self.path = ["header", name]
        value = self.fixed(kind)
        if name == "api_key" and value in APIS:
            self._relabel(note=APIS[value].name)
        self.path = []
        return value

    def client_id(self) -> None:
        """Read the header's client id, a nullable string that is never compact."""
        start = 8
        self.path = ["header", "client_id"]
        size = self.fixed("int16")
        self._relabel(type="int16 length")
        if size > self.left:
            raise self.fail(f"{size} bytes claimed, {self.left} left", start)
        if size > 0:
            data = bytes(self.take(size))
            try:
                self._add(self.position - size, "string", data.decode())
            except UnicodeDecodeError as error:
                raise self.fail("not UTF-8", self.position - size + error.start) from None
        self.path = []

    def header_tags(self) -> None:
        """Read the tagged fields of a flexible header."""
        self.flexible = True
        self.path = ["header"]
        self.tags(_EMPTY, {})
        self.path = []

    def body(self, name: str, version: int) -> None:
        """Read the message."""
        schema: MessageSchema = message_schema(name)
        self.version, self.flexible = version, schema.is_flexible(version)
        self.top = message_class(name)
        self.struct(schema.top, self.top)
        if self.left and not schema.ignores_rest:
            raise ProtocolError(f"{self.left} bytes follow the message", self.position)

    def refuse(self, api_key: int, api_version: int) -> ProtocolError:
        """The error for a request whose API or version is unknown."""
        if api_key not in APIS:
            return ProtocolError(f"there is no API {api_key}", 0, "header.api_key")
        low, high = APIS[api_key].all_versions
        text = f"{APIS[api_key].name} has no version {api_version}; it has {low} to {high}"
        return ProtocolError(text, 2, "header.api_version")

    def gap(self, begin: int, end: int, path: str, kind: str, problem: str = "") -> Span:
        """Add a span for bytes that belong to no value."""
        data = bytes(self.buffer[begin - self.start : end - self.start])
        return Span(begin, end - begin, path, kind, data, problem=problem)

    # ----------------------------------------------------------- called by the careful decoder

    def fixed(self, kind: str) -> int:
        value = super().fixed(kind)
        self._add(self.position - PACKERS[kind].size, kind, value)
        return value

    def uvarint(self) -> int:
        start = self.position
        value = super().uvarint()
        self._add(start, "uvarint", value)
        return value

    def length(self, kind: str) -> int:
        value = super().length(kind)
        last = self.spans[-1]
        note = "null" if value < 0 else (f"= {value}" if value != last.value else "")
        self._relabel(type=f"{last.type} length", note=note)
        return value

    def item(self, field: FieldSchema) -> object:
        start, before = self.position, len(self.spans)
        value = super().item(field)
        if field.struct is not None:
            return value
        if len(self.spans) > before:
            start = self.spans[-1].offset + self.spans[-1].size - self.start
        if self.position == start:
            return value
        if field.type == "records":
            self.spans += record_spans(bytes(value), self.start + start, self._path())
        else:
            self._add(start, field.type, value, _meaning(field, value))
        return value

    def _add(self, start: int, kind: str, value: object, note: str = "") -> None:
        size = self.position - start
        self.spans.append(Span(self.start + start, size, self._path(), kind, value, note))

    def _relabel(self, **changes: str) -> None:
        last = self.spans[-1]
        values = {name: getattr(last, name) for name in last.__struct_fields__}
        self.spans[-1] = Span(**values | changes)

    def _path(self) -> str:
        return self.fail("", 0).field_path


def _meaning(field: FieldSchema, value: Any) -> str:
    """A value's meaning, for readers: the name of an error or an API, the text of a UUID."""
    if field.name.endswith("error_code"):
        return _ERRORS.get(value, "")
    if field.type == "uuid":
        return uuid_text(value)
    if field.name == "api_key" and value in APIS:
        return ApiKey(value).name
    return ""
