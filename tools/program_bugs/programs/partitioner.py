"""The partitions are counted at the start: after a restart a customer's events go elsewhere.

Owns: this program, with and without the bug.  Never: knows of the faults that show it.
"""

from __future__ import annotations

import time
from collections import defaultdict
from contextlib import suppress
from typing import Any

import pytest
from kafka import KafkaAdminClient, KafkaConsumer
from kafka.errors import KafkaError
from shop import ORDERS, polled, producer_of, servers_of, twins

PARTITIONS = 2
CUSTOMERS = 6


def shop(cluster: Any, sent: list[int], has_bug: bool) -> None:
    producer = producer_of(cluster)
    count = len(producer.partitions_for("events")) if has_bug else PARTITIONS
    while len(sent) < ORDERS:
        customer = len(sent) % CUSTOMERS
        producer.send("events", b"%d" % customer, partition=customer % count).get()
        sent.append(customer)
        time.sleep(1)


def grow(cluster: Any) -> None:
    """Add a partition, for another kind of events."""
    with KafkaAdminClient(bootstrap_servers=servers_of(cluster)) as admin:
        admin.create_partitions({"events": PARTITIONS + 1})


@pytest.mark.kafka_cluster(clock="virtual", topics={"events": {"partitions": PARTITIONS}})
@twins
def test_a_customer_has_one_partition(kafka_cluster: Any, has_bug: bool) -> None:
    sent: list[int] = []
    kafka_cluster.run(shop, kafka_cluster, sent, has_bug, restart_after="1s")
    time.sleep(4)
    with suppress(KafkaError):  # nobody hurries
        grow(kafka_cluster)
    time.sleep(80)
    parts: dict[bytes, set[int]] = defaultdict(set)
    with KafkaConsumer(
        "events", bootstrap_servers=servers_of(kafka_cluster), auto_offset_reset="earliest"
    ) as reader:
        for _ in range(20):
            for event in polled(reader):
                parts[event.value].add(event.partition)
    assert max(map(len, parts.values())) == 1, "a customer has two partitions"
