"""The shutdown cancels a flush in the middle of its batch: the rest is never sent.

Owns: this program, with and without the bug.  Never: knows of the faults that show it.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from shop import ORDERS, read, twins


async def flush(producer: AIOKafkaProducer, batch: list[bytes]) -> None:
    orders, batch[:] = batch[:], []
    for order in orders:
        await producer.send_and_wait("orders", order)


async def flush_always(
    producer: AIOKafkaProducer, batch: list[bytes], stopping: asyncio.Event
) -> None:
    while not stopping.is_set():
        await asyncio.sleep(1)
        await flush(producer, batch)


async def shop(servers: str, has_bug: bool) -> None:
    batch: list[bytes] = []
    stopping = asyncio.Event()
    async with AIOKafkaProducer(bootstrap_servers=servers, acks="all") as producer:
        flushing = asyncio.create_task(flush_always(producer, batch, stopping))
        for number in range(ORDERS):
            batch.append(b"%d" % number)
            await asyncio.sleep(0.33)
        if has_bug:
            flushing.cancel()
        else:
            stopping.set()
        await asyncio.wait([flushing])
        await flush(producer, batch)


@pytest.mark.kafka_cluster(clock="virtual", topics={"orders": {}})
@twins
def test_every_order_is_sent(kafka_cluster: Any, has_bug: bool) -> None:
    asyncio.run(shop(kafka_cluster.bootstrap, has_bug))
    arrived = read(kafka_cluster, "orders", lambda found: len(set(found)) == ORDERS)
    assert len(set(arrived)) == ORDERS, "an order was never sent"
