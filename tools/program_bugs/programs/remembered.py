"""What was charged is remembered in memory: after a restart it is charged again.

Owns: this program, with and without the bug.  Never: knows of the faults that show it.
"""

from __future__ import annotations

from typing import Any

import pytest
from shop import ORDERS, consumer_of, polled, send_orders, twins, wait_until


def billing(cluster: Any, table: set[bytes], charges: list[bytes], has_bug: bool) -> None:
    known: set[bytes] = set() if has_bug else table
    consumer = consumer_of(cluster)
    while True:
        orders = polled(consumer)
        for order in orders:
            if order.value not in known:
                known.add(order.value)
                charges.append(order.value)
        if orders:
            consumer.commit()


@pytest.mark.kafka_cluster(clock="virtual", topics={"orders": {}})
@twins
def test_no_order_is_charged_twice(kafka_cluster: Any, has_bug: bool) -> None:
    table: set[bytes] = set()
    charges: list[bytes] = []
    kafka_cluster.run(billing, kafka_cluster, table, charges, has_bug, restart_after="1s")
    send_orders(kafka_cluster)
    wait_until(lambda: len(set(charges)) == ORDERS)
    assert len(charges) == len(set(charges)), "an order was charged twice"
