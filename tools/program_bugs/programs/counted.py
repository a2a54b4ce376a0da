"""Errors of sends are counted only, and a failover takes longer than the delivery time-out.

Owns: this program, with and without the bug.  Never: knows of the faults that show it.
"""

from __future__ import annotations

import time
from typing import Any

import pytest
from shop import ORDERS, producer_of, read, twins


@pytest.mark.kafka_cluster(clock="virtual", topics={"orders": {}})
@twins
def test_every_order_arrives(kafka_cluster: Any, has_bug: bool) -> None:
    errors: list[BaseException] = []
    producer = producer_of(
        kafka_cluster,
        enable_idempotence=False,
        request_timeout_ms=2_000,
        delivery_timeout_ms=5_000 if has_bug else 120_000,
    )
    for number in range(ORDERS):
        producer.send("orders", b"%d" % number).add_errback(errors.append)
        time.sleep(0.3)
    producer.close(timeout=150)
    arrived = read(kafka_cluster, "orders", lambda found: len(set(found)) == ORDERS)
    assert len(set(arrived)) == ORDERS, "an order has not arrived"
