"""The transaction coordinator of one broker: from a request to a decision, its record, its answer.

Owns: the shards of __transaction_state, producer ids for decisions that need one, the scans for
transactions that timed out and ids that expired.  Never: decides (transaction.py does), knows a
request's format (handlers/transactions do).
Kafka: TransactionCoordinator, TransactionStateManager.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kcluster.broker.coordinator.interface import CoordinatorBroker, Settled, ignore_outcome
from kcluster.broker.coordinator.shards import ShardedCoordinator
from kcluster.broker.coordinator.transactions import transaction as t
from kcluster.broker.coordinator.transactions.transaction import (
    NeedsProducerId,
    ProducerIdentity,
    RetriedRequest,
    TopicPartition,
    Transaction,
)
from kcluster.broker.coordinator.transactions.transaction_shard import TransactionShard
from kcluster.events.transactions import AbortReason, TransactionEnded
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.names import TRANSACTION_STATE_TOPIC

OnIdentity = Callable[[ErrorCode, ProducerIdentity, int], None]
"""(error, who the producer is from now on, now_ms)."""


def ignore_identity(_error: ErrorCode, _producer: ProducerIdentity, _now_ms: int) -> None:
    """Nobody waits for the outcome."""


NOBODY = ProducerIdentity(t.NO_PRODUCER_ID, t.NO_PRODUCER_EPOCH)


class TransactionCoordinator(ShardedCoordinator[TransactionShard]):
    """`shards` by partition of __transaction_state."""

    topic = TRANSACTION_STATE_TOPIC

    def __init__(self, broker: CoordinatorBroker) -> None:
        super().__init__(broker)
        self._scans = False

    @property
    def default_partitions(self) -> int:
        return self.broker.config.transaction_state_log_num_partitions

    def new_shard(self, partition: int) -> TransactionShard:
        return TransactionShard(self.broker, partition)

    def on_elected(self, partition: int, now_ms: int) -> None:
        super().on_elected(partition, now_ms)
        if not self._scans:
            self._scans = True
            self._abort_later(now_ms)
            self._expire_later(now_ms)

    def transaction(self, transactional_id: str, now_ms: int) -> Transaction | ErrorCode:
        """As committed; or why it is not known here."""
        shard = self.ready_shard(transactional_id, now_ms)
        if isinstance(shard, ErrorCode):
            return shard
        return shard.transactions.get(transactional_id, ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)

    # ------------------------------------------------------------------------ requests

    def init(
        self,
        transactional_id: str,
        timeout_ms: int,
        expected: ProducerIdentity | None,
        on_done: OnIdentity,
        now_ms: int,
    ) -> None:
        """InitProducerId: who the producer is; CONCURRENT_TRANSACTIONS while one is being ended."""

        def decide(
            shard: TransactionShard, new_producer_id: int | None, at_ms: int
        ) -> t.Decision | RetriedRequest:
            known = shard.transactions.get(transactional_id)
            return t.init(
                known,
                transactional_id,
                timeout_ms,
                expected,
                new_producer_id,
                shard.server_version,
                at_ms,
            )

        def on_written(new: Transaction) -> ErrorCode:
            if not new.is_prepared:
                return ErrorCode.NONE
            self._note_end(new, AbortReason.NEW_PRODUCER)
            return ErrorCode.CONCURRENT_TRANSACTIONS

        self._decide(transactional_id, decide, on_written, on_done, now_ms)

    def add_partitions(
        self,
        transactional_id: str,
        producer: ProducerIdentity,
        partitions: Iterable[TopicPartition],
        client_version: int,
        on_settled: Settled,
        now_ms: int,
    ) -> None:
        """AddPartitionsToTxn, AddOffsetsToTxn: NONE when the partitions are in the transaction."""
        shard = self.ready_shard(transactional_id, now_ms)
        if isinstance(shard, ErrorCode):
            on_settled(shard, now_ms)
            return
        if transactional_id in shard.pending:
            on_settled(ErrorCode.CONCURRENT_TRANSACTIONS, now_ms)
            return
        known = shard.transactions.get(transactional_id)
        decision = t.add_partitions(known, producer, partitions, client_version, now_ms)
        if isinstance(decision, ErrorCode):
            on_settled(decision, now_ms)
        else:
            shard.change(transactional_id, decision, on_settled, now_ms)

    def verify(
        self,
        transactional_id: str,
        producer: ProducerIdentity,
        partitions: Iterable[TopicPartition],
        now_ms: int,
    ) -> dict[TopicPartition, ErrorCode]:
        """For each partition NONE if it is in the producer's open transaction, or why not."""
        shard = self.ready_shard(transactional_id, now_ms)
        if isinstance(shard, ErrorCode):
            return dict.fromkeys(partitions, shard)
        # Not CONCURRENT_TRANSACTIONS while a change is pending: the append checks the epoch again.
        known = shard.transactions.get(transactional_id)
        return {partition: t.verify(known, producer, partition) for partition in partitions}

    def end(
        self,
        transactional_id: str,
        producer: ProducerIdentity,
        is_commit: bool,
        client_version: int,
        on_done: OnIdentity,
        now_ms: int,
    ) -> None:
        """EndTxn: answered when the decision is committed; the markers follow."""

        def decide(
            shard: TransactionShard, new_producer_id: int | None, at_ms: int
        ) -> t.Decision | RetriedRequest:
            known = shard.transactions.get(transactional_id)
            return t.end(known, producer, is_commit, client_version, new_producer_id, at_ms)

        def on_written(new: Transaction) -> ErrorCode:
            self._note_end(new, None if is_commit else AbortReason.PRODUCER)
            return ErrorCode.NONE

        # V1: a producer that is fenced hears of it even while a change is pending.
        checked_first = producer if client_version < t.FIRST_OF_V2 else None
        self._decide(
            transactional_id, decide, on_written, on_done, now_ms, checked_first=checked_first
        )

    def _decide(
        self,
        transactional_id: str,
        decide: Callable[[TransactionShard, int | None, int], t.Decision | RetriedRequest],
        on_written: Callable[[Transaction], ErrorCode],
        on_done: OnIdentity,
        now_ms: int,
        new_producer_id: int | None = None,
        checked_first: ProducerIdentity | None = None,
    ) -> None:
        """Decide about a transaction and write the decision.  A decision that needs a producer id
        is made again when there is one, from the state of then.  `on_written(new)`: the answer's
        error, once the decision is committed.  `checked_first`: the producer to check before the
        pending change."""
        shard = self.ready_shard(transactional_id, now_ms)
        if isinstance(shard, ErrorCode):
            on_done(shard, NOBODY, now_ms)
            return
        if transactional_id in shard.pending:
            error = ErrorCode.NONE
            if checked_first is not None:
                known = shard.transactions.get(transactional_id)
                error = t.refuse_producer(known, checked_first)
            on_done(error or ErrorCode.CONCURRENT_TRANSACTIONS, NOBODY, now_ms)
            return
        decision = decide(shard, new_producer_id, now_ms)
        if isinstance(decision, NeedsProducerId):
            assert new_producer_id is None, decision

            def generated(producer_id: int | None, at_ms: int) -> None:
                if producer_id is None:
                    on_done(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, NOBODY, at_ms)
                else:
                    self._decide(transactional_id, decide, on_written, on_done, at_ms, producer_id)

            self.broker.generate_producer_id(generated, now_ms)
        elif isinstance(decision, RetriedRequest):
            on_done(ErrorCode.NONE, decision.identity, now_ms)
        elif isinstance(decision, ErrorCode):
            on_done(decision, NOBODY, now_ms)
        else:
            new = decision

            def settled(error: ErrorCode, at_ms: int) -> None:
                if error is ErrorCode.NONE:
                    error = on_written(new)
                on_done(error, new.next_identity if error is ErrorCode.NONE else NOBODY, at_ms)

            shard.change(transactional_id, new, settled, now_ms)

    def _note_end(self, prepared: Transaction, abort_reason: AbortReason | None) -> None:
        self.broker.note(
            TransactionEnded(
                transactional_id=prepared.transactional_id,
                producer_id=prepared.producer_id,
                producer_epoch=prepared.producer_epoch,
                committed=prepared.is_commit,
                abort_reason=abort_reason,
            )
        )

    # --------------------------------------------------------------------------- scans

    def _abort_later(self, now_ms: int) -> None:
        config = self.broker.config
        at_ms = now_ms + config.transaction_abort_timed_out_transaction_cleanup_interval_ms
        self.broker.timers.set(("transactions", "timeouts"), at_ms, self._abort_timed_out)

    def _abort_timed_out(self, now_ms: int) -> None:
        for shard in self.shards.values():
            if not shard.transactions or shard.check_loaded() is not ErrorCode.NONE:
                continue
            for transaction in list(shard.transactions.values()):
                if t.is_timed_out(transaction, now_ms):
                    self._abort(transaction.transactional_id, now_ms)
        self._abort_later(now_ms)

    def _abort(self, transactional_id: str, now_ms: int) -> None:
        """Abort a transaction that timed out.  If that fails, the next scan finds it again."""

        def decide(shard: TransactionShard, new_producer_id: int | None, at_ms: int) -> t.Decision:
            known = shard.transactions.get(transactional_id)
            if known is None or not t.is_timed_out(known, at_ms):
                return ErrorCode.INVALID_TXN_STATE
            return t.fence(known, shard.server_version, new_producer_id, at_ms)

        def on_written(new: Transaction) -> ErrorCode:
            self._note_end(new, AbortReason.TIMEOUT)
            return ErrorCode.NONE

        self._decide(transactional_id, decide, on_written, ignore_identity, now_ms)

    def _expire_later(self, now_ms: int) -> None:
        config = self.broker.config
        at_ms = now_ms + config.transaction_remove_expired_transaction_cleanup_interval_ms
        self.broker.timers.set(("transactions", "expiry"), at_ms, self._expire)

    def _expire(self, now_ms: int) -> None:
        expiration_ms = self.broker.config.transactional_id_expiration_ms
        for shard in self.shards.values():
            if shard.check_loaded() is not ErrorCode.NONE:
                continue
            for transactional_id, transaction in list(shard.transactions.items()):
                if transactional_id not in shard.pending and t.is_expired(
                    transaction, expiration_ms, now_ms
                ):
                    shard.change(transactional_id, None, ignore_outcome, now_ms)
        self._expire_later(now_ms)
