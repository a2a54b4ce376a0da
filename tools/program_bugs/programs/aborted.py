"""An aborted transaction does not take the consumer's position back: its orders are skipped.

Owns: this program, with and without the bug.  Never: knows of the faults that show it.
"""

from __future__ import annotations

from typing import Any

import pytest
from kafka import OffsetAndMetadata
from kafka.errors import KafkaError
from shop import ORDERS, consumer_of, polled, producer_of, read, send_orders, twins


def billing(cluster: Any, has_bug: bool) -> None:
    consumer = consumer_of(cluster, isolation_level="read_committed")
    producer = producer_of(
        cluster,
        transactional_id="billing",
        request_timeout_ms=2_000,
        delivery_timeout_ms=4_000,
        max_block_ms=30_000,
    )
    producer.init_transactions()
    while True:
        orders = polled(consumer)
        if not orders:
            continue
        try:
            producer.begin_transaction()
            sent = [producer.send("bills", x.value, partition=0) for x in orders]
            for each in sent:
                each.get()
            ends = {x.offset + 1 for x in orders}
            (part,) = consumer.assignment()
            offsets = {part: OffsetAndMetadata(max(ends), "", -1)}
            producer.send_offsets_to_transaction(offsets, consumer.group_metadata())
            producer.commit_transaction()
        except KafkaError:
            producer.abort_transaction()
            if not has_bug:
                for part in consumer.assignment():
                    consumer.seek(part, consumer.committed(part) or 0)


@pytest.mark.kafka_cluster(clock="virtual", topics={"orders": {}, "bills": {}})
@twins
def test_every_order_has_one_bill(kafka_cluster: Any, has_bug: bool) -> None:
    kafka_cluster.run(billing, kafka_cluster, has_bug, restart_after="1s")
    send_orders(kafka_cluster)
    bills = read(
        kafka_cluster,
        "bills",
        lambda found: len(set(found)) == ORDERS,
        isolation_level="read_committed",
    )
    assert len(set(bills)) == ORDERS, "an order has no bill"
