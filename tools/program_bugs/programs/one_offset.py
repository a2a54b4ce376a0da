"""One variable has the offset of all partitions: what is committed is another one's place.

Owns: this program, with and without the bug.  Never: knows of the faults that show it.
"""

from __future__ import annotations

from typing import Any

import pytest
from kafka import OffsetAndMetadata, TopicPartition
from shop import ORDERS, consumer_of, polled, send_orders, twins, wait_until


def billing(cluster: Any, charged: set[bytes], has_bug: bool) -> None:
    consumer = consumer_of(cluster)
    while True:
        next_offsets: dict[TopicPartition, int] = {}
        offset = 0
        for order in polled(consumer):
            charged.add(order.value)
            offset = order.offset + 1
            next_offsets[TopicPartition(order.topic, order.partition)] = offset
        if has_bug and offset:
            next_offsets = dict.fromkeys(consumer.assignment(), offset)
        if next_offsets:
            consumer.commit({x: OffsetAndMetadata(at, "", -1) for x, at in next_offsets.items()})


@pytest.mark.kafka_cluster(clock="virtual", topics={"orders": {"partitions": 2}})
@twins
def test_every_order_is_charged(kafka_cluster: Any, has_bug: bool) -> None:
    charged: set[bytes] = set()
    kafka_cluster.run(billing, kafka_cluster, charged, has_bug, restart_after="1s")
    send_orders(kafka_cluster, parts=2)
    wait_until(lambda: len(charged) == ORDERS)
    assert len(charged) == ORDERS, "an order was not charged"
