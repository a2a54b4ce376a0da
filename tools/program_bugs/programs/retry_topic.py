"""What fails goes to a topic of retries: it comes after newer changes of the same customer.

Owns: this program, with and without the bug.  Never: knows of the faults that show it.
"""

from __future__ import annotations

import time
from typing import Any

import pytest
from kafka.errors import KafkaError
from shop import consumer_of, polled, producer_of, read_after_all, send_orders, twins

CUSTOMERS = 5


def addresses(cluster: Any, topic: str, has_bug: bool) -> None:
    producer = producer_of(cluster)
    consumer = consumer_of(cluster, group_id=topic)
    consumer.unsubscribe()
    consumer.subscribe([topic])
    while True:
        changes = polled(consumer)
        for change in changes:
            if topic == "retries":
                time.sleep(1)
            try:
                producer.send("addresses", change.value).get(timeout=2)
            except KafkaError:
                if not has_bug:
                    raise  # the supervisor starts it again
                producer.send("retries", change.value).get()
        if changes:
            consumer.commit()


@pytest.mark.kafka_cluster(
    clock="virtual", topics={name: {"partitions": 1} for name in ("orders", "addresses", "retries")}
)
@twins
def test_each_customer_has_the_newest_address(kafka_cluster: Any, has_bug: bool) -> None:
    for topic in ("orders", "retries"):
        kafka_cluster.run(addresses, kafka_cluster, topic, has_bug, name=topic, restart_after="1s")
    send_orders(kafka_cluster, every_s=1)
    known: dict[int, int] = {}
    newest: dict[int, int] = {}
    for number in map(int, read_after_all(kafka_cluster, "addresses")):
        customer = number % CUSTOMERS
        known[customer] = number
        newest[customer] = max(number, newest.get(customer, 0))
    assert known == newest, "a customer has an old address"
