"""Auto-commit while a pool works: what was polled counts as done, and dies with the program.

Owns: this program, with and without the bug.  Never: knows of the faults that show it.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

import pytest
from shop import ORDERS, consumer_of, polled, send_orders, twins, wait_until


def charge(order: bytes, charged: set[bytes]) -> None:
    time.sleep(0.2)
    charged.add(order)


def billing(cluster: Any, charged: set[bytes], has_bug: bool) -> None:
    consumer = consumer_of(cluster, enable_auto_commit=has_bug, auto_commit_interval_ms=500)
    with ThreadPoolExecutor(4) as pool:
        while True:
            work = [pool.submit(charge, x.value, charged) for x in polled(consumer)]
            if not has_bug:
                wait(work)
                consumer.commit()


@pytest.mark.kafka_cluster(clock="virtual", topics={"orders": {"partitions": 2}})
@twins
def test_every_order_is_charged(kafka_cluster: Any, has_bug: bool) -> None:
    charged: set[bytes] = set()
    kafka_cluster.run(billing, kafka_cluster, charged, has_bug, restart_after="1s")
    send_orders(kafka_cluster)
    wait_until(lambda: len(charged) == ORDERS)
    assert len(charged) == ORDERS, "an order was not charged"
