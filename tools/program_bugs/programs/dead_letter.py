"""The dead letter of a bad order is not awaited before the commit: the order is nowhere.

Owns: this program, with and without the bug.  Never: knows of the faults that show it.
"""

from __future__ import annotations

from typing import Any

import pytest
from kafka import KafkaConsumer
from shop import (
    ORDERS,
    consumer_of,
    polled,
    producer_of,
    send_orders,
    servers_of,
    twins,
    wait_until,
)


def billing(cluster: Any, charged: set[bytes], has_bug: bool) -> None:
    consumer = consumer_of(cluster)
    producer = producer_of(cluster, linger_ms=100)
    while True:
        orders = polled(consumer)
        for order in orders:
            if int(order.value) % 4 == 0:
                producer.send("dead", order.value)
            else:
                charged.add(order.value)
        if not has_bug:
            producer.flush()
        if orders:
            consumer.commit()


@pytest.mark.kafka_cluster(clock="virtual", topics={"orders": {}, "dead": {}})
@twins
def test_every_order_is_somewhere(kafka_cluster: Any, has_bug: bool) -> None:
    charged: set[bytes] = set()
    kafka_cluster.run(billing, kafka_cluster, charged, has_bug, restart_after="1s")
    send_orders(kafka_cluster)
    reader = KafkaConsumer(
        "dead", bootstrap_servers=servers_of(kafka_cluster), auto_offset_reset="earliest"
    )
    dead: set[bytes] = set()

    def all_are_there() -> bool:
        dead.update(x.value for x in polled(reader))
        return bool(len(charged | dead) == ORDERS)

    wait_until(all_are_there)
    reader.close()
    assert len(charged | dead) == ORDERS, "an order is neither charged nor a dead letter"
