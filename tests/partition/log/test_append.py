"""What a leader accepts and refuses, with Kafka 4.4.0's errors in Kafka's order."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kcluster.config.kafka.broker import NO_SIZE_LIMIT
from kcluster.config.kafka.definitions import TopicConfig
from kcluster.partition.log.log import Appended
from kcluster.protocol.errors import ErrorCode as E
from kcluster.protocol.records.batches import HEADER_BYTES
from kcluster.protocol.records.compression import CODEC_IDS, CODEC_NAMES, Allowance, compress
from kcluster.protocol.records.records import (
    Record,
    _write_varint,
    build_batch,
    check_crc,
    parse_batches,
    read_records,
)
from tests.partition.records_for_tests import CONFIG, NOW_MS, append, filled, new_log, patched, sent

GOOD = sent(2)
TOO_LARGE = build_batch([Record(0, NOW_MS, b"k", bytes(1_100_000))])


def produce(data: bytes | bytearray, config: TopicConfig = CONFIG, **more: Any) -> Appended:
    return new_log().append_as_leader(data, 0, NOW_MS, config, **more)


@pytest.mark.parametrize(
    ("data", "error", "log_start_offset"),
    [
        (b"", E.INVALID_RECORD, -1),
        (GOOD + GOOD, E.INVALID_RECORD, -1),
        (GOOD[:50], E.INVALID_RECORD, -1),
        (patched(GOOD, ">b", 16, 1), E.INVALID_RECORD, -1),
        (patched(GOOD, ">b", 16, 3), E.CORRUPT_MESSAGE, -1),
        (patched(GOOD, ">i", 8, 10), E.CORRUPT_MESSAGE, -1),
        (patched(GOOD, ">i", 8, 30), E.CORRUPT_MESSAGE, -1),
        (patched(GOOD, ">i", 8, 300), E.INVALID_RECORD, -1),
        (GOOD + b"\xff" * 40, E.CORRUPT_MESSAGE, -1),
        (GOOD + bytes(40), E.CORRUPT_MESSAGE, -1),
        (patched(GOOD, ">I", 17, 5, sealed=False), E.CORRUPT_MESSAGE, -1),
        (patched(GOOD, ">q", 0, 5), E.INVALID_RECORD, 0),
        (patched(patched(GOOD, ">q", 0, 5), ">I", 17, 5, sealed=False), E.INVALID_RECORD, 0),
        (patched(GOOD, ">h", 21, 5), E.UNKNOWN_SERVER_ERROR, 0),
        (patched(GOOD, ">h", 21, 0x20), E.INVALID_RECORD, 0),
        (patched(GOOD, ">i", 23, 5), E.INVALID_RECORD, 0),
        (patched(GOOD, ">i", 23, -1), E.INVALID_RECORD, 0),
        (patched(GOOD, ">i", 57, 0), E.INVALID_RECORD, 0),
        (patched(GOOD, ">i", 57, -1), E.INVALID_RECORD, 0),
        (patched(patched(GOOD, ">i", 57, 3), ">i", 23, 2), E.INVALID_RECORD, 0),
        (patched(patched(GOOD, ">i", 57, 1), ">i", 23, 0), E.INVALID_RECORD, 0),
        (patched(GOOD, ">b", 61, 0x7E), E.INVALID_RECORD, 0),
        (patched(patched(GOOD, ">q", 43, 77), ">h", 51, 0), E.INVALID_RECORD, 0),
        (build_batch([]), E.INVALID_RECORD, 0),
        (sent(timestamp=NOW_MS + 3_600_001), E.INVALID_TIMESTAMP, 0),
        (patched(sent(timestamp=-1), ">h", 21, 8), E.INVALID_TIMESTAMP, 0),
        (TOO_LARGE, E.MESSAGE_TOO_LARGE, -1),
        (patched(TOO_LARGE, ">I", 17, 5, sealed=False), E.MESSAGE_TOO_LARGE, -1),
        (patched(TOO_LARGE, ">q", 0, 5), E.INVALID_RECORD, 0),
    ],
)
def test_append__refuses(data: bytearray, error: E, log_start_offset: int) -> None:
    log = new_log()
    appended = log.append_as_leader(data, 0, NOW_MS, CONFIG)
    assert appended.error == error
    assert appended.log_start_offset == log_start_offset
    assert (appended.base_offset, appended.log_append_time_ms) == (-1, -1)
    assert appended.error_message
    assert (log.log_end_offset, log.size_bytes, log.segments) == (0, 0, [])


@pytest.mark.parametrize(
    "data",
    [
        GOOD + GOOD[:50],
        GOOD + bytes(10),
        sent(timestamp=-1),
        sent(timestamp=NOW_MS + 3_600_000),
        patched(GOOD, ">h", 21, 0x40),
        patched(sent(), ">q", 43, -2),
    ],
)
def test_append__accepts(data: bytearray) -> None:
    appended = produce(data)
    assert (appended.error, appended.base_offset) == (E.NONE, 0)


def test_append__numbers_the_batch_in_the_received_buffer() -> None:
    log = filled(3)
    frame = bytearray(b"before" + sent(2) + b"after")
    (batch,) = append(log, memoryview(frame)[6:-5], epoch=4)
    assert (batch.base_offset, batch.last_offset, batch.leader_epoch) == (3, 4, 4)
    (in_frame,) = parse_batches(memoryview(frame)[6:-5])
    assert (in_frame.base_offset, in_frame.leader_epoch) == (3, 4)
    assert check_crc(in_frame)
    assert log.log_end_offset == 5


def test_append__copies_a_read_only_buffer() -> None:
    data = bytes(sent())
    log = filled(1)
    (batch,) = append(log, data)
    assert parse_batches(batch.buffer)[0].base_offset == 1
    assert parse_batches(data)[0].base_offset == 0


def test_append__a_wrong_max_timestamp_is_corrected() -> None:
    (batch,) = append(new_log(), patched(sent(timestamp=500), ">q", 35, NOW_MS * 10))
    assert (batch.max_timestamp, batch.timestamp_type) == (500, 0)
    assert check_crc(batch)


def test_append__a_topic_of_create_time_clears_the_log_append_time_bit() -> None:
    (batch,) = append(new_log(), patched(GOOD, ">h", 21, 8))
    assert batch.timestamp_type == 0
    assert parse_batches(batch.buffer)[0].attributes == 0
    assert check_crc(batch)


def test_append__log_append_time_is_stamped_and_answered() -> None:
    config = TopicConfig(message_timestamp_type="LogAppendTime")
    appended = produce(sent(timestamp=NOW_MS + 10**9), config)
    assert (appended.error, appended.log_append_time_ms) == (E.NONE, NOW_MS)
    (batch,) = appended.batches
    (stored,) = parse_batches(batch.buffer)
    assert check_crc(stored)
    assert (stored.max_timestamp, stored.timestamp_type) == (NOW_MS, 1)
    assert [record.timestamp for record in read_records(stored)] == [NOW_MS]
    refused = produce(patched(GOOD, ">h", 21, 8), config)
    assert refused.error == E.INVALID_TIMESTAMP
    assert [index for index, _ in refused.record_errors] == [0, 1]


def test_append__timestamps_out_of_bounds_are_reported_one_by_one() -> None:
    config = TopicConfig(message_timestamp_before_max_ms=1_000)
    times = [NOW_MS, NOW_MS - 1_000, NOW_MS - 1_001, NOW_MS + 3_600_001, -1]
    refused = produce(build_batch([Record(0, at, b"k") for at in times]), config)
    assert refused.error == E.INVALID_TIMESTAMP
    assert [index for index, _ in refused.record_errors] == [2, 3]


def test_append__a_compacted_topic_needs_keys() -> None:
    config = TopicConfig(cleanup_policy=("compact",))
    records = [Record(0, NOW_MS, key) for key in (b"a", None, b"b", None)]
    refused = produce(build_batch(records), config)
    assert (refused.error, refused.log_start_offset) == (E.INVALID_RECORD, 0)
    assert [index for index, _ in refused.record_errors] == [1, 3]
    assert produce(build_batch(records[::2]), config).error == E.NONE


@pytest.mark.parametrize("wanted", ["gzip", "snappy", "lz4", "zstd", "uncompressed"])
@pytest.mark.parametrize("codec", CODEC_NAMES)
def test_append__a_topic_has_its_own_codec(wanted: str, codec: str) -> None:
    data = sent(3, compression=codec, producer_id=5, producer_epoch=1, base_sequence=0)
    (batch,) = append(new_log(), data, config=TopicConfig(compression_type=wanted))
    assert batch.codec == CODEC_IDS.get(wanted, 0)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (5, 1, 0)
    assert [record.value for record in read_records(batch)] == [b"v0", b"v1", b"v2"]


def test_append__a_batch_to_recompress_must_be_readable() -> None:
    garbage = patched(GOOD, ">h", 21, 1)
    refused = produce(garbage, TopicConfig(compression_type="zstd"))
    assert refused.error == E.UNKNOWN_SERVER_ERROR


def test_append__a_batch_may_outgrow_its_topic_when_recompressed() -> None:
    data = build_batch([Record(0, NOW_MS, b"k", bytes(1_000))], compression="gzip")
    config = TopicConfig(compression_type="uncompressed", max_message_bytes=500)
    assert produce(data, config).error == E.MESSAGE_TOO_LARGE


def test_append__a_batch_must_fit_into_a_segment() -> None:
    refused = produce(sent(50), TopicConfig(internal_segment_bytes=100))
    assert (refused.error, refused.log_start_offset) == (E.RECORD_LIST_TOO_LARGE, -1)


def test_append__the_broker_itself_may_write_control_batches_and_offsets() -> None:
    data = sent(1, base_offset=7, control=True, transactional=True, producer_id=5)
    assert produce(data, from_client=False).error == E.NONE


def test_append__a_duplicate_is_answered_as_it_was_and_not_appended() -> None:
    log = new_log()
    first: dict[str, Any] = {"producer_id": 5, "producer_epoch": 0}
    append(log, sent(2, base_sequence=0, timestamp=77, **first))
    append(log, sent(1, base_sequence=2, **first))
    again = log.append_as_leader(sent(2, base_sequence=0, timestamp=78, **first), 0, NOW_MS, CONFIG)
    assert (again.error, again.duplicate, again.batches) == (E.NONE, True, ())
    assert (again.base_offset, again.last_offset, again.log_append_time_ms) == (0, 1, 77)
    assert log.log_end_offset == 3
    gap = log.append_as_leader(sent(base_sequence=9, **first), 0, NOW_MS, CONFIG)
    assert (gap.error, gap.log_start_offset) == (E.OUT_OF_ORDER_SEQUENCE_NUMBER, 0)


def test_append__a_transactional_batch_needs_an_ongoing_transaction() -> None:
    log = new_log()
    data: dict[str, Any] = {"producer_id": 5, "producer_epoch": 0, "transactional": True}
    refused = log.append_as_leader(sent(base_sequence=0, **data), 0, NOW_MS, CONFIG)
    assert refused.error == E.INVALID_TXN_STATE
    append(log, sent(base_sequence=0, **data), transaction_verified=True)
    append(log, sent(base_sequence=1, **data))
    assert log.producers.first_unstable_offset == 0


def test_append__message_size_is_the_topics() -> None:
    size = len(GOOD)
    assert produce(GOOD, replace(CONFIG, max_message_bytes=size)).error == E.NONE
    assert produce(GOOD, replace(CONFIG, max_message_bytes=size - 1)).error == E.MESSAGE_TOO_LARGE


# ----------------------------------------------------------------------- records of every batch

MANY = sent(12)


def with_payload(payload: bytes, count: int, codec: int = 0) -> bytearray:
    batch = bytearray(sent(count)[:HEADER_BYTES]) + payload
    return patched(patched(batch, ">i", 8, len(batch) - 12), ">h", 21, codec)


@pytest.mark.parametrize("codec", CODEC_NAMES)
def test_append__reads_the_records_of_every_batch(codec: str) -> None:
    """compare/cases/produce.py has more; these are the two that broke every reader of a log."""
    number = CODEC_IDS[codec]
    random_bytes = bytes(range(7, 107))
    assert produce(with_payload(compress(number, random_bytes), 20, number)).error == (
        E.INVALID_RECORD
    )
    flipped = bytearray(MANY[HEADER_BYTES:])
    flipped[46] ^= 0x40  # the length of a value
    assert produce(with_payload(compress(number, flipped), 12, number)).error != E.NONE
    lies = sent(12, compression=codec)
    for count in (2**31 - 1, 13, 11):
        told = patched(patched(lies, ">i", 57, count), ">i", 23, count - 1)
        assert produce(told).error == E.INVALID_RECORD


@pytest.mark.parametrize("stored", ["producer", "lz4"])
@pytest.mark.parametrize("codec", CODEC_NAMES)
def test_append__a_record_in_a_compressed_batch_has_at_most_its_decompressed_size(
    codec: str, stored: str
) -> None:
    """Observed of 4.4.0: the size is what the record's length says, which is not part of it."""
    bytes_besides_value = 7
    config = TopicConfig(max_decompressed_message_bytes=1_000, compression_type=stored)
    for size, error in ((1_000, E.NONE), (1_001, E.INVALID_RECORD)):
        record = Record(0, NOW_MS, None, bytes(size - bytes_besides_value))
        small = Record(1, NOW_MS, None, b"v")
        data = build_batch([small, record], compression=codec)
        assert produce(data, config).error == (E.NONE if codec == "none" else error)


def test_append__before_4_4_nothing_limits_a_decompressed_record() -> None:
    config = TopicConfig(max_decompressed_message_bytes=NO_SIZE_LIMIT)
    large = build_batch([Record(0, NOW_MS, None, bytes(100_000))], compression="zstd")
    assert produce(large, config).error == E.NONE
    lies = bytearray(build_batch([Record(0, NOW_MS, None, b"v")])[HEADER_BYTES:])
    lies[0] = 1  # zigzag of -1
    negative = with_payload(compress(CODEC_IDS["zstd"], bytes(lies)), 1, CODEC_IDS["zstd"])
    assert produce(bytearray(negative), config).error == E.NONE
    assert produce(bytearray(negative)).error == E.INVALID_RECORD


def test_append__the_newest_timestamp_is_that_of_the_records() -> None:
    """The header's may be anything: here it hides one from the future."""
    hides = patched(sent(12, timestamp=NOW_MS + 3_600_001), ">q", 35, 5)
    refused = produce(hides)
    assert refused.error == E.INVALID_TIMESTAMP
    assert len(refused.record_errors) == 12
    (batch,) = append(new_log(), patched(MANY, ">q", 35, 2**62))
    assert batch.max_timestamp == NOW_MS


@pytest.mark.parametrize("base_ms", [2**63 - 1, -(2**63), -(2**63) + NOW_MS, 2**62, -2])
@pytest.mark.parametrize("config", [
    CONFIG,
    TopicConfig(message_timestamp_after_max_ms=2**63 - 1),
    TopicConfig(message_timestamp_before_max_ms=1),
    TopicConfig(message_timestamp_type="LogAppendTime"),
    TopicConfig(compression_type="lz4"),
    TopicConfig(cleanup_policy=("compact",)),
])  # fmt: skip
def test_append__takes_or_refuses_any_timestamp(base_ms: int, config: TopicConfig) -> None:
    log = new_log()
    appended = log.append_as_leader(patched(MANY, ">q", 27, base_ms), 0, NOW_MS, config)
    if not appended.error:
        assert log.offset_for_timestamp(-(2**63)) is not None
        assert -1 <= appended.batches[0].max_timestamp < 2**63


@pytest.mark.parametrize("codec", ["gzip", "lz4", "zstd"])
def test_append__a_request_has_one_allowance_for_all_its_batches(codec: str) -> None:
    number = CODEC_IDS[codec]
    bomb = with_payload(compress(number, bytes(12_000_000)), 1, number)
    assert len(bomb) < 100_000
    allowance = Allowance(len(bomb))
    errors = [
        new_log().append_as_leader(bomb[:], 0, NOW_MS, CONFIG, True, False, allowance).error
        for _ in range(8)
    ]
    assert errors[0] == E.INVALID_RECORD  # it opens, and is no record
    assert errors[-1] == E.MESSAGE_TOO_LARGE
    allowance.left_bytes = 0
    sound = sent(3, compression=codec)
    assert produce(sound, allowance=allowance).error == E.MESSAGE_TOO_LARGE
    assert produce(sound).error == E.NONE


def test_append__records_and_headers_are_paid_for_when_they_are_opened() -> None:
    headers = sent_with_headers(1_000_000)
    assert len(headers) < 2_000
    assert produce(headers).error == E.MESSAGE_TOO_LARGE
    assert produce(sent_with_headers(1_000)).error == E.NONE


def sent_with_headers(count: int) -> bytearray:
    """One record with so many empty headers, in zstd."""
    one = build_batch([Record(0, NOW_MS, b"k", b"v")])[HEADER_BYTES:]
    plain = bytearray()
    _write_varint(plain, len(one) - 2 + 3 + 2 * count)
    body = one[1:-1]
    _write_varint(body, count)
    body += bytes(2 * count)
    return with_payload(compress(CODEC_IDS["zstd"], bytes(plain + body)), 1, CODEC_IDS["zstd"])
