"""Produce and Fetch with message sets, against one broker that leads."""

from __future__ import annotations

from typing import Any

import pytest

from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.records import compression
from kcluster.protocol.records.message_sets import build_message_set, read_message_set
from kcluster.protocol.records.records import Record, build_batch
from kcluster.protocol.releases import releases
from tests.rig.one_broker import OneBroker, broker_records, topic_config, topic_records
from tests.rig.requests import fetch_partition, fetch_request, produce_request

RECORDS = [Record(i, 1_000 + i, b"k", b"value %d" % i) for i in range(3)]


def one_of(version: str = "2.8", **configs: str) -> OneBroker:
    extra = [
        topic_config("orders", name.replace("_", "."), value) for name, value in configs.items()
    ]
    one = OneBroker(broker_records(1), topic_records("orders", (1,)), extra)
    one.broker.release = releases()[version]
    return one


def produce(one: OneBroker, version: int, records: bytes | bytearray, acks: int = 1) -> Any:
    body = produce_request("orders", 0, records, acks=acks, timeout_ms=1_000)
    return one.ask(ApiKey.PRODUCE, version, body).responses[0].partition_responses[0]


def fetch(one: OneBroker, version: int, offset: int = 0, limit: int = 1 << 20) -> Any:
    body = fetch_request("orders", fetch_partition(0, offset, partition_max_bytes=limit))
    return one.ask(ApiKey.FETCH, version, body).responses[0].partitions[0]


def fetched(answer: Any) -> list[Record]:
    data = b"".join(
        part if isinstance(part, bytes) else bytes(part.buffer)
        for part in ([answer.records] if isinstance(answer.records, bytes) else answer.records)
    )
    return read_message_set(data).records


@pytest.mark.parametrize("acks", [1, -1])
@pytest.mark.parametrize("codec", [compression.NONE, compression.GZIP])
@pytest.mark.parametrize(("version", "magic"), [(0, 0), (1, 0), (2, 1)])
def test_produce__old_messages_are_read_by_old_and_new_consumers(
    version: int, magic: int, codec: int, acks: int
) -> None:
    one = one_of()
    for base_offset in (0, 3):
        answer = produce(one, version, build_message_set(RECORDS, magic, codec), acks)
        assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, base_offset)
    values = [record.value for record in RECORDS] * 2
    for fetch_version, timestamps in ((0, [-1] * 3), (2, [1_000, 1_001, 1_002])):
        records = fetched(fetch(one, fetch_version))
        assert [record.value for record in records] == values
        assert [record.offset for record in records] == list(range(6))
        assert [r.timestamp for r in records[:3]] == (timestamps if magic else [-1] * 3)
    stored = fetch(one, 4).records
    assert [(batch.base_offset, batch.codec) for batch in stored] == [(0, codec), (3, codec)]


def test_fetch__an_uncompressed_batch_is_cut_to_the_offset_asked_for() -> None:
    one = one_of()
    produce(one, 3, build_batch(RECORDS))
    assert [record.offset for record in fetched(fetch(one, 3, offset=2))] == [2]


def test_fetch__before_v3_records_are_cut_off_at_the_limit() -> None:
    one = one_of()
    produce(one, 3, build_batch(RECORDS))
    answer = fetch(one, 2, limit=50)
    assert (answer.error_code, len(answer.records)) == (ErrorCode.NONE, 50)
    assert fetched(answer) == []
    assert len(fetched(fetch(one, 3, limit=50))) == 3


def test_fetch__zstd_is_refused_before_v10_by_config_before_v4_by_batch() -> None:
    one = one_of(compression_type="zstd")
    produce(one, 3, build_batch(RECORDS))
    for version, error in ((9, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE), (10, ErrorCode.NONE)):
        answer = fetch(one, version)
        assert (answer.error_code, bool(answer.records)) == (error, error == ErrorCode.NONE)
    one = one_of()
    produce(one, 7, build_batch(RECORDS, compression="zstd"))
    assert fetch(one, 3).error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert fetch(one, 9).error_code == ErrorCode.NONE


@pytest.mark.parametrize(
    ("version", "error"), [("2.3", ErrorCode.CORRUPT_MESSAGE), ("2.8", ErrorCode.INVALID_RECORD)]
)
def test_produce__a_record_without_a_key_is_refused_with_that_releases_message(
    version: str, error: ErrorCode
) -> None:
    one = one_of(version, cleanup_policy="compact")
    records = [Record(0, 1_000, None, b"x")]
    assert produce(one, 2, build_message_set(records, 1)).error_code == error


@pytest.mark.parametrize(
    ("records", "error"),
    [
        (build_message_set(RECORDS, 1)[:-1] + b"!", ErrorCode.CORRUPT_MESSAGE),
        (build_batch(RECORDS, compression="zstd"), ErrorCode.NONE),
        (build_batch(RECORDS), ErrorCode.NONE),
        (build_batch(RECORDS) * 2, ErrorCode.INVALID_RECORD),
        (build_message_set(RECORDS, 1, 1) * 2, ErrorCode.INVALID_RECORD),
        (build_message_set(RECORDS, 1) * 2, ErrorCode.NONE),
        (build_message_set(RECORDS, 1, 0, True), ErrorCode.INVALID_TIMESTAMP),
        (build_message_set([Record(0, -5, b"k", b"x")], 1), ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_produce__a_malformed_message_set_is_reported(records: bytes, error: ErrorCode) -> None:
    """As 2.8.2 answered."""
    assert produce(one_of(), 2, bytes(records)).error_code == error


@pytest.mark.parametrize("records", [b"", build_message_set(RECORDS[:1], 1)[:20]])
@pytest.mark.parametrize("acks", [1, -1])
def test_produce__an_incomplete_message_is_ignored(records: bytes, acks: int) -> None:
    answer = produce(one_of(), 2, records, acks)
    assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, -1)


def test_produce__log_append_time_replaces_the_messages_timestamp() -> None:
    one = one_of(message_timestamp_type="LogAppendTime")
    assert produce(one, 2, build_message_set(RECORDS, 1)).log_append_time_ms == one.now_ms
    assert {record.timestamp for record in fetched(fetch(one, 2))} == {one.now_ms}
