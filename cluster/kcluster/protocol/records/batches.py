"""Record batches of format v2 without their records: header, size, crc.

Owns: the layout of the 61 header bytes and stateless checks on them.  Never: opens records
(records.py does), copies bytes, assigns offsets (partition/log/log.py).
Kafka: DefaultRecordBatch, ByteBufferLogInputStream; KIP-98.  Formats 0 and 1 are refused, as in
every Produce version that a 4.x broker accepts.

A peer's malformed records raise `InvalidRecords`, which has the ErrorCode that Kafka returns.
"""

from __future__ import annotations

from struct import Struct as Layout
from typing import Final, final

from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.records.compression import Buffer
from kcluster.protocol.records.crc import crc32c_of

HEADER: Final = Layout(">qiibIhiqqqhii")
"""The header's fields: base offset, batch length, leader epoch, magic, crc, attributes, last offset
delta, base timestamp, max timestamp, producer id, producer epoch, base sequence, record count."""

HEADER_BYTES: Final = HEADER.size
LENGTH_END: Final = 12
"""The position from which the batch length is counted: it excludes base offset and the length
itself."""
CRC_AT: Final = 17
CRC_START: Final = 21
"""The position from which the crc is computed, to the end.  It begins at the attributes, so base
offset and leader epoch can be assigned without computing the crc again."""

MAGIC: Final = 2
NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_SEQUENCE: Final = -1
NO_TIMESTAMP: Final = -1
SEQUENCE_MODULUS: Final = 1 << 31

CODEC_MASK: Final = 0x07
LOG_APPEND_TIME_BIT: Final = 0x08
TRANSACTIONAL_BIT: Final = 0x10
CONTROL_BIT: Final = 0x20
DELETE_HORIZON_BIT: Final = 0x40

CREATE_TIME: Final = 0
LOG_APPEND_TIME: Final = 1

_LEGACY_MIN_BYTES: Final = 14
_INT32: Final = Layout(">i")
_UINT32: Final = Layout(">I")
_unpack_header: Final = HEADER.unpack_from
_unpack_crc: Final = _UINT32.unpack_from
_crc32c_of: Final = crc32c_of
_View: Final = memoryview  # compiled code looks up a builtin each time, but never a Final


class InvalidRecords(Exception):
    """Records that violate the format.  `error`: the code that Kafka returns; `text`: the
    reason."""

    def __init__(self, error: ErrorCode, text: str) -> None:
        super().__init__(f"{error.name}: {text}")
        self.error = error
        self.text = text


@final
class Batch:
    """A record batch: its header fields, and the bytes from which they were read.

    Immutable once appended: the replicas of a partition and the responses to clients share it.
    Only the leader's append, which created it, sets offsets and epoch.
    """

    __slots__ = (
        "attributes", "base_offset", "base_sequence", "base_timestamp", "buffer", "last_offset",
        "leader_epoch", "max_timestamp", "producer_epoch", "producer_id", "record_count",
        "size_bytes",
    )  # fmt: skip

    def __init__(
        self,
        base_offset: int,
        last_offset: int,
        leader_epoch: int,
        attributes: int,
        base_timestamp: int,
        max_timestamp: int,
        producer_id: int,
        producer_epoch: int,
        base_sequence: int,
        record_count: int,
        size_bytes: int,
        buffer: Buffer,
    ) -> None:
        self.base_offset = base_offset
        self.last_offset = last_offset
        self.leader_epoch = leader_epoch
        self.attributes = attributes
        self.base_timestamp = base_timestamp
        self.max_timestamp = max_timestamp
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.base_sequence = base_sequence
        self.record_count = record_count
        self.size_bytes = size_bytes
        self.buffer = buffer

    def __repr__(self) -> str:
        return (
            f"<Batch [{self.base_offset}, {self.last_offset}] epoch={self.leader_epoch}"
            f" producer={self.producer_id}:{self.producer_epoch}:{self.base_sequence}"
            f" {self.size_bytes} bytes>"
        )

    @property
    def codec(self) -> int:
        """Codec id, see compression.CODEC_NAMES."""
        return self.attributes & CODEC_MASK

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL_BIT != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL_BIT != 0

    @property
    def timestamp_type(self) -> int:
        return LOG_APPEND_TIME if self.attributes & LOG_APPEND_TIME_BIT else CREATE_TIME

    @property
    def last_sequence(self) -> int:
        """Sequence of the last record; sequences wrap from 2^31-1 to 0."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        delta = self.last_offset - self.base_offset
        return (self.base_sequence + delta) % SEQUENCE_MODULUS


# -------------------------------------------------------------------------------------- header view


def parse_batches(buffer: Buffer) -> list[Batch]:
    """Return the complete batches in `buffer`, in order, as slices of it without a copy.

    An incomplete batch at the end is left out, as in Kafka: a fetch may end anywhere.  Raises
    InvalidRecords for bytes that are not a batch (CORRUPT_MESSAGE) and for a batch of an older
    format (INVALID_RECORD).  Neither the crc nor the records are checked.
    """
    view = buffer if type(buffer) is _View else _View(buffer)
    size = len(view)
    if size < HEADER_BYTES:
        _refuse_short(view, 0)
        return []
    (
        base_offset,
        length,
        leader_epoch,
        magic,
        _,
        attributes,
        last_offset_delta,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        count,
    ) = _unpack_header(view)
    if magic == MAGIC and length == size - LENGTH_END:
        # The common case, from producers: one batch that fills the buffer.
        return [
            Batch(
                base_offset,
                base_offset + last_offset_delta,
                leader_epoch,
                attributes,
                base_timestamp,
                max_timestamp,
                producer_id,
                producer_epoch,
                base_sequence,
                count,
                size,
                view,
            )
        ]
    return _parse_many(view)


def _parse_many(view: memoryview) -> list[Batch]:
    batches: list[Batch] = []
    position, end = 0, len(view)
    while end - position >= HEADER_BYTES:
        (
            base_offset,
            length,
            leader_epoch,
            magic,
            _,
            attributes,
            last_offset_delta,
            base_timestamp,
            max_timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            count,
        ) = _unpack_header(view, position)
        size = length + LENGTH_END
        if magic != MAGIC or size < HEADER_BYTES:
            _refuse_short(view, position)
        if size > end - position:
            return batches
        batches.append(
            Batch(
                base_offset,
                base_offset + last_offset_delta,
                leader_epoch,
                attributes,
                base_timestamp,
                max_timestamp,
                producer_id,
                producer_epoch,
                base_sequence,
                count,
                size,
                view[position : position + size],
            )
        )
        position += size
    _refuse_short(view, position)
    return batches


def _refuse_short(view: memoryview, position: int) -> None:
    """Raise for the bytes at `position`, which are not a v2 header; return if they are merely
    incomplete.

    Kafka: ByteBufferLogInputStream.nextBatch has the same order of checks."""
    remaining = len(view) - position
    if remaining < LENGTH_END:
        return
    (length,) = _INT32.unpack_from(view, position + 8)
    if length < _LEGACY_MIN_BYTES:
        raise InvalidRecords(
            ErrorCode.CORRUPT_MESSAGE,
            f"batch length {length} at byte {position} is less than any batch has",
        )
    if remaining < CRC_AT:
        return
    magic = view[position + 16]
    if magic > MAGIC:
        raise InvalidRecords(
            ErrorCode.CORRUPT_MESSAGE, f"magic {magic} at byte {position + 16} is unknown"
        )
    if remaining < length + LENGTH_END:
        return
    if magic != MAGIC:
        raise InvalidRecords(
            ErrorCode.INVALID_RECORD, f"record format {magic} is not supported, only {MAGIC} is"
        )
    raise InvalidRecords(
        ErrorCode.CORRUPT_MESSAGE,
        f"batch of {length + LENGTH_END} bytes is smaller than its header ({HEADER_BYTES})",
    )


def check_crc(batch: Batch) -> bool:
    """Whether the stored CRC-32C is right for the batch's bytes."""
    buffer = batch.buffer
    view = buffer if type(buffer) is _View else _View(buffer)
    stored: int = _unpack_crc(view, CRC_AT)[0]
    return stored == _crc32c_of(view[CRC_START:])


def seal(batch: bytearray | memoryview) -> None:
    """Compute the CRC-32C of the batch's bytes and write it into the header."""
    _UINT32.pack_into(batch, CRC_AT, crc32c_of(memoryview(batch)[CRC_START:]))
