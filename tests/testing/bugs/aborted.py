"""An aborted transaction does not take the consumer's position back: its orders are skipped.

Owns: this program, with and without the bug.  Never: knows of the faults that show it.
"""

from __future__ import annotations

from typing import Any

import pytest
from kafka import KafkaConsumer, KafkaProducer, OffsetAndMetadata
from kafka.errors import KafkaError
from shop import ORDERS, consumer_of, polled, send_orders, servers_of, wait_until


def billing(cluster: Any, has_bug: bool) -> None:
    consumer = consumer_of(cluster, isolation_level="read_committed")
    producer = KafkaProducer(
        bootstrap_servers=servers_of(cluster),
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
@pytest.mark.parametrize("has_bug", [True, False], ids=["bug", "fixed"])
def test_every_order_has_one_bill(kafka_cluster: Any, has_bug: bool) -> None:
    kafka_cluster.run(billing, kafka_cluster, has_bug, restart_after="1s")
    send_orders(kafka_cluster)
    reader = KafkaConsumer(
        "bills",
        bootstrap_servers=servers_of(kafka_cluster),
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    )
    bills: list[bytes] = []

    def all_are_there() -> bool:
        bills.extend(x.value for x in polled(reader))
        return bool(len(set(bills)) == ORDERS)

    wait_until(all_are_there)
    reader.close()
    assert len(set(bills)) == ORDERS, "an order has no bill"
