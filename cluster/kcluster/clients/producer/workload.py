"""A producer's application: creates records at its rate and appends them to batches.

Owns: each record's value, key and partition, its entry in the ledger, the blocking of send().
Never: sends batches (sender.py does). Kafka: the application, KafkaProducer.doSend and
waitOnMetadata, RecordAccumulator.append.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kcluster.clients.ledger import Ledger, Outcome, SentRecord
from kcluster.clients.metadata import NO_BROKER
from kcluster.clients.producer.batches import RECORD_OVERHEAD_BYTES, ProducerBatch
from kcluster.clients.producer.partitioning import NO_PARTITION, StickyPartitioner, partition_of_key
from kcluster.clients.producer.sender import Sender
from kcluster.clients.producer.settings import ProducerPlan
from kcluster.clients.record_names import tombstone_headers
from kcluster.protocol.errors import ErrorCode
from kcluster.timers import NEVER_MS

TOMBSTONE: Final = b" (null)"
"""The end of a tombstone's name."""
TIMEOUT_ERROR: Final = "REQUEST_TIMED_OUT"
"""The ledger's name for a TimeoutException from send()."""


class Application:
    """Creates the records of a plan.

    `due_ms`: the time at which `run` must be called.  `record_count`: the number of records created
    so far, `first_number`: that of the first one, 0 unless the process was started again.
    `is_over`: whether no more records will follow.  `is_blocked`: whether send() waits for
    metadata, or for memory if `is_out_of_memory`.
    """

    def __init__(self, name: str, ledger: Ledger, plan: ProducerPlan, sender: Sender) -> None:
        self.plan = plan
        self.record_count = 0
        self.first_number = 0
        self.due_ms = NEVER_MS
        self.is_over = False
        self.is_blocked = False
        self.is_out_of_memory = False
        self._name = name
        self._sends = ledger.sends
        self._sender = sender
        self._start_ms = 0
        self._stop_ms = NEVER_MS
        self._record: tuple[SentRecord, bytes | None, int] | None = None
        """The record in send(): its entry in the ledger, its key, its partition if known."""
        self._is_tombstone = False
        """Whether that record has no value."""
        self._life = 1
        self._blocked_since_ms = 0
        self._sticky_partitioners: dict[str, StickyPartitioner] = {}
        self._round_robin_counters: dict[str, int] = {}
        self._partitions_by_key: dict[tuple[bytes, int], int] = {}
        """The partition of each key (and partition count): keys are hashed once."""

    def follow(self, last: Application) -> None:
        """Go on with the numbers of the application of an earlier process."""
        self.first_number = last.next_number
        self._life = last._life + 1

    def start(self, now_ms: int) -> None:
        """Set the start and stop times."""
        plan = self.plan
        self._start_ms = self.due_ms = now_ms + plan.start_ms
        if plan.stop_ms >= 0:
            self._stop_ms = now_ms + plan.stop_ms

    def stop(self, now_ms: int) -> None:
        """Create no more records.  A record that is blocked in send() fails."""
        if self._record is not None:
            self._fail(self._record[0], now_ms)
        self.is_over = True
        self.due_ms = NEVER_MS

    def end(self, error: str, now_ms: int) -> None:
        """End, because send() has thrown."""
        if self._record is not None:
            self._fail(self._record[0], now_ms, error)
        self.is_over = True
        self.due_ms = NEVER_MS

    @property
    def next_number(self) -> int:
        """The number of the next record."""
        return self.first_number + self.record_count

    @property
    def is_waiting_for_metadata(self) -> bool:
        """Whether send() waits for metadata."""
        return self.is_blocked and not self.is_out_of_memory

    @property
    def blocked(self) -> SentRecord | None:
        """The record whose send() blocks."""
        return self._record[0] if self.is_blocked and self._record is not None else None

    def run(self, now_ms: int) -> None:
        """Send every record that is due, unless send() blocks."""
        plan = self.plan
        while not self.is_over:
            if self._record is None:
                next_ms = self._next_ms()
                if self.next_number == plan.count or next_ms >= self._stop_ms:
                    self.is_over = True
                    self.due_ms = NEVER_MS
                    return
                if next_ms > now_ms:
                    self.due_ms = next_ms
                    return
                self._create_record(now_ms)
            if not self._append(now_ms):
                return

    # --------------------------------------------------------------------------- records

    def _next_ms(self) -> int:
        """The time of the next record."""
        # The only float. The time is computed for the n-th record, because a sum of n intervals
        # would drift.
        return self._start_ms + int(self.record_count * 1000 / self.plan.rate_per_s)

    def _create_record(self, now_ms: int) -> None:
        plan = self.plan
        number = self.next_number
        self.record_count += 1
        value = f"{self._name}:{number}".encode()
        self._is_tombstone = plan.tombstone_share > 0 and plan.is_tombstone(number)
        if self._is_tombstone:
            value += TOMBSTONE
        elif len(value) < plan.size_bytes:
            value = value.ljust(plan.size_bytes, b".")
        topic = plan.topics[number % len(plan.topics)]
        key = f"key-{number % plan.keys}".encode() if plan.keys else None
        index = NO_PARTITION
        if plan.partitions:
            index = plan.partitions[number // len(plan.topics) % len(plan.partitions)]
        send = self._new_send(now_ms, topic, index, value)
        self._sends.append(send)
        self._record = (send, key, index)
        self._blocked_since_ms = now_ms

    def _new_send(self, now_ms: int, topic: str, index: int, value: bytes) -> SentRecord:
        settings = self._sender.settings
        return SentRecord(
            producer=self._name,
            partition=(topic, index),
            value=value,
            acks=settings.acks,
            idempotent=settings.is_idempotent,
            sent_ms=now_ms,
            life=self._life,
        )

    def _before_append(self, topic: str, index: int) -> None:
        """Called before a record is appended to a batch of this partition."""

    def _append(self, now_ms: int) -> bool:
        """Append the record to a batch; False while send() blocks."""
        assert self._record is not None
        send, key, index = self._record
        sender = self._sender
        topic = send.partition[0]
        count = sender.metadata.partition_count(topic)
        if count <= index or not count:
            sender.metadata.add_topic(topic)
            sender.metadata.request_update()
            if sender.metadata.is_denied(topic):
                self._deny(send, now_ms)
                return True
            return self._block(send, now_ms)
        sticky = None
        if index == NO_PARTITION:
            index = self._partition(topic, key, count)
        if index == NO_PARTITION:
            sticky = self._sticky(topic)
            index = sticky.choose(sender.queues, sender.network.rng)
        self._before_append(topic, index)
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
        if self._is_tombstone:
            records.append(now_ms, key, None, tombstone_headers(send.value))
        else:
            records.append(now_ms, key, send.value)
        if sticky is not None:
            sticky.update(records.size_bytes - before_bytes, self._is_full(batch))
        return True

    def _is_full(self, batch: ProducerBatch) -> Callable[[], bool]:
        return lambda: batch.records.size_bytes >= self._sender.settings.batch_size_bytes

    # ------------------------------------------------------------------------ partitions

    def _partition(self, topic: str, key: bytes | None, count: int) -> int:
        """The partition in turn or by key; NO_PARTITION if the sticky partitioner decides."""
        if self._sender.settings.partitioner == "round-robin":
            turn = self._round_robin_counters[topic] = self._round_robin_counters.get(topic, -1) + 1
            views = self._sender.metadata.topics[topic].partitions
            available = [view.index for view in views if view.leader != NO_BROKER]
            return available[turn % len(available)] if available else turn % count
        if key is None:
            return NO_PARTITION
        index = self._partitions_by_key.get((key, count))
        if index is None:
            index = self._partitions_by_key[key, count] = partition_of_key(key, count)
        return index

    def _sticky(self, topic: str) -> StickyPartitioner:
        sticky = self._sticky_partitioners.get(topic)
        if sticky is None:
            sticky = self._sticky_partitioners[topic] = StickyPartitioner(
                topic, self._sender.metadata, self._sender.settings.batch_size_bytes
            )
        return sticky

    # -------------------------------------------------------------------------- blocking

    def _block(self, send: SentRecord, now_ms: int) -> bool:
        """Return False until max.block.ms has passed, then fail the record and return True."""
        self.is_blocked = True
        self.due_ms = self._blocked_since_ms + self._sender.settings.max_block_ms
        if now_ms < self.due_ms:
            return False
        self._fail(send, now_ms)
        return True

    def _deny(self, send: SentRecord, now_ms: int) -> None:
        """Fail a record whose topic the client may not describe: send() throws."""
        self._fail(send, now_ms, ErrorCode.TOPIC_AUTHORIZATION_FAILED.name)

    def _fail(self, send: SentRecord, now_ms: int, error: str = TIMEOUT_ERROR) -> None:
        """Fail a record that was never sent, because send() threw."""
        send.outcome = Outcome.FAILED
        send.ended_ms = now_ms
        send.error = error
        self._sender.failed += 1
        self._record = None
        self.is_blocked = self.is_out_of_memory = False
