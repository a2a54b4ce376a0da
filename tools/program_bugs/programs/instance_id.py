"""A static member's number is the size of the group at its start: it gets another one's number.

Owns: this program, with and without the bug.  Never: knows of the faults that show it.
"""

from __future__ import annotations

import time
from typing import Any

import pytest
from kafka import KafkaAdminClient
from kafka.errors import FencedInstanceIdError
from shop import consumer_of, polled, send_orders, servers_of, twins


def next_number(cluster: Any) -> int:
    with KafkaAdminClient(bootstrap_servers=servers_of(cluster)) as admin:
        return len(admin.describe_groups(["billing"])["billing"]["members"])


def billing(cluster: Any, name: str, fenced: list[str], has_bug: bool) -> None:
    number = next_number(cluster) if has_bug else name
    consumer = consumer_of(cluster, group_instance_id=f"billing-{number}")
    try:
        while True:
            if polled(consumer):
                consumer.commit()
    except FencedInstanceIdError:
        fenced.append(name)
        raise


@pytest.mark.kafka_cluster(clock="virtual", topics={"orders": {"partitions": 2}})
@twins
def test_no_member_is_fenced(kafka_cluster: Any, has_bug: bool) -> None:
    fenced: list[str] = []
    for name in ("left", "right"):
        kafka_cluster.run(
            billing, kafka_cluster, name, fenced, has_bug, name=name, restart_after="1s"
        )
        time.sleep(5)
    send_orders(kafka_cluster, count=60, every_s=1, parts=2)
    time.sleep(20)
    assert not fenced, "two members had one id"
