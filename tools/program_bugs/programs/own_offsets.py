"""Each task commits its own offset when it ends: a quick one commits for a slow one, too.

Owns: this program, with and without the bug.  Never: knows of the faults that show it.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from shop import ORDERS, async_consumer_of, got, send_orders, twins, wait_until


async def charge(
    consumer: AIOKafkaConsumer, order: Any, charged: set[bytes], has_bug: bool
) -> None:
    await asyncio.sleep(1 if order.offset % 5 == 0 else 0.05)
    charged.add(order.value)
    if has_bug:
        await consumer.commit({TopicPartition("orders", order.partition): order.offset + 1})


async def billing(cluster: Any, charged: set[bytes], has_bug: bool) -> None:
    async with async_consumer_of(cluster) as consumer:
        while True:
            orders = await got(consumer)
            tasks = [asyncio.create_task(charge(consumer, x, charged, has_bug)) for x in orders]
            if tasks and not has_bug:
                await asyncio.gather(*tasks)
                await consumer.commit()


@pytest.mark.kafka_cluster(clock="virtual", topics={"orders": {"partitions": 1}})
@twins
def test_every_order_is_charged(kafka_cluster: Any, has_bug: bool) -> None:
    charged: set[bytes] = set()
    kafka_cluster.run(billing, kafka_cluster, charged, has_bug, restart_after="1s")
    send_orders(kafka_cluster)
    wait_until(lambda: len(charged) == ORDERS)
    assert len(charged) == ORDERS, "an order was not charged"
