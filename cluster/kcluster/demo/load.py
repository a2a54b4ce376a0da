"""The demo's clients: a kafka-python idempotent producer and a consumer group, each in a thread.

Owns: their settings, the pace, the reports to the ledger.  Never: reaches the cluster except over
TCP.  Kafka: a producer with acks=all and enable.idempotence, a consumer with a group.id.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Any, Final

from kcluster.demo.count import DemoLedger
from kcluster.extras import how_to_install
from kcluster.operations.errors import ClusterError

PRODUCER_ID: Final = "demo-producer"
CONSUMER_ID: Final = "demo-consumer"
GROUP: Final = "demo"

UNANSWERED_MAX: Final = 2_000
"""The number of lines without an ack at which sending pauses, so that a big file does not fill the
producer's buffers."""

PACE_S: Final = 0.01
"""The time between two bursts of lines."""

JOIN_POLL_MS: Final = 10_000
"""The time of a poll while the group forms.  If metadata arrives during a join, kafka-python 3.0
starts again, and forgets the outcome if the poll that began the join has ended."""

ABANDON_S: Final = 0.2
"""The time for which an interrupted demo waits for its clients, whose polls cannot be ended."""

GIVE_UP_S: Final = 60.0
"""The time without a new ack or record after which the clients stop and the count is final."""


def require_clients() -> Any:
    """The kafka-python package; ClusterError, with the way to install it, if it is missing."""
    try:
        import kafka
    except ImportError as error:
        raise ClusterError(
            "the demo drives the cluster with kafka-python, which is not installed: "
            + how_to_install("clients")
        ) from error
    return kafka


class Producing(threading.Thread):
    """Sends the ledger's lines up to `allowed`, `burst` lines every PACE_S.  The story raises
    `allowed` step by step, so that lines are left for each of its acts."""

    def __init__(self, bootstrap: str, topic: str, ledger: DemoLedger, burst: int) -> None:
        super().__init__(name=PRODUCER_ID, daemon=True)
        self._topic, self._ledger, self._burst = topic, ledger, burst
        self.allowed = 0
        self.trickle = False
        """Whether lines go one at a time, so that an ack is noticed and lines are left for
        later."""
        self.stopping = threading.Event()
        self._producer = require_clients().KafkaProducer(
            bootstrap_servers=bootstrap.split(","),
            client_id=PRODUCER_ID,
            acks="all",
            enable_idempotence=True,
            linger_ms=2,
            retry_backoff_ms=20,
            reconnect_backoff_ms=20,
            reconnect_backoff_max_ms=500,
        )

    def run(self) -> None:
        ledger = self._ledger
        while not self.stopping.is_set() and ledger.sent < len(ledger.lines):
            unanswered = ledger.sent - len(ledger.acked) - len(ledger.failed)
            room = min(self.allowed - ledger.sent, UNANSWERED_MAX - unanswered)
            for _ in range(min(room, 1 if self.trickle else self._burst)):
                self._send(ledger.sent)
            time.sleep(PACE_S)
        self._producer.flush(timeout=GIVE_UP_S)

    def _send(self, number: int) -> None:
        ledger = self._ledger
        ledger.on_sent()
        future = self._producer.send(
            self._topic, value=ledger.lines[number].encode(), key=ledger.key(number)
        )
        future.add_callback(
            lambda metadata: ledger.on_acked(number, metadata.partition, metadata.offset)
        )
        future.add_errback(lambda error: ledger.on_failed(number, type(error).__name__))

    def close(self, patience_s: float = GIVE_UP_S) -> None:
        """Stop sending, and close the client if the thread ends within `patience_s`."""
        self.stopping.set()
        if self.ident is not None:
            self.join(patience_s)
        if not self.is_alive():
            self._producer.close(timeout=5)


def _assigned_listener(kafka: Any, assigned: threading.Event) -> object:
    """Sets `assigned` when the group has assigned partitions."""

    class AssignmentListener(kafka.ConsumerRebalanceListener):  # type: ignore[misc]  # untyped
        def on_partitions_revoked(self, revoked: object) -> None:
            pass

        def on_partitions_assigned(self, partitions: object) -> None:
            if partitions:
                assigned.set()

    return AssignmentListener()


class Consuming(threading.Thread):
    """Reads the topic as the only member of a group, until it is closed."""

    def __init__(self, bootstrap: str, topic: str, ledger: DemoLedger) -> None:
        super().__init__(name=CONSUMER_ID, daemon=True)
        self._ledger = ledger
        self.assigned = threading.Event()
        self.stopping = threading.Event()
        kafka = require_clients()
        self._consumer = kafka.KafkaConsumer(
            bootstrap_servers=bootstrap.split(","),
            client_id=CONSUMER_ID,
            group_id=GROUP,
            auto_offset_reset="earliest",
            auto_commit_interval_ms=500,
            session_timeout_ms=10_000,
            heartbeat_interval_ms=1_000,
            retry_backoff_ms=20,
            reconnect_backoff_ms=20,
            reconnect_backoff_max_ms=500,
        )
        self._consumer.subscribe([topic], listener=_assigned_listener(kafka, self.assigned))

    def run(self) -> None:
        consumer, ledger = self._consumer, self._ledger
        while not self.stopping.is_set():
            wait_ms = 50 if self.assigned.is_set() else JOIN_POLL_MS
            for records in consumer.poll(timeout_ms=wait_ms, max_records=2_000).values():
                for record in records:
                    ledger.on_read(record.key, record.value, record.partition, record.offset)

    def close(self, patience_s: float = GIVE_UP_S) -> None:
        """Stop reading; commit and leave the group if the thread ends within `patience_s`."""
        self.stopping.set()
        if self.ident is not None:
            self.join(patience_s)
        if not self.is_alive():
            self._consumer.close(timeout_ms=5_000)


def wait_until_complete(ledger: DemoLedger, threads: Sequence[threading.Thread]) -> bool:
    """Wait until every line has an outcome and every acked line has been read.  False if there is
    no progress for GIVE_UP_S, or the consumer's thread has died."""
    progress, since = (-1, -1), time.monotonic()
    while True:
        if ledger.sent == len(ledger.lines) and ledger.is_complete():
            return True
        now = (len(ledger.acked) + len(ledger.failed), len(ledger.places))
        if now != progress:
            progress, since = now, time.monotonic()
        elif time.monotonic() - since > GIVE_UP_S:
            return False
        if any(isinstance(thread, Consuming) and not thread.is_alive() for thread in threads):
            return False
        time.sleep(0.02)
