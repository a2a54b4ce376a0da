"""What the programs with a bug share: orders, consumers, and waiting for an outcome.

Owns: these helpers.  Never: a bug.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from kafka import KafkaConsumer, KafkaProducer

ORDERS = 20
LIMIT_S = 150
"""The virtual time for an outcome: longer than any fault, and than the sessions of dead members."""


def servers_of(cluster: Any) -> list[str]:
    servers: list[str] = cluster.bootstrap.split(",")
    return servers


def send_orders(cluster: Any, count: int = ORDERS, every_s: float = 0.3) -> None:
    with KafkaProducer(bootstrap_servers=servers_of(cluster), client_id="shop") as producer:
        for number in range(count):
            producer.send("orders", b"%d" % number)
            time.sleep(every_s)


def consumer_of(cluster: Any, **more: Any) -> KafkaConsumer:
    settings = {
        "bootstrap_servers": servers_of(cluster),
        "group_id": "billing",
        "auto_offset_reset": "earliest",
        "enable_auto_commit": False,
        "session_timeout_ms": 6_000,
        "heartbeat_interval_ms": 2_000,
        **more,
    }
    return KafkaConsumer("orders", **settings)


def polled(consumer: KafkaConsumer) -> list[Any]:
    return [x for part in consumer.poll(timeout_ms=500).values() for x in part]


def wait_until(holds: Callable[[], bool], limit_s: float = LIMIT_S) -> None:
    """Wait, and look again two seconds later: what happens twice happens late."""
    until_s = time.monotonic() + limit_s
    while not holds() and time.monotonic() < until_s:
        time.sleep(1)
    time.sleep(2)
