"""The row is rolled back when the send times out, and the event arrives all the same.

Owns: this program, with and without the bug.  Never: knows of the faults that show it.
"""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaProducer
from kafka.errors import KafkaError
from shop import ORDERS, producer_of, read_after_all, twins


def place(producer: KafkaProducer, file: Path, number: int, has_bug: bool) -> None:
    with closing(sqlite3.connect(file)) as database:
        database.execute("INSERT INTO orders VALUES (?)", (number,))
        if not has_bug:
            database.commit()
        try:
            producer.send("orders", b"%d" % number).get(timeout=3)
        except KafkaError:
            return  # the customer is asked to try again; what was not committed is rolled back
        database.commit()


@pytest.mark.kafka_cluster(clock="virtual", topics={"orders": {}})
@twins
def test_every_event_has_a_row(kafka_cluster: Any, tmp_path: Path, has_bug: bool) -> None:
    file = tmp_path / "shop.db"
    with closing(sqlite3.connect(file)) as database:
        database.execute("CREATE TABLE orders (number INTEGER)")
    producer = producer_of(kafka_cluster)
    for number in range(ORDERS):
        place(producer, file, number, has_bug)
        time.sleep(0.3)
    events = {int(value) for value in read_after_all(kafka_cluster, "orders")}
    with closing(sqlite3.connect(file)) as database:
        rows = {number for (number,) in database.execute("SELECT number FROM orders")}
    assert events <= rows, "an event has no row"
