"""Four threads share a tracker of finished offsets without a lock: it loses its place.

Owns: this program, with and without the bug.  Never: knows of the faults that show it.
"""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest
from kafka import OffsetAndMetadata, TopicPartition
from shop import ORDERS, consumer_of, polled, send_orders, twins, wait_until

PART = TopicPartition("orders", 0)


class Tracker:
    """The offset before which everything is done."""

    def __init__(self, first: int, has_bug: bool) -> None:
        self.next = first
        self.done: set[int] = set()
        self.lock: AbstractContextManager[Any] = nullcontext() if has_bug else threading.Lock()

    def finish(self, offset: int) -> None:
        time.sleep(0.2)
        with self.lock:
            self.done.add(offset)
            while self.next in self.done:
                self.done.discard(self.next)
                self.next += 1


def billing(cluster: Any, committed: set[int], has_bug: bool) -> None:
    consumer = consumer_of(cluster)
    committed.add(consumer.committed(PART) or 0)
    tracker = None
    with ThreadPoolExecutor(4) as pool:
        while True:
            for order in polled(consumer):
                tracker = tracker or Tracker(order.offset, has_bug)
                pool.submit(tracker.finish, order.offset)
            if tracker is not None:
                consumer.commit({PART: OffsetAndMetadata(tracker.next, "", -1)})
                committed.add(tracker.next)


@pytest.mark.kafka_cluster(clock="virtual", topics={"orders": {"partitions": 1}})
@twins
def test_everything_is_committed(kafka_cluster: Any, has_bug: bool) -> None:
    committed: set[int] = set()
    kafka_cluster.run(billing, kafka_cluster, committed, has_bug, restart_after="1s")
    send_orders(kafka_cluster, every_s=0.05)
    wait_until(lambda: ORDERS in committed)
    assert max(committed) == ORDERS, "the tracker has lost its place"
