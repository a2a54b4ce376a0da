"""The callback of a send names the variable of the loop: it marks a later order as billed.

Owns: this program, with and without the bug.  Never: knows of the faults that show it.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import pytest
from shop import ORDERS, consumer_of, polled, producer_of, send_orders, twins, wait_until


def mark(billed: set[bytes], order: bytes, _sent: Any) -> None:
    billed.add(order)


def billing(cluster: Any, billed: set[bytes], has_bug: bool) -> None:
    producer = producer_of(cluster)
    consumer = consumer_of(cluster)
    while True:
        sent = []
        for order in polled(consumer):
            future = producer.send("bills", order.value)
            if has_bug:
                future.add_callback(lambda _: billed.add(order.value))  # noqa: B023  # the bug
            else:
                future.add_callback(partial(mark, billed, order.value))
            sent.append(future)
        for future in sent:
            future.get()
        if sent:
            consumer.commit()


@pytest.mark.kafka_cluster(clock="virtual", topics={"orders": {}, "bills": {}})
@twins
def test_every_order_is_billed(kafka_cluster: Any, has_bug: bool) -> None:
    billed: set[bytes] = set()
    kafka_cluster.run(billing, kafka_cluster, billed, has_bug, restart_after="1s")
    time.sleep(5)
    send_orders(kafka_cluster)
    wait_until(lambda: len(billed) == ORDERS)
    assert len(billed) == ORDERS, "an order was not marked as billed"
