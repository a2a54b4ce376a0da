"""The project's own transactional producer, which behaves as Kafka's Java producer does.

Owns: the parts of a transactional producer, and their order within a turn.  Never: does the parts'
work (transactional_workload.py, transactions.py, sender.py, transactional_identity.py).
Kafka: KafkaProducer with transactional.id and the loop of Sender, 4.3.1.

No batches are sent while a request to a coordinator is in flight, because Kafka's Sender has one
thread.
"""

from __future__ import annotations

from typing import Final

from kcluster.clients.ledger import Ledger
from kcluster.clients.producer.producer import Producer
from kcluster.clients.producer.sender import MAX_VERSION
from kcluster.clients.producer.settings import TRANSACTIONS_V2, ProducerPlan, ProducerSettings
from kcluster.clients.producer.transactional_identity import TransactionalIdentity
from kcluster.clients.producer.transactional_workload import TransactionalApplication
from kcluster.clients.producer.transactions import Transactions
from kcluster.timers import NEVER_MS

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

    def abort(self, now_ms: int) -> None:
        """Stop at once: records without an outcome are failed or unknown.  Kafka: close(0)."""
        self.transactional.abandon(now_ms)
        self.sender.fail_all("", now_ms)
        self._turn(now_ms)

    def _turn(self, now_ms: int) -> None:
        if self.is_done:
            return
        network, application, sender = self.network, self.transactional, self.sender
        transactions = self.transactions
        if now_ms >= network.due_ms:
            network.poll(now_ms)
        self._identity.take_identity()
        self._identity.settle(now_ms)
        if now_ms >= sender.expiry_ms:
            sender.expire(now_ms)
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
            self.is_done = True
            network.close()
            self.deadline_ms = None
            return
        due_ms = min(network.due_ms, application.due_ms, sender.expiry_ms, transactions.retry_ms)
        if sender.waiting and not transactions.is_request_in_flight:
            due_ms = min(due_ms, sender.batch_due_ms)
        self.deadline_ms = due_ms if due_ms < NEVER_MS else None
