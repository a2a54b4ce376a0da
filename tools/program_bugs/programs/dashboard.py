"""A dashboard assigns itself the partition, and has the group id of billing: it commits for it.

Owns: this program, with and without the bug.  Never: knows of the faults that show it.
"""

from __future__ import annotations

import time
from typing import Any

import pytest
from kafka import KafkaConsumer, TopicPartition
from shop import consumer_of, polled, send_orders, servers_of, twins, wait_until


def billing(cluster: Any, charged: set[bytes]) -> None:
    consumer = consumer_of(cluster)
    while True:
        orders = polled(consumer)
        for order in orders:
            time.sleep(0.05)
            charged.add(order.value)
        if orders:
            consumer.commit()


def dashboard(cluster: Any, shown: set[bytes], has_bug: bool) -> None:
    consumer = KafkaConsumer(
        bootstrap_servers=servers_of(cluster),
        group_id="billing" if has_bug else "dashboard",
        auto_offset_reset="earliest",
        auto_commit_interval_ms=1_000,
    )
    consumer.assign([TopicPartition("orders", 0)])
    while True:
        shown.update(order.value for order in polled(consumer))


@pytest.mark.kafka_cluster(clock="virtual", topics={"orders": {"partitions": 1}})
@twins
def test_every_order_is_charged(kafka_cluster: Any, has_bug: bool) -> None:
    charged: set[bytes] = set()
    shown: set[bytes] = set()
    kafka_cluster.run(billing, kafka_cluster, charged, restart_after="1s")
    time.sleep(5)
    kafka_cluster.run(dashboard, kafka_cluster, shown, has_bug, restart_after="1s")
    send_orders(kafka_cluster, count=60, every_s=0.5)
    wait_until(lambda: len(charged) == 60)
    assert len(charged) == 60, "an order was not charged"
