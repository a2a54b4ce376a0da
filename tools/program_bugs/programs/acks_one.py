"""acks=1: the leader dies before a follower has the order that it has acked.

Owns: this program, with and without the bug.  Never: knows of the faults that show it.
"""

from __future__ import annotations

import time
from typing import Any

import pytest
from shop import ORDERS, producer_of, read, twins


@pytest.mark.kafka_cluster(clock="virtual", topics={"orders": {}})
@twins
def test_every_acked_order_arrives(kafka_cluster: Any, has_bug: bool) -> None:
    acked: set[bytes] = set()
    producer = producer_of(
        kafka_cluster, acks=1 if has_bug else "all", enable_idempotence=not has_bug
    )

    def send(order: bytes) -> None:
        producer.send("orders", order).add_callback(lambda _: acked.add(order))

    for number in range(ORDERS):
        send(b"%d" % number)
        time.sleep(0.3)
    producer.close(timeout=150)
    arrived = read(kafka_cluster, "orders", lambda found: acked <= set(found))
    assert acked <= set(arrived), "an acked order is gone"
