"""A buffer of orders outlives a rebalance: they are read again, and written twice.

Owns: this program, with and without the bug.  Never: knows of the faults that show it.
"""

from __future__ import annotations

from typing import Any

import pytest
from kafka import ConsumerRebalanceListener
from shop import ORDERS, consumer_of, polled, send_orders, twins, wait_until

BUFFERED = 5


class Buffer(ConsumerRebalanceListener):  # type: ignore[misc]  # untyped
    """Orders that are written together."""

    def __init__(self, has_bug: bool) -> None:
        self.has_bug = has_bug
        self.orders: list[bytes] = []

    def on_partitions_revoked(self, revoked: Any) -> None:
        pass

    def on_partitions_assigned(self, assigned: Any) -> None:
        if not self.has_bug:
            self.orders.clear()


def billing(cluster: Any, rows: list[list[bytes]], has_bug: bool) -> None:
    consumer = consumer_of(cluster)
    buffer = Buffer(has_bug)
    consumer.unsubscribe()
    consumer.subscribe(["orders"], listener=buffer)
    while True:
        buffer.orders += [x.value for x in polled(consumer)]
        if len(buffer.orders) >= BUFFERED:
            rows.append(buffer.orders[:])
            buffer.orders.clear()
            consumer.commit()


@pytest.mark.kafka_cluster(clock="virtual", topics={"orders": {"partitions": 1}})
@twins
def test_no_write_has_an_order_twice(kafka_cluster: Any, has_bug: bool) -> None:
    rows: list[list[bytes]] = []
    kafka_cluster.run(billing, kafka_cluster, rows, has_bug, restart_after="1s")
    send_orders(kafka_cluster)
    wait_until(lambda: len({order for row in rows for order in row}) == ORDERS, 60)
    assert all(len(row) == len(set(row)) for row in rows), "a write has an order twice"
