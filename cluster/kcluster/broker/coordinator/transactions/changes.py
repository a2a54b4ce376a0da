"""Changes of a transaction: a new producer, more partitions, the transaction's end, its timeout.

Owns: these changes as values, each with its decision, its reason and its answer.  Never: makes the
decision (transaction.py does), writes (coordinator.py does).  Kafka:
TransactionCoordinator.handleInitProducerId, handleAddPartitionsToTransaction, endTransaction,
abortTimedOutTransactions.
"""

from __future__ import annotations

from abc import abstractmethod

from kcluster.broker.coordinator.interface import RequestRefused
from kcluster.broker.coordinator.transactions import transaction as t
from kcluster.broker.coordinator.transactions.transaction import (
    ProducerIdentity,
    TopicPartition,
    Transaction,
)
from kcluster.events.transactions import AbortReason
from kcluster.protocol.errors import ErrorCode
from kcluster.structs import Frozen

Identified = ProducerIdentity | RequestRefused
"""Called with the producer's new identity, or with the error."""


def error_in(answer: Identified) -> ErrorCode:
    """The error of a refusal; NONE for an identity."""
    return answer.error if isinstance(answer, RequestRefused) else ErrorCode.NONE


class TransactionChange(Frozen, frozen=True):
    """One change, from its request to its answer."""

    transactional_id: str

    @abstractmethod
    def decide(
        self, known: Transaction | None, new_producer_id: int | None, version: int, now_ms: int
    ) -> t.Decision | t.RetriedRequest:
        """The next state, from the `known` one.  `version`: the transaction version that is
        finalized in the cluster."""

    def refuse_while_pending(self, known: Transaction | None) -> ErrorCode:
        """The refusal that applies even while another change is pending; None if there is none."""
        return ErrorCode.NONE

    @property
    def abort_reason(self) -> AbortReason | None:
        """The reason for an abort, if the change aborts a transaction."""
        return None

    def answer(self, new: Transaction) -> Identified:
        """The answer when `new` is committed."""
        return new.next_identity


class StartProducer(TransactionChange, frozen=True):
    """An InitProducerId, as a change.  `expected`: the producer's previous identity (KIP-360)."""

    timeout_ms: int
    expected: ProducerIdentity | None

    def decide(
        self, known: Transaction | None, new_producer_id: int | None, version: int, now_ms: int
    ) -> t.Decision:
        return t.init(
            known,
            self.transactional_id,
            self.timeout_ms,
            self.expected,
            new_producer_id,
            version,
            now_ms,
        )

    @property
    def abort_reason(self) -> AbortReason:
        return AbortReason.NEW_PRODUCER

    def answer(self, new: Transaction) -> Identified:
        """The answer; the producer must ask again once the transaction that was open has ended."""
        if new.is_prepared:
            return RequestRefused(ErrorCode.CONCURRENT_TRANSACTIONS)
        return super().answer(new)


class AddToTransaction(TransactionChange, frozen=True):
    """An AddPartitionsToTxn or AddOffsetsToTxn, as a change."""

    producer: ProducerIdentity
    partitions: frozenset[TopicPartition]
    client_version: int

    def decide(
        self, known: Transaction | None, new_producer_id: int | None, version: int, now_ms: int
    ) -> t.Decision | t.RetriedRequest:
        return t.add_partitions(known, self.producer, self.partitions, self.client_version, now_ms)


class EndTransaction(TransactionChange, frozen=True):
    """An EndTxn, as a change: it is answered when the decision is committed; the markers follow."""

    producer: ProducerIdentity
    is_commit: bool
    client_version: int

    def decide(
        self, known: Transaction | None, new_producer_id: int | None, version: int, now_ms: int
    ) -> t.Decision | t.RetriedRequest:
        return t.end(
            known, self.producer, self.is_commit, self.client_version, new_producer_id, now_ms
        )

    def refuse_while_pending(self, known: Transaction | None) -> ErrorCode:
        """The refusal of a fenced producer of V1."""
        if self.client_version >= t.FIRST_OF_V2:
            return ErrorCode.NONE
        return t.refuse_producer(known, self.producer)

    @property
    def abort_reason(self) -> AbortReason | None:
        return None if self.is_commit else AbortReason.PRODUCER


class EndOverdue(TransactionChange, frozen=True):
    """The abort, by the coordinator, of a transaction that has been open for too long."""

    def decide(
        self, known: Transaction | None, new_producer_id: int | None, version: int, now_ms: int
    ) -> t.Decision:
        if known is None or not t.is_timed_out(known, now_ms):
            return ErrorCode.INVALID_TXN_STATE
        return t.fence(known, version, new_producer_id, now_ms)

    @property
    def abort_reason(self) -> AbortReason:
        return AbortReason.TIMEOUT
