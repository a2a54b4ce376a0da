"""Record batches: header view, crc, building and opening."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.records.batches import HEADER_BYTES, seal
from kcluster.protocol.records.compression import CODEC_NAMES
from kcluster.protocol.records.records import (
    Batch,
    InvalidRecords,
    Record,
    build_batch,
    check_crc,
    parse_batches,
    read_records,
)

ONE = build_batch([Record(0, 1_000, b"k", b"v")])
TWO = build_batch([Record(0, 1_000, b"k", b"v"), Record(0, 1_007, None, None)])

# One record, written byte by byte: key "k", value "v", header a=b.
BY_HAND = bytes.fromhex(
    "000000000000000000000040ffffffff02"
    "00000000"  # crc, sealed below
    "000000000000"
    "0000019000000000"
    "0000019000000000"
    "ffffffffffffffff"
    "ffff"
    "ffffffff"
    "00000001"
    "1800000002" + b"k".hex() + "02" + b"v".hex() + "02" + "02" + b"a".hex() + "02" + b"b".hex()
)


def patched(batch: bytearray, layout: str, at: int, value: int) -> bytearray:
    copy = bytearray(batch)
    struct.pack_into(layout, copy, at, value)
    return copy


def one(data: bytes | bytearray) -> Batch:
    (batch,) = parse_batches(data)
    return batch


def test_parse__one_batch_fills_the_buffer() -> None:
    batch = one(TWO)
    assert (batch.base_offset, batch.last_offset, batch.record_count) == (0, 1, 2)
    assert (batch.base_timestamp, batch.max_timestamp) == (1_000, 1_007)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (-1, -1, -1)
    assert batch.size_bytes == len(TWO)
    assert check_crc(batch)


def test_parse__slices_share_the_memory_of_the_buffer() -> None:
    data = ONE + TWO
    first, second = parse_batches(data)
    data[-1] ^= 0xFF
    assert check_crc(first)
    assert not check_crc(second)


@pytest.mark.parametrize("size", [0, 5, 11, 12, 16, 17, 30, 60, 61, len(ONE) - 1])
def test_parse__a_batch_cut_off_at_the_end_is_left_out(size: int) -> None:
    assert parse_batches(ONE[:size]) == []
    assert [batch.size_bytes for batch in parse_batches(TWO + ONE[:size])] == [len(TWO)]


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (patched(ONE, ">b", 16, 0), ErrorCode.INVALID_RECORD),
        (patched(ONE, ">b", 16, 1), ErrorCode.INVALID_RECORD),
        (patched(ONE, ">b", 16, 3), ErrorCode.CORRUPT_MESSAGE),
        (patched(ONE, ">b", 16, -1), ErrorCode.CORRUPT_MESSAGE),
        (patched(ONE, ">i", 8, 10), ErrorCode.CORRUPT_MESSAGE),
        (patched(ONE, ">i", 8, 30), ErrorCode.CORRUPT_MESSAGE),
        (patched(ONE, ">i", 8, -5), ErrorCode.CORRUPT_MESSAGE),
        (bytearray(40), ErrorCode.CORRUPT_MESSAGE),
        (bytearray(100), ErrorCode.CORRUPT_MESSAGE),
    ],
)
def test_parse__bytes_that_are_no_batch_are_refused_as_by_kafka(
    data: bytes, error: ErrorCode
) -> None:
    for before in (bytearray(), TWO):
        with pytest.raises(InvalidRecords) as caught:
            parse_batches(before + data)
        assert caught.value.error == error


def test_parse__a_length_beyond_the_buffer_is_a_cut_off_batch() -> None:
    assert parse_batches(patched(ONE, ">i", 8, 300)) == []


@given(st.binary(max_size=200))
def test_parse__any_bytes_give_batches_or_invalid_records(data: bytes) -> None:
    for head in (b"", bytes(ONE[:23])):
        try:
            batches = parse_batches(head + data)
        except InvalidRecords:
            continue
        for batch in batches:
            check_crc(batch)
            try:
                read_records(batch, size_max=1 << 20)
            except InvalidRecords:
                continue


def test_crc__covers_from_the_attributes_on() -> None:
    assert not check_crc(one(patched(ONE, ">q", 27, 5)))
    assert check_crc(one(patched(ONE, ">q", 0, 77)))
    assert check_crc(one(patched(ONE, ">i", 12, 3)))


def test_read__a_batch_with_a_header_laid_out_by_hand() -> None:
    data = bytearray(BY_HAND)
    struct.pack_into(">i", data, 8, len(data) - 12)
    seal(data)
    timestamp = 0x19000000000
    assert read_records(one(data)) == [Record(0, timestamp, b"k", b"v", (("a", b"b"),))]


RECORDS = st.lists(
    st.builds(
        Record,
        offset=st.just(0),
        timestamp=st.integers(-1, 1 << 45),
        key=st.none() | st.binary(max_size=40),
        value=st.none() | st.binary(max_size=200),
        headers=st.lists(
            st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=3
        ).map(tuple),
    ),
    min_size=1,
    max_size=12,
)


@given(RECORDS, st.sampled_from(CODEC_NAMES), st.integers(0, 1 << 40))
def test_read__returns_what_was_built(records: list[Record], codec: str, base_offset: int) -> None:
    batch = one(build_batch(records, base_offset=base_offset, compression=codec, leader_epoch=4))
    expected = [
        Record(base_offset + i, r.timestamp, r.key, r.value, r.headers)
        for i, r in enumerate(records)
    ]
    assert check_crc(batch)
    assert batch.leader_epoch == 4
    assert CODEC_NAMES[batch.codec] == codec
    assert read_records(batch) == expected
    assert batch.max_timestamp == max(record.timestamp for record in records)


def test_build__keeps_gaps_between_offsets_up_to_the_given_end() -> None:
    spaced = [Record(12, 5, b"a", b"1"), Record(17, 6, b"b", b"2")]
    batch = one(build_batch(spaced, base_offset=10, last_offset=19, delete_horizon_ms=99))
    assert (batch.base_offset, batch.last_offset, batch.record_count) == (10, 19, 2)
    assert batch.base_timestamp == 99
    assert read_records(batch) == spaced


def test_build__may_be_empty() -> None:
    batch = one(build_batch([], base_offset=10, last_offset=19))
    assert (batch.record_count, batch.size_bytes) == (0, HEADER_BYTES)
    assert read_records(batch) == []


def test_read__log_append_time_replaces_the_records_timestamps() -> None:
    data = build_batch([Record(0, 5), Record(0, 9)], timestamp_type=1)
    assert [record.timestamp for record in read_records(one(data))] == [9, 9]


@pytest.mark.parametrize(("layout", "at", "value"), [(">i", 57, 1), (">i", 57, 3), (">B", 61, 3)])
def test_read__records_that_contradict_the_header_are_invalid(
    layout: str, at: int, value: int
) -> None:
    batch = one(patched(TWO, layout, at, value))
    with pytest.raises(InvalidRecords) as caught:
        read_records(batch)
    assert caught.value.error == ErrorCode.INVALID_RECORD


def test_read__a_header_that_is_no_utf8_is_replaced_as_in_java() -> None:
    data = build_batch([Record(0, 0, None, b"v", (("name", b"x"),))])
    at = data.index(b"name")
    data[at] = 0xFF
    (record,) = read_records(one(data))
    assert record.headers == (("\ufffdame", b"x"),)


def test_read__timestamps_have_64_bits_as_in_java() -> None:
    data = build_batch([Record(0, 0), Record(0, 5)])
    batch = one(patched(data, ">q", 27, 2**63 - 1))
    assert [record.timestamp for record in read_records(batch)] == [2**63 - 1, -(2**63) + 4]


def test_batch__sequence_of_the_last_record_wraps() -> None:
    records = [Record(0, 0)] * 4
    data = build_batch(records, producer_id=1, producer_epoch=0, base_sequence=2**31 - 2)
    assert one(data).last_sequence == 1
    assert one(build_batch(records)).last_sequence == -1
