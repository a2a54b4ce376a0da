"""Check, then act, in a pool: a customer gets two coupons.

Owns: this program, with and without the bug.  Never: knows of the faults that show it.
"""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest
from shop import ORDERS, consumer_of, polled, send_orders, twins, wait_until


class Coupons:
    """The coupons that were sent: one for each customer."""

    def __init__(self, has_bug: bool) -> None:
        self.customers: set[int] = set()
        self.sent: Counter[int] = Counter()
        self.lock: AbstractContextManager[Any] = nullcontext() if has_bug else threading.Lock()

    def offer(self, customer: int) -> None:
        with self.lock:
            if customer not in self.customers:
                self.customers.add(customer)
                self.sent[customer] += 1


def marketing(cluster: Any, coupons: Coupons) -> None:
    consumer = consumer_of(cluster)
    with ThreadPoolExecutor(4) as pool:
        while True:
            for order in polled(consumer):
                pool.submit(coupons.offer, int(order.value) // 2)


@pytest.mark.kafka_cluster(clock="virtual", topics={"orders": {"partitions": 1}})
@twins
def test_a_customer_gets_one_coupon(kafka_cluster: Any, has_bug: bool) -> None:
    coupons = Coupons(has_bug)
    threading.Thread(target=marketing, args=(kafka_cluster, coupons), daemon=True).start()
    send_orders(kafka_cluster, every_s=0.05)
    wait_until(lambda: len(coupons.customers) == ORDERS // 2)
    assert max(coupons.sent.values()) == 1, "a customer has got two coupons"
