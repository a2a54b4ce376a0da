"""Record batches of a fetch as Arrow columns, without a Python object per record.

Owns: decoding bytes into columns.  Never: fetches, knows the aborted transactions (loading.py
leaves their batches out).
Kafka: DefaultRecord.readFrom, and of Spark's connector KafkaRecordToRowConverter.

The start of each record is found one by one; then numpy decodes field by field, for all records at
once.  Arrow cuts out the bytes of keys and values: the whole buffer becomes an array in which gaps
and fields alternate, and every second piece is selected.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.records import compression as codecs
from kcluster.protocol.records.batches import (
    HEADER_BYTES,
    LOG_APPEND_TIME,
    Batch,
    InvalidRecords,
    check_crc,
)
from kcluster.protocol.records.records import Header, read_varint

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray
    from pyspark.sql.types import StructType

    Longs = NDArray[Any]

_US_PER_MS: Final = 1_000
_VARINT_BITS_MAX: Final = 63


def spark_schema(include_headers: bool) -> StructType:
    """The connector's columns, in its order."""
    from pyspark.sql import types as t

    schema = (
        t.StructType()
        .add("key", t.BinaryType())
        .add("value", t.BinaryType())
        .add("topic", t.StringType())
        .add("partition", t.IntegerType())
        .add("offset", t.LongType())
        .add("timestamp", t.TimestampType())
        .add("timestampType", t.IntegerType())
    )
    if include_headers:
        header = t.StructType().add("key", t.StringType()).add("value", t.BinaryType())
        schema.add("headers", t.ArrayType(header))
    return schema


@cache
def arrow_schema(include_headers: bool) -> pa.Schema:
    """`spark_schema` as an Arrow schema."""
    import pyarrow as pa

    fields = [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("timestampType", pa.int32()),
    ]
    if include_headers:
        header = pa.struct([("key", pa.string()), ("value", pa.binary())])
        fields.append(("headers", pa.list_(pa.field("element", header))))
    return pa.schema(fields)


class Columns:
    """Converts batches of one partition to Arrow."""

    def __init__(self, topic: str, partition: int, include_headers: bool, check_crcs: bool) -> None:
        self._topic = topic
        self._partition = partition
        self._include_headers = include_headers
        self._check_crcs = check_crcs

    def of(self, batches: Sequence[Batch], start: int, until: int) -> pa.RecordBatch | None:
        """The records of some batches with offsets [start, until); None if there are none.
        InvalidRecords for corrupt bytes."""
        import numpy as np
        import pyarrow as pa

        data = b"".join([self._payload(batch) for batch in batches])
        positions = self._positions(batches, data)
        if not positions:
            return None
        counts = [batch.record_count for batch in batches]
        buffer = np.frombuffer(data, np.uint8)
        try:
            fields = _Fields(buffer, np.array(positions, np.int64))
        except IndexError:
            raise _broken("records end too soon") from None
        offsets = fields.offset_deltas + np.repeat([one.base_offset for one in batches], counts)
        first, end = np.searchsorted(offsets, [start, until])
        if first >= end:
            return None
        selected = slice(int(first), int(end))
        count = selected.stop - selected.start
        fields.check(len(data))
        times, kinds = _times(batches, counts, fields)
        columns = [
            _cut(data, fields.key_at, fields.key_bytes, selected),
            _cut(data, fields.value_at, fields.value_bytes, selected),
            pa.repeat(pa.scalar(self._topic, pa.string()), count),
            pa.repeat(pa.scalar(self._partition, pa.int32()), count),
            pa.array(offsets[selected], pa.int64()),
            pa.array(times[selected] * _US_PER_MS, pa.int64()).cast(pa.timestamp("us", tz="UTC")),
            pa.array(kinds[selected], pa.int32()),
        ]
        if self._include_headers:
            columns.append(_headers(data, fields, selected))
        return pa.RecordBatch.from_arrays(columns, schema=arrow_schema(self._include_headers))

    def _payload(self, batch: Batch) -> Any:
        if self._check_crcs and not check_crc(batch):
            text = f"crc of the batch at {batch.base_offset} is wrong"
            raise InvalidRecords(ErrorCode.CORRUPT_MESSAGE, text)
        payload = memoryview(batch.buffer)[HEADER_BYTES:]
        try:
            return codecs.decompress(batch.codec, payload)
        except codecs.CompressionError as problem:
            raise InvalidRecords(ErrorCode.CORRUPT_MESSAGE, str(problem)) from problem

    def _positions(self, batches: Sequence[Batch], data: bytes) -> list[int]:
        count = sum(batch.record_count for batch in batches)
        if min((batch.record_count for batch in batches), default=0) < 0 or count > len(data):
            raise _broken(f"{count} records cannot be in {len(data)} bytes")
        try:
            return record_positions(data, count)
        except IndexError:
            raise _broken("records end too soon") from None


def record_positions(data: bytes, count: int) -> list[int]:
    """The position of each of `count` records, which must fill `data`."""
    positions = [0] * count
    position = 0
    for number in range(count):
        positions[number] = position
        low = data[position]
        if low < 0x80:
            size = low
            position += 1
        else:
            high = data[position + 1]
            if high < 0x80:
                size = low & 0x7F | high << 7
                position += 2
            else:
                record_bytes, position = read_varint(data, position)
                if record_bytes < 0:
                    raise _broken(f"record of {record_bytes} bytes")
                position += record_bytes
                continue
        if size & 1:
            raise _broken("a record has a negative length")
        position += size >> 1
    if position != len(data):
        raise _broken(f"{position - len(data)} bytes off the declared {count} records")
    return positions


class _Fields:
    """The fields of many records, one array per field.  IndexError if the data is too short."""

    def __init__(self, buffer: Longs, positions: Longs) -> None:
        import numpy as np

        sizes, at = _varints(buffer, positions)
        self.ends = at + sizes
        # One byte of attributes, of which none are defined.
        self.time_deltas, at = _varints(buffer, at + 1)
        self.offset_deltas, at = _varints(buffer, at)
        self.key_bytes, self.key_at = _varints(buffer, at)
        at = self.key_at + np.maximum(self.key_bytes, 0)
        self.value_bytes, self.value_at = _varints(buffer, at)
        at = self.value_at + np.maximum(self.value_bytes, 0)
        self.header_counts, self.headers_at = _varints(buffer, at)

    def check(self, size_bytes: int) -> None:
        """Check that no field exceeds its record; InvalidRecords if one does."""
        plain = self.header_counts == 0
        if (
            (self.header_counts < 0).any()
            or (self.headers_at > self.ends).any()
            or (self.headers_at != self.ends)[plain].any()
            or int(self.ends[-1]) != size_bytes
        ):
            raise _broken("a record's size is off its content")


def _varints(buffer: Longs, at: Longs) -> tuple[Longs, Longs]:
    """(the zigzag varints at these positions, the positions after them)."""
    import numpy as np

    byte = buffer[at]
    values = (byte & 0x7F).astype(np.int64)
    at = at + 1
    more = np.flatnonzero(byte & 0x80)
    shift = 7
    while len(more):
        if shift > _VARINT_BITS_MAX:
            raise _broken("varint longer than 10 bytes")
        byte = buffer[at[more]]
        values[more] |= (byte & 0x7F).astype(np.int64) << shift
        at[more] += 1
        more = more[byte > 0x7F]
        shift += 7
    # The highest of 64 bits may be in use, so the shift must be unsigned.
    halves = (values.view(np.uint64) >> np.uint64(1)).view(np.int64)
    return halves ^ -(values & 1), at


def _times(batches: Sequence[Batch], counts: list[int], fields: _Fields) -> tuple[Longs, Longs]:
    """(ms since 1970, timestamp type) of each record."""
    import numpy as np

    kinds = [batch.timestamp_type for batch in batches]
    bases = [batch.base_timestamp for batch in batches]
    times = fields.time_deltas + np.repeat(bases, counts)
    if LOG_APPEND_TIME in kinds:
        appended = np.repeat([batch.max_timestamp for batch in batches], counts)
        times = np.where(np.repeat(kinds, counts) == LOG_APPEND_TIME, appended, times)
    return times, np.repeat(np.array(kinds, np.int32), counts)


def _cut(data: bytes, at: Longs, sizes: Longs, selected: slice) -> pa.Array:
    """A binary column of the bytes at these positions; a size of -1 means null."""
    import numpy as np
    import pyarrow as pa

    at, sizes = at[selected], sizes[selected]
    count = len(at)
    edges = np.empty(2 * count + 1, np.int32)
    edges[0:-1:2] = at
    edges[1::2] = at + np.maximum(sizes, 0)
    edges[-1] = edges[-2]
    pieces = pa.BinaryArray.from_buffers(
        pa.binary(), 2 * count, [None, pa.py_buffer(edges), pa.py_buffer(data)]
    )
    nulls = sizes < 0
    wanted = pa.array(np.arange(0, 2 * count, 2), mask=nulls if nulls.any() else None)
    return pieces.take(wanted)


def _headers(data: bytes, fields: _Fields, selected: slice) -> pa.Array:
    """A column of lists of (key, value); null for a record without headers, as in the connector."""
    import pyarrow as pa

    counts = fields.header_counts[selected].tolist()
    if not any(counts):
        return pa.nulls(len(counts), arrow_schema(True).field("headers").type)
    places = zip(fields.headers_at[selected].tolist(), fields.ends[selected].tolist(), strict=True)
    try:
        lists = [
            _headers_at(data, at, end, count) if count else None
            for count, (at, end) in zip(counts, places, strict=True)
        ]
    except IndexError:
        raise _broken("a record's headers are broken") from None
    rows = [
        None if one is None else [{"key": name, "value": value} for name, value in one]
        for one in lists
    ]
    return pa.array(rows, arrow_schema(True).field("headers").type)


def _headers_at(data: bytes, at: int, end: int, count: int) -> list[Header]:
    headers: list[Header] = []
    for _ in range(count):
        size, at = read_varint(data, at)
        name = data[at : at + size]
        at += size
        size_bytes, at = read_varint(data, at)
        value = None if size_bytes < 0 else data[at : at + size_bytes]
        at += max(size_bytes, 0)
        if size < 0 or at > end:
            raise _broken("a header does not fit into its record")
        headers.append((name.decode(errors="replace"), value))  # as in Java
    if at != end:
        raise _broken("a record's size is off its content")
    return headers


def _broken(text: str) -> InvalidRecords:
    return InvalidRecords(ErrorCode.INVALID_RECORD, text)
