"""A bill that fails is logged and skipped; the next commit covers its order.

Owns: this program, with and without the bug.  Never: knows of the faults that show it.
"""

from __future__ import annotations

import logging
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError
from shop import ORDERS, async_consumer_of, got, read, send_orders, twins

log = logging.getLogger("billing")


async def billing(cluster: Any, has_bug: bool) -> None:
    producer = AIOKafkaProducer(
        bootstrap_servers=cluster.bootstrap, acks="all", request_timeout_ms=3_000
    )
    async with async_consumer_of(cluster) as consumer, producer:
        while True:
            orders = await got(consumer)
            for order in orders:
                try:
                    await producer.send_and_wait("bills", order.value)
                except KafkaError as error:
                    log.warning("no bill for order %s: %s", order.value, error)
                    if not has_bug:
                        raise  # the supervisor starts the program again
            if orders:
                await consumer.commit()


@pytest.mark.kafka_cluster(clock="virtual", topics={"orders": {}, "bills": {}})
@twins
def test_every_order_has_a_bill(kafka_cluster: Any, has_bug: bool) -> None:
    kafka_cluster.run(billing, kafka_cluster, has_bug, restart_after="1s")
    send_orders(kafka_cluster)
    bills = read(kafka_cluster, "bills", lambda found: len(set(found)) == ORDERS)
    assert len(set(bills)) == ORDERS, "an order has no bill"
