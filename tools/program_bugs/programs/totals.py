"""Totals in memory outlive the assignment of their partition: they overwrite newer ones.

Owns: this program, with and without the bug.  Never: knows of the faults that show it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from kafka import ConsumerRebalanceListener
from kafka.errors import CommitFailedError, RebalanceInProgressError
from shop import ORDERS, consumer_of, polled, send_orders, twins, wait_until


class Totals(ConsumerRebalanceListener):  # type: ignore[misc]  # untyped
    """A member's totals by partition, with the offset of the last order, over a common store."""

    def __init__(self, store: dict[int, tuple[int, int]], has_bug: bool) -> None:
        self.store, self.has_bug = store, has_bug
        self.own: dict[int, tuple[int, int]] = {}

    def on_partitions_revoked(self, revoked: Any) -> None:
        pass

    def on_partitions_assigned(self, assigned: Any) -> None:
        if not self.has_bug:
            self.own.clear()

    def add(self, order: Any) -> None:
        part = order.partition
        known = self.own.get(part) or self.store.get(part, (0, -1))
        if not self.has_bug:
            known = max(known, self.store.get(part, (0, -1)))
        total, last = known
        if order.offset > last:
            self.own[part] = self.store[part] = (total + 1, order.offset)


def billing(cluster: Any, store: dict[int, tuple[int, int]], has_bug: bool) -> None:
    consumer = consumer_of(cluster)
    totals = Totals(store, has_bug)
    consumer.unsubscribe()
    consumer.subscribe(["orders"], listener=totals)
    while True:
        for order in polled(consumer):
            totals.add(order)
        with suppress(CommitFailedError, RebalanceInProgressError):  # they are read again
            consumer.commit()


@pytest.mark.kafka_cluster(clock="virtual", topics={"orders": {"partitions": 2}})
@twins
def test_the_totals_are_right(kafka_cluster: Any, has_bug: bool) -> None:
    store: dict[int, tuple[int, int]] = {}

    def totals() -> Iterator[int]:
        return (total for total, _ in store.values())

    kafka_cluster.run(billing, kafka_cluster, store, has_bug, name="left", restart_after="1s")
    send_orders(kafka_cluster, parts=2)
    kafka_cluster.run(billing, kafka_cluster, store, has_bug, name="right", restart_after="1s")
    time.sleep(10)
    send_orders(kafka_cluster, parts=2)
    time.sleep(20)
    send_orders(kafka_cluster, parts=2)
    wait_until(lambda: sum(totals()) == 3 * ORDERS)
    assert sum(totals()) == 3 * ORDERS, "a total is too small"
