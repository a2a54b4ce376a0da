"""Bytes of record batches and message sets, each with the name of its field.

Owns: Span, and the fields of batches, records and old messages as spans, for people to read.
Never: raises: a fault is reported in the span where it is found.
Kafka: kafka-dump-log.sh, DefaultRecordBatch, DefaultRecord, LegacyRecord.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from struct import Struct as Layout
from typing import Any, Final
from zlib import crc32

from msgspec import Struct

from kcluster.protocol.records.batches import (
    CODEC_MASK,
    CONTROL_BIT,
    CRC_AT,
    CRC_START,
    DELETE_HORIZON_BIT,
    HEADER_BYTES,
    LENGTH_END,
    LOG_APPEND_TIME_BIT,
    TRANSACTIONAL_BIT,
    InvalidRecords,
)
from kcluster.protocol.records.compression import CODEC_NAMES, CompressionError, decompress
from kcluster.protocol.records.crc import crc32c_of
from kcluster.protocol.records.message_sets import LAST_MAGIC, MAGIC_AT
from kcluster.protocol.records.records import read_varint, read_varlong

HEADER_FIELDS: Final = (
    ("base_offset", "q"), ("batch_length", "i"), ("partition_leader_epoch", "i"), ("magic", "b"),
    ("crc", "I"), ("attributes", "h"), ("last_offset_delta", "i"), ("base_timestamp", "q"),
    ("max_timestamp", "q"), ("producer_id", "q"), ("producer_epoch", "h"), ("base_sequence", "i"),
    ("record_count", "i"),
)  # fmt: skip
MESSAGE_FIELDS: Final = (
    ("offset", "q"), ("message_size", "i"), ("crc", "I"), ("magic", "b"), ("attributes", "b"),
)  # fmt: skip
TYPES: Final = {"q": "int64", "i": "int32", "I": "uint32", "h": "int16", "b": "int8"}
_BITS: Final = (
    (LOG_APPEND_TIME_BIT, "log append time"), (TRANSACTIONAL_BIT, "transactional"),
    (CONTROL_BIT, "control"), (DELETE_HORIZON_BIT, "delete horizon"),
)  # fmt: skip

_Read = Callable[[bytes, int], tuple[int, int]]
"""Reads a number: `read_varint` or `read_varlong`."""


class Span(Struct, frozen=True):
    """The bytes of one field.  `value`: None, bool, number, text or bytes; `problem`: the fault in
    the bytes, if there is one."""

    offset: int
    size: int
    path: str
    type: str
    value: Any = None
    note: str = ""
    problem: str = ""


class BadBytes(Exception):
    """The error for the bytes that follow, with the fault."""


class _RecordDumper:
    """A position in bytes, and spans for what was read.  `at`: the offset of the first byte."""

    def __init__(self, data: bytes, at: int, path: str) -> None:
        self.data = data
        self.at = at
        self.path = path
        self.position = 0
        self.spans: list[Span] = []

    def add(self, size: int, name: str, kind: str, value: object, **more: str) -> None:
        """Record the next `size` bytes as a span."""
        path = f"{self.path}.{name}" if name else self.path
        self.spans.append(Span(self.at + self.position, size, path, kind, value, **more))
        self.position += size

    def fixed(self, name: str, code: str, note: str = "", problem: str = "") -> int:
        """Read a number of fixed size; IndexError if the bytes end within it."""
        layout = Layout(">" + code)
        if self.position + layout.size > len(self.data):
            raise IndexError
        value: int = layout.unpack_from(self.data, self.position)[0]
        self.add(layout.size, name, TYPES[code], value, note=note, problem=problem)
        return value

    def varint(self, name: str, note: str = "", read: _Read = read_varint) -> int:
        """Read a zigzag varint."""
        value, end = read(self.data, self.position)
        self.add(end - self.position, name, "varint", value, note=note)
        return value

    def bytes_of(self, name: str, size: int) -> None:
        """Record `size` bytes; IndexError if there are fewer."""
        if size > len(self.data) - self.position:
            raise IndexError
        if size > 0:
            self.add(size, name, "bytes", self.data[self.position : self.position + size])

    def rest(self, kind: str, problem: str = "") -> None:
        """Record all remaining bytes as one span."""
        remaining = self.data[self.position :]
        if remaining:
            self.add(len(remaining), "", kind, remaining, problem=problem)


def record_spans(data: bytes, at: int, path: str) -> Iterator[Span]:
    """Spans of all bytes of a records field that begins at `at`, in order."""
    position, number = 0, 0
    while position < len(data):
        reader = _RecordDumper(data[position:], at + position, f"{path}[{number}]")
        try:
            size = _batch(reader)
        except (IndexError, BadBytes, InvalidRecords, CompressionError) as problem:
            reader.rest("bytes", str(problem) or "the bytes end too soon")
            size = len(data) - position
        yield from reader.spans
        position += size
        number += 1


def _batch(reader: _RecordDumper) -> int:
    """Record the spans of one batch, or of one message of an old set; returns its size."""
    data = reader.data
    whole = LENGTH_END + int.from_bytes(data[8:LENGTH_END], "big", signed=True)
    if len(data) <= MAGIC_AT or len(data) < whole:
        reader.rest("bytes", "an incomplete batch, as the last one of a fetch may be")
        return len(data)
    if whole <= MAGIC_AT:
        raise BadBytes("a batch length that leaves no room for a batch")
    reader.data = data[:whole]
    if data[MAGIC_AT] <= LAST_MAGIC:
        _message(reader)
    else:
        _batch_v2(reader)
    reader.rest("bytes", "follow the declared records")
    return whole


def _batch_v2(reader: _RecordDumper) -> None:
    data = reader.data
    attributes = int.from_bytes(data[CRC_START : CRC_START + 2], "big")
    codec = attributes & CODEC_MASK
    for name, code in HEADER_FIELDS:
        note = problem = ""
        if name == "crc":
            actual_crc = crc32c_of(data[CRC_START:])
            if actual_crc != int.from_bytes(data[CRC_AT:CRC_START], "big"):
                problem = f"the bytes have {actual_crc}"
        elif name == "attributes":
            note = _attributes(attributes)
        reader.fixed(name, code, note, problem)
    count = reader.spans[-1].value
    payload = data[HEADER_BYTES:]
    if codec:
        opened = bytes(decompress(codec, payload))
        shown = [
            x.value
            for x in _inside(opened, count)
            if x.path.endswith("].value") and "headers[" not in x.path
        ]
        note = f"{len(opened)} bytes when opened; values: {_short(shown)}"
        kind = f"{_codec_name(codec)} of {count} records"
        reader.add(len(payload), "records", kind, payload, note=note)
        return
    _records(reader, count)


def _inside(opened: bytes, count: int) -> list[Span]:
    reader = _RecordDumper(opened, 0, "")
    _records(reader, count)
    return reader.spans


def _records(reader: _RecordDumper, count: int) -> None:
    path = reader.path
    for number in range(count):
        if reader.position >= len(reader.data):
            break
        reader.path = f"{path}.records[{number}]"
        size = reader.varint("length")
        end = reader.position + size
        if size < 0 or end > len(reader.data):
            reader.path = path
            raise BadBytes(f"a record of {size} bytes does not fit")
        reader.fixed("attributes", "b")
        reader.varint("timestamp_delta", read=read_varlong)
        reader.varint("offset_delta")
        reader.bytes_of("key", reader.varint("key_length"))
        reader.bytes_of("value", reader.varint("value_length"))
        for header in range(reader.varint("header_count")):
            name = f"headers[{header}]"
            reader.bytes_of(f"{name}.key", reader.varint(f"{name}.key_length"))
            reader.bytes_of(f"{name}.value", reader.varint(f"{name}.value_length"))
            if reader.position > end:
                break
        if reader.position != end:
            raise BadBytes(f"a record's size is {reader.position - end} bytes off")
    reader.path = path


def _message(reader: _RecordDumper) -> None:
    """Record the spans of a message of format v0 or v1; the value of a compressed message is a
    message set."""
    data = reader.data
    for name, code in MESSAGE_FIELDS:
        note = problem = ""
        if name == "crc":
            actual_crc = crc32(data[MAGIC_AT:])
            if actual_crc != int.from_bytes(data[LENGTH_END:MAGIC_AT], "big"):
                problem = f"the bytes have {actual_crc}"
        elif name == "attributes":
            note = _attributes(data[MAGIC_AT + 1])
        reader.fixed(name, code, note, problem)
    if data[MAGIC_AT]:
        reader.fixed("timestamp", "q")
    reader.bytes_of("key", reader.fixed("key_length", "i"))
    reader.bytes_of("value", reader.fixed("value_length", "i"))


def _attributes(value: int) -> str:
    words = [_codec_name(value & CODEC_MASK), *(word for bit, word in _BITS if value & bit)]
    return ", ".join(words)


def _codec_name(codec: int) -> str:
    return CODEC_NAMES[codec] if codec < len(CODEC_NAMES) else f"codec {codec}"


def _short(values: list[bytes]) -> str:
    shown = ", ".join(repr(bytes(value[:20]))[1:] for value in values[:5])
    return shown + (f", … {len(values)} in all" if len(values) > 5 else "")
