"""A send that takes four seconds is sent again: the first one arrives, too.

Owns: this program, with and without the bug.  Never: knows of the faults that show it.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from shop import ORDERS, read_after_all, twins


async def send(producer: AIOKafkaProducer, order: bytes, has_bug: bool) -> None:
    if not has_bug:
        await producer.send_and_wait("orders", order)
        return
    while True:
        try:
            await asyncio.wait_for(producer.send_and_wait("orders", order), 4)
        except TimeoutError:
            continue
        return


async def shop(servers: str, has_bug: bool) -> None:
    async with AIOKafkaProducer(bootstrap_servers=servers, enable_idempotence=True) as producer:
        for number in range(ORDERS):
            await send(producer, b"%d" % number, has_bug)
            await asyncio.sleep(0.3)


@pytest.mark.kafka_cluster(clock="virtual", topics={"orders": {}})
@twins
def test_no_order_arrives_twice(kafka_cluster: Any, has_bug: bool) -> None:
    asyncio.run(shop(kafka_cluster.bootstrap, has_bug))
    arrived = read_after_all(kafka_cluster, "orders")
    assert len(arrived) == len(set(arrived)), "an order has arrived twice"
