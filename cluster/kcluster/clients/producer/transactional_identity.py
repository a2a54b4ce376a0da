"""A transactional producer's sequences, as far as they differ from an idempotent producer's.

Owns: the permission to send and to retry a batch of a transaction, the sequences after a failed
batch. Never: sends a request to a coordinator (transactions.py). Kafka: TransactionManager,
TxnPartitionMap of a producer with transactional.id.
"""

from __future__ import annotations

from kcluster.clients.connections import NetworkClient
from kcluster.clients.producer.batches import NO_SEQUENCE, PartitionQueue, ProducerBatch
from kcluster.clients.producer.identity import Identity
from kcluster.clients.producer.settings import ProducerSettings
from kcluster.clients.producer.transactions import Transactions
from kcluster.protocol.errors import ErrorCode


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
                    self._transactions.batch_failed(ErrorCode.REQUEST_TIMED_OUT)
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
