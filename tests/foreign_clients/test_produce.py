"""Records of real producers are read unchanged: every compression, acks, headers, sizes."""

from __future__ import annotations

import time
from typing import Any

import confluent_kafka
import pytest
from kafka.codec import has_lz4, has_snappy, has_zstd
from kafka.errors import MessageSizeTooLargeError

from kcluster.handle.cluster import Cluster
from kcluster.operations.controller import controller_image
from tests.foreign_clients.conftest import MakeTopic
from tests.foreign_clients.real_clients import (
    LIMIT_S,
    Read,
    confluent_producer,
    confluent_read,
    python_producer,
    python_read,
    until,
)

COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")
CODES = {name: code for code, name in enumerate(COMPRESSIONS)}
AVAILABLE = {
    "none": True, "gzip": True, "snappy": has_snappy(), "lz4": has_lz4(), "zstd": has_zstd(),
}  # fmt: skip
ACKS = (0, 1, "all")
NOW_MS = int(time.time() * 1_000)
VALUES = [b"%d %s" % (number, b"abc" * 40) for number in range(100)]


def batches_on_disk(cluster: Cluster, topic: str, broker_id: int) -> list[Any]:
    """The batches of partition 0 in one broker's log."""
    topic_id = controller_image(cluster.driver.dispatcher).topics[topic].topic_id
    log = cluster.plan.disks[broker_id].logs[topic_id, 0]
    return log.read(0, 1 << 30, log.log_end_offset, at_least_one=True)


def send_python(cluster: Cluster, topic: str, values: list[bytes], **settings: Any) -> list[int]:
    """The offsets of the values, from the acks."""
    with python_producer(cluster.bootstrap, linger_ms=5, **settings) as producer:
        futures = [producer.send(topic, value) for value in values]
        producer.flush(timeout=LIMIT_S)
        return [future.get(LIMIT_S).offset for future in futures]


def send_confluent(cluster: Cluster, topic: str, values: list[bytes], **settings: Any) -> list[int]:
    offsets: list[int] = []

    def answered(error: Any, message: Any) -> None:
        assert error is None, error
        offsets.append(message.offset())

    with confluent_producer(cluster.bootstrap, **settings) as producer:
        for value in values:
            producer.produce(topic, value, on_delivery=answered)
        assert producer.flush(LIMIT_S) == 0
    return offsets


def wait_end(cluster: Cluster, topic: str, end: int) -> None:
    """Wait until this many records are committed; acks=0 gives no answer."""

    def committed() -> bool:
        found = [part for part in cluster.status().partitions if part.topic == topic]
        return sum(part.high_watermark or 0 for part in found) >= end

    until(committed, f"high watermark {end}")


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_produce__kafka_python_with_each_acks(
    shared: Cluster, topic: str, compression: str
) -> None:
    if not AVAILABLE[compression]:
        pytest.skip(f"kafka-python has no library for {compression}")
    kind = None if compression == "none" else compression
    for turn, acks in enumerate(ACKS):
        settings = {"acks": acks, "compression_type": kind, "enable_idempotence": acks == "all"}
        offsets = send_python(shared, topic, VALUES, **settings)
        if acks != 0:
            assert offsets == list(range(turn * 100, turn * 100 + 100))
        wait_end(shared, topic, turn * 100 + 100)
    for read in (python_read, confluent_read):
        assert [record.value for record in read(shared.bootstrap, topic)] == VALUES * 3


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_produce__confluent_with_each_acks(shared: Cluster, topic: str, compression: str) -> None:
    for turn, acks in enumerate(ACKS):
        offsets = send_confluent(shared, topic, VALUES, acks=acks, compression_type=compression)
        if acks != 0:
            assert offsets == list(range(turn * 100, turn * 100 + 100))
        wait_end(shared, topic, turn * 100 + 100)
    assert [r.value for r in confluent_read(shared.bootstrap, topic)] == VALUES * 3
    if AVAILABLE[compression]:
        assert [r.value for r in python_read(shared.bootstrap, topic)] == VALUES * 3


@pytest.mark.parametrize("compression", COMPRESSIONS[1:])
def test_produce__a_topic_with_its_own_compression_stores_that(
    shared: Cluster, make_topic: MakeTopic, compression: str
) -> None:
    topic = make_topic(**{"compression.type": compression})
    send_confluent(shared, topic, VALUES, compression_type="none", acks="all")
    assert [record.value for record in confluent_read(shared.bootstrap, topic)] == VALUES
    stored = {batch.attributes & 7 for batch in batches_on_disk(shared, topic, 1)}
    assert stored == {CODES[compression]}


def test_produce__idempotent_producers_have_their_own_ids(shared: Cluster, topic: str) -> None:
    send_python(shared, topic, VALUES, enable_idempotence=True)
    send_confluent(shared, topic, VALUES, enable_idempotence="true")
    assert [r.value for r in confluent_read(shared.bootstrap, topic)] == VALUES * 2
    batches = batches_on_disk(shared, topic, 2)
    assert len({batch.producer_id for batch in batches}) == 2
    assert min(batch.producer_id for batch in batches) >= 0


def test_produce__keys_nulls_headers_and_timestamps_are_kept(shared: Cluster, topic: str) -> None:
    headers = [("a", b"1"), ("a", b"2"), ("ü", b"")]
    with python_producer(shared.bootstrap) as producer:
        first = producer.send(topic, b"v", key=b"k", headers=headers, timestamp_ms=NOW_MS)
        assert first.get(LIMIT_S).timestamp == NOW_MS
        producer.send(topic, None, key=b"k", timestamp_ms=NOW_MS + 1).get(LIMIT_S)
    with confluent_producer(shared.bootstrap) as sender:
        sender.produce(topic, b"", key=b"", headers=[("none", None)], timestamp=NOW_MS + 2)
        sender.flush(LIMIT_S)
    expected = [
        Read(0, 0, b"k", b"v", tuple(headers), NOW_MS),
        Read(0, 1, b"k", None, (), NOW_MS + 1),
        Read(0, 2, b"", b"", (("none", None),), NOW_MS + 2),
    ]
    assert python_read(shared.bootstrap, topic) == expected
    assert confluent_read(shared.bootstrap, topic) == expected


def test_produce__equal_keys_go_to_equal_partitions(shared: Cluster, make_topic: MakeTopic) -> None:
    topic = make_topic(4)
    with python_producer(shared.bootstrap) as producer:
        for number in range(200):
            producer.send(topic, b"%d" % number, key=b"key-%d" % (number % 20))
        producer.flush(timeout=LIMIT_S)
    read = confluent_read(shared.bootstrap, topic)
    assert len(read) == 200
    assert len({record.partition for record in read}) == 4
    assert len({(record.key, record.partition) for record in read}) == 20


def test_produce__log_append_time_is_the_broker_s(shared: Cluster, make_topic: MakeTopic) -> None:
    topic = make_topic(**{"message.timestamp.type": "LogAppendTime"})
    with python_producer(shared.bootstrap) as producer:
        place = producer.send(topic, b"v", timestamp_ms=1_000).get(LIMIT_S)
    assert place.timestamp >= NOW_MS
    assert python_read(shared.bootstrap, topic)[0].timestamp_ms == place.timestamp


OVERHEAD_BYTES = 70
"""Of a batch of one record with a value of 64 to 8191 bytes, neither key nor headers."""


def test_produce__kafka_python_at_the_size_limit_and_above(
    shared: Cluster, make_topic: MakeTopic
) -> None:
    topic = make_topic(**{"max.message.bytes": "2000"})
    # With idempotence such an error is fatal to this client.
    with python_producer(shared.bootstrap, enable_idempotence=False) as producer:
        producer.send(topic, b"x" * (2000 - OVERHEAD_BYTES)).get(LIMIT_S)
        with pytest.raises(MessageSizeTooLargeError):
            producer.send(topic, b"x" * (2001 - OVERHEAD_BYTES)).get(LIMIT_S)
        producer.send(topic, b"next").get(LIMIT_S)
    (batch, _) = batches_on_disk(shared, topic, 3)
    assert batch.size_bytes == 2000
    assert [len(r.value or b"") for r in python_read(shared.bootstrap, topic)] == [1930, 4]


def test_produce__confluent_at_the_size_limit_and_above(
    shared: Cluster, make_topic: MakeTopic
) -> None:
    topic = make_topic(**{"max.message.bytes": "2000"})
    errors: list[Any] = []
    with confluent_producer(shared.bootstrap) as producer:
        for extra in (0, 1):
            value = b"x" * (2000 - OVERHEAD_BYTES + extra)
            producer.produce(topic, value, on_delivery=lambda error, _: errors.append(error))
            producer.flush(LIMIT_S)
    assert errors[0] is None
    assert errors[1].code() == confluent_kafka.KafkaError.MSG_SIZE_TOO_LARGE


def test_produce__a_megabyte_is_accepted_with_default_limits(shared: Cluster, topic: str) -> None:
    value = bytes(range(256)) * 3_900
    with python_producer(shared.bootstrap) as producer:
        producer.send(topic, value).get(LIMIT_S)
    with confluent_producer(shared.bootstrap) as sender:
        sender.produce(topic, value)
        assert sender.flush(LIMIT_S) == 0
    for read in (python_read, confluent_read):
        assert [record.value for record in read(shared.bootstrap, topic)] == [value, value]


def test_produce__a_topic_is_created_by_the_first_record(shared: Cluster) -> None:
    with python_producer(shared.bootstrap) as producer:
        assert producer.send("by-kafka-python", b"v").get(LIMIT_S).offset == 0
    assert send_confluent(shared, "by-confluent", [b"v"]) == [0]
    names = {part.topic for part in shared.status().partitions}
    assert {"by-kafka-python", "by-confluent"} <= names
