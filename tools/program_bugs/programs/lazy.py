"""Two threads make the shared producer at once: one of them is never flushed.

Owns: this program, with and without the bug.  Never: knows of the faults that show it.
"""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest
from kafka import KafkaProducer
from shop import producer_of, read, twins

CUSTOMERS = 4


class Mailer:
    """Sends mails by one producer, which is made when the first mail is sent."""

    def __init__(self, cluster: Any, has_bug: bool) -> None:
        self.cluster = cluster
        self.producer: KafkaProducer | None = None
        self.made: list[KafkaProducer] = []  # their metrics are shown
        self.lock: AbstractContextManager[Any] = nullcontext() if has_bug else threading.Lock()

    def send(self, mail: bytes) -> None:
        with self.lock:
            if self.producer is None:
                made = producer_of(self.cluster, linger_ms=600_000, delivery_timeout_ms=1_000_000)
                self.made.append(made)
                self.producer = made
        assert self.producer is not None
        self.producer.send("mails", mail)

    def close(self) -> None:
        assert self.producer is not None
        self.producer.flush()


@pytest.mark.kafka_cluster(clock="virtual", topics={"mails": {}})
@twins
def test_every_mail_is_sent(kafka_cluster: Any, has_bug: bool) -> None:
    mailer = Mailer(kafka_cluster, has_bug)
    threads = ThreadPoolExecutor(CUSTOMERS)
    for number in range(CUSTOMERS):
        threads.submit(mailer.send, b"%d" % number)
        time.sleep(0.1)
    threads.shutdown()
    mailer.close()
    arrived = read(kafka_cluster, "mails", lambda found: len(set(found)) == CUSTOMERS)
    assert len(set(arrived)) == CUSTOMERS, "a mail was never sent"
