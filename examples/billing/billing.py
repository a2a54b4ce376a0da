"""What the four stories have in common: a bank, and workers that bill orders."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from typing import Any

from kafka import KafkaConsumer
from kafka.errors import CommitFailedError


class BankError(Exception):
    """The bank did not answer."""


class Bank:
    """Charges orders.  `answers_after_s()`: how long that takes; `fails()`: whether it fails."""

    def __init__(
        self,
        billed: Any,
        answers_after_s: Callable[[], float] = lambda: 0.005,
        fails: Callable[[], bool] = lambda: False,
    ) -> None:
        self.orders: list[bytes] = []
        self._billed, self._answers_after_s, self._fails = billed, answers_after_s, fails

    def charge(self, record: Any) -> None:
        """Charge the order in a record, and report to the ledger that it was billed."""
        time.sleep(self._answers_after_s())
        if self._fails():
            raise BankError(record.value)
        self.orders.append(record.value)
        self._billed.add(record)

    def wait_for(self, number: int, within_s: float = 60) -> None:
        """Wait until this many orders were charged, but no longer than this."""
        limit = time.monotonic() + within_s
        while len(set(self.orders)) < number and time.monotonic() < limit:
            time.sleep(0.1)


class Worker(threading.Thread):
    """Reads orders in a thread."""

    settings: dict[str, int] = {}

    def __init__(self, bootstrap: str, bank: Bank, name: str = "worker") -> None:
        super().__init__(name=name)
        self.bank = bank
        self.is_stopping = threading.Event()
        self._servers = bootstrap.split(",")

    def bill(self, consumer: KafkaConsumer, records: list[Any]) -> None:
        """What a worker does with the records of one poll."""

    def run(self) -> None:
        """Serve until `stop`; after a crash, begin again, as a supervisor would make it."""
        while not self.is_stopping.is_set():
            with suppress(BankError, CommitFailedError), closing(self._consumer()) as consumer:
                while not self.is_stopping.is_set():
                    polled = consumer.poll(timeout_ms=500)
                    self.bill(consumer, [one for records in polled.values() for one in records])

    def stop(self) -> None:
        """End it as a deployment does."""
        self.is_stopping.set()
        self.join()

    def _consumer(self) -> KafkaConsumer:
        return KafkaConsumer(
            "orders",
            bootstrap_servers=self._servers,
            client_id=self.name,
            group_id="billing",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            **self.settings,
        )
