"""A relay ticks while its last tick still sends: both send the same rows.

Owns: this program, with and without the bug.  Never: knows of the faults that show it.
"""

from __future__ import annotations

import threading
import time
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest
from kafka import KafkaProducer
from shop import ORDERS, producer_of, read_after_all, twins


class Relay:
    """Sends what is in the outbox, in a thread per tick."""

    def __init__(self, producer: KafkaProducer, has_bug: bool) -> None:
        self.producer = producer
        self.outbox: dict[int, bytes] = {}
        self.lock: AbstractContextManager[Any] = nullcontext() if has_bug else threading.Lock()

    def tick(self) -> None:
        with self.lock:
            for number, order in list(self.outbox.items()):
                self.producer.send("orders", order).get()
                self.outbox.pop(number, None)


@pytest.mark.kafka_cluster(clock="virtual", topics={"orders": {}})
@twins
def test_no_order_arrives_twice(kafka_cluster: Any, has_bug: bool) -> None:
    relay = Relay(producer_of(kafka_cluster), has_bug)
    for number in range(ORDERS):
        relay.outbox[number] = b"%d" % number
        threading.Thread(target=relay.tick, daemon=True).start()
        time.sleep(0.5)
    arrived = read_after_all(kafka_cluster, "orders")
    assert len(arrived) == len(set(arrived)), "an order has arrived twice"
