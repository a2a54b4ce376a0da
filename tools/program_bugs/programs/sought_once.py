"""The offsets are in SQLite, and sought at the first assignment only: orders are read again.

Owns: this program, with and without the bug.  Never: knows of the faults that show it.
"""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from kafka import ConsumerRebalanceListener, KafkaConsumer
from shop import ORDERS, consumer_of, polled, send_orders, twins, wait_until


def bills_in(file: Path) -> list[int]:
    with closing(sqlite3.connect(file)) as database:
        return [offset for (offset,) in database.execute("SELECT offset FROM bills")]


class Places(ConsumerRebalanceListener):  # type: ignore[misc]  # untyped
    """Seeks to the offset after the last bill."""

    def __init__(self, consumer: KafkaConsumer, file: Path, has_bug: bool) -> None:
        self.consumer, self.file, self.has_bug = consumer, file, has_bug
        self.is_first = True

    def on_partitions_revoked(self, revoked: Any) -> None:
        pass

    def on_partitions_assigned(self, assigned: Any) -> None:
        if self.is_first or not self.has_bug:
            for part in assigned:
                self.consumer.seek(part, max(bills_in(self.file), default=-1) + 1)
        self.is_first = False


def billing(cluster: Any, file: Path, has_bug: bool) -> None:
    consumer = consumer_of(cluster)
    consumer.unsubscribe()
    consumer.subscribe(["orders"], listener=Places(consumer, file, has_bug))
    while True:
        orders = polled(consumer)
        with closing(sqlite3.connect(file)) as database, database:
            database.executemany("INSERT INTO bills VALUES (?)", [(x.offset,) for x in orders])


@pytest.mark.kafka_cluster(clock="virtual", topics={"orders": {"partitions": 1}})
@twins
def test_every_order_has_one_bill(kafka_cluster: Any, tmp_path: Path, has_bug: bool) -> None:
    file = tmp_path / "bills.db"
    with closing(sqlite3.connect(file)) as database:
        database.execute("CREATE TABLE bills (offset INTEGER)")
    kafka_cluster.run(billing, kafka_cluster, file, has_bug, restart_after="1s")
    send_orders(kafka_cluster)
    time.sleep(20)
    wait_until(lambda: len(set(bills_in(file))) == ORDERS)
    assert len(bills_in(file)) == ORDERS, "an order has two bills"
