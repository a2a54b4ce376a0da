"""A cancelled write never releases the lock: all writes after it wait for ever.

Owns: this program, with and without the bug.  Never: knows of the faults that show it.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError
from shop import ORDERS, async_consumer_of, got, read, send_orders, twins


class Bills:
    """Writes one bill at a time."""

    def __init__(self, producer: AIOKafkaProducer, has_bug: bool) -> None:
        self.producer, self.has_bug = producer, has_bug
        self.lock = asyncio.Lock()

    async def write(self, order: bytes) -> None:
        if self.has_bug:
            await self.lock.acquire()
            await self.producer.send_and_wait("bills", order)
            self.lock.release()
        else:
            async with self.lock:
                await self.producer.send_and_wait("bills", order)


async def billing(cluster: Any, has_bug: bool) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=cluster.bootstrap, acks="all")
    async with async_consumer_of(cluster) as consumer, producer:
        bills = Bills(producer, has_bug)
        while True:
            orders = await got(consumer)
            for order in orders:
                while True:
                    try:
                        await asyncio.wait_for(bills.write(order.value), 3)
                        break
                    except (TimeoutError, KafkaError):
                        await asyncio.sleep(1)
            if orders:
                await consumer.commit()


@pytest.mark.kafka_cluster(clock="virtual", topics={"orders": {}, "bills": {}})
@twins
def test_every_order_has_a_bill(kafka_cluster: Any, has_bug: bool) -> None:
    kafka_cluster.run(billing, kafka_cluster, has_bug, restart_after="1s")
    send_orders(kafka_cluster)
    bills = read(kafka_cluster, "bills", lambda found: len(set(found)) == ORDERS)
    assert len(set(bills)) == ORDERS, "an order has no bill"
