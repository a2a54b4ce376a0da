"""All is paused while a worker is busy; the poll for heartbeats gets a new partition's orders.

Owns: this program, with and without the bug.  Never: knows of the faults that show it.
"""

from __future__ import annotations

import queue
import threading
import time
from contextlib import suppress
from typing import Any

import pytest
from kafka.errors import CommitFailedError, RebalanceInProgressError
from shop import consumer_of, polled, send_orders, twins, wait_until


def work(orders: queue.Queue[bytes], charged: set[bytes]) -> None:
    while True:
        order = orders.get()
        time.sleep(0.4)
        charged.add(order)
        orders.task_done()


def billing(cluster: Any, charged: set[bytes], has_bug: bool) -> None:
    consumer = consumer_of(cluster)
    orders: queue.Queue[bytes] = queue.Queue()
    threading.Thread(target=work, args=(orders, charged), daemon=True).start()
    while True:
        for order in polled(consumer):
            orders.put(order.value)
        consumer.pause(*consumer.assignment())
        while orders.unfinished_tasks:
            for part in consumer.poll(timeout_ms=100).values():  # for the membership: all is paused
                for order in [] if has_bug else part:
                    orders.put(order.value)
        with suppress(CommitFailedError, RebalanceInProgressError):  # they are read again
            consumer.commit()
        consumer.resume(*consumer.paused())


@pytest.mark.kafka_cluster(clock="virtual", topics={"orders": {"partitions": 2}})
@twins
def test_every_order_is_charged(kafka_cluster: Any, has_bug: bool) -> None:
    charged: set[bytes] = set()
    for name in ("left", "right"):
        kafka_cluster.run(billing, kafka_cluster, charged, has_bug, name=name, restart_after="1s")
    send_orders(kafka_cluster, count=60, parts=2)
    wait_until(lambda: len(charged) == 60)
    assert len(charged) == 60, "an order was not charged"
