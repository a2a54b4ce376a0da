"""The project's own producers, which behave as Kafka's Java producer does, without transactions and
with them.

Owns: the parts of a producer, and their order within a turn.  Never: does the parts' work
(workload.py, transactional_workload.py, transactions.py, sender.py, identity.py,
clients/connections.py).
Kafka: KafkaProducer, also with transactional.id, and the loop of Sender, 4.3.1.

A transactional producer sends no batches while a request to a coordinator is in flight, because
Kafka's Sender has one thread.
"""

from __future__ import annotations

from typing import Final, Self

from kcluster.clients.base import ClientBase
from kcluster.clients.ledger import Ledger, Partition
from kcluster.clients.producer.identity import Identity, TransactionalIdentity
from kcluster.clients.producer.sender import MAX_VERSION, Sender
from kcluster.clients.producer.settings import TRANSACTIONS_V2, ProducerPlan, ProducerSettings
from kcluster.clients.producer.transactional_workload import TransactionalApplication
from kcluster.clients.producer.transactions import Transactions
from kcluster.clients.producer.workload import Application
from kcluster.timers import NEVER_MS


class Producer(ClientBase):
    """A producer and its application.

    `name` is the first half of each value.  `is_done`: the application has ended, and every record
    has an outcome.
    """

    def __init__(
        self,
        name: str,
        ledger: Ledger,
        plan: ProducerPlan,
        settings: ProducerSettings | None = None,
    ) -> None:
        settings = ProducerSettings() if settings is None else settings
        assert not settings.problems(), settings.problems()
        super().__init__(name, ledger, settings)
        self.plan = plan
        self.settings = settings
        self._ledger = ledger
        self.identity = Identity(settings, self.network) if settings.is_idempotent else None
        self.sender = Sender(settings, self.metadata, self.network, self.identity)
        self.application = Application(name, ledger, plan, self.sender)

    # -------------------------------------------------------------------------- control

    def stop(self, now_ms: int) -> None:
        """Create no more records, but send the existing ones.  Kafka: close()."""
        self.application.stop(now_ms)
        self._turn(now_ms)

    def abort(self, now_ms: int) -> None:
        """Stop at once: records without an outcome are failed or unknown.  Kafka: close(0)."""
        self.application.stop(now_ms)
        self.sender.fail_all("", now_ms)
        self._close()

    def again(self, age_ms: int, last: Self) -> Self:
        """The client of a process that starts again, `age_ms` after the first start.  `last`: the
        client that ran before.  The numbers of its records go on."""
        made = type(self)(self.name, self._ledger, self.plan.later(age_ms), self.settings)
        made.application.follow(last.application)
        return made

    @property
    def acked(self) -> int:
        """The number of acked records."""
        return self.sender.acked

    @property
    def failed(self) -> int:
        """The number of records that certainly failed."""
        return self.sender.failed

    @property
    def unknown(self) -> int:
        """The number of records that may be in the log or not."""
        return self.sender.unknown

    @property
    def pending(self) -> int:
        """The number of records without an outcome."""
        sender = self.sender
        return self.application.record_count - sender.acked - sender.failed - sender.unknown

    def unanswered(self) -> list[tuple[Partition, int, int]]:
        """The records without an outcome, as of `Sender.unanswered`, and the record whose send()
        blocks; its partition is NO_PARTITION if none is chosen yet."""
        found = self.sender.unanswered()
        blocked = self.application.blocked
        if blocked is not None:
            found.append((blocked.partition, 1, blocked.sent_ms))
        return found

    # ---------------------------------------------------------------------------- a turn

    def _start_application(self, now_ms: int) -> None:
        self.application.start(now_ms)

    def _login_failed(self, error: str, now_ms: int) -> None:
        # A send() that waits for metadata throws it, and without an id nothing can be sent: the
        # application ends.  Batches are retried until delivery.timeout.ms, as after any lost
        # connection (Sender.runOnce, Metadata.fatalError).
        is_without_id = self.identity is not None and self.identity.producer_id < 0
        if self.application.is_waiting_for_metadata or is_without_id:
            self.application.end(error, now_ms)
            self.sender.fail_all(error, now_ms)

    def _turn(self, now_ms: int) -> None:
        if self.is_done:
            return
        network, application, sender = self.network, self.application, self.sender
        if now_ms >= network.due_ms:
            network.poll(now_ms)
        if now_ms >= application.due_ms or application.is_blocked:
            application.run(now_ms)
        identity = self.identity
        if identity is not None and not identity.is_settled:
            identity.settle(now_ms)
            if identity.fatal:
                sender.fail_all(identity.fatal, now_ms)
        if now_ms >= sender.expiry_ms:
            sender.expire(now_ms)
        if sender.waiting:
            sender.is_flushing = application.is_over or application.is_out_of_memory
            sender.send_all(now_ms)
        if application.is_over and not self.pending:
            self._close()
            return
        due_ms = network.due_ms
        if application.due_ms < due_ms:
            due_ms = application.due_ms
        if sender.waiting and sender.batch_due_ms < due_ms:
            due_ms = sender.batch_due_ms
        if sender.expiry_ms < due_ms:
            due_ms = sender.expiry_ms
        self.deadline_ms = due_ms if due_ms < NEVER_MS else None


LAST_PRODUCE_V1: Final = 11
"""The last version of Produce that does not add its partitions to the transaction."""


class TransactionalProducer(Producer):
    """A transactional producer and its application."""

    def __init__(
        self, name: str, ledger: Ledger, plan: ProducerPlan, settings: ProducerSettings
    ) -> None:
        assert plan.transactions is not None
        assert settings.transactional_id, name
        super().__init__(name, ledger, plan, settings)
        transactions = Transactions(settings, self.network, plan.transactions.max_version)
        identity = TransactionalIdentity(settings, self.network, transactions)
        self.transactions = transactions
        self.identity = self.sender.identity = self._identity = identity
        self.sender.transactional_id = settings.transactional_id
        self.transactional = self._new_application(name, ledger, plan, transactions)
        self.application = self.transactional

    def _new_application(
        self, name: str, ledger: Ledger, plan: ProducerPlan, transactions: Transactions
    ) -> TransactionalApplication:
        return TransactionalApplication(name, ledger, plan, self.sender, transactions)

    def _login_failed(self, error: str, now_ms: int) -> None:
        # A request to a coordinator that waits is failed (TransactionManager.authenticationFailed).
        if self.transactions.has_waiting_requests or self.application.is_waiting_for_metadata:
            self.transactions.fail(error)

    def abort(self, now_ms: int) -> None:
        """Stop at once: records without an outcome are failed or unknown.  Kafka: close(0)."""
        self.transactional.abandon(now_ms)
        self.sender.fail_all("", now_ms)
        self._close()

    def _turn(self, now_ms: int) -> None:
        if self.is_done:
            return
        network, application, sender = self.network, self.transactional, self.sender
        transactions = self.transactions
        if now_ms >= network.due_ms:
            network.poll(now_ms)
        self._identity.take_identity()
        if now_ms >= sender.expiry_ms:
            sender.expire(now_ms)
        self._identity.settle(now_ms)  # before EndTxn is sent, as Sender.runOnce does
        application.run(now_ms)
        while transactions.run(now_ms, has_incomplete_batches=sender.has_incomplete):
            application.run(now_ms)
        if sender.waiting and not transactions.is_request_in_flight:
            sender.is_flushing = (
                transactions.is_busy
                or application.is_flushing
                or application.is_over
                or application.is_out_of_memory
            )
            is_v2 = transactions.version >= TRANSACTIONS_V2
            sender.max_version = MAX_VERSION if is_v2 else LAST_PRODUCE_V1
            sender.send_all(now_ms)
        if application.is_over and not self.pending:
            self._close()
            return
        due_ms = min(network.due_ms, application.due_ms, sender.expiry_ms, transactions.retry_ms)
        if sender.waiting and not transactions.is_request_in_flight:
            due_ms = min(due_ms, sender.batch_due_ms)
        self.deadline_ms = due_ms if due_ms < NEVER_MS else None
