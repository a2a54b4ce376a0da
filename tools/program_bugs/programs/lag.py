"""A monitor of lag asks for the end first, and then for what is committed: a lag is negative.

Owns: this program, with and without the bug.  Never: knows of the faults that show it.
"""

from __future__ import annotations

import time
from typing import Any

import pytest
from kafka import KafkaConsumer, TopicPartition
from shop import consumer_of, polled, send_orders, servers_of, twins

PART = TopicPartition("orders", 0)


def billing(cluster: Any) -> None:
    consumer = consumer_of(cluster)
    while True:
        if polled(consumer):
            consumer.commit()


def monitor(cluster: Any, lags: list[int], has_bug: bool) -> None:
    consumer = KafkaConsumer(bootstrap_servers=servers_of(cluster), group_id="billing")
    while True:
        if has_bug:
            end = consumer.end_offsets([PART])[PART]
            committed = consumer.committed(PART) or 0
        else:
            committed = consumer.committed(PART) or 0
            end = consumer.end_offsets([PART])[PART]
        lags.append(end - committed)
        time.sleep(1)


@pytest.mark.kafka_cluster(clock="virtual", topics={"orders": {"partitions": 1}})
@twins
def test_no_lag_is_negative(kafka_cluster: Any, has_bug: bool) -> None:
    lags: list[int] = []
    kafka_cluster.run(billing, kafka_cluster, restart_after="1s")
    kafka_cluster.run(monitor, kafka_cluster, lags, has_bug, restart_after="1s")
    send_orders(kafka_cluster, count=60, every_s=0.5)
    time.sleep(30)
    assert min(lags) >= 0, "a lag is negative"
