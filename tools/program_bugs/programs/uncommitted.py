"""The reader of transactions reads uncommitted records: it sees a half that was aborted.

Owns: this program, with and without the bug.  Never: knows of the faults that show it.
"""

from __future__ import annotations

import time
from typing import Any

import pytest
from shop import ORDERS, producer_of, read_after_all, twins


def transfer(cluster: Any, done: list[int]) -> None:
    producer = producer_of(cluster, transactional_id="transfer")
    producer.init_transactions()
    while len(done) < ORDERS:
        number = b"%d" % len(done)
        producer.begin_transaction()
        producer.send("bookings", b"debit " + number).get()
        time.sleep(0.02)
        producer.send("bookings", b"credit " + number).get()
        producer.commit_transaction()
        done.append(len(done))
        time.sleep(0.3)


@pytest.mark.kafka_cluster(clock="virtual", topics={"bookings": {"partitions": 1}})
@twins
def test_debits_are_credits(kafka_cluster: Any, has_bug: bool) -> None:
    done: list[int] = []
    kafka_cluster.run(transfer, kafka_cluster, done, restart_after="1s")
    level = "read_uncommitted" if has_bug else "read_committed"
    bookings = read_after_all(kafka_cluster, "bookings", isolation_level=level)
    debits = sum(value.startswith(b"debit") for value in bookings)
    assert 2 * debits == len(bookings), "a debit has no credit"
