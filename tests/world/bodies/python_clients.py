"""Stories with kafka-python, as a user's own test has them: threads, queues, blocking calls.

Owns: the stories.  Never: knows on which clock it runs, or asserts anything.

They run with whatever the fixture `kafka_cluster` gives, and take as long as Kafka's own time
constants make them (`profile: kafka`).
"""

from __future__ import annotations

import queue
import random
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from kafka import KafkaConsumer, KafkaProducer

from tests.world.bodies.outcome import Outcome

POLL_MS = 500
CATCH_UP_S = 30.0
"""For a consumer to read what has been acked."""


def failover(cluster: Any, records: int = 550, pause_s: float = 0.1, kill_at: int = 150) -> Outcome:
    """A service writes orders at a steady rate while a group reads them in another thread; the
    leader of the first partition dies on the way."""
    sending = Sending(cluster)
    with Reader(cluster, ["orders"], group="billing") as reader:
        death = threading.Thread(target=_kill_leader, args=(cluster,), name="operator")
        for number in range(records):
            if number == kill_at:
                death.start()
            sending.send("orders", b"order %d" % number, key=b"customer %d" % (number % 7))
            time.sleep(pause_s)
        sending.close()
        death.join()
        reader.wait_for(sending.acked)
    return sending.outcome(reader.read)


def two_halves(cluster: Any, records: int = 10) -> Outcome:
    """Write, kill the leader, write on, then read it all: the shortest test of a failover."""
    sending = Sending(cluster)
    for number in range(records):
        sending.send("orders", b"before %d" % number)
    sending.producer.flush()
    _kill_leader(cluster)
    for number in range(records):
        sending.send("orders", b"after %d" % number)
    sending.close()
    with Reader(cluster, ["orders"], group="audit") as reader:
        reader.wait_for(sending.acked)
    return sending.outcome(reader.read)


def busy_service(
    cluster: Any,
    records: int = 300,
    *,
    calm_s: float = 10.0,
    dead_s: float = 8.0,
    paused_s: float = 12.0,
) -> Outcome:
    """Two writers and two readers of a group in a pool of threads; the readers hand over to
    another thread by a queue that can be full.  After a calm time a broker dies, and comes back
    while another one stands still."""
    handed_over: queue.Queue[bytes | None] = queue.Queue(maxsize=50)
    processed: list[bytes] = []
    writers = [Sending(cluster, client_id=f"writer-{topic}") for topic in ("orders", "payments")]
    worker = threading.Thread(target=_drain, args=(handed_over, processed), name="worker")
    worker.start()
    readers = [
        Reader(cluster, ["orders", "payments"], "billing", f"reader-{number}", handed_over.put)
        for number in range(2)
    ]
    with ThreadPoolExecutor(max_workers=2) as pool, readers[0], readers[1]:
        topics = ("orders", "payments")
        writing = [
            pool.submit(_write, writer, topic, records)
            for writer, topic in zip(writers, topics, strict=True)
        ]
        time.sleep(calm_s)
        first = cluster.leader("orders", 0)
        cluster.kill(first)
        time.sleep(dead_s)
        other = cluster.leader("payments", 1)
        cluster.start(first)
        cluster.pause(other)
        time.sleep(paused_s)
        cluster.resume(other)
        for written in writing:
            written.result()
        acked = [value for writer in writers for value in writer.acked]
        _until(lambda: len(processed) >= len(acked))
    handed_over.put(None)
    worker.join()
    return Outcome(
        acked,
        processed,
        [error for writer in writers for error in writer.failed],
        max(writer.longest_ack_s for writer in writers),
        time.monotonic() - writers[0].began_s,
    )


class Sending:
    """A producer that is to lose nothing, and what became of its records."""

    def __init__(self, cluster: Any, client_id: str = "shop") -> None:
        self.acked: list[bytes] = []
        self.failed: list[BaseException] = []
        self.longest_ack_s = 0.0
        self.began_s = time.monotonic()
        self.producer = KafkaProducer(
            bootstrap_servers=cluster.bootstrap.split(","),
            client_id=client_id,
            acks="all",
            enable_idempotence=True,
            linger_ms=5,
        )

    def send(self, topic: str, value: bytes, key: bytes | None = None) -> None:
        """Give one record to the producer."""
        sent_s = time.monotonic()

        def acked(_: Any) -> None:
            self.acked.append(value)
            self.longest_ack_s = max(self.longest_ack_s, time.monotonic() - sent_s)

        future = self.producer.send(topic, value=value, key=key)
        future.add_callback(acked)
        future.add_errback(self.failed.append)

    def close(self) -> None:
        """Wait for every acknowledgment."""
        self.producer.flush()
        self.producer.close()

    def outcome(self, read: list[bytes]) -> Outcome:
        """With what was read of it."""
        took_s = time.monotonic() - self.began_s
        return Outcome(self.acked, read, self.failed, self.longest_ack_s, took_s)


class Reader:
    """A member of a group, in a thread of its own while the block lasts."""

    def __init__(
        self,
        cluster: Any,
        topics: list[str],
        group: str,
        client_id: str = "reader",
        handle: Any = None,
    ) -> None:
        self.read: list[bytes] = []
        self._handle = handle or self.read.append
        self._cluster = cluster
        self._topics = topics
        self._settings = {"group_id": group, "client_id": client_id}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=client_id)

    def __enter__(self) -> Reader:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def wait_for(self, acked: list[bytes]) -> None:
        """Wait until it has read as much as was acked."""
        _until(lambda: len(self.read) >= len(acked))

    def _run(self) -> None:
        consumer = KafkaConsumer(
            *self._topics,
            bootstrap_servers=self._cluster.bootstrap.split(","),
            auto_offset_reset="earliest",
            **self._settings,
        )
        while not self._stop.is_set():
            for records in consumer.poll(timeout_ms=POLL_MS).values():
                for record in records:
                    self._handle(record.value)
        consumer.close()


def _kill_leader(cluster: Any) -> None:
    cluster.kill(cluster.leader("orders", 0))


def _write(sending: Sending, topic: str, records: int) -> None:
    for _ in range(records):
        sending.send(topic, str(uuid.uuid4()).encode())
        time.sleep(random.uniform(0.05, 0.15))
    sending.close()


def _drain(handed_over: queue.Queue[bytes | None], processed: list[bytes]) -> None:
    while (value := handed_over.get()) is not None:
        processed.append(value)


def _until(condition: Any) -> None:
    """A user's test often waits so; the caller's checks say what is missing at the limit."""
    limit_s = time.monotonic() + CATCH_UP_S
    while not condition() and time.monotonic() < limit_s:
        time.sleep(0.1)
