"""A queue between the consumer and its worker: what waits in it was committed, and dies.

Owns: this program, with and without the bug.  Never: knows of the faults that show it.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from shop import ORDERS, async_consumer_of, got, send_orders, twins, wait_until


async def work(queue: asyncio.Queue[bytes], charged: set[bytes]) -> None:
    while True:
        order = await queue.get()
        await asyncio.sleep(0.1)
        charged.add(order)
        queue.task_done()


async def billing(cluster: Any, charged: set[bytes], has_bug: bool) -> None:
    queue: asyncio.Queue[bytes] = asyncio.Queue()
    async with async_consumer_of(cluster) as consumer, asyncio.TaskGroup() as group:
        group.create_task(work(queue, charged))
        while True:
            orders = await got(consumer)
            for order in orders:
                queue.put_nowait(order.value)
            if not has_bug:
                await queue.join()
            if orders:
                await consumer.commit()


@pytest.mark.kafka_cluster(clock="virtual", topics={"orders": {}})
@twins
def test_every_order_is_charged(kafka_cluster: Any, has_bug: bool) -> None:
    charged: set[bytes] = set()
    kafka_cluster.run(billing, kafka_cluster, charged, has_bug, restart_after="1s")
    send_orders(kafka_cluster)
    wait_until(lambda: len(charged) == ORDERS)
    assert len(charged) == ORDERS, "an order was not charged"
