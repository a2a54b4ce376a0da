"""Records of a batch: building batches from records, reading records from batches.

Owns: the layout of a record.  Never: used to store or forward a batch, for which its header is
enough.
Kafka: DefaultRecord, MemoryRecordsBuilder; KIP-82 (headers), KIP-98 (format v2).

The header view of batches (batches.py) is part of this module's interface.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.int64 import as_int64
from kcluster.protocol.records import compression as codecs
from kcluster.protocol.records.batches import (
    CONTROL_BIT,
    CREATE_TIME,
    DELETE_HORIZON_BIT,
    HEADER,
    HEADER_BYTES,
    LENGTH_END,
    LOG_APPEND_TIME,
    LOG_APPEND_TIME_BIT,
    MAGIC,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TRANSACTIONAL_BIT,
    Batch,
    InvalidRecords,
    check_crc,
    parse_batches,
    seal,
)
from kcluster.structs import Untracked

__all__ = [
    "Batch",
    "Header",
    "InvalidRecords",
    "Record",
    "build_batch",
    "check_crc",
    "parse_batches",
    "read_records",
    "record_size_bytes",
]

Header = tuple[str, bytes | None]


class Record(Untracked):
    """One record.  `offset` and `timestamp` are absolute."""

    offset: int
    timestamp: int
    key: bytes | None = None
    value: bytes | None = None
    headers: tuple[Header, ...] = ()


# ------------------------------------------------------------------------------------ building


def build_batch(
    records: Iterable[Record],
    *,
    base_offset: int = 0,
    compression: str | int = "none",
    level: int | None = None,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    transactional: bool = False,
    control: bool = False,
    leader_epoch: int = -1,
    timestamp_type: int = CREATE_TIME,
    last_offset: int | None = None,
    delete_horizon_ms: int | None = None,
) -> bytearray:
    """Return one batch as bytes.  `level`: the compression level; None: the codec's default.

    Without `last_offset`, records get the offsets `base_offset`, `base_offset + 1`, …, whatever
    offsets they have.  With `last_offset` they keep their offsets and any gaps, as in a compacted
    batch.  `delete_horizon_ms`: the time at which compaction may drop the batch's tombstones
    (KIP-534).  It is stored as the base timestamp, and the records' timestamps are relative to it.
    """
    codec = codecs.CODEC_IDS[compression] if isinstance(compression, str) else compression
    opened = list(records)
    base_timestamp = opened[0].timestamp if opened else NO_TIMESTAMP
    if delete_horizon_ms is not None:
        base_timestamp = delete_horizon_ms
    max_timestamp = max((record.timestamp for record in opened), default=NO_TIMESTAMP)
    body = bytearray()
    for index, record in enumerate(opened):
        delta = index if last_offset is None else record.offset - base_offset
        _write_record(body, record, delta, record.timestamp - base_timestamp)
    last_delta = len(opened) - 1 if last_offset is None else last_offset - base_offset
    attributes = (
        codec
        | (LOG_APPEND_TIME_BIT if timestamp_type == LOG_APPEND_TIME else 0)
        | (TRANSACTIONAL_BIT if transactional else 0)
        | (CONTROL_BIT if control else 0)
        | (DELETE_HORIZON_BIT if delete_horizon_ms is not None else 0)
    )
    payload = body if codec == codecs.NONE else codecs.compress(codec, body, level)
    batch = bytearray(HEADER_BYTES)
    batch += payload
    HEADER.pack_into(
        batch,
        0,
        base_offset,
        len(batch) - LENGTH_END,
        leader_epoch,
        MAGIC,
        0,
        attributes,
        last_delta,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        len(opened),
    )
    seal(batch)
    return batch


def record_size_bytes(record: Record, offset_delta: int, timestamp_delta: int = 0) -> int:
    """The size of an uncompressed record in its batch."""
    out = bytearray()
    _write_record(out, record, offset_delta, timestamp_delta)
    return len(out)


def _write_record(out: bytearray, record: Record, offset_delta: int, timestamp_delta: int) -> None:
    body = bytearray(1)  # record attributes: none are defined
    _write_varint(body, timestamp_delta)
    _write_varint(body, offset_delta)
    _write_nullable(body, record.key)
    _write_nullable(body, record.value)
    _write_varint(body, len(record.headers))
    for name, value in record.headers:
        encoded = name.encode()
        _write_varint(body, len(encoded))
        body += encoded
        _write_nullable(body, value)
    _write_varint(out, len(body))
    out += body


def _write_nullable(out: bytearray, data: bytes | None) -> None:
    if data is None:
        out.append(1)  # zigzag of -1
        return
    _write_varint(out, len(data))
    out += data


def _write_varint(out: bytearray, value: int) -> None:
    """Zigzag, then 7 bits per byte, lowest first."""
    encoded = (value << 1) ^ (value >> 63)
    while encoded > 0x7F:
        out.append(encoded & 0x7F | 0x80)
        encoded >>= 7
    out.append(encoded)


# ------------------------------------------------------------------------------------- reading


def read_records(
    batch: Batch, size_max: int = codecs.SIZE_MAX, record_max: int = 0
) -> list[Record]:
    """Return the records of `batch`.

    Raises InvalidRecords: INVALID_RECORD for bytes that are not the declared number of records, or
    for a record of more than `record_max` bytes in a compressed batch (0: no limit);
    CORRUPT_MESSAGE for a payload that cannot be decompressed, or whose records have more than
    `size_max` bytes.
    """
    payload = memoryview(batch.buffer)[HEADER_BYTES:]
    if batch.codec != codecs.NONE:
        try:
            payload = memoryview(codecs.decompress(batch.codec, payload, size_max))
        except codecs.CompressionError as problem:
            raise InvalidRecords(ErrorCode.CORRUPT_MESSAGE, str(problem)) from problem
    if batch.codec == codecs.NONE:
        record_max = 0
    return read_opened(batch, bytes(payload), record_max)


def read_opened(batch: Batch, data: bytes, record_max: int = 0) -> list[Record]:
    """Return the records of `batch`, whose decompressed payload is `data`; see `read_records`."""
    append_time = batch.max_timestamp if batch.timestamp_type == LOG_APPEND_TIME else None
    records: list[Record] = []
    position = 0
    try:
        for _ in range(batch.record_count):
            size, position = read_varint(data, position)
            end = position + size
            if size > record_max > 0:
                raise InvalidRecords(
                    ErrorCode.INVALID_RECORD, f"record of {size} bytes is above {record_max}"
                )
            if size < 0 or end > len(data):
                raise InvalidRecords(
                    ErrorCode.INVALID_RECORD, f"record of {size} bytes does not fit"
                )
            records.append(_read_one(batch, data, position, end, append_time))
            position = end
    except IndexError as problem:
        raise InvalidRecords(ErrorCode.INVALID_RECORD, "the bytes end inside a record") from problem
    if position != len(data):
        raise InvalidRecords(
            ErrorCode.INVALID_RECORD,
            f"{len(data) - position} bytes left after the declared {batch.record_count} records",
        )
    return records


def _read_one(
    batch: Batch, data: bytes, position: int, end: int, append_time: int | None
) -> Record:
    timestamp_delta, position = read_varlong(data, position + 1)
    offset_delta, position = read_varint(data, position)
    key, position = _read_nullable(data, position, end)
    value, position = _read_nullable(data, position, end)
    header_count, position = read_varint(data, position)
    if header_count < 0 or header_count > end - position:
        raise InvalidRecords(ErrorCode.INVALID_RECORD, f"a record with {header_count} headers")
    headers: Sequence[Header] = ()
    if header_count:
        headers = headers_read = []
        for _ in range(header_count):
            name, position = _read_nullable(data, position, end)
            if name is None:
                raise InvalidRecords(ErrorCode.INVALID_RECORD, "a header's key is null")
            content, position = _read_nullable(data, position, end)
            headers_read.append((name.decode(errors="replace"), content))  # as in Java
    if position != end:
        raise InvalidRecords(
            ErrorCode.INVALID_RECORD, f"record's size is {position - end} bytes off its content"
        )
    timestamp = append_time
    if timestamp is None:
        timestamp = as_int64(batch.base_timestamp + timestamp_delta)
    return Record(batch.base_offset + offset_delta, timestamp, key, value, tuple(headers))


def _read_nullable(data: bytes, position: int, end: int) -> tuple[bytes | None, int]:
    size, position = read_varint(data, position)
    if size < 0:
        return None, position
    stop = position + size
    if stop > end:
        raise InvalidRecords(ErrorCode.INVALID_RECORD, f"field of {size} bytes does not fit")
    return data[position:stop], stop


def read_varint(data: bytes, position: int) -> tuple[int, int]:
    """Return (zigzag varint at `position`, position after it); IndexError past the end."""
    byte = data[position]
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), position + 1
    return _read_long_number(data, position, 5, 0xFFFF_FFFF)


def read_varlong(data: bytes, position: int) -> tuple[int, int]:
    """Return (zigzag varlong of 64 bits at `position`, position after it); IndexError past the
    end."""
    byte = data[position]
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), position + 1
    return _read_long_number(data, position, 10, 0xFFFF_FFFF_FFFF_FFFF)


def _read_long_number(data: bytes, position: int, bytes_max: int, bits: int) -> tuple[int, int]:
    """Read a varint of up to 64 bits; as in Java, further bits are lost."""
    value = shift = 0
    for at in range(position, position + bytes_max):
        byte = data[at]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            value &= bits
            return (value >> 1) ^ -(value & 1), at + 1
        shift += 7
    raise InvalidRecords(ErrorCode.INVALID_RECORD, f"a number has more than {bytes_max} bytes")
