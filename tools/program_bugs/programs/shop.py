"""What the programs with a bug share: orders, clients, and waiting for an outcome.

Owns: these helpers, the mark of a test with both twins.  Never: a bug.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer
from kafka import KafkaConsumer, KafkaProducer

ORDERS = 20
LIMIT_S = 150
"""The virtual time for an outcome: longer than any fault, and than the sessions of dead members."""

twins = pytest.mark.parametrize("has_bug", [True, False], ids=["bug", "fixed"])


def servers_of(cluster: Any) -> list[str]:
    servers: list[str] = cluster.bootstrap.split(",")
    return servers


def producer_of(cluster: Any, **more: Any) -> KafkaProducer:
    return KafkaProducer(bootstrap_servers=servers_of(cluster), **more)


def send_orders(cluster: Any, count: int = ORDERS, every_s: float = 0.3, parts: int = 1) -> None:
    with producer_of(cluster, client_id="shop", enable_idempotence=True) as producer:
        for number in range(count):
            producer.send("orders", b"%d" % number, partition=number % parts)
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


def async_consumer_of(cluster: Any) -> AIOKafkaConsumer:
    return AIOKafkaConsumer(
        "orders",
        bootstrap_servers=cluster.bootstrap,
        group_id="billing",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=6_000,
        heartbeat_interval_ms=2_000,
        metadata_max_age_ms=5_000,  # see lookups_at_an_old_leader in findings-virtual-clients.md
    )


def polled(consumer: KafkaConsumer) -> list[Any]:
    return [x for part in consumer.poll(timeout_ms=500).values() for x in part]


async def got(consumer: AIOKafkaConsumer) -> list[Any]:
    found = await consumer.getmany(timeout_ms=500)
    return [x for part in found.values() for x in part]


def wait_until(holds: Callable[[], bool], limit_s: float = LIMIT_S) -> None:
    """Wait, and look again two seconds later: what happens twice happens late."""
    until_s = time.monotonic() + limit_s
    while not holds() and time.monotonic() < until_s:
        time.sleep(1)
    time.sleep(2)


def read(
    cluster: Any, topic: str, are_all: Callable[[list[bytes]], bool], **more: Any
) -> list[bytes]:
    """The values of a topic from its beginning, until they are all that is waited for."""
    reader = KafkaConsumer(
        topic, bootstrap_servers=servers_of(cluster), auto_offset_reset="earliest", **more
    )
    values: list[bytes] = []

    def is_enough() -> bool:
        values.extend(x.value for x in polled(reader))
        return are_all(values)

    wait_until(is_enough)
    values.extend(x.value for x in polled(reader))
    reader.close()
    return values


def read_after_all(cluster: Any, topic: str, **more: Any) -> list[bytes]:
    """The values of a topic after all faults, and after whatever comes late."""
    time.sleep(60)
    cluster.calm()
    until_s = time.monotonic() + 5
    return read(cluster, topic, lambda _: time.monotonic() > until_s, **more)


class Jobs:
    """Notes when two jobs run at once.  A job runs while its lock is held: a program that dies
    gives its locks back, wherever it stands."""

    def __init__(self) -> None:
        self.locks: list[threading.Lock] = []
        self.most = 0

    def one(self) -> threading.Lock:
        self.locks.append(threading.Lock())
        return self.locks[-1]

    def look(self) -> None:
        self.most = max(self.most, sum(lock.locked() for lock in self.locks))
