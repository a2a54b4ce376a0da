"""Real clients of a cluster whose clock is paused: they stall, and go on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kcluster.config.topology.model import Topology
from kcluster.handle.cluster import Cluster
from tests.foreign_clients.real_clients import LIMIT_S, confluent_producer, confluent_read

ORDERS = {"orders": {"assignment": [[1, 2, 3]]}}


@pytest.fixture
def own() -> Iterator[Cluster]:
    with Cluster(Topology.of(brokers=3, topics=ORDERS, profile="fast")) as running:
        yield running


def test_pause__a_producer_waits_and_its_record_arrives_once(own: Cluster) -> None:
    with confluent_producer(own.bootstrap) as producer:
        producer.produce("orders", b"before", partition=0)
        assert producer.flush(LIMIT_S) == 0
        own.pause_clock()
        producer.produce("orders", b"during", partition=0)
        assert producer.flush(0.2) == 1, "the broker does not answer"
        assert own.logs("orders", 0).replicas[0].log_end_offset == 1
        own.resume_clock()
        assert producer.flush(LIMIT_S) == 0
    assert [read.value for read in confluent_read(own.bootstrap, "orders")] == [
        b"before",
        b"during",
    ]
    verdict = own.verdict()
    assert (verdict.outcome, verdict.unavailable_ms("writes")) == ("valid", 0)


def test_pause__a_broker_dies_and_the_client_learns_it_when_time_goes_on(own: Cluster) -> None:
    with confluent_producer(own.bootstrap) as producer:
        producer.produce("orders", b"before", partition=0)
        assert producer.flush(LIMIT_S) == 0
        own.pause_clock()
        own.kill("leader(orders-0)")
        producer.produce("orders", b"after", partition=0)
        own.step("leader_elected of orders-0")
        assert own.leader("orders-0") == 2
        own.set_speed(0.5)
        own.resume_clock()
        assert producer.flush(LIMIT_S) == 0
    assert [read.value for read in confluent_read(own.bootstrap, "orders")] == [b"before", b"after"]
