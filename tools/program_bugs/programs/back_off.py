"""Retries sleep longer than max.poll.interval.ms: another member works on the same order.

Owns: this program, with and without the bug.  Never: knows of the faults that show it.
"""

from __future__ import annotations

import time
from collections import defaultdict
from typing import Any

import pytest
from kafka.errors import KafkaError
from shop import Jobs, consumer_of, polled, producer_of, send_orders, twins

BACK_OFFS_S = (1, 2, 4, 8)


def bill(producer: Any, order: Any, has_bug: bool) -> None:
    for back_off_s in BACK_OFFS_S if has_bug else BACK_OFFS_S[:1]:
        try:
            producer.send("bills", order.value, partition=order.partition).get(timeout=2)
        except KafkaError:
            time.sleep(back_off_s)
        else:
            return
    raise RuntimeError("the bank does not answer")  # the supervisor starts the member again


def billing(cluster: Any, jobs: dict[bytes, Jobs], has_bug: bool) -> None:
    producer = producer_of(cluster, max_block_ms=2_000)
    consumer = consumer_of(
        cluster, session_timeout_ms=30_000, max_poll_interval_ms=10_000, max_poll_records=1
    )
    while True:
        for order in polled(consumer):
            with jobs[order.value].one():
                jobs[order.value].look()
                bill(producer, order, has_bug)
            consumer.commit()


@pytest.mark.kafka_cluster(
    clock="virtual", topics={"orders": {"partitions": 2}, "bills": {"partitions": 2}}
)
@twins
def test_one_member_works_on_an_order(kafka_cluster: Any, has_bug: bool) -> None:
    jobs: dict[bytes, Jobs] = defaultdict(Jobs)
    for name in ("left", "right"):
        kafka_cluster.run(billing, kafka_cluster, jobs, has_bug, name=name, restart_after="5s")
    send_orders(kafka_cluster, parts=2)
    time.sleep(60)
    assert max(each.most for each in jobs.values()) == 1, "two members had the same order"
