"""Sends a producer's batches, retries them, and sets the outcomes of their records.

Owns: the queue of each partition, when a batch is sent and retried, outcomes, buffer.memory.
Never: assigns sequences (identity.py), chooses partitions (workload.py, partitioning.py).
Kafka: Sender and RecordAccumulator; KIP-91 (delivery.timeout.ms), KIP-951 (leaders in errors).

The outcome of a send: ACKED if a response reported success; FAILED if no attempt can have been
appended; UNKNOWN if one may have been.
"""

from __future__ import annotations

from typing import Any, Final

from kcluster.clients.connections import (
    DISCONNECTED,
    REQUEST_TIMED_OUT,
    ClientRequest,
    NetworkClient,
)
from kcluster.clients.ledger import Outcome, Partition
from kcluster.clients.metadata import NO_BROKER, Metadata, backoff_ms, is_stale_metadata
from kcluster.clients.producer.batches import (
    BATCH_OVERHEAD_BYTES,
    NO_SEQUENCE,
    PartitionQueue,
    ProducerBatch,
)
from kcluster.clients.producer.identity import Identity
from kcluster.clients.producer.settings import ProducerSettings
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.codec.schema import ZERO_UUID
from kcluster.protocol.errors import ErrorCode, error_of
from kcluster.protocol.records.batches import TRANSACTIONAL_BIT
from kcluster.timers import NEVER_MS

FIRST_VERSION_WITH_TOPIC_IDS: Final = 13
MAX_VERSION: Final = 32_767
_PRODUCE: Final = int(ApiKey.PRODUCE)
_FAILURES: Final = {
    DISCONNECTED: ErrorCode.NETWORK_EXCEPTION,
    REQUEST_TIMED_OUT: ErrorCode.REQUEST_TIMED_OUT,
}
"""The error that stands for a missing response, by the reason why it is missing."""

_Data: Final = m.ProduceRequest.PartitionProduceData
_Topic: Final = m.ProduceRequest.TopicProduceData


class Sender:
    """One producer's batches.  `acked`, `failed`, `unknown`: the number of records by outcome."""

    def __init__(
        self,
        settings: ProducerSettings,
        metadata: Metadata,
        network: NetworkClient,
        identity: Identity | None,
    ) -> None:
        self.settings = settings
        self.metadata = metadata
        self.network = network
        self.identity = identity
        self.queues: dict[Partition, PartitionQueue] = {}
        self.allocated_bytes = 0
        """The part of buffer.memory that batches without an outcome use."""
        self.acked = self.failed = self.unknown = 0
        self.transactional_id: str | None = None
        """The transactional id of a transactional producer, whose batches are marked as such."""
        self.max_version = MAX_VERSION
        """The highest version of Produce to use."""
        self.is_flushing = False
        """Whether batches are sent without waiting for linger.ms."""
        self.batch_due_ms = NEVER_MS
        """The earliest end of a linger or backoff."""
        self.expiry_ms = NEVER_MS
        """The time before which no batch reaches its delivery timeout."""
        self.waiting: dict[Partition, PartitionQueue] = {}
        """The queues with batches to be sent."""
        self._metadata_version = -1

    # ------------------------------------------------------------------------- appending

    def batch_with_room(
        self, topic: str, index: int, record_bytes: int, now_ms: int
    ) -> ProducerBatch | None:
        """The batch to which a record can be appended; None if buffer.memory is exhausted."""
        settings = self.settings
        queue = self.queues.get((topic, index))
        if queue is None:
            queue = self.queues[topic, index] = PartitionQueue(topic, index)
            self._metadata_version = -1
        elif queue.waiting:
            last = queue.waiting[-1]
            fits = last.records.size_bytes + record_bytes <= settings.batch_size_bytes
            if fits and not last.in_retry:
                return last
        needed_bytes = BATCH_OVERHEAD_BYTES + record_bytes
        if needed_bytes < settings.batch_size_bytes:
            needed_bytes = settings.batch_size_bytes
        if self.allocated_bytes + needed_bytes > settings.buffer_memory_bytes:
            return None
        batch = ProducerBatch(queue, now_ms, now_ms + settings.linger_ms, needed_bytes)
        queue.waiting.append(batch)
        self.waiting[queue.key] = queue
        self.allocated_bytes += needed_bytes
        if now_ms + settings.delivery_timeout_ms < self.expiry_ms:
            self.expiry_ms = now_ms + settings.delivery_timeout_ms
        return batch

    # --------------------------------------------------------------------------- sending

    def send_all(self, now_ms: int) -> None:
        """Send every batch that may be sent now."""
        while self.waiting and self._send_ready(now_ms):
            pass

    def _send_ready(self, now_ms: int) -> bool:
        """Send one request to each leader with a ready batch; returns whether any was sent."""
        leaders = self._ready_leaders(now_ms)
        is_any_sent = False
        for leader in leaders:
            if self.network.is_ready(leader, now_ms):
                batches = self._drain(leader, now_ms)
                if batches:
                    self._send(leader, batches, now_ms)
                    is_any_sent = True
        return is_any_sent

    def _update_leaders(self) -> None:
        """Take the leaders from new metadata."""
        metadata = self.metadata
        self._metadata_version = metadata.version
        for queue in self.queues.values():
            queue.leader = metadata.leader(queue.topic, queue.index)
            queue.leader_epoch = metadata.leader_epoch(queue.topic, queue.index)

    def _ready_leaders(self, now_ms: int) -> dict[int, None]:
        """The leaders of batches that are full, or whose linger or backoff is over.
        Kafka: RecordAccumulator.ready."""
        if self._metadata_version != self.metadata.version:
            self._update_leaders()
        leaders: dict[int, None] = {}
        due_ms = NEVER_MS
        for queue in self.waiting.values():
            leader = queue.leader
            if leader == NO_BROKER:
                self.metadata.request_update()
                continue
            if leader in leaders or queue.is_muted:
                continue
            batch = queue.waiting[0]
            if batch.due_ms > now_ms and not self._may_send_early(queue, batch):
                if batch.due_ms < due_ms:
                    due_ms = batch.due_ms
                continue
            leaders[leader] = None
        self.batch_due_ms = due_ms
        return leaders

    def _may_send_early(self, queue: PartitionQueue, batch: ProducerBatch) -> bool:
        """Whether a batch may be sent before the end of its linger or backoff."""
        if batch.attempts:
            return batch.update_leader_epoch(queue.leader_epoch)
        return self.is_flushing or len(queue.waiting) > 1 or self._is_full(batch)

    def _is_full(self, batch: ProducerBatch) -> bool:
        return batch.records.size_bytes >= self.settings.batch_size_bytes

    def _drain(self, leader: int, now_ms: int) -> list[ProducerBatch]:
        """Take the first batch of each of this leader's partitions, if it may be sent; lingering
        batches are included.  Kafka: RecordAccumulator.drainBatchesForOneNode."""
        identity = self.identity
        batches: list[ProducerBatch] = []
        size_bytes = 0
        waiting = self.waiting
        for queue in tuple(waiting.values()):
            if queue.leader != leader or queue.is_muted:
                continue
            batch = queue.waiting[0]
            has_moved = batch.update_leader_epoch(queue.leader_epoch)
            if batch.attempts and batch.due_ms > now_ms and not has_moved:
                continue
            size_bytes += batch.records.size_bytes
            if batches and size_bytes > self.settings.max_request_size_bytes:
                break
            if identity is not None:
                if not identity.may_send(queue, batch):
                    continue
                identity.assign_sequence(queue, batch)
            queue.waiting.popleft()
            if not queue.waiting:
                del waiting[queue.key]
            batches.append(batch)
        return batches

    def _send(self, leader: int, batches: list[ProducerBatch], now_ms: int) -> None:
        settings, metadata = self.settings, self.metadata
        version = min(self.network.version(leader, _PRODUCE), self.max_version)
        attributes = 0 if self.transactional_id is None else TRANSACTIONAL_BIT
        topics: dict[str, m.ProduceRequest.TopicProduceData] = {}
        for batch in batches:
            queue = batch.queue
            topic = topics.get(queue.topic)
            if topic is None:
                topic_id = metadata.topic_id(queue.topic)
                topic = topics[queue.topic] = _Topic(queue.topic, topic_id, [])
                if topic_id == ZERO_UUID and version >= FIRST_VERSION_WITH_TOPIC_IDS:
                    version = FIRST_VERSION_WITH_TOPIC_IDS - 1
            topic.partition_data.append(
                _Data(queue.index, batch.build(settings.compression_type, attributes))
            )
            queue.in_flight.append(batch)
            queue.is_muted = settings.max_in_flight_requests_per_connection == 1
            for send in batch.sends:
                send.attempts += 1
        if version >= FIRST_VERSION_WITH_TOPIC_IDS:
            for topic in topics.values():
                topic.name = ""
        body = m.ProduceRequest(
            self.transactional_id, settings.acks, settings.request_timeout_ms, list(topics.values())
        )
        self.network.send(
            leader,
            _PRODUCE,
            body,
            now_ms,
            self._on_produced,
            context=batches,
            version=version,
            answered=settings.acks != 0,
        )
        if not settings.acks:
            for batch in batches:
                self._end_attempt(batch)
                self._ack(batch, -1, now_ms)

    # ------------------------------------------------------------------------- responses

    def _on_produced(self, request: ClientRequest, now_ms: int) -> None:
        batches: list[ProducerBatch] = request.context
        failure = request.failure
        if failure:
            error = _FAILURES.get(failure, ErrorCode.UNSUPPORTED_VERSION)
            for batch in batches:
                self.network.record_error(now_ms, _PRODUCE, failure, batch.queue.key)
                self._end_attempt(batch)
                self._on_error(batch, error, failure, -1, now_ms)
            return
        responses: dict[tuple[str | None, int], Any] = {}
        by_id = request.version >= FIRST_VERSION_WITH_TOPIC_IDS
        for topic in request.response.responses:
            name = self.metadata.topic_name(topic.topic_id) if by_id else topic.name
            for partition_response in topic.partition_responses:
                responses[name, partition_response.index] = partition_response
        for batch in batches:
            partition_response = responses.get(batch.queue.key)
            self._end_attempt(batch)
            if partition_response is None:
                # The topic was deleted and created again, with another id.
                self._on_error(batch, ErrorCode.UNKNOWN_TOPIC_ID, "", -1, now_ms)
            elif not partition_response.error_code:
                self._ack(batch, partition_response.base_offset, now_ms)
            else:
                self._on_partition_error(batch, partition_response, now_ms)

    def _on_partition_error(
        self, batch: ProducerBatch, partition_response: Any, now_ms: int
    ) -> None:
        error, key = error_of(partition_response.error_code), batch.queue.key
        self.network.record_error(now_ms, _PRODUCE, error.name, key)
        self._on_error(batch, error, error.name, partition_response.log_start_offset, now_ms)
        if is_stale_metadata(error):
            leader = partition_response.current_leader
            if leader.leader_id >= 0 and leader.leader_epoch >= 0:
                self.metadata.update_leader(*key, leader.leader_id, leader.leader_epoch)

    def _end_attempt(self, batch: ProducerBatch) -> None:
        queue = batch.queue
        queue.is_muted = False
        if batch in queue.in_flight:
            queue.in_flight.remove(batch)

    def _on_error(
        self, batch: ProducerBatch, error: ErrorCode, name: str, log_start_offset: int, now_ms: int
    ) -> None:
        """Retry a batch after a failed attempt, or fail it."""
        batch.may_be_appended |= not error.definite
        batch.error = name
        settings, identity = self.settings, self.identity
        if is_stale_metadata(error):
            self.metadata.request_update()
        if batch.is_done:
            return
        has_time = now_ms - batch.created_ms < settings.delivery_timeout_ms
        if (
            has_time
            and batch.attempts < settings.retries
            and (
                identity.may_retry(batch, error, log_start_offset)
                if identity is not None
                else error.retriable
            )
        ):
            batch.due_ms = now_ms + backoff_ms(
                batch.attempts,
                settings.retry_backoff_ms,
                settings.retry_backoff_max_ms,
                self.network.rng,
            )
            batch.attempts += 1
            batch.in_retry = True
            batch.queue.requeue(batch)
            self.waiting[batch.queue.key] = batch.queue
        elif error is ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            # The log has the batch, but no longer remembers its offset.
            self._ack(batch, -1, now_ms)
        else:
            self.fail_batch(batch, name, now_ms)
            if identity is not None:
                may_reuse = batch.attempts < settings.retries
                identity.on_failed(batch, error, sequence_is_free=may_reuse)

    # -------------------------------------------------------------------------- outcomes

    def expire(self, now_ms: int) -> None:
        """Fail batches that have reached their delivery timeout, oldest first."""
        limit_ms = now_ms - self.settings.delivery_timeout_ms
        for queue in self.queues.values():
            for batch in (*queue.in_flight, *queue.waiting):
                if batch.created_ms <= limit_ms and not batch.is_done:
                    self._expire(batch, now_ms)
        self.expiry_ms = self.settings.delivery_timeout_ms + min(
            (x.created_ms for q in self.queues.values() for x in (*q.in_flight, *q.waiting)),
            default=NEVER_MS - self.settings.delivery_timeout_ms,
        )

    def _expire(self, batch: ProducerBatch, now_ms: int) -> None:
        queue, identity = batch.queue, self.identity
        self.network.record_error(now_ms, _PRODUCE, REQUEST_TIMED_OUT, queue.key)
        self.fail_batch(batch, batch.error or REQUEST_TIMED_OUT, now_ms)
        self._remove(batch)
        if identity is not None:
            identity.on_failed(batch, ErrorCode.REQUEST_TIMED_OUT, sequence_is_free=False)
            if batch.in_retry:
                identity.mark_sequence_unresolved(batch)

    def unanswered(self) -> list[tuple[Partition, int, int]]:
        """The records without an outcome by partition: (partition, their number, the time at which
        the oldest was sent)."""
        found = []
        for key, queue in self.queues.items():
            sends = [batch.sends for batch in (*queue.in_flight, *queue.waiting) if batch.sends]
            if sends:
                oldest_ms = min(each[0].sent_ms for each in sends)
                found.append((key, sum(map(len, sends)), oldest_ms))
        return found

    @property
    def has_incomplete(self) -> bool:
        """Whether a batch has no outcome."""
        return bool(self.waiting) or any(queue.in_flight for queue in self.queues.values())

    def fail_undrained(self, error: str, now_ms: int) -> None:
        """Fail the batches that were never sent.  Kafka: abortUndrainedBatches."""
        for queue in tuple(self.waiting.values()):
            for batch in tuple(queue.waiting):
                if batch.base_sequence == NO_SEQUENCE:
                    self.fail_batch(batch, error, now_ms)
                    self._remove(batch)

    def fail_all(self, error: str, now_ms: int) -> None:
        """Fail every batch without an outcome; nothing more is sent."""
        for queue in self.queues.values():
            for batch in (*queue.in_flight, *queue.waiting):
                self.fail_batch(batch, error or batch.error, now_ms)
                self._remove(batch)

    def _remove(self, batch: ProducerBatch) -> None:
        """Remove a batch that has an outcome; a late response may still arrive."""
        queue = batch.queue
        if batch in queue.in_flight:
            queue.in_flight.remove(batch)
        elif batch in queue.waiting:
            queue.waiting.remove(batch)
            if not queue.waiting:
                self.waiting.pop(queue.key, None)

    def _ack(self, batch: ProducerBatch, base_offset: int, now_ms: int) -> None:
        if self.identity is not None:
            self.identity.on_acked(batch)
        if batch.is_done:
            return
        self._end(batch)
        self.acked += len(batch.sends)
        for index, send in enumerate(batch.sends):
            send.outcome = Outcome.ACKED
            send.ended_ms = now_ms
            send.error = batch.error
            if base_offset >= 0:
                send.offset = base_offset + index

    def fail_batch(self, batch: ProducerBatch, error: str, now_ms: int) -> None:
        """Set the outcome of a batch that was not acked: FAILED or UNKNOWN."""
        if batch.is_done:
            return
        self._end(batch)
        is_open = batch.may_be_appended or batch in batch.queue.in_flight
        outcome = Outcome.UNKNOWN if is_open else Outcome.FAILED
        if is_open:
            self.unknown += len(batch.sends)
        else:
            self.failed += len(batch.sends)
        for send in batch.sends:
            send.outcome = outcome
            send.ended_ms = now_ms
            send.error = error

    def _end(self, batch: ProducerBatch) -> None:
        batch.is_done = True
        self.allocated_bytes -= batch.allocated_bytes
