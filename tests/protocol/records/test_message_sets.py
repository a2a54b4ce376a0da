"""Message sets compared with kafka-python's reader and builder."""

from __future__ import annotations

import struct
import warnings
from zlib import crc32

import pytest

from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.records import compression
from kcluster.protocol.records.batches import parse_batches
from kcluster.protocol.records.compression import Allowance
from kcluster.protocol.records.message_sets import (
    build_message_set,
    down_convert,
    is_batch,
    lz4_with_checksum,
    read_message_set,
    up_convert,
    xxh32_of_few,
)
from kcluster.protocol.records.records import InvalidRecords, Record, build_batch, read_records

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    legacy = pytest.importorskip("kafka.record.legacy_records")
    memory = pytest.importorskip("kafka.record.memory_records")

RECORDS = [
    Record(7, 1_000, b"k", b"one"),
    Record(8, 1_005, None, b"two"),
    Record(10, 999, b"", None),
]
CODECS = [compression.NONE, compression.GZIP]


def without_times(records: list[Record]) -> list[Record]:
    return [Record(record.offset, -1, record.key, record.value) for record in records]


def built_by_kafka_python(magic: int, codec: int) -> bytes:
    builder = legacy.LegacyRecordBatchBuilder(
        magic=magic, compression_type=codec, batch_size=1 << 20
    )
    for offset, record in enumerate(RECORDS):
        assert builder.append(offset, record.timestamp, record.key, record.value)
    return bytes(builder.build())


def read_by_kafka_python(data: bytes) -> list[Record]:
    found, sets = [], memory.MemoryRecords(data)
    while sets.has_next():
        batch = sets.next_batch()
        assert batch.validate_crc()
        found += [Record(r.offset, r.timestamp or -1, r.key, r.value) for r in batch]
    return found


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("magic", [0, 1])
def test_build__kafka_python_reads_it(magic: int, codec: int) -> None:
    found = read_by_kafka_python(build_message_set(RECORDS, magic, codec))
    assert found == (RECORDS if magic else without_times(RECORDS))


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("magic", [0, 1])
def test_read__what_kafka_python_built(magic: int, codec: int) -> None:
    opened = read_message_set(built_by_kafka_python(magic, codec))
    # A producer does not know offsets: its wrapper has 0, which is then the last message's.
    first = -2 if magic and codec else 0
    expected = [Record(i, r.timestamp, r.key, r.value) for i, r in enumerate(RECORDS, first)]
    assert opened.records == (expected if magic else without_times(expected))
    assert opened.codec == codec


@pytest.mark.parametrize(
    "codec", [compression.NONE, compression.GZIP, compression.SNAPPY, compression.LZ4]
)
@pytest.mark.parametrize("magic", [0, 1])
def test_read__returns_what_was_built(magic: int, codec: int) -> None:
    opened = read_message_set(build_message_set(RECORDS, magic, codec))
    assert opened.records == (RECORDS if magic else without_times(RECORDS))
    assert (opened.codec, opened.is_log_append_time) == (codec, False)


def test_read__append_time_is_the_wrapper_s() -> None:
    data = build_message_set(RECORDS, 1, compression.GZIP, is_log_append_time=True)
    opened = read_message_set(data)
    assert opened.is_log_append_time
    assert {record.timestamp for record in opened.records} == {1_005}
    (batch,) = [legacy.LegacyRecordBatch(data, 1)]
    assert {record.timestamp for record in batch} == {1_005}


def test_read__a_message_cut_off_at_the_end_is_left_out() -> None:
    data = build_message_set(RECORDS, 1)
    assert len(read_message_set(data[:-1]).records) == 2
    assert read_message_set(data[:20]).records == []


def damaged(data: bytes, at: int) -> bytes:
    copy = bytearray(data)
    copy[at] ^= 1
    return bytes(copy)


def resealed(data: bytes) -> bytes:
    """The one message in `data`, with its crc recomputed."""
    return data[:12] + struct.pack(">I", crc32(data[16:])) + data[16:]


WRAPPED = build_message_set(RECORDS[:1], 1, compression.GZIP)
INVALID = {
    "crc": (damaged(build_message_set(RECORDS, 1), 16 + 5), ErrorCode.CORRUPT_MESSAGE),
    "size": (struct.pack(">qi", 0, 13) + bytes(13), ErrorCode.CORRUPT_MESSAGE),
    "payload": (resealed(damaged(WRAPPED, 34)), ErrorCode.UNKNOWN_SERVER_ERROR),
    "key": (
        resealed(struct.pack(">qiIbbii", 0, 14, 0, 0, 0, 99, -1)), ErrorCode.CORRUPT_MESSAGE,
    ),
    "no timestamp": (
        resealed(struct.pack(">qiIbbii", 0, 14, 0, 1, 0, -1, -1)), ErrorCode.CORRUPT_MESSAGE,
    ),
    "no value": (
        resealed(struct.pack(">qiIbbii", 0, 14, 0, 0, 1, -1, -1)), ErrorCode.INVALID_RECORD,
    ),
    "nested": (
        build_message_set([Record(0, 0, None, b"")], 1)
        + resealed(
            struct.pack(">qiIbbqii", 0, 22 + len(compression.compress(1, WRAPPED)), 0, 1, 1, 0, -1,
                        len(compression.compress(1, WRAPPED))) + compression.compress(1, WRAPPED)
        ),
        ErrorCode.INVALID_RECORD,
    ),
    "v2 among them": (
        build_message_set(RECORDS, 1) + build_batch(RECORDS), ErrorCode.INVALID_RECORD,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", INVALID)
def test_read__mistakes_are_reported(case: str) -> None:
    data, error = INVALID[case]
    with pytest.raises(InvalidRecords) as caught:
        read_message_set(data)
    assert caught.value.error is error


def outcome(data: bytes) -> int:
    try:
        return len(read_message_set(data).records)
    except InvalidRecords as problem:
        return -problem.error


def test_read__any_byte_changed_is_records_or_an_error() -> None:
    for magic in (0, 1):
        for codec in CODECS:
            data = build_message_set(RECORDS, magic, codec)
            outcomes = {outcome(damaged(data, at)) for at in range(len(data))}
            errors = {-ErrorCode.CORRUPT_MESSAGE, -ErrorCode.INVALID_RECORD}
            assert -ErrorCode.CORRUPT_MESSAGE in outcomes
            assert outcomes <= {0, 1, 2, 3, *errors}


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("magic", [0, 1])
def test_up_convert__is_one_batch_with_offsets_from_0(magic: int, codec: int) -> None:
    (batch,) = parse_batches(up_convert(build_message_set(RECORDS, magic, codec)))
    assert (batch.base_offset, batch.record_count, batch.codec) == (0, 3, codec)
    assert batch.producer_id == -1
    assert [record.timestamp for record in read_records(batch)] == (
        [1_000, 1_005, 999] if magic else [-1, -1, -1]
    )
    assert batch.timestamp_type == 0


def test_up_convert__refuses_log_append_time_and_a_wrapper_among_others() -> None:
    wrapper = build_message_set(RECORDS, 1, compression.GZIP)
    for data, error in (
        (build_message_set(RECORDS, 1, is_log_append_time=True), ErrorCode.INVALID_TIMESTAMP),
        (build_message_set(RECORDS[:1], 1) + wrapper, ErrorCode.INVALID_RECORD),
        (build_message_set([Record(0, -2, None, b"")], 1), ErrorCode.UNKNOWN_SERVER_ERROR),
    ):
        with pytest.raises(InvalidRecords) as caught:
            up_convert(data)
        assert caught.value.error is error
    (batch,) = parse_batches(up_convert(wrapper + wrapper, takes_many=True))
    assert (batch.record_count, batch.codec) == (6, compression.GZIP)


def test_up_convert__a_set_without_a_whole_message_is_nothing() -> None:
    assert up_convert(build_message_set(RECORDS[:1], 1)[:-1]) == b""


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("magic", [0, 1])
def test_down_convert__keeps_offsets_gaps_and_codec(magic: int, codec: int) -> None:
    with_headers = [Record(r.offset, r.timestamp, r.key, r.value, (("h", b""),)) for r in RECORDS]
    stored = build_batch(with_headers, base_offset=7, compression=codec, last_offset=10)
    batches = parse_batches(stored)
    found = read_by_kafka_python(down_convert(batches, magic, 7, Allowance(0)))
    assert found == (RECORDS if magic else without_times(RECORDS))


def test_down_convert__leaves_out_what_is_before_the_offset_and_control_batches() -> None:
    stored = build_batch(RECORDS, base_offset=7, last_offset=10)
    stored += build_batch([Record(0, 0, b"\0\0\0\1", b"")], base_offset=11, control=True)
    batches = parse_batches(stored)
    assert [r.offset for r in read_by_kafka_python(down_convert(batches, 1, 8, Allowance(0)))] == [
        8,
        10,
    ]


def test_down_convert__zstd_ends_the_set_and_is_an_error_if_it_comes_first() -> None:
    plain = build_batch(RECORDS[:1], base_offset=7)
    zstd = build_batch(RECORDS[:1], base_offset=8, compression="zstd")
    assert [
        r.offset
        for r in read_by_kafka_python(down_convert(parse_batches(plain + zstd), 1, 7, Allowance(0)))
    ] == [7]
    with pytest.raises(InvalidRecords) as caught:
        down_convert(parse_batches(zstd), 1, 8, Allowance(0))
    assert caught.value.error is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


def test_is_batch__by_the_magic_byte() -> None:
    assert is_batch(build_batch(RECORDS))
    assert not is_batch(build_message_set(RECORDS, 0))
    assert not is_batch(b"")


@pytest.mark.parametrize(
    ("data", "value"), [(b"", 0x02CC5D05), (b"a", 0x550D7456), (b"abc", 0x32D153FF)]
)
def test_xxh32__is_that_of_the_reference(data: bytes, value: int) -> None:
    assert xxh32_of_few(data) == value


def test_lz4__the_old_checksum_differs_and_is_restored() -> None:
    frame = compression.compress(compression.LZ4, b"x" * 100)
    old = lz4_with_checksum(frame, of_magic_too=True)
    assert old != frame
    assert lz4_with_checksum(old, of_magic_too=False) == frame
    assert lz4_with_checksum(b"no frame", of_magic_too=True) == b"no frame"


def test_down_convert__ends_where_the_fetch_has_opened_enough() -> None:
    batches = [
        parse_batches(build_batch(RECORDS[:1], base_offset=at, compression="gzip"))[0]
        for at in range(4)
    ]
    allowance = Allowance(0)
    allowance.left_bytes = 600
    assert len(read_message_set(down_convert(batches, 1, 0, allowance)).records) == 3
    assert down_convert(batches, 1, 3, allowance) == b""


@pytest.mark.parametrize("allowed_bytes", [90_000, 250_000])
def test_read__all_wrappers_of_a_set_have_one_allowance(allowed_bytes: int) -> None:
    one = build_message_set([Record(0, 5, b"k", bytes(50_000))] * 4, 1, compression.GZIP)
    allowance = Allowance(0)
    allowance.left_bytes = allowed_bytes
    with pytest.raises(InvalidRecords) as caught:
        read_message_set(one * 2, allowance)
    assert caught.value.error == ErrorCode.MESSAGE_TOO_LARGE


def test_read__messages_in_a_wrapper_are_paid_for() -> None:
    many = build_message_set([Record(0, 5)] * 300, 1, compression.GZIP)
    allowance = Allowance(0)
    allowance.left_bytes = 64 * 1024
    with pytest.raises(InvalidRecords) as caught:
        read_message_set(many, allowance)
    assert caught.value.error == ErrorCode.MESSAGE_TOO_LARGE
