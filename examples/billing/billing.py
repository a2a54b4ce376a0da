"""What the four services of this directory have in common: a bank, a shop, a worker that can be stopped."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from kafka import KafkaConsumer

GROUP = "billing"


class Bank:
    """Charges customers.  `answers_after_s`: how long that takes, each time."""

    def __init__(self, ledger: Any, answers_after_s: Callable[[], float] = lambda: 0.005) -> None:
        self.orders: list[bytes] = []
        self._ledger = ledger
        self._answers_after_s = answers_after_s

    def charge(self, record: Any) -> None:
        """Charge the order of a record."""
        time.sleep(self._answers_after_s())
        self.orders.append(record.value)
        self._ledger.add(record)


class Worker(threading.Thread):
    """A consumer in a thread.  A subclass says what it does with the records that it has polled."""

    settings: dict[str, Any] = {}

    def __init__(self, servers: str, bank: Bank, name: str = "worker") -> None:
        super().__init__(name=name)
        self.bank = bank
        self.is_stopped = threading.Event()
        self._servers = servers.split(",")

    def run(self) -> None:
        """Poll and work until it is stopped."""
        consumer = KafkaConsumer(
            "orders",
            bootstrap_servers=self._servers,
            client_id=self.name,
            group_id=GROUP,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            **self.settings,
        )
        while not self.is_stopped.is_set():
            polled = consumer.poll(timeout_ms=500)
            self.work(consumer, [record for records in polled.values() for record in records])
        consumer.close()

    def work(self, consumer: KafkaConsumer, records: list[Any]) -> None:
        """Bill the orders in these records."""
        raise NotImplementedError

    def stop(self) -> None:
        """End it as a deployment does: it may finish what it does just now."""
        self.is_stopped.set()
        self.join()
