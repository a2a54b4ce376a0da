"""An empty poll is taken for the end of the topic: the prices are restored in part.

Owns: this program, with and without the bug.  Never: knows of the faults that show it.
"""

from __future__ import annotations

from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from shop import ORDERS, async_consumer_of, got, producer_of, send_orders, twins, wait_until

PART = TopicPartition("prices", 0)
PRICES = 10


async def restored(cluster: Any, has_bug: bool) -> dict[bytes, bytes]:
    prices: dict[bytes, bytes] = {}
    async with AIOKafkaConsumer(
        "prices", bootstrap_servers=cluster.bootstrap, auto_offset_reset="earliest"
    ) as reader:
        end = 0 if has_bug else (await reader.end_offsets([PART]))[PART]
        while True:
            found = await got(reader)
            prices.update((x.key, x.value) for x in found)
            if not found if has_bug else await reader.position(PART) >= end:
                return prices


async def billing(cluster: Any, bills: dict[bytes, bytes | None], has_bug: bool) -> None:
    prices = await restored(cluster, has_bug)
    async with async_consumer_of(cluster) as consumer:
        while True:
            orders = await got(consumer)
            for order in orders:
                bills[order.value] = prices.get(b"cup %d" % (int(order.value) % PRICES))
            if orders:
                await consumer.commit()


@pytest.mark.kafka_cluster(
    clock="virtual", topics={"orders": {"partitions": 1}, "prices": {"partitions": 1}}
)
@twins
def test_every_bill_has_a_price(kafka_cluster: Any, has_bug: bool) -> None:
    with producer_of(kafka_cluster, client_id="catalogue") as producer:
        for number in range(PRICES):
            producer.send("prices", b"12.50", key=b"cup %d" % number).get()
    bills: dict[bytes, bytes | None] = {}
    kafka_cluster.run(billing, kafka_cluster, bills, has_bug, restart_after="1s")
    send_orders(kafka_cluster)
    wait_until(lambda: len(bills) == ORDERS)
    assert None not in bills.values(), "a bill has no price"
