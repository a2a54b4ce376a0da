"""Each start has a new transactional id: nobody ends the transaction of the one that died.

Owns: this program, with and without the bug.  Never: knows of the faults that show it.
"""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from shop import ORDERS, async_consumer_of, got, read, send_orders, twins


async def billing(cluster: Any, has_bug: bool) -> None:
    producer = AIOKafkaProducer(
        bootstrap_servers=cluster.bootstrap,
        transactional_id=f"billing-{uuid.uuid4()}" if has_bug else "billing",
        transaction_timeout_ms=600_000,
    )
    async with async_consumer_of(cluster) as consumer, producer:
        while True:
            orders = await got(consumer)
            if not orders:
                continue
            (part,) = consumer.assignment()
            async with producer.transaction():
                for order in orders:
                    await producer.send_and_wait("bills", order.value)
                ends = {part: orders[-1].offset + 1}
                await producer.send_offsets_to_transaction(ends, "billing")


@pytest.mark.kafka_cluster(
    clock="virtual", topics={"orders": {"partitions": 1}, "bills": {"partitions": 1}}
)
@twins
def test_every_bill_can_be_read(kafka_cluster: Any, has_bug: bool) -> None:
    kafka_cluster.run(billing, kafka_cluster, has_bug, restart_after="1s")
    send_orders(kafka_cluster)
    bills = read(
        kafka_cluster,
        "bills",
        lambda found: len(set(found)) == ORDERS,
        isolation_level="read_committed",
    )
    assert len(set(bills)) == ORDERS, "a bill cannot be read"
