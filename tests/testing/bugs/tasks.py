"""A task for each message, and a commit of the position: tasks that die had been committed.

Owns: this program, with and without the bug.  Never: knows of the faults that show it.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer
from shop import ORDERS, send_orders, wait_until


async def charge(order: bytes, charged: set[bytes]) -> None:
    await asyncio.sleep(0.2)
    charged.add(order)


async def billing(cluster: Any, charged: set[bytes], has_bug: bool) -> None:
    consumer = AIOKafkaConsumer(
        "orders",
        bootstrap_servers=cluster.bootstrap,
        group_id="billing",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=6_000,
        heartbeat_interval_ms=2_000,
    )
    async with consumer:
        while True:
            found = await consumer.getmany(timeout_ms=500)
            orders = [x.value for part in found.values() for x in part]
            tasks = [asyncio.create_task(charge(each, charged)) for each in orders]
            if not has_bug:
                await asyncio.gather(*tasks)
            if orders:
                await consumer.commit()


@pytest.mark.kafka_cluster(clock="virtual", topics={"orders": {}})
@pytest.mark.parametrize("has_bug", [True, False], ids=["bug", "fixed"])
def test_every_order_is_charged(kafka_cluster: Any, has_bug: bool) -> None:
    charged: set[bytes] = set()
    kafka_cluster.run(billing, kafka_cluster, charged, has_bug, restart_after="1s")
    send_orders(kafka_cluster)
    wait_until(lambda: len(charged) == ORDERS)
    assert len(charged) == ORDERS, "an order was not charged"
