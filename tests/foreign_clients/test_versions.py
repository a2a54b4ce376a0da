"""Real clients against brokers of older releases, and through a rolling upgrade."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import confluent_kafka
import kafka
import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from kafka.admin import NewTopic as PythonNewTopic

from kcluster.config.topology.model import Topology
from kcluster.handle.cluster import Cluster
from tests.foreign_clients.real_clients import (
    LIMIT_S,
    confluent_consumer,
    confluent_producer,
    confluent_settings,
    confluent_take,
    python_admin,
    python_consumer,
    python_producer,
    python_settings,
    python_take,
)

VERSIONS = ["0.11", "1.1", "2.8", "3.9", "4.3"]
VALUES = [b"%d" % number for number in range(20)]
TOPICS = {"orders": {"replication_factor": 2}}


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def cluster(version: str) -> Iterator[Cluster]:
    topology = Topology.of(brokers=2, profile="fast", topics=TOPICS, kafka_version=version)
    with Cluster(topology) as running:
        yield running


def send_confluent(bootstrap: str, values: list[bytes], **more: Any) -> list[int]:
    offsets: list[int] = []

    def answered(error: Any, message: Any) -> None:
        assert error is None, error
        offsets.append(message.offset())

    with confluent_producer(bootstrap, **more) as producer:
        for value in values:
            producer.produce("orders", value, on_delivery=answered)
        assert producer.flush(LIMIT_S) == 0
    return offsets


def read_confluent(bootstrap: str, **more: Any) -> list[bytes | None]:
    with confluent_consumer(bootstrap, group_id="g", **more) as consumer:
        consumer.subscribe(["orders"])
        taken = confluent_take(consumer, len(VALUES))
        consumer.commit(asynchronous=False)
        places = [confluent_kafka.TopicPartition("orders", 0)]
        assert consumer.committed(places, LIMIT_S)[0].offset == len(VALUES)
    return [record.value for record in taken]


def test_kafka_python__finds_the_version_and_works_with_it(cluster: Cluster, version: str) -> None:
    with python_producer(cluster.bootstrap) as producer:
        found = producer.config["api_version"]
        assert ".".join(map(str, found[:2])) == version
        futures = [producer.send("orders", value) for value in VALUES]
        assert [future.get(LIMIT_S).offset for future in futures] == list(range(len(VALUES)))
    with python_consumer(cluster.bootstrap, "orders", group_id="g") as consumer:
        assert [record.value for record in python_take(consumer, len(VALUES))] == VALUES
        consumer.commit()
    with python_admin(cluster.bootstrap) as admin:
        admin.create_topics([PythonNewTopic("more", 1, 2)])
        assert "more" in admin.list_topics()


@pytest.mark.parametrize("compression", [None, "gzip"])
@pytest.mark.parametrize("api_version", [(0, 9), (0, 10)])
def test_kafka_python__configured_for_an_older_broker_uses_message_sets(
    api_version: tuple[int, int], compression: str | None
) -> None:
    topology = Topology.of(brokers=1, profile="fast", topics={"orders": {}}, kafka_version="2.8")
    with Cluster(topology) as cluster:
        settings: dict[str, Any] = {"api_version": api_version}
        with kafka.KafkaProducer(
            **python_settings(
                cluster.bootstrap,
                compression_type=compression,
                enable_idempotence=False,
                acks="all",
                **settings,
            )
        ) as producer:
            futures = [producer.send("orders", value, key=b"k") for value in VALUES]
            assert [future.get(LIMIT_S).offset for future in futures] == list(range(len(VALUES)))
        with python_consumer(cluster.bootstrap, "orders", group_id="g", **settings) as consumer:
            taken = python_take(consumer, len(VALUES))
        assert [record.value for record in taken] == VALUES


def test_librdkafka__works_with_the_versions_that_the_broker_lists(cluster: Cluster) -> None:
    assert sorted(send_confluent(cluster.bootstrap, VALUES)) == list(range(len(VALUES)))
    assert read_confluent(cluster.bootstrap) == VALUES
    admin = AdminClient(confluent_settings(cluster.bootstrap))
    admin.create_topics([NewTopic("more", 1, 2)])["more"].result(LIMIT_S)


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4"])
def test_librdkafka__falls_back_to_message_sets_without_api_versions(compression: str) -> None:
    topology = Topology.of(brokers=1, profile="fast", topics={"orders": {}}, kafka_version="0.11")
    fallback: dict[str, Any] = {"api_version_request": False, "broker_version_fallback": "0.9.0"}
    with Cluster(topology) as cluster:
        send_confluent(cluster.bootstrap, VALUES, compression_type=compression, **fallback)
        assert read_confluent(cluster.bootstrap, **fallback) == VALUES


def test_clients__keep_working_through_a_rolling_upgrade() -> None:
    topics = {"orders": {"replication_factor": 3, "config": {"min.insync.replicas": 2}}}
    topology = Topology.of(brokers=3, profile="fast", topics=topics, kafka_version="2.8")
    with Cluster(topology) as cluster, python_producer(cluster.bootstrap) as python:
        confluent = confluent_kafka.Producer(confluent_settings(cluster.bootstrap))
        errors: list[Any] = []
        for broker_id in cluster.broker_ids:
            cluster.kill(broker_id, "clean")
            cluster.start(broker_id, kafka_version="3.9")
            python.send("orders", b"python").get(LIMIT_S)
            confluent.produce("orders", b"c", on_delivery=lambda e, _: errors.append(e))
            assert confluent.flush(LIMIT_S) == 0
        assert errors == [None] * 3
        assert [broker.kafka_version for broker in cluster.status().brokers] == ["3.9"] * 3
