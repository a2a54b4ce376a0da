"""An order in progress is skipped: if its program died, nobody takes it up again.

Owns: this program, with and without the bug.  Never: knows of the faults that show it.
"""

from __future__ import annotations

import time
from typing import Any

import pytest
from shop import ORDERS, consumer_of, polled, send_orders, twins, wait_until


def charge(states: dict[bytes, str], order: bytes, has_bug: bool) -> None:
    if order in states and (has_bug or states[order] == "charged"):
        return
    states[order] = "in progress"
    time.sleep(0.02)
    states[order] = "charged"


def billing(cluster: Any, states: dict[bytes, str], has_bug: bool) -> None:
    consumer = consumer_of(cluster)
    while True:
        orders = polled(consumer)
        for order in orders:
            charge(states, order.value, has_bug)
        if orders:
            consumer.commit()


@pytest.mark.kafka_cluster(clock="virtual", topics={"orders": {}})
@twins
def test_every_order_is_charged(kafka_cluster: Any, has_bug: bool) -> None:
    states: dict[bytes, str] = {}

    def charged() -> int:
        return list(states.values()).count("charged")

    kafka_cluster.run(billing, kafka_cluster, states, has_bug, restart_after="1s")
    send_orders(kafka_cluster)
    wait_until(lambda: charged() == ORDERS)
    assert charged() == ORDERS, "an order is in progress for ever"
