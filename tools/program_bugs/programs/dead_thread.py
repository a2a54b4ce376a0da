"""The thread that consumes dies of an error, and its program lives on: nobody starts it again.

Owns: this program, with and without the bug.  Never: knows of the faults that show it.
"""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from shop import ORDERS, consumer_of, polled, send_orders, twins, wait_until


def consume(cluster: Any, charged: set[bytes]) -> None:
    consumer = consumer_of(cluster)
    while True:
        orders = polled(consumer)
        for order in orders:
            time.sleep(0.05)
            charged.add(order.value)
        if orders:
            consumer.commit()


def billing(cluster: Any, charged: set[bytes], has_bug: bool) -> None:
    thread = threading.Thread(target=consume, args=(cluster, charged), daemon=True)
    thread.start()
    while has_bug or thread.is_alive():
        time.sleep(1)  # it answers the health checks
    raise RuntimeError("the consumer has died")


@pytest.mark.kafka_cluster(clock="virtual", topics={"orders": {"partitions": 1}})
@twins
def test_every_order_is_charged(kafka_cluster: Any, has_bug: bool) -> None:
    charged: set[bytes] = set()
    kafka_cluster.run(billing, kafka_cluster, charged, has_bug, restart_after="1s")
    send_orders(kafka_cluster)
    wait_until(lambda: len(charged) == ORDERS)
    assert len(charged) == ORDERS, "an order was not charged"
