"""Five requests in flight, retries, no idempotence: orders change places.

Owns: this program, with and without the bug.  Never: knows of the faults that show it.
"""

from __future__ import annotations

import time
from typing import Any

import pytest
from shop import producer_of, read_after_all, twins

MANY = 60


@pytest.mark.kafka_cluster(clock="virtual", topics={"orders": {"partitions": 1}})
@twins
def test_orders_keep_their_order(kafka_cluster: Any, has_bug: bool) -> None:
    producer = producer_of(
        kafka_cluster,
        enable_idempotence=not has_bug,
        max_in_flight_requests_per_connection=5,
        request_timeout_ms=3_000,
    )
    for number in range(MANY):
        producer.send("orders", b"%d" % number)
        time.sleep(0.1)
    producer.close(timeout=150)
    arrived = [int(value) for value in read_after_all(kafka_cluster, "orders")]
    first_seen = list(dict.fromkeys(arrived))
    assert first_seen == sorted(first_seen), "orders have changed places"
