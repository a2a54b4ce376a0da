"""One partition of __transaction_state that this broker leads, with its transactions.

Owns: the transactions of the partition, the pending transition of each, and starting its markers.
Never: decides a transition (transaction.py), sends a marker (markers.py).  Kafka:
TransactionStateManager, TransactionMetadata.pendingState.

A transaction changes when its record is committed.  Until then it has a pending transition, and
every other request about it is answered CONCURRENT_TRANSACTIONS.
"""

from __future__ import annotations

from collections.abc import Iterable

from kcluster.broker.coordinator.interface import CoordinatorBroker, Settled
from kcluster.broker.coordinator.log_shard import LogShard
from kcluster.broker.coordinator.transactions.markers import MarkerSender
from kcluster.broker.coordinator.transactions.transaction import Transaction, complete
from kcluster.broker.coordinator.transactions.transaction_log import (
    TransactionRecord,
    decode_transactions,
)
from kcluster.events.transactions import TransactionCompleted
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.features import TRANSACTION_VERSION
from kcluster.protocol.names import TRANSACTION_STATE_TOPIC
from kcluster.protocol.records.records import Batch


class TransactionShard(LogShard[TransactionRecord]):
    """The transactions of one partition.  `transactions`: the committed states by transactional id;
    `pending`: transitions that are being written."""

    topic = TRANSACTION_STATE_TOPIC

    def __init__(self, broker: CoordinatorBroker, partition: int) -> None:
        super().__init__(broker, partition)
        self.transactions: dict[str, Transaction] = {}
        self.pending: dict[str, TransactionRecord] = {}
        self._markers = MarkerSender(broker, partition, self._on_markers_written)

    @property
    def write_timeout_ms(self) -> int:
        return self.broker.config.request_timeout_ms

    @property
    def load_bytes(self) -> int:
        return self.broker.config.transaction_state_log_load_buffer_size

    @property
    def server_version(self) -> int:
        """The transaction version that is finalized in the cluster."""
        return self.broker.image.features.get(TRANSACTION_VERSION, 0)

    @property
    def coordinator_epoch(self) -> int:
        """The leader epoch of the partition; markers of an older one are refused."""
        replica = self.replica
        return -1 if replica is None else replica.leader_epoch

    # ----------------------------------------------------------------------- writing

    def record_of(self, transactional_id: str, new: Transaction | None) -> TransactionRecord:
        """The record of a transaction's next state; None: a tombstone."""
        return TransactionRecord(transactional_id, new, min(1, self.server_version))

    def append(
        self,
        records: Iterable[TransactionRecord],
        on_settled: Settled,
        now_ms: int,
        at_once: bool = False,
    ) -> bool:
        """Append a record, which is its transaction's pending transition until it takes effect.

        DIFFERS: also if the write has timed out.  Kafka's coordinator then forgets it, decides the
        next transition without it, and writes over what its log has."""
        (record,) = records
        assert record.transactional_id not in self.pending, record
        self.pending[record.transactional_id] = record
        is_in_log = super().append([record], on_settled, now_ms)
        if not is_in_log:
            self._no_longer_pending(record)
        return is_in_log

    def _no_longer_pending(self, record: TransactionRecord) -> None:
        if self.pending.get(record.transactional_id) is record:
            del self.pending[record.transactional_id]

    def apply(self, record: TransactionRecord, now_ms: int) -> None:
        self._no_longer_pending(record)  # the markers may be written before `start` returns
        self._put(record)
        transaction = record.transaction
        if transaction is not None and transaction.is_prepared:
            self._markers.start(transaction, self.coordinator_epoch, now_ms)
        else:
            self._markers.stop(record.transactional_id)

    def _put(self, record: TransactionRecord) -> None:
        if record.transaction is None:
            self.transactions.pop(record.transactional_id, None)
        else:
            self.transactions[record.transactional_id] = record.transaction

    def _on_markers_written(self, prepared: Transaction, now_ms: int) -> None:
        """Write that every partition has its marker; repeat this until it is written, and in effect
        though nobody asks: a write that timed out may be committed since."""
        self.catch_up(now_ms)
        transactional_id = prepared.transactional_id
        if not self.active or self.transactions.get(transactional_id) is not prepared:
            return
        if transactional_id in self.pending:
            self._markers.complete_later(prepared, now_ms)
            return
        record = self.record_of(transactional_id, complete(prepared, now_ms))

        def settled(error: ErrorCode, at_ms: int) -> None:
            if not self.active:
                return
            if error is not ErrorCode.NONE:
                self._markers.complete_later(prepared, at_ms)
                return
            self.broker.note(
                TransactionCompleted(
                    transactional_id=transactional_id,
                    producer_id=prepared.producer_id,
                    producer_epoch=prepared.producer_epoch,
                    committed=prepared.is_commit,
                    marked_partitions=len(prepared.partitions),
                )
            )

        self.append([record], settled, now_ms)

    # --------------------------------------------------------------------- lifecycle

    def replay(self, batch: Batch) -> None:
        for record in decode_transactions(batch):
            self._put(record)

    def resume(self, now_ms: int) -> None:
        """Send the markers of decided transactions again, once the decisions are known to be
        committed."""
        self.when_loaded(self._resume_markers, now_ms)

    def _resume_markers(self, now_ms: int) -> None:
        for transaction in list(self.transactions.values()):
            if transaction.is_prepared:
                self._markers.start(transaction, self.coordinator_epoch, now_ms)

    def forget(self, now_ms: int) -> None:
        self._markers.stop_all()
