"""Four threads share a tracker of finished offsets without a lock: a count is lost.

Owns: this program, with and without the bug.  Never: knows of the faults that show it.
"""

from __future__ import annotations

import queue
import threading
import time
from contextlib import nullcontext
from typing import Any

import pytest
from shop import ORDERS, consumer_of, polled, send_orders, wait_until


class Tracker:
    """The number of finished orders, after which the position is committed."""

    def __init__(self, has_bug: bool) -> None:
        self.finished = 0
        self.lock: Any = nullcontext() if has_bug else threading.Lock()

    def finish(self) -> None:
        with self.lock:
            finished = self.finished
            finished += 1
            self.finished = finished


def billing(cluster: Any, tracker: Tracker) -> None:
    consumer = consumer_of(cluster)
    orders: queue.Queue[Any] = queue.Queue()

    def work() -> None:
        while True:
            orders.get()
            time.sleep(0.05)
            tracker.finish()

    for _ in range(4):
        threading.Thread(target=work).start()
    while True:
        for order in polled(consumer):
            orders.put(order)


@pytest.mark.kafka_cluster(clock="virtual", topics={"orders": {}})
@pytest.mark.parametrize("has_bug", [True, False], ids=["bug", "fixed"])
def test_every_order_is_counted(kafka_cluster: Any, has_bug: bool) -> None:
    tracker = Tracker(has_bug)
    kafka_cluster.run(billing, kafka_cluster, tracker, restart_after="1s")
    send_orders(kafka_cluster, every_s=0.01)
    wait_until(lambda: tracker.finished >= ORDERS)
    assert tracker.finished >= ORDERS, "a finished order was not counted"
