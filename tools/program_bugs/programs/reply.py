"""The consumer of replies begins at the latest offset after the request: it misses the reply.

Owns: this program, with and without the bug.  Never: knows of the faults that show it.
"""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from shop import async_consumer_of, got, twins, wait_until

REQUESTS = 5


async def service(cluster: Any) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=cluster.bootstrap, acks="all")
    async with async_consumer_of(cluster) as consumer, producer:
        while True:
            orders = await got(consumer)
            for order in orders:
                await asyncio.sleep(1)
                await producer.send_and_wait("replies", order.value)
            if orders:
                await consumer.commit()


async def ask(cluster: Any, producer: AIOKafkaProducer, request: bytes, has_bug: bool) -> None:
    replies = AIOKafkaConsumer(
        "replies", bootstrap_servers=cluster.bootstrap, auto_offset_reset="latest"
    )
    async with replies:
        if not has_bug:
            for part in replies.assignment():
                await replies.position(part)
        await producer.send_and_wait("orders", request)
        while request not in [x.value for x in await got(replies)]:
            pass


async def customer(cluster: Any, answered: set[int], has_bug: bool) -> None:
    async with AIOKafkaProducer(bootstrap_servers=cluster.bootstrap, acks="all") as producer:
        for number in range(REQUESTS):
            await ask(cluster, producer, b"%d" % number, has_bug)
            answered.add(number)


@pytest.mark.kafka_cluster(
    clock="virtual", topics={"orders": {"partitions": 1}, "replies": {"partitions": 1}}
)
@twins
def test_every_request_is_answered(kafka_cluster: Any, has_bug: bool) -> None:
    answered: set[int] = set()
    kafka_cluster.run(service, kafka_cluster, restart_after="1s")

    def ask_all() -> None:
        asyncio.run(customer(kafka_cluster, answered, has_bug))

    threading.Thread(target=ask_all, daemon=True).start()
    wait_until(lambda: len(answered) == REQUESTS)
    assert len(answered) == REQUESTS, "a reply was missed"
