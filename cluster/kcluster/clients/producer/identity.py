"""An idempotent producer's id, epoch and sequences, and how a transactional producer's differ.

Owns: InitProducerId without a transactional id, the sequence of each batch, epoch bumps, the
response to OUT_OF_ORDER_SEQUENCE_NUMBER and UNKNOWN_PRODUCER_ID; in a transaction the permission to
send and to retry a batch, and the sequences after a failed one.  Never: sends or fails a batch
(sender.py), sends a request to a transaction coordinator (transactions.py).
Kafka: TransactionManager, TxnPartitionMap; KIP-98, KIP-360.
"""

from __future__ import annotations

from typing import Final

from kcluster.clients.connections import ClientRequest, NetworkClient, RetryBackoff
from kcluster.clients.metadata import NO_BROKER
from kcluster.clients.producer.batches import (
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    PartitionQueue,
    ProducerBatch,
)
from kcluster.clients.producer.settings import MAX_INT, ProducerSettings
from kcluster.clients.producer.transactions import Transactions
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.records.batches import SEQUENCE_MODULUS

MAX_EPOCH: Final = 32_767
_FATAL: Final = (
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.UNSUPPORTED_VERSION,
)


class Identity:
    """The state of one idempotent producer.  `fatal`: Kafka's name of the error that ended it, ""
    for none; nothing is sent after it."""

    def __init__(self, settings: ProducerSettings, network: NetworkClient) -> None:
        self.settings = settings
        self.network = network
        self.producer_id = NO_PRODUCER_ID
        self.producer_epoch = -1
        self.fatal = ""
        self.epoch_bumps: list[tuple[int, str]] = []
        """(at_ms, partition) for each restart of a partition's sequences."""
        self._is_id_requested = False
        self._request_after_ms = 0
        self._backoff = RetryBackoff(network)
        self._is_bump_requested = False
        self._queues_to_restart: dict[PartitionQueue, None] = {}
        self._unresolved: dict[PartitionQueue, None] = {}

    # ------------------------------------------------------------------------ each turn

    @property
    def is_settled(self) -> bool:
        """Whether `settle` has nothing to do: the usual case, checked first."""
        return not (
            self._unresolved
            or self._is_bump_requested
            or self.producer_id < 0
            or self._queues_to_restart
        )

    def settle(self, now_ms: int) -> None:
        """Resolve sequences, bump the epoch if that was requested, request an id if there is none.
        Kafka: maybeResolveSequences, bumpIdempotentEpochAndResetIdIfNeeded."""
        for queue in tuple(self._unresolved):
            if not queue.sequenced:
                if not queue.is_next(queue.next_sequence):
                    # All batches in flight have expired, so the last sequence in the log is
                    # unknown.
                    self.request_epoch_bump(queue)
                self._resolved(queue)
        if self._is_bump_requested:
            self._bump(now_ms)
        if self.producer_id < 0 and not self._is_id_requested and not self.fatal:
            self._request_id(now_ms)

    def request_epoch_bump(self, queue: PartitionQueue) -> None:
        """Restart this partition's sequences in a new epoch, because they have a gap."""
        self._is_bump_requested = True
        self._queues_to_restart[queue] = None

    def mark_sequence_unresolved(self, batch: ProducerBatch) -> None:
        """Send no new batches to this partition until the last sequence in the log is known,
        because a batch expired after it had been sent."""
        queue = batch.queue
        queue.unresolved_sequence = max(queue.unresolved_sequence, batch.next_sequence)
        self._unresolved[queue] = None

    def _resolved(self, queue: PartitionQueue) -> None:
        queue.unresolved_sequence = NO_SEQUENCE
        self._unresolved.pop(queue, None)

    def _bump(self, now_ms: int) -> None:
        self._is_bump_requested = False
        if self.producer_epoch == MAX_EPOCH:
            self.producer_id, self.producer_epoch = NO_PRODUCER_ID, -1
        if self.producer_id < 0:
            return  # sequences restart when the new id arrives
        self.producer_epoch += 1
        self._restart(now_ms)

    def _restart(self, now_ms: int) -> None:
        for queue in self._queues_to_restart:
            queue.restart_sequences(self.producer_id, self.producer_epoch)
            self._resolved(queue)
            self.epoch_bumps.append((now_ms, f"{queue.topic}-{queue.index}"))
        self._queues_to_restart = {}

    # ---------------------------------------------------------------------------- the id

    def _request_id(self, now_ms: int) -> None:
        if now_ms < self._request_after_ms:
            self.network.wake_at(self._request_after_ms)
            return
        broker_id = self.network.least_loaded(now_ms)
        if broker_id == NO_BROKER or not self.network.is_ready(broker_id, now_ms):
            if broker_id == NO_BROKER:
                self.network.wake_at(now_ms + self.settings.reconnect_backoff_ms)
            return
        self._is_id_requested = True
        body = m.InitProducerIdRequest(
            transactional_id=None, transaction_timeout_ms=MAX_INT, producer_id=-1, producer_epoch=-1
        )
        self.network.send(broker_id, ApiKey.INIT_PRODUCER_ID, body, now_ms, self._on_id)

    def _on_id(self, request: ClientRequest, now_ms: int) -> None:
        self._is_id_requested = False
        error = self.network.refusal(request, now_ms)
        if not error:
            response = request.response
            self.producer_id, self.producer_epoch = response.producer_id, response.producer_epoch
            self._backoff.failures = 0
            self._restart(now_ms)
        elif error.retriable:
            self._request_after_ms = self._backoff.after_failure(now_ms)
        else:
            self.fatal = error.name

    # --------------------------------------------------------------------------- batches

    def may_send(self, queue: PartitionQueue, batch: ProducerBatch) -> bool:
        """Whether the sequences allow sending the first waiting batch. Kafka:
        RecordAccumulator.shouldStopDrainBatchesForPartition."""
        if self.producer_id < 0 or self.fatal:
            return False
        if batch.base_sequence == NO_SEQUENCE:
            is_stale = (queue.producer_id, queue.producer_epoch) != (
                self.producer_id,
                self.producer_epoch,
            )
            # In a new epoch, the batch might be appended before the batches in flight.
            return not (queue.sequenced and is_stale) and queue.unresolved_sequence == NO_SEQUENCE
        # Retries go in order, one at a time.
        return not queue.sequenced or queue.sequenced[0] is batch

    def assign_sequence(self, queue: PartitionQueue, batch: ProducerBatch) -> None:
        """Give a batch its sequence, unless an earlier attempt had one; with a new sequence, a
        retry could be appended as a duplicate."""
        if batch.base_sequence != NO_SEQUENCE:
            return
        is_same = queue.producer_id == self.producer_id
        if not (is_same and queue.producer_epoch == self.producer_epoch) and not queue.sequenced:
            queue.restart_sequences(self.producer_id, self.producer_epoch)
        batch.set_producer_state(self.producer_id, self.producer_epoch, queue.next_sequence)
        queue.next_sequence = (queue.next_sequence + batch.records.count) % SEQUENCE_MODULUS
        queue.sequenced.append(batch)

    def on_acked(self, batch: ProducerBatch) -> None:
        """Record that a batch was acked."""
        queue = batch.queue
        if batch in queue.sequenced:
            queue.sequenced.remove(batch)
        last = batch.next_sequence - 1
        if last > queue.last_acked_sequence and batch.producer_epoch == queue.producer_epoch:
            queue.last_acked_sequence = last

    def on_failed(self, batch: ProducerBatch, error: ErrorCode, *, sequence_is_free: bool) -> None:
        """Record that a batch failed for good.  `sequence_is_free`: the broker did not append it,
        so the next sequence would leave a gap."""
        queue = batch.queue
        if batch in queue.sequenced:
            queue.sequenced.remove(batch)
        if error in _FATAL:
            self.fatal = error.name
        elif sequence_is_free and batch.base_sequence != NO_SEQUENCE:
            self.request_epoch_bump(queue)

    def may_retry(self, batch: ProducerBatch, error: ErrorCode, log_start_offset: int) -> bool:
        """Whether to retry; requests an epoch bump if nothing else helps. Kafka:
        TransactionManager.canRetry."""
        queue = batch.queue
        is_resolved = queue.unresolved_sequence == NO_SEQUENCE
        if error is ErrorCode.UNKNOWN_PRODUCER_ID:
            if log_start_offset != -1 and not batch.sequence_was_reset:
                self.request_epoch_bump(queue)
            return True
        if error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            if is_resolved and (batch.sequence_was_reset or not queue.is_next(batch.base_sequence)):
                return True  # the batch before it is still in flight
            if is_resolved or batch.base_sequence == queue.unresolved_sequence:
                self.request_epoch_bump(queue)
            return True
        return error.retriable


class TransactionalIdentity(Identity):
    """The identity of a transactional producer, with the id and epoch of `transactions`; nothing
    here bumps an epoch."""

    def __init__(
        self, settings: ProducerSettings, network: NetworkClient, transactions: Transactions
    ) -> None:
        super().__init__(settings, network)
        self._transactions = transactions

    def take_identity(self) -> None:
        """Use the id and epoch that the coordinator assigned; sequences restart in a new epoch."""
        self.producer_id = self._transactions.producer_id
        self.producer_epoch = self._transactions.producer_epoch

    @property
    def is_settled(self) -> bool:
        return not self._unresolved

    def settle(self, now_ms: int) -> None:
        for queue in tuple(self._unresolved):
            if not queue.sequenced:
                if not queue.is_next(queue.next_sequence):
                    self._transactions.sequences_are_lost(ErrorCode.REQUEST_TIMED_OUT)
                self._resolved(queue)

    def may_send(self, queue: PartitionQueue, batch: ProducerBatch) -> bool:
        transactions = self._transactions
        if queue.key not in transactions.partitions or transactions.is_fatal:
            return False
        return super().may_send(queue, batch)

    def on_failed(self, batch: ProducerBatch, error: ErrorCode, *, sequence_is_free: bool) -> None:
        queue = batch.queue
        if batch in queue.sequenced:
            queue.sequenced.remove(batch)
        self._transactions.batch_failed(error)
        if self._transactions.is_fatal or batch.base_sequence == NO_SEQUENCE:
            return
        if error is ErrorCode.UNKNOWN_PRODUCER_ID:
            queue.restart_sequences(self.producer_id, self.producer_epoch)
            self._resolved(queue)
        elif sequence_is_free and batch.producer_epoch == queue.producer_epoch:
            self._close_gap(queue, batch)

    def _close_gap(self, queue: PartitionQueue, failed: ProducerBatch) -> None:
        """Move up the sequences of the batches after a failed one, which is not in the log. Kafka:
        adjustSequencesDueToFailedBatch."""
        count = failed.records.count
        queue.next_sequence -= count
        for batch in queue.sequenced:
            if batch.base_sequence > failed.base_sequence:
                sequence = batch.base_sequence - count
                batch.set_producer_state(batch.producer_id, batch.producer_epoch, sequence)

    def may_retry(self, batch: ProducerBatch, error: ErrorCode, log_start_offset: int) -> bool:
        queue = batch.queue
        is_resolved = queue.unresolved_sequence == NO_SEQUENCE
        if error is ErrorCode.UNKNOWN_PRODUCER_ID:
            return log_start_offset == -1 or batch.sequence_was_reset
        if error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            return is_resolved and (
                batch.sequence_was_reset or not queue.is_next(batch.base_sequence)
            )
        return error.retriable
