"""The two walks over records: the fast one never accepts what the careful one refuses."""

from __future__ import annotations

import random

import pytest

from kcluster.protocol.records.batches import HEADER_BYTES, InvalidRecords
from kcluster.protocol.records.compression import Allowance, TooLargeError
from kcluster.protocol.records.records import Record, build_batch
from kcluster.protocol.records.walk import GAVE_UP, each_record, newest_delta

TRACED = (("trace", b"x" * 40), ("empty", b""), ("none", None))


def payload(records: list[Record]) -> bytes:
    return bytes(build_batch(records))[HEADER_BYTES:]


def fast(data: bytes, count: int, headers_max: int = 1 << 40, needs_keys: bool = False) -> int:
    return newest_delta(data, 0, count, headers_max, needs_keys)


def careful(data: bytes, count: int, has_lengths: bool = True) -> list[tuple[int, int, bool]]:
    return list(each_record(data, 0, count, None, has_lengths))


def many(count: int) -> list[Record]:
    return [Record(0, 5 + index // 7, b"k", b"v" * (index % 90)) for index in range(count)]


@pytest.mark.parametrize(
    ("records", "newest"),
    [
        ([Record(0, 9)], 0),
        ([Record(0, 9, b"", b"")], 0),
        ([Record(0, 9, b"k", None, TRACED), Record(0, 8_000 + 9, None, b"v" * 8_000)], 8_000),
        ([Record(0, 9, b"k" * 200, b"v")], 0),
        (many(100), 99 // 7),
        (many(9_000), 8_999 // 7),
    ],
)
def test_walk__records_as_clients_write_them(records: list[Record], newest: int) -> None:
    data = payload(records)
    assert fast(data, len(records)) == newest
    read = careful(data, len(records))
    assert [offset for _, offset, _ in read] == list(range(len(records)))
    assert max(time for time, _, _ in read) == newest
    assert [has_key for _, _, has_key in read] == [one.key is not None for one in records]


@pytest.mark.parametrize(
    "records",
    [
        [Record(0, 9), Record(0, 8)],
        [Record(0, 9), Record(0, 9 + 2**40)],
        [Record(0, 9, None, b"v" * 9_000)],
        [Record(0, 9, b"k", b"v", (("a", b""),) * 64)],
    ],
)
def test_walk__unusual_records_are_left_to_the_careful_walk(records: list[Record]) -> None:
    assert fast(payload(records), len(records)) == GAVE_UP
    assert len(careful(payload(records), len(records))) == len(records)


def test_walk__keys_and_headers_are_counted() -> None:
    data = payload([Record(0, 9, b"k", None, TRACED), Record(0, 9)])
    assert fast(data, 2, headers_max=3) == 0
    assert fast(data, 2, headers_max=2) == GAVE_UP
    assert fast(data, 2, needs_keys=True) == GAVE_UP


@pytest.mark.parametrize("seed", range(4))
def test_walk__damage_that_the_fast_walk_accepts_the_careful_one_accepts_too(seed: int) -> None:
    rng = random.Random(seed)
    sound = payload([Record(0, 9 + at, b"k" * at, b"v" * rng.choice((1, 70)), TRACED[:at])
                     for at in range(3)])  # fmt: skip
    refused = 0
    for _ in range(1_500):
        data, count = bytearray(sound), rng.choice((2, 3, 3, 3, 3, 4, 2**31 - 1))
        for _ in range(rng.randrange(3)):
            data[rng.randrange(len(data))] = rng.choice((0, 1, 2, 3, 0x7F, 0x80, 0xFF))
        data = data[: rng.choice((len(data), rng.randrange(len(data))))]
        newest = fast(bytes(data), count)
        for has_lengths in (True, False):
            try:
                read = careful(bytes(data), count, has_lengths)
            except InvalidRecords:
                refused += 1
                assert newest == GAVE_UP
            else:
                assert newest in (GAVE_UP, max(time for time, _, _ in read))
    assert 500 < refused < 2_990


def test_walk__lengths_are_believed_or_not() -> None:
    data = bytearray(payload([Record(0, 9, b"k", b"v")] * 3))
    data[0] += 2
    assert fast(bytes(data), 3) == GAVE_UP
    with pytest.raises(InvalidRecords):
        careful(bytes(data), 3)
    assert len(careful(bytes(data), 3, has_lengths=False)) == 3


def test_walk__somebody_pays_for_headers() -> None:
    data = payload([Record(0, 9, None, b"", (("", b""),) * 100_000)])
    allowance = Allowance(0)
    allowance.left_bytes = 256 * 99_999
    with pytest.raises(TooLargeError):
        list(each_record(data, 0, 1, allowance))
