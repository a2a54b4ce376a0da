"""A transactional producer's application: it begins, fills, commits and aborts transactions.

Owns: the records of each transaction, its entry in the ledger, the application's reaction to
errors.  Never: sends (sender.py, transactions.py). Kafka: the loop that the documentation of
KafkaProducer shows: commit, abort after an error that allows it, close after any other.
"""

from __future__ import annotations

from typing import Final

from kcluster.clients.ledger import ClientTransaction, Ledger, SentRecord, TransactionOutcome
from kcluster.clients.producer.sender import Sender
from kcluster.clients.producer.settings import ProducerPlan, TransactionPlan
from kcluster.clients.producer.transactions import ClientTransactionState, Transactions
from kcluster.clients.producer.workload import Application
from kcluster.protocol.errors import ErrorCode
from kcluster.timers import NEVER_MS

TRANSACTION_ABORTED: Final = "TRANSACTION_ABORTED"
"""The ledger's name for TransactionAbortedException: the record was not sent, since the application
aborted the transaction."""


class TransactionalApplication(Application):
    """Creates the records of a plan, in transactions.

    `transaction`: the current transaction, which has begun and not ended.  While
    commitTransaction() or abortTransaction() has not returned, no records are created; the
    application catches up later.
    """

    def __init__(
        self,
        name: str,
        ledger: Ledger,
        plan: ProducerPlan,
        sender: Sender,
        transactions: Transactions,
    ) -> None:
        super().__init__(name, ledger, plan, sender)
        assert plan.transactions is not None
        self.transaction: ClientTransaction | None = None
        self.is_stopping = False
        self.is_flushing = False
        """Whether flush() has not returned."""
        self.transactions = transactions
        self._ledger = ledger
        self._transaction_plan: TransactionPlan = plan.transactions
        self.transaction_count = 0
        self._filled = 0
        """The number of records in the current transaction."""
        self._give_up_ms = NEVER_MS
        """The time at which to give up a call that has not returned, if the application is to
        stop."""

    def stop(self, now_ms: int) -> None:
        """Create no more records; the open transaction is committed."""
        self.is_stopping = True
        self._give_up_ms = now_ms + self._sender.settings.max_block_ms
        self.due_ms = now_ms

    def follow(self, last: Application) -> None:
        super().follow(last)
        assert isinstance(last, TransactionalApplication)
        self.transaction_count = last.transaction_count

    def abandon(self, now_ms: int) -> None:
        """Die with the process."""
        super().stop(now_ms)
        self._close_transaction(self._outcome_without_answer(), "", now_ms)

    def run(self, now_ms: int) -> None:
        """Continue until a call blocks."""
        transactions = self.transactions
        while not self.is_over:
            state = transactions.state
            if state is ClientTransactionState.FATAL_ERROR:
                self._end(transactions.error, now_ms)
            elif transactions.is_busy:
                self.due_ms = self._give_up_ms
                if now_ms < self._give_up_ms:
                    return
                self._end("REQUEST_TIMED_OUT", now_ms)
            elif state is ClientTransactionState.UNINITIALIZED:
                if self.is_stopping:
                    self._end("", now_ms)
                elif now_ms < self._start_ms:
                    self.due_ms = self._start_ms
                    return
                else:
                    transactions.initialize()
            elif state is ClientTransactionState.ABORTABLE_ERROR:
                self._abort(transactions.error, now_ms)
            elif state is ClientTransactionState.READY:
                if not self._begin(now_ms):
                    return
            elif not self._fill(now_ms):
                return

    def _begin(self, now_ms: int) -> bool:
        """Begin the next transaction after a call has returned, if its first record is due; False
        if it is not due yet."""
        if self.transaction is not None:
            is_aborted = bool(self.transaction.error)
            outcome = TransactionOutcome.ABORTED if is_aborted else TransactionOutcome.COMMITTED
            self._close_transaction(outcome, "", now_ms)
        if self.is_stopping or self._is_exhausted():
            self._end("", now_ms)
            return True
        if self._next_ms() > now_ms:
            self.due_ms = self._next_ms()
            return False
        self._start_transaction(now_ms)
        return True

    def _start_transaction(self, now_ms: int) -> None:
        transactions = self.transactions
        transactions.begin()
        self.transaction_count += 1
        self._filled = 0
        self.transaction = ClientTransaction(
            producer=self._name,
            transactional_id=self._sender.settings.transactional_id,
            number=self.transaction_count,
            version=transactions.version,
            producer_id=transactions.producer_id,
            producer_epoch=transactions.producer_epoch,
            began_ms=now_ms,
        )
        self._ledger.transactions.append(self.transaction)

    def _fill(self, now_ms: int) -> bool:
        """Send the next record of the transaction, or end the transaction; False if the application
        must wait."""
        if self._record is None:
            is_full = self._filled >= self._transaction_plan.every
            if is_full or self.is_stopping or self._is_exhausted():
                return self._finish(now_ms)
            if self._next_ms() > now_ms:
                self.due_ms = self._next_ms()
                return False
            self._create_record(now_ms)
            self._filled += 1
        if not self._append(now_ms):
            if self.is_stopping and self._record is not None:
                self._fail(self._record[0], now_ms)
                return True
            return False
        return True

    def _finish(self, now_ms: int) -> bool:
        """Commit the transaction, or flush() and abort it if an abort is planned; False while
        flush() blocks."""
        if not self._transaction_plan.is_aborted(self.transaction_count):
            self.transactions.end(commit=True)
            return True
        self.is_flushing = self._sender.has_incomplete
        if self.is_flushing and now_ms < self._give_up_ms:
            self.due_ms = self._give_up_ms
            return False
        self.is_flushing = False
        self._abort("", now_ms)
        return True

    def _abort(self, error: str, now_ms: int) -> None:
        """Abort the transaction, because of an error or as planned."""
        assert self.transaction is not None
        self.transaction.error = error or TRANSACTION_ABORTED
        if self._record is not None:
            self._fail(self._record[0], now_ms)
        self.transactions.end(commit=False)
        self._sender.fail_undrained(error or TRANSACTION_ABORTED, now_ms)

    def _end(self, error: str, now_ms: int) -> None:
        """Close the producer."""
        self._close_transaction(self._outcome_without_answer(), error, now_ms)
        super().stop(now_ms)
        self._sender.fail_all(error, now_ms)

    def _outcome_without_answer(self) -> TransactionOutcome:
        is_sent = self.transactions.is_commit_sent
        return TransactionOutcome.UNKNOWN if is_sent else TransactionOutcome.ABORTED

    def _close_transaction(self, outcome: TransactionOutcome, error: str, now_ms: int) -> None:
        transaction, self.transaction = self.transaction, None
        if transaction is not None:
            offsets = transaction.offsets
            if outcome is TransactionOutcome.COMMITTED and offsets is not None:
                for partition, (offset, _) in offsets.offsets.items():
                    self._ledger.add_commit(offsets.group, partition, offset)
            transaction.outcome = outcome
            transaction.ended_ms = now_ms
            transaction.error = error or transaction.error

    # ----------------------------------------------------------------------------- records

    def _is_exhausted(self) -> bool:
        return self.next_number == self.plan.count or self._next_ms() >= self._stop_ms

    def _new_send(self, now_ms: int, topic: str, index: int, value: bytes) -> SentRecord:
        send = super()._new_send(now_ms, topic, index, value)
        send.transaction = self.transaction
        return send

    def _deny(self, send: SentRecord, now_ms: int) -> None:
        super()._deny(send, now_ms)
        self.transactions.batch_failed(ErrorCode.TOPIC_AUTHORIZATION_FAILED)

    def _before_append(self, topic: str, index: int) -> None:
        self.transactions.add_partition((topic, index))
