from __future__ import annotations

import pytest

from kcluster.protocol.records.batch_builder import BatchBuilder
from kcluster.protocol.records.records import Record, build_batch

RECORDS = (
    (1_000, None, b"a" * 5), (1_003, b"key", b"b" * 70), (999, None, None),
    (9_000, b"", b"c" * 5_000),
)  # fmt: skip


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_batch_builder__makes_the_bytes_that_build_batch_makes(
    count: int, compression: str
) -> None:
    builder = BatchBuilder()
    for record in RECORDS[:count]:
        builder.append(*record)
    expected = build_batch(
        (Record(0, *record) for record in RECORDS[:count]),
        compression=compression,
        producer_id=7,
        producer_epoch=2,
        base_sequence=40,
    )
    assert builder.build(compression, 7, 2, 40) == expected
    assert builder.count == count


def test_batch_builder__has_the_final_size_and_returns_new_bytes_each_time() -> None:
    builder = BatchBuilder()
    for _ in range(3_000):
        builder.append(5, b"k", b"v")
    first, second = builder.build(), builder.build()
    assert len(first) == builder.size_bytes
    assert first == second == build_batch([Record(0, 5, b"k", b"v")] * 3_000)
    assert first is not second


def test_batch_builder__headers() -> None:
    headers = (("name", b"shop:1"), ("empty", b""), ("none", None), ("é" * 2_000, b"x" * 3_000))
    builder = BatchBuilder()
    builder.append(5, b"k", None, headers)
    assert builder.build() == build_batch([Record(0, 5, b"k", None, headers)])
