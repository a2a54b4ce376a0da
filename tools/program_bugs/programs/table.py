"""A table is read to its end, then a second consumer begins at the latest offset: a gap.

Owns: this program, with and without the bug.  Never: knows of the faults that show it.
"""

from __future__ import annotations

import time
from typing import Any

import pytest
from kafka import KafkaConsumer, TopicPartition
from shop import ORDERS, polled, producer_of, servers_of, twins, wait_until

PART = TopicPartition("prices", 0)


def cache(cluster: Any, prices: dict[bytes, bytes], has_bug: bool) -> None:
    prices.clear()
    reader = KafkaConsumer(
        "prices", bootstrap_servers=servers_of(cluster), auto_offset_reset="earliest"
    )
    while not reader.assignment():
        prices.update((x.key, x.value) for x in polled(reader))
    (end,) = reader.end_offsets([PART]).values()
    while reader.position(PART) < end:
        prices.update((x.key, x.value) for x in polled(reader))
    if has_bug:
        reader.close()
        reader = KafkaConsumer(
            "prices", bootstrap_servers=servers_of(cluster), auto_offset_reset="latest"
        )
    while True:
        prices.update((x.key, x.value) for x in polled(reader))


@pytest.mark.kafka_cluster(clock="virtual", topics={"prices": {"partitions": 1}})
@twins
def test_the_table_is_complete(kafka_cluster: Any, has_bug: bool) -> None:
    prices: dict[bytes, bytes] = {}
    with producer_of(kafka_cluster, client_id="shop") as producer:
        for number in range(ORDERS):
            producer.send("prices", b"12.50", key=b"cup %d" % number)
            if number == 3:
                producer.flush()
                kafka_cluster.run(cache, kafka_cluster, prices, has_bug, restart_after="1s")
            time.sleep(1)
    wait_until(lambda: len(prices) == ORDERS)
    assert len(prices) == ORDERS, "a price is missing from the table"
