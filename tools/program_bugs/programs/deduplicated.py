"""The last ten orders are remembered: a restart reads more of them again.

Owns: this program, with and without the bug.  Never: knows of the faults that show it.
"""

from __future__ import annotations

import time
from collections import deque
from typing import Any

import pytest
from shop import ORDERS, async_consumer_of, got, send_orders, twins, wait_until

COMMIT_S = 5


async def billing(cluster: Any, charged: list[bytes], recent: deque[bytes]) -> None:
    async with async_consumer_of(cluster) as consumer:
        committed_s = time.monotonic()
        while True:
            for order in await got(consumer):
                if order.value not in recent:
                    recent.append(order.value)
                    charged.append(order.value)
            if time.monotonic() - committed_s > COMMIT_S:
                await consumer.commit()
                committed_s = time.monotonic()


@pytest.mark.kafka_cluster(clock="virtual", topics={"orders": {"partitions": 1}})
@twins
def test_every_order_is_charged_once(kafka_cluster: Any, has_bug: bool) -> None:
    charged: list[bytes] = []
    recent: deque[bytes] = deque(maxlen=10 if has_bug else None)  # in Redis
    kafka_cluster.run(billing, kafka_cluster, charged, recent, restart_after="1s")
    send_orders(kafka_cluster)
    time.sleep(20)
    wait_until(lambda: len(set(charged)) == ORDERS)
    assert len(charged) == len(set(charged)), "an order was charged twice"
