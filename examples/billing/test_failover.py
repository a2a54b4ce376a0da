"""A producer that is not idempotent: after a failover it sends again what was written already."""

from __future__ import annotations

import random
import time
from typing import Any

import pytest
from kafka import KafkaProducer

RETRIES = {"acks": "all", "retries": 10, "enable_idempotence": False}
IDEMPOTENT = {"acks": "all", "enable_idempotence": True}


@pytest.mark.kafka_cluster(
    clock="virtual", seeds=200, topics={"orders": {}}, network={"default_latency_ms": 1}
)
@pytest.mark.parametrize("settings", [RETRIES, IDEMPOTENT], ids=["RETRIES", "IDEMPOTENT"])
def test_a_failover_doubles_no_order(kafka_cluster: Any, settings: dict[str, Any]) -> None:
    servers = kafka_cluster.bootstrap.split(",")
    producer = KafkaProducer(bootstrap_servers=servers, client_id="shop", **settings)
    killed_at = random.randrange(50)
    for number in range(50):
        producer.send("orders", b"order %d" % number)
        time.sleep(random.expovariate(100))
        if number == killed_at:
            kafka_cluster.kill("leader(orders-0)", wait=False)
    producer.close()
    kafka_cluster.start("down")
    assert kafka_cluster.verdict()
