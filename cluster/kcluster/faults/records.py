"""Records with a fault in them: changed values, wrong CRCs, other schema ids, copies of batches.

Owns: these changes, as functions of bytes: record batches, and message sets of formats 0 and 1.
Never: changes the bytes that it gets, knows a request or a rule.
Kafka: no counterpart; Confluent's wire format of values (a zero byte, the schema id in 4 bytes).

A batch keeps its offsets, timestamps, producer and codec.  Control batches, incomplete batches at
the end, and bytes that cannot be read stay as they are.  A changed message set is not compressed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from struct import Struct as Layout
from typing import Final

from msgspec.structs import replace

from kcluster.events.rule_effects import Corruption
from kcluster.protocol.records.batches import (
    CRC_AT,
    CRC_START,
    HEADER_BYTES,
    LENGTH_END,
    LOG_APPEND_TIME_BIT,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    Batch,
    InvalidRecords,
    parse_batches,
    seal,
)
from kcluster.protocol.records.compression import Buffer
from kcluster.protocol.records.message_sets import (
    MAGIC_AT,
    build_message_set,
    is_batch,
    read_message_set,
)
from kcluster.protocol.records.records import Record, build_batch, read_records

FORMAT_BYTE: Final = b"\0"
"""The first byte of a value in Confluent's wire format."""
_ID: Final = Layout(">i")
_ID_END: Final = len(FORMAT_BYTE) + _ID.size
_OFFSET: Final = Layout(">q")
_LENGTH: Final = Layout(">i")
_EPOCH: Final = Layout(">i")
_EPOCH_AT: Final = 12
_ATTRIBUTES_LOW_BYTE: Final = 22
_PRODUCER: Final = Layout(">qhi")
_PRODUCER_AT: Final = 43
_MESSAGE_CRC: Final = slice(12, 16)

Change = Callable[[Sequence[Record]], list[Record] | None]
"""Changes the records of a batch; None if there is nothing to change."""


def as_bytes(records: Buffer | Sequence[Batch] | None) -> bytes:
    """Records of a message as bytes; simulated brokers answer with batches."""
    if isinstance(records, bytes | bytearray | memoryview):
        return bytes(records)
    return b"".join(batch.buffer for batch in records or ())


def corrupted(records: bytes, of: Corruption) -> bytes:
    """Records with one changed value: the first byte of the last value in the first batch that has
    a value.  With `Corruption.CRC` the batch keeps its CRC, which is then wrong."""
    if not is_batch(records):
        return _corrupted_set(records, of)
    parts: list[Buffer] = []
    is_done = False
    for batch in _pieces(records):
        changed = None
        if isinstance(batch, Batch) and not is_done:
            changed = _changed_batch(batch, _with_inverted_value)
        if changed is not None:
            is_done = True
            if of is Corruption.CRC:
                changed[CRC_AT:CRC_START] = memoryview(batch_bytes(batch))[CRC_AT:CRC_START]
        parts.append(batch_bytes(batch) if changed is None else changed)
    return b"".join(parts)


def with_schema_id(records: bytes, schema_id: int) -> bytes:
    """Records whose values in Confluent's wire format have this schema id."""

    def change(opened: Sequence[Record]) -> list[Record] | None:
        changed = [_with_id(record, schema_id) for record in opened]
        return changed if changed != list(opened) else None

    if not is_batch(records):
        return _changed_set(records, change)
    parts: list[Buffer] = []
    for batch in _pieces(records):
        changed = _changed_batch(batch, change) if isinstance(batch, Batch) else None
        parts.append(batch_bytes(batch) if changed is None else changed)
    return b"".join(parts)


def copied(records: Buffer) -> bytearray:
    """A producer's batches as another producer without idempotence would send them: without
    producer id, epoch, sequence, and what the leader wrote into them."""
    copy = bytearray(records)
    if not is_batch(copy):
        return copy
    position = 0
    for batch in parse_batches(copy):
        start, position = position, position + batch.size_bytes
        _OFFSET.pack_into(copy, start, 0)
        _EPOCH.pack_into(copy, start + _EPOCH_AT, -1)
        copy[start + _ATTRIBUTES_LOW_BYTE] &= ~LOG_APPEND_TIME_BIT
        _PRODUCER.pack_into(
            copy, start + _PRODUCER_AT, NO_PRODUCER_ID, NO_PRODUCER_EPOCH, NO_SEQUENCE
        )
        seal(memoryview(copy)[start:position])
    return copy


# ------------------------------------------------------------------------------------ batches


def batch_bytes(piece: Batch | bytes) -> Buffer:
    """The bytes of a piece of records."""
    return piece.buffer if isinstance(piece, Batch) else piece


def _pieces(records: bytes) -> Iterable[Batch | bytes]:
    """The batches of records, and whatever comes after them."""
    try:
        batches = parse_batches(records)
    except InvalidRecords:
        return (records,)
    end = sum(batch.size_bytes for batch in batches)
    return (*batches, records[end:])


def _changed_batch(batch: Batch, change: Change) -> bytearray | None:
    """A batch with changed records and the right CRC; None if it stays as it is."""
    if batch.is_control:
        return None
    try:
        changed = change(read_records(batch))
    except InvalidRecords:
        return None
    if changed is None:
        return None
    # Deltas are counted from the base timestamp that stays in the header.
    rebuilt = build_batch(
        changed,
        base_offset=batch.base_offset,
        last_offset=batch.last_offset,
        compression=batch.codec,
        delete_horizon_ms=batch.base_timestamp,
    )
    whole = bytearray(memoryview(batch.buffer)[:HEADER_BYTES])
    whole += memoryview(rebuilt)[HEADER_BYTES:]
    _LENGTH.pack_into(whole, LENGTH_END - _LENGTH.size, len(whole) - LENGTH_END)
    seal(whole)
    return whole


def _with_inverted_value(records: Sequence[Record]) -> list[Record] | None:
    at = _last_with_value(records)
    return None if at is None else [*records[:at], _inverted(records[at]), *records[at + 1 :]]


def _last_with_value(records: Sequence[Record]) -> int | None:
    return next((at for at in reversed(range(len(records))) if records[at].value), None)


def _inverted(record: Record) -> Record:
    value = record.value
    assert value
    return replace(record, value=bytes((value[0] ^ 0xFF,)) + value[1:])


def _with_id(record: Record, schema_id: int) -> Record:
    value = record.value
    if value is None or len(value) < _ID_END or not value.startswith(FORMAT_BYTE):
        return record
    return replace(record, value=FORMAT_BYTE + _ID.pack(schema_id) + value[_ID_END:])


# ------------------------------------------------------------------------------- message sets


def _opened_set(records: bytes) -> list[Record]:
    """The messages of a set; empty if they cannot be read."""
    if len(records) <= MAGIC_AT:
        return []
    try:
        return read_message_set(records).records
    except InvalidRecords:
        return []


def _changed_set(records: bytes, change: Change) -> bytes:
    changed = change(_opened_set(records))
    return records if not changed else build_message_set(changed, records[MAGIC_AT])


def _corrupted_set(records: bytes, of: Corruption) -> bytes:
    opened = _opened_set(records)
    at = _last_with_value(opened)
    if at is None:
        return records
    magic = records[MAGIC_AT]
    message = bytearray(build_message_set([_inverted(opened[at])], magic))
    if of is Corruption.CRC:
        message[_MESSAGE_CRC] = build_message_set([opened[at]], magic)[_MESSAGE_CRC]
    before, after = opened[:at], opened[at + 1 :]
    return build_message_set(before, magic) + message + build_message_set(after, magic)
