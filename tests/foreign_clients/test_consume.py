"""Reading by assignment, from any place, with both libraries: seek, pause, offsets by time."""

from __future__ import annotations

import time

import confluent_kafka as ck
import kafka
import pytest
from kafka.errors import NoOffsetForPartitionError

from kcluster.handle.cluster import Cluster
from tests.foreign_clients.conftest import MakeTopic
from tests.foreign_clients.real_clients import (
    LIMIT_S,
    confluent_consumer,
    confluent_poll,
    confluent_producer,
    confluent_take,
    python_admin,
    python_consumer,
    python_poll,
    python_take,
    until,
)

FIRST_MS = int(time.time()) * 1_000 - 3_600_000
"""An hour ago: retention deletes records older than a week."""


@pytest.fixture
def filled(shared: Cluster, make_topic: MakeTopic) -> str:
    """Two partitions of 100 records each, `0`, `1`, …, one second apart, ten per batch."""
    topic = make_topic(2)
    with confluent_producer(shared.bootstrap, batch_num_messages=10) as producer:
        for partition in (0, 1):
            for number in range(100):
                producer.produce(
                    topic, b"%d" % number, partition=partition, timestamp=FIRST_MS + number * 1_000
                )
        assert producer.flush(LIMIT_S) == 0
    return topic


# ------------------------------------------------------------------------------ kafka-python


def test_consume__kafka_python_seeks(shared: Cluster, filled: str) -> None:
    first, second = kafka.TopicPartition(filled, 0), kafka.TopicPartition(filled, 1)
    with python_consumer(shared.bootstrap) as consumer:
        consumer.assign([first])
        assert python_take(consumer, 100)[-1].offset == 99
        consumer.seek(first, 42)
        assert python_take(consumer, 1)[0].value == b"42"
        consumer.seek_to_beginning(first)
        assert python_take(consumer, 1)[0].offset == 0
        consumer.seek_to_end(first)
        assert consumer.position(first) == 100
        consumer.assign([second])
        assert {record.partition for record in python_take(consumer, 100)} == {1}


def test_consume__kafka_python_pauses_and_resumes(shared: Cluster, filled: str) -> None:
    first, second = kafka.TopicPartition(filled, 0), kafka.TopicPartition(filled, 1)
    with python_consumer(shared.bootstrap) as consumer:
        consumer.assign([first, second])
        consumer.pause(first)
        assert {record.partition for record in python_take(consumer, 100)} == {1}
        assert consumer.paused() == {first}
        assert python_poll(consumer) == []
        consumer.resume(first)
        assert {record.partition for record in python_take(consumer, 100)} == {0}


def test_consume__kafka_python_offsets_by_time(shared: Cluster, filled: str) -> None:
    first, second = kafka.TopicPartition(filled, 0), kafka.TopicPartition(filled, 1)
    with python_consumer(shared.bootstrap) as consumer:
        found = consumer.offsets_for_times({first: FIRST_MS + 41_001, second: FIRST_MS})
        assert (found[first].offset, found[first].timestamp) == (42, FIRST_MS + 42_000)
        assert (found[second].offset, found[second].timestamp) == (0, FIRST_MS)
        assert consumer.offsets_for_times({first: FIRST_MS + 100_000})[first] is None
        assert consumer.beginning_offsets([first, second]) == {first: 0, second: 0}
        assert consumer.end_offsets([first, second]) == {first: 100, second: 100}


def test_consume__kafka_python_starts_at_the_configured_place(shared: Cluster, filled: str) -> None:
    first = kafka.TopicPartition(filled, 0)
    with python_admin(shared.bootstrap) as admin:
        admin.delete_records({first: 30})
    with python_consumer(shared.bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([first])
        assert python_take(consumer, 1)[0].offset == 30
        assert consumer.beginning_offsets([first]) == {first: 30}
        consumer.seek(first, 10)  # out of range
        assert python_take(consumer, 1)[0].offset == 30
    with python_consumer(shared.bootstrap, auto_offset_reset="none") as consumer:
        consumer.assign([first])
        with pytest.raises(NoOffsetForPartitionError):
            until(lambda: consumer.poll(timeout_ms=50), "error")


def test_consume__kafka_python_latest_gets_later_records(shared: Cluster, filled: str) -> None:
    first = kafka.TopicPartition(filled, 0)
    with python_consumer(shared.bootstrap, auto_offset_reset="latest") as consumer:
        consumer.assign([first])
        assert consumer.position(first) == 100
        with confluent_producer(shared.bootstrap) as producer:
            producer.produce(filled, b"later", partition=0)
            producer.flush(LIMIT_S)
        assert [record.value for record in python_take(consumer, 1)] == [b"later"]


def test_consume__kafka_python_gets_big_records_through_small_limits(
    shared: Cluster, topic: str
) -> None:
    values = [b"%d" % number * 50_000 for number in range(8)]
    with confluent_producer(shared.bootstrap, batch_num_messages=1) as producer:
        for value in values:
            producer.produce(topic, value)
        producer.flush(LIMIT_S)
    limits = {"max_partition_fetch_bytes": 1_000, "fetch_max_bytes": 2_000}
    with python_consumer(shared.bootstrap, **limits) as consumer:
        consumer.assign([kafka.TopicPartition(topic, 0)])
        assert [record.value for record in python_take(consumer, 8)] == values


# ---------------------------------------------------------------------------- confluent-kafka


def test_consume__confluent_seeks(shared: Cluster, filled: str) -> None:
    with confluent_consumer(shared.bootstrap) as consumer:
        consumer.assign([ck.TopicPartition(filled, 0, ck.OFFSET_BEGINNING)])
        assert confluent_take(consumer, 100)[-1].offset == 99
        consumer.seek(ck.TopicPartition(filled, 0, 42))
        assert confluent_take(consumer, 1)[0].value == b"42"
        consumer.assign([ck.TopicPartition(filled, 1, 95)])
        assert [record.offset for record in confluent_take(consumer, 5)] == list(range(95, 100))
        (place,) = consumer.position([ck.TopicPartition(filled, 1)])
        assert place.offset == 100


def test_consume__confluent_pauses_and_resumes(shared: Cluster, filled: str) -> None:
    parts = [ck.TopicPartition(filled, partition, 0) for partition in (0, 1)]
    with confluent_consumer(shared.bootstrap) as consumer:
        consumer.assign(parts)
        consumer.pause(parts[:1])
        assert {record.partition for record in confluent_take(consumer, 100)} == {1}
        assert confluent_poll(consumer) == []
        consumer.resume(parts[:1])
        assert {record.partition for record in confluent_take(consumer, 100)} == {0}


def test_consume__confluent_offsets_by_time(shared: Cluster, filled: str) -> None:
    with confluent_consumer(shared.bootstrap) as consumer:
        places = [
            ck.TopicPartition(filled, 0, FIRST_MS + 41_001),
            ck.TopicPartition(filled, 1, FIRST_MS + 100_000),
        ]
        found = consumer.offsets_for_times(places, LIMIT_S)
        assert [place.offset for place in found] == [42, ck.OFFSET_END]
        part = ck.TopicPartition(filled, 1)
        assert consumer.get_watermark_offsets(part, LIMIT_S) == (0, 100)


def test_consume__confluent_resets_when_out_of_range(shared: Cluster, filled: str) -> None:
    with python_admin(shared.bootstrap) as admin:
        admin.delete_records({kafka.TopicPartition(filled, 0): 30})
    with confluent_consumer(shared.bootstrap) as consumer:
        consumer.assign([ck.TopicPartition(filled, 0, 10)])
        assert confluent_take(consumer, 70)[0].offset == 30
    with confluent_consumer(shared.bootstrap, auto_offset_reset="error") as consumer:
        consumer.assign([ck.TopicPartition(filled, 0, 10)])
        message = until(lambda: consumer.poll(0.05), "error")
        assert message.error().code() == ck.KafkaError._AUTO_OFFSET_RESET


def test_consume__confluent_reports_the_end_of_a_partition(shared: Cluster, filled: str) -> None:
    with confluent_consumer(shared.bootstrap, enable_partition_eof="true") as consumer:
        consumer.assign([ck.TopicPartition(filled, 0, 98)])
        seen = [until(lambda: consumer.poll(0.05), "message") for _ in range(3)]
        assert [message.error() and message.error().code() for message in seen] == [
            None,
            None,
            ck.KafkaError._PARTITION_EOF,
        ]


def test_consume__confluent_reads_committed_as_well(shared: Cluster, filled: str) -> None:
    with confluent_consumer(shared.bootstrap, isolation_level="read_committed") as consumer:
        consumer.assign([ck.TopicPartition(filled, 0, 0)])
        assert len(confluent_take(consumer, 100)) == 100
