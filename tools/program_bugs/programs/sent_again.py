"""A send whose answer is late is sent again by the program: idempotence does not see it.

Owns: this program, with and without the bug.  Never: knows of the faults that show it.
"""

from __future__ import annotations

import time
from typing import Any

import pytest
from kafka.errors import KafkaTimeoutError
from shop import ORDERS, producer_of, read_after_all, twins


def send(producer: Any, order: bytes, has_bug: bool) -> None:
    for _ in range(3):
        try:
            producer.send("orders", order).get(timeout=3 if has_bug else 120)
        except KafkaTimeoutError:
            continue
        return


@pytest.mark.kafka_cluster(clock="virtual", topics={"orders": {}})
@twins
def test_no_order_arrives_twice(kafka_cluster: Any, has_bug: bool) -> None:
    producer = producer_of(kafka_cluster, enable_idempotence=True)
    for number in range(ORDERS):
        send(producer, b"%d" % number, has_bug)
        time.sleep(0.3)
    arrived = read_after_all(kafka_cluster, "orders")
    assert len(arrived) == len(set(arrived)), "an order has arrived twice"
