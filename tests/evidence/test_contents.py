from __future__ import annotations

import pytest

from kcluster.evidence.contents import Contents
from kcluster.protocol.records.records import Record, build_batch, parse_batches, read_records


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_contents__values_equal_those_of_a_record_reader(compression: str) -> None:
    records = [
        Record(0, 1_000_000, b"k" * (i % 150), None if i == 3 else b"v" * (i * 7), ())
        for i in range(200)
    ]
    records[5] = Record(0, 9_000_000_000, None, b"", (("header", b"x" * 70),))
    (batch,) = parse_batches(build_batch(records, base_offset=40, compression=compression))
    wanted = [(record.offset, record.value) for record in read_records(batch)]
    assert Contents().of(batch) == wanted


def test_contents__of_control_batches_are_none() -> None:
    marker = Record(0, 0, b"\x00\x00\x00\x01", b"\x00\x00\x00\x00\x00\x00", ())
    built = build_batch([marker], control=True, transactional=True)
    (batch,) = parse_batches(built)
    assert Contents().of(batch) == []


def test_contents__an_unreadable_batch_keeps_no_decompressed_bytes() -> None:
    records = [Record(0, 0, None, bytes(1_000), ())] * 2
    built = bytearray(build_batch(records, compression="gzip"))
    built[57:61] = (1).to_bytes(4, "big")  # one record fewer than there are
    (batch,) = parse_batches(bytes(built))
    contents = Contents()
    assert contents.of(batch) == []
    problem = contents.unreadable[batch]
    assert problem.text == "1009 bytes left after the declared 1 records"
    assert problem.__traceback__ is None
    assert problem.__context__ is None
