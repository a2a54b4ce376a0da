"""A new group begins at the latest offset: what came before its first commit is lost.

Owns: this program, with and without the bug.  Never: knows of the faults that show it.
"""

from __future__ import annotations

import time
from typing import Any

import pytest
from shop import ORDERS, consumer_of, polled, send_orders, twins, wait_until


def billing(cluster: Any, charged: set[bytes], has_bug: bool) -> None:
    consumer = consumer_of(cluster, auto_offset_reset="latest" if has_bug else "earliest")
    while True:
        orders = polled(consumer)
        charged.update(x.value for x in orders)
        if orders:
            consumer.commit()


@pytest.mark.kafka_cluster(clock="virtual", topics={"orders": {"partitions": 1}})
@twins
def test_every_order_is_charged(kafka_cluster: Any, has_bug: bool) -> None:
    charged: set[bytes] = set()
    kafka_cluster.run(billing, kafka_cluster, charged, has_bug, restart_after="1s")
    time.sleep(8)
    send_orders(kafka_cluster)
    wait_until(lambda: len(charged) == ORDERS)
    assert len(charged) == ORDERS, "an order was not charged"
