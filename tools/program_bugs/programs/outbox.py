"""The outbox forgets a row before its event is acked: a relay that dies loses it.

Owns: this program, with and without the bug.  Never: knows of the faults that show it.
"""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from shop import ORDERS, producer_of, read, twins


def relay(cluster: Any, file: Path, has_bug: bool) -> None:
    producer = producer_of(cluster, linger_ms=20)
    while True:
        with closing(sqlite3.connect(file)) as database:
            rows = database.execute("SELECT number FROM outbox").fetchall()
            for (number,) in rows:
                sent = producer.send("orders", b"%d" % number)
                if not has_bug:
                    sent.get()
                database.execute("DELETE FROM outbox WHERE number = ?", (number,))
                database.commit()
        time.sleep(0.3)


@pytest.mark.kafka_cluster(clock="virtual", topics={"orders": {}})
@twins
def test_every_row_is_sent(kafka_cluster: Any, tmp_path: Path, has_bug: bool) -> None:
    file = tmp_path / "outbox.db"
    with closing(sqlite3.connect(file)) as database:
        database.execute("CREATE TABLE outbox (number INTEGER)")
    kafka_cluster.run(relay, kafka_cluster, file, has_bug, restart_after="1s")
    for number in range(ORDERS):
        with closing(sqlite3.connect(file)) as database:
            database.execute("INSERT INTO outbox VALUES (?)", (number,))
            database.commit()
        time.sleep(0.3)
    arrived = read(kafka_cluster, "orders", lambda found: len(set(found)) == ORDERS)
    assert len(set(arrived)) == ORDERS, "an order was never sent"
