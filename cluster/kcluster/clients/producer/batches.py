"""A producer's batches: for each partition, waiting batches and batches in flight.

Owns: ProducerBatch, PartitionQueue with its sequences (KIP-98, KIP-360).  Never: decides when to
send (sender.py does), when to bump the epoch (identity.py does).
Kafka: ProducerBatch, RecordAccumulator's deques, TxnPartitionEntry.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from kcluster.clients.ledger import SentRecord
from kcluster.clients.metadata import NO_BROKER, NO_EPOCH
from kcluster.protocol.records.batch_builder import BatchBuilder
from kcluster.protocol.records.batches import SEQUENCE_MODULUS

NO_SEQUENCE: Final = -1
NO_PRODUCER_ID: Final = -1
BATCH_OVERHEAD_BYTES: Final = 61
RECORD_OVERHEAD_BYTES: Final = 8
"""The size of a small record apart from key and value: lengths, attributes and deltas."""


class ProducerBatch:
    """Records for one partition that are sent together.  Times are in ms."""

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
        "sequence_was_reset",
    )

    def __init__(
        self, queue: PartitionQueue, created_ms: int, due_ms: int, allocated_bytes: int
    ) -> None:
        self.queue = queue
        self.allocated_bytes = allocated_bytes
        """The part of buffer.memory that the batch uses."""
        self.created_ms = created_ms
        self.due_ms = due_ms
        """The end of linger.ms, or of the retry backoff."""
        self.sends: list[SentRecord] = []
        self.records = BatchBuilder()
        self.attempts = 0
        """The number of failed attempts that were followed by a retry."""
        self.in_retry = False
        self.is_done = False
        """Whether the sends of its records have an outcome, so that a late response changes
        nothing."""
        self.may_be_appended = False
        """Whether an attempt may have been appended although it was not acked."""
        self.error = ""
        """The last error."""
        self.leader_epoch = -1
        self.attempts_at_leader_change = -1
        self.producer_id = NO_PRODUCER_ID
        self.producer_epoch = -1
        self.base_sequence = NO_SEQUENCE
        self.sequence_was_reset = False
        """Whether the batch's sequence differs from the sequence of the previous attempt."""

    @property
    def next_sequence(self) -> int:
        """The sequence that follows the batch's last record."""
        return (self.base_sequence + self.records.count) % SEQUENCE_MODULUS

    def update_leader_epoch(self, leader_epoch: int) -> bool:
        """Set the leader epoch of the next attempt.  Returns whether the attempt is a retry at a
        newer leader, which needs no backoff (KIP-951)."""
        if leader_epoch > self.leader_epoch:
            self.leader_epoch = leader_epoch
            self.attempts_at_leader_change = self.attempts
        return self.attempts > 0 and self.attempts == self.attempts_at_leader_change

    def set_producer_state(self, producer_id: int, producer_epoch: int, base_sequence: int) -> None:
        """Set or replace the batch's producer id, epoch and sequence."""
        self.sequence_was_reset = self.base_sequence != NO_SEQUENCE
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.base_sequence = base_sequence

    def build(self, compression: str, attributes: int) -> memoryview:
        """Encode the batch into new bytes each time, because a broker keeps the bytes and writes
        offsets into them."""
        self.sequence_was_reset = False
        return memoryview(
            self.records.build(
                compression, self.producer_id, self.producer_epoch, self.base_sequence, attributes
            )
        )


class PartitionQueue:
    """A producer's state of one partition."""

    __slots__ = (
        "in_flight",
        "index",
        "is_muted",
        "key",
        "last_acked_sequence",
        "leader",
        "leader_epoch",
        "next_sequence",
        "producer_epoch",
        "producer_id",
        "sequenced",
        "topic",
        "unresolved_sequence",
        "waiting",
    )

    def __init__(self, topic: str, index: int) -> None:
        self.topic = topic
        self.index = index
        self.key = (topic, index)
        self.leader = NO_BROKER
        self.leader_epoch = NO_EPOCH
        """The leader and its epoch, from the metadata."""
        self.waiting: deque[ProducerBatch] = deque()
        self.in_flight: list[ProducerBatch] = []
        self.is_muted = False
        """Whether the next batch must wait for a response, because max.in.flight is 1 and a batch
        is in flight."""
        self.sequenced: list[ProducerBatch] = []
        """Batches with a sequence and without an outcome, in order: in flight, or waiting for a
        retry.  Kafka: TxnPartitionEntry.inflightBatchesBySequence."""
        self.producer_id = NO_PRODUCER_ID
        self.producer_epoch = -1
        self.next_sequence = 0
        self.last_acked_sequence = NO_SEQUENCE
        self.unresolved_sequence = NO_SEQUENCE
        """The sequence after a batch that expired after it had been sent, and may be in the log."""

    def restart_sequences(self, producer_id: int, producer_epoch: int) -> None:
        """Start again at sequence 0 in a new epoch, with the sequenced batches first."""
        sequence = 0
        for batch in self.sequenced:
            batch.set_producer_state(producer_id, producer_epoch, sequence)
            sequence += batch.records.count
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.next_sequence = sequence
        self.last_acked_sequence = NO_SEQUENCE

    def is_next(self, sequence: int) -> bool:
        """Whether this sequence follows the last acked one."""
        return sequence - self.last_acked_sequence == 1

    def requeue(self, batch: ProducerBatch) -> None:
        """Put a batch back for a retry: by sequence if it has one, else at the front, even before
        batches that were sent earlier.  Kafka: RecordAccumulator.reenqueue."""
        waiting = self.waiting
        sequence = batch.base_sequence
        if sequence == NO_SEQUENCE:
            waiting.appendleft(batch)
            return
        index = 0
        for other in waiting:
            if other.base_sequence == NO_SEQUENCE or other.base_sequence >= sequence:
                break
            index += 1
        waiting.insert(index, batch)
