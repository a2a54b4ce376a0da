"""A task for each message, and a commit of the position: tasks that die had been committed.

Owns: this program, with and without the bug.  Never: knows of the faults that show it.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from shop import ORDERS, async_consumer_of, got, send_orders, twins, wait_until


async def charge(order: bytes, charged: set[bytes]) -> None:
    await asyncio.sleep(0.2)
    charged.add(order)


async def billing(cluster: Any, charged: set[bytes], has_bug: bool) -> None:
    async with async_consumer_of(cluster) as consumer:
        while True:
            orders = await got(consumer)
            tasks = [asyncio.create_task(charge(x.value, charged)) for x in orders]
            if not has_bug:
                await asyncio.gather(*tasks)
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
