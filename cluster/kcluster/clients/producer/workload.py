"""The application of a producer: makes records at its rate and gives them to the sender.

Owns: what each record is, its partition, its place in the ledger, when send() blocks.  Never:
sends.  Kafka: the application, KafkaProducer.doSend and waitOnMetadata, RecordAccumulator.append.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kcluster.clients.ledger import Ledger, Outcome, Send
from kcluster.clients.metadata import NOBODY
from kcluster.clients.producer.batches import RECORD_OVERHEAD_BYTES, Batch
from kcluster.clients.producer.partitioning import StickyPartitioner, partition_of_key
from kcluster.clients.producer.sender import Sender
from kcluster.clients.producer.settings import Workload
from kcluster.timers import NEVER_MS

NO_TIME: Final = "REQUEST_TIMED_OUT"
"""What a TimeoutException is called on the wire."""


class Application:
    """Gives `workload` to a sender.

    `due_ms`: when it has something to do.  `made`: records so far.  `is_over`: there will be no
    more.  `is_blocked`: it waits in send(), for metadata or, `is_out_of_memory`, for memory.
    """

    def __init__(self, name: str, ledger: Ledger, workload: Workload, sender: Sender) -> None:
        self.workload = workload
        self.made = 0
        self.due_ms = NEVER_MS
        self.is_over = False
        self.is_blocked = False
        self.is_out_of_memory = False
        self._name = name
        self._sends = ledger.sends
        self._sender = sender
        self._start_ms = 0
        self._stop_ms = NEVER_MS
        self._record: tuple[Send, bytes | None, int] | None = None
        """The one that send() blocks with: itself, its key, its partition if that is known."""
        self._blocked_since_ms = 0
        self._stickies: dict[str, StickyPartitioner] = {}
        self._turns: dict[str, int] = {}
        self._places: dict[tuple[bytes, int], int] = {}
        """Partitions of keys, which are hashed once."""

    def start(self, now_ms: int) -> None:
        """Its life begins."""
        workload = self.workload
        self._start_ms = self.due_ms = now_ms + workload.start_ms
        if workload.stop_ms >= 0:
            self._stop_ms = now_ms + workload.stop_ms

    def stop(self, now_ms: int) -> None:
        """Make no more.  A record that send() blocks with is given up."""
        if self._record is not None:
            self._fail(self._record[0], now_ms)
        self.is_over = True
        self.due_ms = NEVER_MS

    def work(self, now_ms: int) -> None:
        """Give every record whose time has come, as long as send() does not block."""
        workload = self.workload
        while not self.is_over:
            if self._record is None:
                # A float only here: the n-th record's time, not a sum of many.
                next_ms = self._start_ms + int(self.made * 1000 / workload.rate_per_s)
                if self.made == workload.count or next_ms >= self._stop_ms:
                    self.is_over = True
                    self.due_ms = NEVER_MS
                    return
                if next_ms > now_ms:
                    self.due_ms = next_ms
                    return
                self._make(now_ms)
            if not self._give(now_ms):
                return

    # --------------------------------------------------------------------------- records

    def _make(self, now_ms: int) -> None:
        workload, settings = self.workload, self._sender.settings
        number = self.made
        self.made += 1
        value = f"{self._name}:{number}".encode()
        if len(value) < workload.size_bytes:
            value = value.ljust(workload.size_bytes, b".")
        topic = workload.topics[number % len(workload.topics)]
        key = f"key-{number % workload.keys}".encode() if workload.keys else None
        index = NOBODY
        if workload.partitions:
            index = workload.partitions[number // len(workload.topics) % len(workload.partitions)]
        send = Send(
            self._name,
            (topic, index),
            value,
            settings.acks,
            settings.is_idempotent,
            sent_ms=now_ms,
        )
        self._sends.append(send)
        self._record = (send, key, index)
        self._blocked_since_ms = now_ms

    def _give(self, now_ms: int) -> bool:
        """Give the record to the sender; False while send() blocks."""
        assert self._record is not None
        send, key, index = self._record
        sender = self._sender
        topic = send.partition[0]
        count = sender.metadata.partition_count(topic)
        if count <= index or not count:
            sender.metadata.want(topic)
            sender.metadata.request_update()
            return self._block(send, now_ms)
        sticky = None
        if index == NOBODY:
            index = self._partition(topic, key, count)
        if index == NOBODY:
            sticky = self._sticky(topic)
            index = sticky.choose(sender.queues, sender.network.rng)
        size_bytes = RECORD_OVERHEAD_BYTES + len(send.value) + (len(key) if key else 0)
        batch = sender.batch_with_room(topic, index, size_bytes, now_ms)
        if batch is None:
            self.is_out_of_memory = True
            return self._block(send, now_ms)
        send.partition = batch.queue.key
        self._record = None
        if self.is_blocked:
            self.is_blocked = self.is_out_of_memory = False
        records = batch.records
        before_bytes = records.size_bytes if records.count else 0
        batch.sends.append(send)
        records.append(now_ms, key, send.value)
        if sticky is not None:
            sticky.took(records.size_bytes - before_bytes, self._is_full(batch))
        return True

    def _is_full(self, batch: Batch) -> Callable[[], bool]:
        return lambda: batch.records.size_bytes >= self._sender.settings.batch_size_bytes

    # ------------------------------------------------------------------------ partitions

    def _partition(self, topic: str, key: bytes | None, count: int) -> int:
        """By turns or by key; NOBODY: wherever it is best to stay for a while."""
        if self._sender.settings.partitioner == "round-robin":
            turn = self._turns[topic] = self._turns.get(topic, -1) + 1
            views = self._sender.metadata.topics[topic].partitions
            led = [view.index for view in views if view.leader != NOBODY]
            return led[turn % len(led)] if led else turn % count
        if key is None:
            return NOBODY
        place = self._places.get((key, count))
        if place is None:
            place = self._places[key, count] = partition_of_key(key, count)
        return place

    def _sticky(self, topic: str) -> StickyPartitioner:
        sticky = self._stickies.get(topic)
        if sticky is None:
            sticky = self._stickies[topic] = StickyPartitioner(
                topic, self._sender.metadata, self._sender.settings.batch_size_bytes
            )
        return sticky

    # -------------------------------------------------------------------------- blocking

    def _block(self, send: Send, now_ms: int) -> bool:
        """Wait on, or give the record up after max.block.ms (True)."""
        self.is_blocked = True
        self.due_ms = self._blocked_since_ms + self._sender.settings.max_block_ms
        if now_ms < self.due_ms:
            return False
        self._fail(send, now_ms)
        return True

    def _fail(self, send: Send, now_ms: int) -> None:
        """send() threw: nothing of it was ever sent."""
        send.outcome = Outcome.FAILED
        send.ended_ms = now_ms
        send.error = NO_TIME
        self._sender.failed += 1
        self._record = None
        self.is_blocked = self.is_out_of_memory = False
