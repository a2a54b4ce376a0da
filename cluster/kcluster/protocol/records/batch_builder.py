"""A record batch that is built record by record, as by a producer.

Owns: the batch's bytes until it is sent.  The layout is the one of records.py; each record is
encoded once.  Never: decides that the batch is full.  Kafka: MemoryRecordsBuilder.
"""

from __future__ import annotations

from typing import Final

from kcluster.protocol.records import compression as codecs
from kcluster.protocol.records.batches import (
    HEADER,
    LENGTH_END,
    MAGIC,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    seal,
)
from kcluster.protocol.records.records import Header


def varint(value: int) -> bytes:
    """The bytes of a varint: zigzag, then 7 bits per byte, lowest first."""
    encoded = (value << 1) ^ (value >> 63)
    out = bytearray()
    while encoded > 0x7F:
        out.append(encoded & 0x7F | 0x80)
        encoded >>= 7
    out.append(encoded)
    return bytes(out)


_SMALL_LIMIT: Final = 2_048
_SMALL: Final = tuple(varint(value) for value in range(_SMALL_LIMIT))
_NULL: Final = varint(-1)


class BatchBuilder:
    """A batch in the making, of `count` records; `size_bytes` includes the batch header.  Offsets
    start at 0."""

    __slots__ = ("_base_timestamp", "_body", "_max_timestamp", "count", "size_bytes")

    def __init__(self) -> None:
        self.count = 0
        self.size_bytes = HEADER.size
        self._body = bytearray()
        self._base_timestamp = self._max_timestamp = -1

    def append(
        self,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: tuple[Header, ...] = (),
    ) -> None:
        """Add a record."""
        if not self.count:
            self._base_timestamp = timestamp
        if timestamp > self._max_timestamp:
            self._max_timestamp = timestamp
        delta, count = timestamp - self._base_timestamp, self.count
        record = b"".join(
            (
                b"\0",  # attributes: none are defined
                _SMALL[delta] if 0 <= delta < _SMALL_LIMIT else varint(delta),
                _SMALL[count] if count < _SMALL_LIMIT else varint(count),
                _NULL if key is None else varint(len(key)) + key,
                _NULL if value is None else _size(value) + value,
                _encoded(headers) if headers else b"\0",
            )
        )
        self._body += _size(record)
        self._body += record
        self.count = count + 1
        self.size_bytes = HEADER.size + len(self._body)

    def build(
        self,
        compression: str = "none",
        producer_id: int = NO_PRODUCER_ID,
        producer_epoch: int = NO_PRODUCER_EPOCH,
        base_sequence: int = NO_SEQUENCE,
        attributes: int = 0,
    ) -> bytearray:
        """The batch, in a new bytearray each time.  `attributes`: the attribute bits other than the
        codec's."""
        payload: bytes | bytearray = self._body
        codec = codecs.CODEC_IDS[compression]
        if codec != codecs.NONE:
            payload = codecs.compress(codec, payload)
        batch = bytearray(
            HEADER.pack(
                0,
                HEADER.size - LENGTH_END + len(payload),
                -1,
                MAGIC,
                0,
                codec | attributes,
                self.count - 1,
                self._base_timestamp,
                self._max_timestamp,
                producer_id,
                producer_epoch,
                base_sequence,
                self.count,
            )
        )
        batch += payload
        seal(batch)
        return batch


def _encoded(headers: tuple[Header, ...]) -> bytes:
    out = bytearray(varint(len(headers)))
    for name, value in headers:
        out += _size(name.encode()) + name.encode()
        out += _NULL if value is None else _size(value) + value
    return bytes(out)


def _size(data: bytes) -> bytes:
    size_bytes = len(data)
    return _SMALL[size_bytes] if size_bytes < _SMALL_LIMIT else varint(size_bytes)
