"""The transaction coordinator of one broker: from a request to a decision, its record, its answer.

Owns: the shards of __transaction_state, producer ids for decisions that need one, the scans for
transactions that timed out and ids that expired.  Never: decides (transaction.py does), knows a
request's format (handlers/transactions do).
Kafka: TransactionCoordinator, TransactionStateManager.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from kcluster.broker.coordinator.interface import (
    CoordinatorBroker,
    CoordinatorResult,
    OnAnswer,
    RequestRefused,
    ignore_outcome,
)
from kcluster.broker.coordinator.shards import ShardedCoordinator
from kcluster.broker.coordinator.transactions import transaction as t
from kcluster.broker.coordinator.transactions.changes import (
    EndOverdue,
    Identified,
    TransactionChange,
)
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


def ignore_answer(_answer: Identified, _now_ms: int) -> None:
    """The answer to a request without a client."""


class TransactionCoordinator(ShardedCoordinator[TransactionShard]):
    """The transaction coordinator.  `shards`: the shards by partition of __transaction_state."""

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
        """A transaction in its committed state, or the error if this coordinator cannot answer
        about it."""
        shard = self.ready_shard(transactional_id, now_ms)
        if isinstance(shard, ErrorCode):
            return shard
        return shard.transactions.get(transactional_id, ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)

    def all_transactions(self) -> list[Transaction] | ErrorCode:
        """All transactions that this broker coordinates; or the error while some are still being
        loaded."""
        shards = self.shards.values()
        if any(one.check_loaded() is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS for one in shards):
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return [one for shard in shards for one in shard.transactions.values()]

    # ------------------------------------------------------------------------ requests

    def submit(
        self,
        change: TransactionChange,
        on_answer: OnAnswer[Identified],
        now_ms: int,
        new_producer_id: int | None = None,
    ) -> None:
        """Decide on a change and write the decision; answer with the producer's new identity.  A
        change that needs a producer id is decided again, on the state at that time, once the id is
        known."""
        shard = self.ready_shard(change.transactional_id, now_ms)
        if isinstance(shard, ErrorCode):
            on_answer(RequestRefused(shard), now_ms)
            return
        known = shard.transactions.get(change.transactional_id)
        if change.transactional_id in shard.pending:
            error = change.refuse_while_pending(known)
            on_answer(RequestRefused(error or ErrorCode.CONCURRENT_TRANSACTIONS), now_ms)
            return
        decision = change.decide(known, new_producer_id, shard.server_version, now_ms)
        if isinstance(decision, NeedsProducerId):
            assert new_producer_id is None, decision
            again = partial(self._submit_again, change, on_answer)
            self.broker.generate_producer_id(again, now_ms)
        elif isinstance(decision, ErrorCode):
            on_answer(RequestRefused(decision), now_ms)
        elif isinstance(decision, RetriedRequest):
            on_answer(decision.identity, now_ms)
        else:
            shard.write(self._result(shard, change, decision), on_answer, now_ms)

    def _submit_again(
        self,
        change: TransactionChange,
        on_answer: OnAnswer[Identified],
        producer_id: int | None,
        now_ms: int,
    ) -> None:
        if producer_id is None:
            on_answer(RequestRefused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS), now_ms)
        else:
            self.submit(change, on_answer, now_ms, producer_id)

    def _result(
        self, shard: TransactionShard, change: TransactionChange, new: Transaction
    ) -> CoordinatorResult[Identified]:
        def committed(_now_ms: int) -> None:
            if new.is_prepared:
                self._note_end(new, change.abort_reason)

        record = shard.record_of(change.transactional_id, new)
        answer = change.answer(new)
        return CoordinatorResult([record], answer, on_committed=committed, at_once=False)

    def verify(
        self,
        transactional_id: str,
        producer: ProducerIdentity,
        partitions: Iterable[TopicPartition],
        now_ms: int,
    ) -> dict[TopicPartition, ErrorCode]:
        """For each partition, NONE if it is in the producer's open transaction, or the error."""
        shard = self.ready_shard(transactional_id, now_ms)
        if isinstance(shard, ErrorCode):
            return dict.fromkeys(partitions, shard)
        # Not CONCURRENT_TRANSACTIONS while a change is pending: the append checks the epoch again.
        known = shard.transactions.get(transactional_id)
        return {partition: t.verify(known, producer, partition) for partition in partitions}

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
                    # If this fails, the next scan finds it again.
                    self.submit(EndOverdue(transaction.transactional_id), ignore_answer, now_ms)
        self._abort_later(now_ms)

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
                    tombstone = shard.record_of(transactional_id, None)
                    shard.append([tombstone], ignore_outcome, now_ms)
        self._expire_later(now_ms)
