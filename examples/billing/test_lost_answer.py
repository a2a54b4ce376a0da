"""Orders are placed twice: a producer without idempotence sends again what was written already."""

from __future__ import annotations

import random
import time

import pytest
from kafka import KafkaProducer


def careless(servers):
    return KafkaProducer(
        bootstrap_servers=servers, acks="all", enable_idempotence=False, retries=10
    )


def idempotent(servers):
    return KafkaProducer(bootstrap_servers=servers, acks="all", enable_idempotence=True)


@pytest.mark.kafka_cluster(clock="virtual", topics={"orders": {}}, seeds=200)
@pytest.mark.parametrize("make_producer", [careless, idempotent])
def test_a_failover_doubles_no_order(kafka_cluster, make_producer):
    producer = make_producer(kafka_cluster.bootstrap.split(","))
    killed_at = random.randrange(200)
    for number in range(200):
        producer.send("orders", b"order %d" % number)
        time.sleep(random.expovariate(100))
        if number == killed_at:
            kafka_cluster.kill("leader(orders-0)", wait=False)
    producer.close()
    kafka_cluster.start("down")
    assert kafka_cluster.verdict()
