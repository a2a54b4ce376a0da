"""A producer's batches, and what is waiting and under way for each partition.

Owns: Batch, PartitionQueue with its sequences (KIP-98, KIP-360).  Never: decides when to send
(producer.py does), when to begin another epoch (producer_identity.py does).
Kafka: ProducerBatch, RecordAccumulator's deques, TxnPartitionEntry.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from kcluster.clients.ledger import Send
from kcluster.clients.metadata import NO_EPOCH, NOBODY
from kcluster.protocol.records.batch_builder import BatchBuilder
from kcluster.protocol.records.batches import SEQUENCE_MODULUS

NO_SEQUENCE: Final = -1
NO_PRODUCER_ID: Final = -1
BATCH_OVERHEAD_BYTES: Final = 61
RECORD_OVERHEAD_BYTES: Final = 8
"""Of a small record without headers: its length, attributes, deltas and the lengths in it."""


class Batch:
    """Records on their way to one partition.  Times in ms."""

    __slots__ = (
        "allocated_bytes",
        "attempts",
        "attempts_at_leader_change",
        "base_sequence",
        "created_ms",
        "due_ms",
        "error",
        "in_retry",
        "is_done",
        "leader_epoch",
        "may_be_appended",
        "producer_epoch",
        "producer_id",
        "queue",
        "records",
        "sends",
        "was_reset",
    )

    def __init__(
        self, queue: PartitionQueue, created_ms: int, due_ms: int, allocated_bytes: int
    ) -> None:
        self.queue = queue
        self.allocated_bytes = allocated_bytes
        """Of buffer.memory."""
        self.created_ms = created_ms
        self.due_ms = due_ms
        """When linger is over, or the backoff."""
        self.sends: list[Send] = []
        self.records = BatchBuilder()
        self.attempts = 0
        """That failed and were followed by another."""
        self.in_retry = False
        self.is_done = False
        """The application was told; an answer to come changes nothing for it."""
        self.may_be_appended = False
        """Some attempt may have been appended without our knowing."""
        self.error = ""
        """The last that it met."""
        self.leader_epoch = -1
        self.attempts_at_leader_change = -1
        self.producer_id = NO_PRODUCER_ID
        self.producer_epoch = -1
        self.base_sequence = NO_SEQUENCE
        self.was_reset = False
        """It has another sequence than at the attempt before."""

    @property
    def next_sequence(self) -> int:
        """That of the record behind the last."""
        return (self.base_sequence + self.records.count) % SEQUENCE_MODULUS

    def note_leader_epoch(self, leader_epoch: int) -> bool:
        """Tell which epoch it would be sent to; whether a retry goes to a newer leader than the
        attempt before, which needs no backoff (KIP-951)."""
        if leader_epoch > self.leader_epoch:
            self.leader_epoch = leader_epoch
            self.attempts_at_leader_change = self.attempts
        return self.attempts > 0 and self.attempts == self.attempts_at_leader_change

    def identify(self, producer_id: int, producer_epoch: int, base_sequence: int) -> None:
        """Give it a sequence, or another one."""
        self.was_reset = self.base_sequence != NO_SEQUENCE
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.base_sequence = base_sequence

    def encoded(self, compression: str) -> memoryview:
        """Its bytes, new ones each time: a broker keeps them and writes offsets into them."""
        self.was_reset = False
        return memoryview(
            self.records.build(
                compression, self.producer_id, self.producer_epoch, self.base_sequence
            )
        )


class PartitionQueue:
    """One partition as a producer sees it."""

    __slots__ = (
        "index",
        "is_muted",
        "key",
        "last_acked_sequence",
        "leader",
        "leader_epoch",
        "next_sequence",
        "producer_epoch",
        "producer_id",
        "topic",
        "tracked",
        "under_way",
        "unresolved_sequence",
        "waiting",
    )

    def __init__(self, topic: str, index: int) -> None:
        self.topic = topic
        self.index = index
        self.key = (topic, index)
        self.leader = NOBODY
        self.leader_epoch = NO_EPOCH
        """As metadata has them."""
        self.waiting: deque[Batch] = deque()
        self.under_way: list[Batch] = []
        self.is_muted = False
        """One at a time, with one request in flight: the next waits for the answer."""
        self.tracked: list[Batch] = []
        """Those with a sequence and without an end, in order: under way, or waiting to be again."""
        self.producer_id = NO_PRODUCER_ID
        self.producer_epoch = -1
        self.next_sequence = 0
        self.last_acked_sequence = NO_SEQUENCE
        self.unresolved_sequence = NO_SEQUENCE
        """The one behind a batch that was given up after it had been sent: the log may have it."""

    def restart_sequences(self, producer_id: int, producer_epoch: int) -> None:
        """Begin again with 0 in another epoch, what is tracked first."""
        sequence = 0
        for batch in self.tracked:
            batch.identify(producer_id, producer_epoch, sequence)
            sequence += batch.records.count
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.next_sequence = sequence
        self.last_acked_sequence = NO_SEQUENCE

    def is_next(self, sequence: int) -> bool:
        """Whether this sequence follows the last that was acked."""
        return sequence - self.last_acked_sequence == 1

    def requeue(self, batch: Batch) -> None:
        """A batch waits again: by sequence if it has one, else in front of all others, even of
        those that were sent before it."""
        waiting = self.waiting
        sequence = batch.base_sequence
        if sequence == NO_SEQUENCE:
            waiting.appendleft(batch)
            return
        place = 0
        for other in waiting:
            if other.base_sequence == NO_SEQUENCE or other.base_sequence >= sequence:
                break
            place += 1
        waiting.insert(place, batch)
