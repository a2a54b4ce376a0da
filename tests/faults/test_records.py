"""Records with faults in them: what changes, and what stays."""

from __future__ import annotations

import pytest

from kcluster.events.rule_effects import Corruption
from kcluster.faults.records import as_bytes, copied, corrupted, with_schema_id
from kcluster.protocol.records.batches import InvalidRecords, check_crc, parse_batches
from kcluster.protocol.records.compression import CODEC_NAMES
from kcluster.protocol.records.markers import Marker, build_marker
from kcluster.protocol.records.message_sets import build_message_set, read_message_set
from kcluster.protocol.records.records import Record, build_batch, read_records

HEADERS = (("trace", b"1"), ("empty", None))
RECORDS = [
    Record(40, 1_000, b"k", b"first", HEADERS),
    Record(42, 1_007, None, b"second", ()),
    Record(43, 990, b"gone", None, ()),
]
CRC, VALUE = Corruption.CRC, Corruption.VALUE
IN_FORMAT, OTHER_ID = b"\0\0\0\0\x07payload", b"\0\x00\x0f\x42\x3fpayload"


def one_batch(records: list[Record], compression: str = "none", **more: bool) -> bytes:
    first, last = records[0].offset, records[-1].offset
    return bytes(
        build_batch(
            records, base_offset=first, last_offset=last, compression=compression, producer_id=9,
            producer_epoch=1, base_sequence=5, leader_epoch=3, **more,
        )
    )  # fmt: skip


def opened(records: bytes) -> list[Record]:
    return [record for batch in parse_batches(records) for record in read_records(batch)]


def header(records: bytes) -> tuple[object, ...]:
    (batch,) = parse_batches(records)
    return (
        batch.base_offset, batch.last_offset, batch.leader_epoch, batch.attributes,
        batch.base_timestamp, batch.max_timestamp, batch.producer_id, batch.producer_epoch,
        batch.base_sequence, batch.record_count,
    )  # fmt: skip


@pytest.mark.parametrize("codec", CODEC_NAMES)
@pytest.mark.parametrize("of", [CRC, VALUE])
def test_corrupted__changes_the_last_value_in_any_codec(codec: str, of: Corruption) -> None:
    sound = one_batch(RECORDS, codec)
    (batch,) = parse_batches(corrupted(sound, of))
    assert check_crc(batch) is (of is VALUE)
    assert header(as_bytes([batch])) == header(sound)
    expected = [*RECORDS]
    expected[1] = Record(42, 1_007, None, b"\x8cecond", ())
    assert read_records(batch) == expected
    assert opened(sound) == RECORDS


def test_corrupted__leaves_the_other_batches_alone() -> None:
    tombstones = one_batch([Record(1, 5, b"k", None)])
    control = bytes(build_marker(9, 1, Marker(True, 7), 5))
    batches = [tombstones, control, one_batch(RECORDS), one_batch(RECORDS)]
    cut = one_batch(RECORDS)[:-3]
    changed = corrupted(b"".join([*batches, cut]), VALUE)
    assert changed.startswith(tombstones + control)
    assert changed.endswith(batches[3] + cut)
    assert [record.value for record in opened(changed[len(tombstones) + len(control) :])] == [
        b"first", b"\x8cecond", None, b"first", b"second", None,
    ]  # fmt: skip


@pytest.mark.parametrize(
    "records",
    [b"", b"\0" * 12, b"\xff" * 80, one_batch(RECORDS)[:-1], one_batch([Record(1, 5, b"k", None)])],
)
def test_corrupted__has_nothing_to_change(records: bytes) -> None:
    for of in (CRC, VALUE):
        assert corrupted(records, of) == records
    assert with_schema_id(records, 7) == records


@pytest.mark.parametrize("attributes", [{"transactional": True}, {}])
def test_corrupted__keeps_what_the_header_says(attributes: dict[str, bool]) -> None:
    sound = one_batch(RECORDS, "lz4", **attributes)
    assert header(corrupted(sound, VALUE)) == header(sound)


@pytest.mark.parametrize("codec", CODEC_NAMES)
def test_schema_ids__are_replaced_where_values_have_one(codec: str) -> None:
    values = [IN_FORMAT, b"text", None, b"", b"\0\0\0\0"]
    sound = one_batch([Record(at, 1, b"k", value) for at, value in enumerate(values)], codec)
    changed = with_schema_id(sound, 999_999)
    assert [record.value for record in opened(changed)] == [OTHER_ID, *values[1:]]
    assert all(map(check_crc, parse_batches(changed)))
    plain = one_batch(RECORDS, codec)
    assert with_schema_id(plain, 999_999) == plain


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [0, 1, 2, 3])
def test_old_message_sets__are_changed_too(magic: int, codec: int) -> None:
    sent = [
        Record(7, 5 if magic else -1, b"k", IN_FORMAT),
        Record(8, 5 if magic else -1, None, b"v"),
    ]
    sound = build_message_set(sent, magic, codec)
    (first, last) = read_message_set(with_schema_id(sound, 999_999)).records
    assert (first.offset, first.value, last) == (7, OTHER_ID, sent[1])
    (first, last) = read_message_set(corrupted(sound, VALUE)).records
    assert (first, last.offset, last.value) == (sent[0], 8, b"\x89")
    with_wrong_crc = corrupted(sound, CRC)
    assert len(with_wrong_crc) == len(corrupted(sound, VALUE))
    with pytest.raises(InvalidRecords, match="crc of the message at offset 8"):
        read_message_set(with_wrong_crc)


def test_copies__have_no_producer_and_the_right_crc() -> None:
    sent = one_batch(RECORDS, "gzip") + one_batch(RECORDS)
    before = bytes(sent)
    batches = parse_batches(copied(sent))
    assert [(x.producer_id, x.producer_epoch, x.base_sequence) for x in batches] == [
        (-1, -1, -1)
    ] * 2
    assert [(x.base_offset, x.leader_epoch) for x in batches] == [(0, -1)] * 2
    assert all(map(check_crc, batches))
    assert [record.value for record in read_records(batches[0])] == [b"first", b"second", None]
    assert sent == before
    old = build_message_set(RECORDS, 1)
    assert copied(old) == old
