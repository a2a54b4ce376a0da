"""The position is committed in a finally block: an order that failed counts as done.

Owns: this program, with and without the bug.  Never: knows of the faults that show it.
"""

from __future__ import annotations

from typing import Any

import pytest
from shop import ORDERS, consumer_of, polled, producer_of, read, send_orders, twins


def billing(cluster: Any, has_bug: bool) -> None:
    producer = producer_of(cluster, request_timeout_ms=2_000, delivery_timeout_ms=4_000)
    consumer = consumer_of(cluster)
    while True:
        orders = polled(consumer)
        try:
            for order in orders:
                producer.send("bills", order.value).get(timeout=3)
        finally:
            if has_bug and orders:
                consumer.commit()
        if orders and not has_bug:
            consumer.commit()


@pytest.mark.kafka_cluster(clock="virtual", topics={"orders": {}, "bills": {}})
@twins
def test_every_order_has_a_bill(kafka_cluster: Any, has_bug: bool) -> None:
    kafka_cluster.run(billing, kafka_cluster, has_bug, restart_after="1s")
    send_orders(kafka_cluster)
    bills = read(kafka_cluster, "bills", lambda found: len(set(found)) == ORDERS)
    assert len(set(bills)) == ORDERS, "an order has no bill"
