"""An aborted transaction does not take the consumer's position back: its orders are skipped.

Owns: this program, with and without the bug.  Never: knows of the faults that show it.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError
from shop import ORDERS, async_consumer_of, got, read, send_orders, twins


async def billing(cluster: Any, has_bug: bool) -> None:
    async with (
        async_consumer_of(cluster) as consumer,
        AIOKafkaProducer(
            bootstrap_servers=cluster.bootstrap, transactional_id="billing"
        ) as producer,
    ):
        while True:
            orders = await got(consumer)
            if not orders:
                continue
            (part,) = consumer.assignment()
            try:
                async with producer.transaction():
                    for order in orders:
                        await asyncio.wait_for(producer.send_and_wait("bills", order.value), 2)
                    ends = {part: orders[-1].offset + 1}
                    await producer.send_offsets_to_transaction(ends, "billing")
            except (KafkaError, TimeoutError):
                if not has_bug:
                    consumer.seek(part, await consumer.committed(part) or 0)


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
