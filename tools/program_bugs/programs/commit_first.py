"""The commit comes before the work: an order whose program dies is nobody's.

Owns: this program, with and without the bug.  Never: knows of the faults that show it.
"""

from __future__ import annotations

import time
from typing import Any

import pytest
from shop import ORDERS, consumer_of, polled, send_orders, twins, wait_until


def billing(cluster: Any, charged: set[bytes], has_bug: bool) -> None:
    consumer = consumer_of(cluster)
    while True:
        orders = polled(consumer)
        if has_bug and orders:
            consumer.commit()
        for order in orders:
            time.sleep(0.02)
            charged.add(order.value)
        if orders and not has_bug:
            consumer.commit()


@pytest.mark.kafka_cluster(clock="virtual", topics={"orders": {}})
@twins
def test_every_order_is_charged(kafka_cluster: Any, has_bug: bool) -> None:
    charged: set[bytes] = set()
    kafka_cluster.run(billing, kafka_cluster, charged, has_bug, restart_after="1s")
    send_orders(kafka_cluster)
    wait_until(lambda: len(charged) == ORDERS)
    assert len(charged) == ORDERS, "an order was not charged"
