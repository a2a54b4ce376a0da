"""A replay is a seek that nobody commits: whoever takes over begins where the group was.

Owns: this program, with and without the bug.  Never: knows of the faults that show it.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from shop import ORDERS, async_consumer_of, got, send_orders, twins, wait_until

PART = TopicPartition("orders", 0)


async def replay(consumer: AIOKafkaConsumer, requests: list[int], has_bug: bool) -> None:
    """Do what an operator has asked for: begin again at an offset."""
    while requests and PART in consumer.assignment():
        consumer.seek(PART, requests[0])
        if not has_bug:
            await consumer.commit({PART: requests[0]})
        requests.pop(0)


async def billing(
    cluster: Any, checked: Counter[bytes], requests: list[int], has_bug: bool
) -> None:
    async with async_consumer_of(cluster) as consumer:
        while True:
            await replay(consumer, requests, has_bug)
            orders = await got(consumer)
            for order in orders:
                await asyncio.sleep(0.1)
                checked[order.value] += 1
            if orders:
                await consumer.commit()


@pytest.mark.kafka_cluster(clock="virtual", topics={"orders": {"partitions": 1}})
@twins
def test_every_order_is_checked_again(kafka_cluster: Any, has_bug: bool) -> None:
    checked: Counter[bytes] = Counter()
    requests: list[int] = []
    kafka_cluster.run(billing, kafka_cluster, checked, requests, has_bug, restart_after="1s")
    send_orders(kafka_cluster)
    wait_until(lambda: len(checked) == ORDERS)
    requests.append(0)
    wait_until(lambda: min(checked.values()) >= 2)
    assert min(checked.values()) >= 2, "an order was not checked again"
