"""Sums are written every two seconds, offsets with each poll: sums die that were committed.

Owns: this program, with and without the bug.  Never: knows of the faults that show it.
"""

from __future__ import annotations

import time
from typing import Any

import pytest
from shop import ORDERS, async_consumer_of, got, send_orders, twins, wait_until

WINDOW_S = 2


async def totals(cluster: Any, stored: set[bytes], has_bug: bool) -> None:
    window: set[bytes] = set()
    written_s = time.monotonic()
    async with async_consumer_of(cluster) as consumer:
        while True:
            orders = await got(consumer)
            window.update(x.value for x in orders)
            if orders and has_bug:
                await consumer.commit()
            if window and time.monotonic() - written_s >= WINDOW_S:
                stored |= window
                window.clear()
                written_s = time.monotonic()
                if not has_bug:
                    await consumer.commit()


@pytest.mark.kafka_cluster(clock="virtual", topics={"orders": {}})
@twins
def test_every_order_is_in_a_sum(kafka_cluster: Any, has_bug: bool) -> None:
    stored: set[bytes] = set()
    kafka_cluster.run(totals, kafka_cluster, stored, has_bug, restart_after="1s")
    send_orders(kafka_cluster)
    wait_until(lambda: len(stored) == ORDERS)
    assert len(stored) == ORDERS, "an order is in no sum"
