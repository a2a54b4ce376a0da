"""Message sets, the record formats v0 and v1 from before 0.11: reading, building, converting.

Owns: the layout of a message, wrappers of compressed messages, conversion from and to format v2.
Never: used where both sides use v2, the only format of logs here.
Kafka: LegacyRecord, AbstractLegacyRecordBatch, RecordsUtil.downConvert; KIP-31 (relative offsets),
KIP-32 (timestamps), KIP-98 (format v2).

    offset int64, size int32, crc uint32, magic int8, attributes int8, [timestamp int64: v1,]
    key, value: int32 size (-1: null) and bytes

The value of a compressed message, the wrapper, is a message set itself.  The wrapper has the offset
of the last message in it.  In v0 the inner messages have absolute offsets, in v1 offsets from 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from struct import Struct as Layout
from typing import Final
from zlib import crc32

from msgspec import Struct

from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.records import compression as codecs
from kcluster.protocol.records.batches import (
    CODEC_MASK,
    LOG_APPEND_TIME,
    LOG_APPEND_TIME_BIT,
    NO_TIMESTAMP,
    Batch,
    InvalidRecords,
)
from kcluster.protocol.records.compression import Buffer
from kcluster.protocol.records.records import Record, build_batch, read_records

LAST_MAGIC: Final = 1
MAGIC_AT: Final = 16
"""Position of the byte with the format's number, in every format."""

_START: Final = Layout(">qi")
_CRC_BYTES: Final = 4
_MIN_SIZE_BYTES: Final = 14
_TIMESTAMP: Final = Layout(">q")
_INT32: Final = Layout(">i")
_UINT32: Final = Layout(">I")


class LegacyMessage(Struct, gc=False):
    """One message of a set, with a valid crc.  `codec`: if not 0, its value is a set."""

    offset: int
    magic: int
    codec: int
    timestamp: int
    is_log_append_time: bool
    key: bytes | None
    value: bytes | None


class MessageSet(Struct):
    """The messages of a set.  `codec`: the codec of its last wrapper; `shallow_count`: the number
    of messages at the top level, wrappers included."""

    records: list[Record]
    codec: int = codecs.NONE
    shallow_count: int = 0
    is_log_append_time: bool = False


# ------------------------------------------------------------------------------------ reading


def is_batch(buffer: Buffer) -> bool:
    """Whether `buffer` begins with format v2, or an unknown one."""
    return len(buffer) > MAGIC_AT and buffer[MAGIC_AT] > LAST_MAGIC


def read_message_set(buffer: Buffer, allowance: codecs.Allowance | None = None) -> MessageSet:
    """All messages of a set, those in wrappers too; an incomplete one at the end is left out.

    Raises InvalidRecords: CORRUPT_MESSAGE for wrong sizes, magic bytes and crcs; INVALID_RECORD for
    a wrapper in a wrapper, of another format than its messages, or compressed with zstd;
    UNKNOWN_SERVER_ERROR for a payload that does not decompress; MESSAGE_TOO_LARGE for more bytes
    than `allowance` has left (None: an allowance for this buffer alone).
    """
    opened = MessageSet([])
    if allowance is None:
        allowance = codecs.Allowance(len(buffer))
    for message in _messages(memoryview(buffer)):
        opened.shallow_count += 1
        opened.is_log_append_time = opened.is_log_append_time or message.is_log_append_time
        if message.codec == codecs.NONE:
            opened.records.append(_record(message, message.offset, message.timestamp))
        else:
            opened.codec = message.codec
            opened.records += _unwrapped(message, allowance)
    return opened


def _messages(view: memoryview) -> Iterator[LegacyMessage]:
    position, end = 0, len(view)
    while end - position >= _START.size:
        offset, size = _START.unpack_from(view, position)
        if size < _MIN_SIZE_BYTES:
            raise _corrupt(f"message of {size} bytes at byte {position}")
        if size > end - position - _START.size:
            return
        position += _START.size
        yield _message(offset, view[position : position + size])
        position += size


def _message(offset: int, view: memoryview) -> LegacyMessage:
    magic, attributes = view[4], view[5]
    if magic > LAST_MAGIC:
        raise InvalidRecords(ErrorCode.INVALID_RECORD, f"format {magic} among older messages")
    (crc,) = _UINT32.unpack_from(view)
    if crc != crc32(view[_CRC_BYTES:]):
        raise _corrupt(f"crc of the message at offset {offset} does not match its bytes")
    position, timestamp = 6, NO_TIMESTAMP
    if magic == 1:
        if len(view) < _MIN_SIZE_BYTES + _TIMESTAMP.size:
            raise _corrupt(f"message of {len(view)} bytes has no room for a timestamp")
        (timestamp,) = _TIMESTAMP.unpack_from(view, position)
        position += _TIMESTAMP.size
    key, position = _nullable(view, position)
    value, position = _nullable(view, position)
    append_time = magic == 1 and attributes & LOG_APPEND_TIME_BIT != 0
    return LegacyMessage(offset, magic, attributes & CODEC_MASK, timestamp, append_time, key, value)


def _nullable(view: memoryview, position: int) -> tuple[bytes | None, int]:
    if position + _INT32.size > len(view):
        raise _corrupt("message ends too soon")
    (size,) = _INT32.unpack_from(view, position)
    position += _INT32.size
    if size < 0:
        return None, position
    if position + size > len(view):
        raise _corrupt(f"field of {size} bytes does not fit")
    return bytes(view[position : position + size]), position + size


def _unwrapped(wrapper: LegacyMessage, allowance: codecs.Allowance) -> list[Record]:
    if wrapper.value is None or wrapper.codec == codecs.ZSTD:
        text = "compressed message without a value, or in zstd, which came with format v2"
        raise InvalidRecords(ErrorCode.INVALID_RECORD, text)
    payload = wrapper.value
    if wrapper.codec == codecs.LZ4 and wrapper.magic == 0:
        payload = lz4_with_checksum(payload, of_magic_too=False)
    try:
        opened = codecs.decompress(wrapper.codec, payload, allowance=allowance)
        inner: list[LegacyMessage] = []
        for message in _messages(memoryview(opened)):
            allowance.spend_on(1)
            inner.append(message)
    except codecs.TooLargeError as problem:
        raise InvalidRecords(ErrorCode.MESSAGE_TOO_LARGE, str(problem)) from problem
    except codecs.CompressionError as problem:
        raise InvalidRecords(ErrorCode.UNKNOWN_SERVER_ERROR, str(problem)) from problem
    if not inner:
        raise InvalidRecords(ErrorCode.INVALID_RECORD, "compressed message without messages")
    for message in inner:
        if message.codec != codecs.NONE or message.magic != wrapper.magic:
            raise InvalidRecords(
                ErrorCode.INVALID_RECORD, "a wrapper in a wrapper, or one of another format"
            )
    first_offset = wrapper.offset - inner[-1].offset if wrapper.magic == 1 else 0
    return [
        _record(
            message,
            first_offset + message.offset,
            wrapper.timestamp if wrapper.is_log_append_time else message.timestamp,
        )
        for message in inner
    ]


def _record(message: LegacyMessage, offset: int, timestamp: int) -> Record:
    return Record(offset, timestamp, message.key, message.value)


def _corrupt(text: str) -> InvalidRecords:
    return InvalidRecords(ErrorCode.CORRUPT_MESSAGE, text)


# ----------------------------------------------------------------------------------- building


def build_message_set(
    records: Sequence[Record],
    magic: int,
    codec: int = codecs.NONE,
    is_log_append_time: bool = False,
) -> bytes:
    """Return `records` with their offsets, without their headers; in one wrapper if there is a
    `codec`.  InvalidRecords (UNSUPPORTED_COMPRESSION_TYPE) for zstd, which needs v2."""
    if codec == codecs.ZSTD:
        raise InvalidRecords(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"format {magic} has no zstd (KIP-110)"
        )
    bits = LOG_APPEND_TIME_BIT if is_log_append_time and magic == 1 else 0
    if codec == codecs.NONE or not records:
        return b"".join(_built(record, record.offset, magic, bits) for record in records)
    first_offset = records[0].offset if magic == 1 else 0
    inner = b"".join(
        _built(record, record.offset - first_offset, magic, bits) for record in records
    )
    payload = codecs.compress(codec, inner)
    if codec == codecs.LZ4 and magic == 0:
        payload = lz4_with_checksum(payload, of_magic_too=True)
    latest_ms = max(record.timestamp for record in records)
    wrapper = Record(records[-1].offset, latest_ms, None, payload)
    return _built(wrapper, wrapper.offset, magic, bits | codec)


def _built(record: Record, offset: int, magic: int, attributes: int) -> bytes:
    body = bytearray((magic, attributes))
    if magic == 1:
        body += _TIMESTAMP.pack(record.timestamp)
    for field in (record.key, record.value):
        body += _INT32.pack(-1 if field is None else len(field))
        body += field or b""
    start = _START.pack(offset, _CRC_BYTES + len(body))
    return start + _UINT32.pack(crc32(body)) + body


# --------------------------------------------------------------------------------- conversion


def up_convert(
    buffer: Buffer, takes_many: bool = False, allowance: codecs.Allowance | None = None
) -> bytearray:
    """A produced set as one v2 batch with offsets from 0, as a leader appends it; empty for an
    empty set.

    Raises InvalidRecords like `read_message_set`; INVALID_RECORD for a wrapper that is not alone
    (unless the broker accepts several: `takes_many`), INVALID_TIMESTAMP for messages with
    LogAppendTime, which only brokers may set.
    """
    opened = read_message_set(buffer, allowance)
    if not opened.records:
        return bytearray()
    if opened.codec != codecs.NONE and opened.shallow_count > 1 and not takes_many:
        raise InvalidRecords(ErrorCode.INVALID_RECORD, "a compressed message among others")
    if opened.is_log_append_time:
        raise InvalidRecords(ErrorCode.INVALID_TIMESTAMP, "LogAppendTime in a producer's message")
    if any(record.timestamp < NO_TIMESTAMP for record in opened.records):
        raise InvalidRecords(ErrorCode.UNKNOWN_SERVER_ERROR, "a timestamp is negative")
    return build_batch(opened.records, compression=opened.codec)


def down_convert(
    batches: Iterable[Batch], magic: int, fetch_offset: int, allowance: codecs.Allowance
) -> bytes:
    """v2 batches as a set of format `magic`, compressed with the same codecs.  As in Kafka, control
    batches are left out, and the records of uncompressed batches before `fetch_offset`.  The set
    ends where `allowance`, the allowance of the whole Fetch, is spent.

    Raises InvalidRecords (UNSUPPORTED_COMPRESSION_TYPE) if the first batch is in zstd; a later
    one ends the set.
    """
    sets: list[bytes] = []
    for batch in batches:
        if batch.is_control:
            continue
        if allowance.is_spent or (batch.codec == codecs.ZSTD and sets):
            break
        records = read_records(batch)
        allowance.left_bytes -= sum(len(one.key or b"") + len(one.value or b"") for one in records)
        allowance.left_bytes -= codecs.ENTRY_BYTES * len(records)
        if batch.codec == codecs.NONE:
            records = [record for record in records if record.offset >= fetch_offset]
        append_time = batch.timestamp_type == LOG_APPEND_TIME
        sets.append(build_message_set(records, magic, batch.codec, append_time))
    return b"".join(sets)


# --------------------------------------------------------------------------- lz4 in format v0

_LZ4_MAGIC: Final = bytes.fromhex("04224d18")
_LZ4_CONTENT_SIZE_BIT: Final = 0x08
_P2: Final = 2246822519
_P3: Final = 3266489917
_P4: Final = 668265263
_P5: Final = 374761393
_32_BITS: Final = 0xFFFFFFFF


def lz4_with_checksum(frame: bytes, of_magic_too: bool) -> bytes:
    """A frame with the header checksum of old clients, which include the frame's magic number in
    the checksum before format v1 (KAFKA-3160).  Anything but a frame is returned unchanged."""
    if not frame.startswith(_LZ4_MAGIC) or len(frame) < 7:
        return frame
    end = 14 if frame[4] & _LZ4_CONTENT_SIZE_BIT else 6
    checksum = xxh32_of_few(frame[0 if of_magic_too else 4 : end]) >> 8 & 0xFF
    return b"".join((frame[:end], bytes((checksum,)), frame[end + 1 :]))


def xxh32_of_few(data: bytes) -> int:
    """XXH32 with seed 0, for fewer than 16 bytes."""
    assert len(data) < 16
    value = _P5 + len(data)
    whole = len(data) & ~3
    for at in range(0, whole, 4):
        value = value + int.from_bytes(data[at : at + 4], "little") * _P3 & _32_BITS
        value = _rotated(value, 17) * _P4 & _32_BITS
    for byte in data[whole:]:
        value = value + byte * _P5 & _32_BITS
        value = _rotated(value, 11) * 2654435761 & _32_BITS
    value = (value ^ value >> 15) * _P2 & _32_BITS
    value = (value ^ value >> 13) * _P3 & _32_BITS
    return value ^ value >> 16


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> 32 - bits) & _32_BITS
