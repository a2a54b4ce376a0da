"""A consumer of librdkafka reads from the follower in its rack, and goes back to the leader."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from confluent_kafka import OFFSET_BEGINNING, TopicPartition

from kcluster.config.kafka.broker import RACK_AWARE_SELECTOR
from kcluster.config.topology.model import Topology
from kcluster.handle.cluster import Cluster
from tests.foreign_clients.conftest import SESSIONS
from tests.foreign_clients.real_clients import (
    LIMIT_S,
    confluent_consumer,
    confluent_poll,
    confluent_producer,
    confluent_take,
    until,
)

SELECTOR = {"replica.selector.class": RACK_AWARE_SELECTOR}


@pytest.fixture
def racks() -> Iterator[Cluster]:
    """Three brokers in racks a, b and c; broker 1 leads the partition of `orders`."""
    topology = Topology.of(
        brokers=[{"id": number, "rack": rack} for number, rack in enumerate("abc", 1)],
        profile="fast",
        topics={"orders": {"assignment": [[1, 2, 3]], "config": {"min.insync.replicas": 2}}},
        config={**SESSIONS, **SELECTOR},
    )
    with Cluster(topology) as running:
        running.wait_for(isr=("orders", 0, 3))
        yield running


def produce(cluster: Cluster, count: int) -> None:
    with confluent_producer(cluster.bootstrap) as producer:
        for number in range(count):
            producer.produce("orders", b"%d" % number)
        assert producer.flush(LIMIT_S) == 0


def test_nearest_replica__librdkafka_reads_in_its_rack_until_the_follower_dies(
    racks: Cluster,
) -> None:
    sources: list[int] = []
    """The broker from which it reads, again and again."""

    def note_source(statistics: str) -> None:
        topic = json.loads(statistics)["topics"].get("orders")
        if topic is not None and "0" in topic["partitions"]:
            sources.append(topic["partitions"]["0"]["broker"])

    produce(racks, 10)
    with confluent_consumer(
        racks.bootstrap, client_rack="b", stats_cb=note_source, statistics_interval_ms=20
    ) as consumer:
        consumer.assign([TopicPartition("orders", 0, OFFSET_BEGINNING)])
        assert [record.offset for record in confluent_take(consumer, 10)] == [*range(10)]
        until(lambda: confluent_poll(consumer) or sources[-1:] == [2], "read from broker 2")
        produce(racks, 10)
        assert [record.offset for record in confluent_take(consumer, 10)] == [*range(10, 20)]
        assert sources[-1] == 2
        racks.kill(2)
        produce(racks, 10)
        assert [record.offset for record in confluent_take(consumer, 10)] == [*range(20, 30)]
        until(lambda: confluent_poll(consumer) or sources[-1] == 1, "read from the leader")
