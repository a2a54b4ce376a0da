"""Bills are sent without waiting for their acks, and the orders are committed.

Owns: this program, with and without the bug.  Never: knows of the faults that show it.
"""

from __future__ import annotations

from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from shop import ORDERS, async_consumer_of, got, read, send_orders, twins


async def billing(cluster: Any, has_bug: bool) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=cluster.bootstrap, acks="all", linger_ms=50)
    async with async_consumer_of(cluster) as consumer, producer:
        while True:
            orders = await got(consumer)
            sent = [await producer.send("bills", x.value) for x in orders]
            if not has_bug:
                for each in sent:
                    await each
            if orders:
                await consumer.commit()


@pytest.mark.kafka_cluster(clock="virtual", topics={"orders": {}, "bills": {}})
@twins
def test_every_order_has_a_bill(kafka_cluster: Any, has_bug: bool) -> None:
    kafka_cluster.run(billing, kafka_cluster, has_bug, restart_after="1s")
    send_orders(kafka_cluster)
    bills = read(kafka_cluster, "bills", lambda found: len(set(found)) == ORDERS)
    assert len(set(bills)) == ORDERS, "an order has no bill"
