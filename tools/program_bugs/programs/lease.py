"""A lease ends while its holder stands still: the holder goes on, and overwrites a newer total.

Owns: this program, with and without the bug.  Never: knows of the faults that show it.
"""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from kafka import KafkaConsumer, TopicPartition
from shop import ORDERS, polled, send_orders, servers_of, twins, wait_until

PART = TopicPartition("orders", 0)
LEASE_S = 10


class Table:
    """A database: the total with the offset after its last order, and a lease."""

    def __init__(self) -> None:
        self.row = (0, 0)
        self.holder, self.until_s, self.token = "", 0.0, 0
        self.lock = threading.Lock()  # of the row

    def lease(self, name: str) -> int:
        """Take or renew the lease; returns its token, 0 while another one has it."""
        with self.lock:
            now_s = time.monotonic()
            if self.holder != name:
                if now_s < self.until_s:
                    return 0
                self.holder, self.token = name, self.token + 1
            self.until_s = now_s + LEASE_S
            return self.token

    def write(self, total: int, after: int, token: int | None) -> None:
        """Write the total; with a token, only if it is the newest one."""
        with self.lock:
            if token in (None, self.token):
                self.row = (total, after)


def totals(cluster: Any, name: str, table: Table, has_bug: bool) -> None:
    consumer = KafkaConsumer(bootstrap_servers=servers_of(cluster))
    consumer.assign([PART])
    while True:
        token = table.lease(name)
        if not token:
            time.sleep(1)
            continue
        consumer.seek(PART, table.row[1])
        for order in polled(consumer):
            total, _ = table.row
            time.sleep(0.1)
            table.write(total + 1, order.offset + 1, None if has_bug else token)


@pytest.mark.kafka_cluster(clock="virtual", topics={"orders": {"partitions": 1}})
@twins
def test_the_total_is_right(kafka_cluster: Any, has_bug: bool) -> None:
    table = Table()
    for name in ("left", "right"):
        kafka_cluster.run(
            totals, kafka_cluster, name, table, has_bug, name=name, restart_after="1s"
        )
    send_orders(kafka_cluster, count=2 * ORDERS, every_s=0.5)
    wait_until(lambda: table.row[0] == 2 * ORDERS)
    time.sleep(30)
    assert table.row[0] == 2 * ORDERS, "the total is wrong"
