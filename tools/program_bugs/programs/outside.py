"""The offsets are committed after the transaction, not in it: its orders are read again.

Owns: this program, with and without the bug.  Never: knows of the faults that show it.
"""

from __future__ import annotations

from typing import Any

import pytest
from kafka import TopicPartition
from kafka.structs import OffsetAndMetadata
from shop import consumer_of, polled, producer_of, read_after_all, send_orders, twins

PART = TopicPartition("orders", 0)


def billing(cluster: Any, has_bug: bool) -> None:
    producer = producer_of(cluster, transactional_id="billing")
    producer.init_transactions()
    consumer = consumer_of(cluster, isolation_level="read_committed")
    while True:
        orders = polled(consumer)
        if not orders:
            continue
        producer.begin_transaction()
        for order in orders:
            producer.send("bills", order.value)
        if not has_bug:
            offsets = {PART: OffsetAndMetadata(orders[-1].offset + 1, "", -1)}
            producer.send_offsets_to_transaction(offsets, consumer.group_metadata())
        producer.commit_transaction()
        if has_bug:
            consumer.commit()


@pytest.mark.kafka_cluster(
    clock="virtual", topics={"orders": {"partitions": 1}, "bills": {"partitions": 1}}
)
@twins
def test_every_order_has_one_bill(kafka_cluster: Any, has_bug: bool) -> None:
    kafka_cluster.run(billing, kafka_cluster, has_bug, restart_after="1s")
    send_orders(kafka_cluster)
    bills = read_after_all(kafka_cluster, "bills", isolation_level="read_committed")
    assert len(bills) == len(set(bills)), "an order has two bills"
