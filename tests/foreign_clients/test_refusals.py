"""What a cluster refuses, and how the libraries report it: too few replicas, no such topic."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import confluent_kafka as ck
import pytest
from kafka.errors import KafkaTimeoutError, NotEnoughReplicasError

from kcluster.config.topology.model import Topology
from kcluster.handle.cluster import Cluster
from tests.foreign_clients.real_clients import (
    LIMIT_S,
    confluent_consumer,
    confluent_producer,
    confluent_read,
    python_admin,
    python_producer,
    python_read,
    until,
)

KE = ck.KafkaError


@pytest.fixture(scope="module")
def strict() -> Iterator[Cluster]:
    """Topics are not auto-created."""
    topology = Topology.of(brokers=3, profile="fast", config={"auto.create.topics.enable": False})
    with Cluster(topology) as running:
        yield running


def test_refusals__too_few_replicas_in_sync(own: Cluster) -> None:
    with (
        python_producer(own.bootstrap, acks="all", enable_idempotence=False, retries=0) as one,
        confluent_producer(own.bootstrap, acks="all", retries=0) as two,
    ):
        one.send("orders", b"before").get(LIMIT_S)
        own.kill(2)
        one.send("orders", b"two are enough").get(LIMIT_S)
        own.kill(3)
        with pytest.raises(NotEnoughReplicasError):
            one.send("orders", b"refused").get(LIMIT_S)
        errors: list[Any] = []
        two.produce("orders", b"refused", on_delivery=lambda error, _: errors.append(error))
        two.flush(LIMIT_S)
        assert errors[0].code() == KE.NOT_ENOUGH_REPLICAS
        own.start(2)
        one.send("orders", b"two again").get(LIMIT_S)
    values = [b"before", b"two are enough", b"two again"]
    assert [record.value for record in python_read(own.bootstrap, "orders")] == values


def test_refusals__producers_that_retry_succeed_eventually(own: Cluster) -> None:
    own.kill(2)
    own.kill(3)
    with (
        python_producer(own.bootstrap, acks="all") as one,
        confluent_producer(own.bootstrap, acks="all", enable_idempotence="true") as two,
    ):
        future = one.send("orders", b"one")
        two.produce("orders", b"two")
        two.poll(0.02)
        own.start(3)
        future.get(LIMIT_S)
        assert two.flush(LIMIT_S) == 0
    values = [record.value for record in confluent_read(own.bootstrap, "orders")]
    assert Counter(values) == Counter((b"one", b"two"))


def test_refusals__acks_one_needs_only_the_leader(own: Cluster) -> None:
    own.kill(2)
    own.kill(3)
    with python_producer(own.bootstrap, acks=1, enable_idempotence=False) as producer:
        assert producer.send("orders", b"v").get(LIMIT_S).offset == 0


def test_refusals__without_a_leader_producers_wait_until_one_is_back(own: Cluster) -> None:
    with python_producer(own.bootstrap, acks=1, enable_idempotence=False) as producer:
        producer.send("orders", b"before").get(LIMIT_S)
        for broker_id in (3, 2, 1):  # a clean stop: after kill -9 no replica counts as complete
            own.kill(broker_id, "clean")
        future = producer.send("orders", b"after")
        own.start(1)
        assert future.get(LIMIT_S).offset == 1


def test_refusals__producers_of_an_unknown_topic(strict: Cluster) -> None:
    with (
        python_producer(strict.bootstrap, max_block_ms=200) as one,
        pytest.raises(KafkaTimeoutError),
    ):
        one.send("nowhere", b"v")
    errors: list[Any] = []
    with confluent_producer(strict.bootstrap, topic_metadata_propagation_max_ms=100) as two:
        two.produce("nowhere", b"v", on_delivery=lambda error, _: errors.append(error))
        two.flush(LIMIT_S)
    assert errors[0].code() in (KE._UNKNOWN_TOPIC, KE.UNKNOWN_TOPIC_OR_PART)
    assert "nowhere" not in {part.topic for part in strict.status().partitions}


def test_refusals__a_consumer_of_an_unknown_topic(strict: Cluster) -> None:
    with confluent_consumer(strict.bootstrap) as consumer:
        consumer.subscribe(["nowhere"])
        message = until(lambda: consumer.poll(0.05), "error")
        assert message.error().code() == KE.UNKNOWN_TOPIC_OR_PART


def test_refusals__a_record_older_than_the_topic_allows(strict: Cluster) -> None:
    configs = {"message.timestamp.before.max.ms": "60000"}
    topic = {"num_partitions": 1, "replication_factor": 3, "configs": configs}
    with python_admin(strict.bootstrap) as admin:
        admin.create_topics({"young": topic})
    errors: list[Any] = []
    with confluent_producer(strict.bootstrap) as producer:
        producer.produce(
            "young", b"v", timestamp=1, on_delivery=lambda error, _: errors.append(error)
        )
        producer.flush(LIMIT_S)
    assert errors[0].code() == KE.INVALID_TIMESTAMP
