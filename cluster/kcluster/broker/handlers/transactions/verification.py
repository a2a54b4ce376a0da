"""The verification of a transaction's partitions: a leader's question to the coordinator before it
appends.

Owns: the question, and the meaning of the answer for each partition.  Never: asks again, appends,
or decides about a transaction (coordinator/transactions does).  Kafka: AddPartitionsToTxnManager,
ReplicaManager.maybeSendPartitionsToTransactionCoordinator; KIP-890.

The first batch of a transaction in a partition is verified (V1: the client has added the partition)
or added (V2: the leader adds it).  Until the batch is appended a guard holds: a marker that comes
in between makes the answer void.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from kcluster.broker.broker import Broker
from kcluster.broker.coordinator.transactions.transaction import (
    ProducerIdentity,
    TopicPartition,
    by_topic,
)
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode, error_of

OnVerified = Callable[[dict[TopicPartition, ErrorCode], int], None]
"""Called with (error of each partition, now_ms)."""


@final
class PartitionsQuestion:
    """A request to one coordinator about the partitions of a transaction.  `on_verified` is called
    once.

    `is_v2`: add the partitions.  `knows_abortable`: the client knows TRANSACTION_ABORTABLE.
    """

    def __init__(
        self,
        broker: Broker,
        transactional_id: str,
        producer: ProducerIdentity,
        partitions: list[TopicPartition],
        is_v2: bool,
        knows_abortable: bool,
        on_verified: OnVerified,
    ) -> None:
        self._broker = broker
        self._transactional_id = transactional_id
        self._producer = producer
        self._partitions = partitions
        self._is_v2 = is_v2
        self._knows_abortable = knows_abortable
        self._on_verified = on_verified

    def ask(self, now_ms: int) -> None:
        """Send the question; the answer may come before this returns."""
        broker = self._broker
        coordinators = broker.transactions
        registration = broker.image.partition(
            coordinators.topic, coordinators.partition_for(self._transactional_id)
        )
        leader = None if registration is None else broker.image.brokers.get(registration.leader)
        if leader is None or leader.fenced:
            self._done(dict.fromkeys(self._partitions, ErrorCode.COORDINATOR_NOT_AVAILABLE), now_ms)
            return
        transaction = m.AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction(
            transactional_id=self._transactional_id,
            producer_id=self._producer.producer_id,
            producer_epoch=self._producer.producer_epoch,
            verify_only=not self._is_v2,
            topics=[
                m.AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=name, partitions=ids)
                for name, ids in by_topic(self._partitions).items()
            ],
        )
        broker.ask_broker(
            leader.broker_id,
            m.AddPartitionsToTxnRequest(transactions=[transaction]),
            self._answered,
            broker.config.request_timeout_ms,
            now_ms,
        )

    def _answered(self, body: m.AddPartitionsToTxnResponse | None, now_ms: int) -> None:
        if body is None:
            self._done(dict.fromkeys(self._partitions, ErrorCode.NETWORK_EXCEPTION), now_ms)
            return
        errors = {
            (topic.name, result.partition_index): error_of(result.partition_error_code)
            for transaction in body.results_by_transaction
            for topic in transaction.topic_results
            for result in topic.results_by_partition
        }
        self._done({one: self._seen_by_client(error) for one, error in errors.items()}, now_ms)

    def _seen_by_client(self, error: ErrorCode) -> ErrorCode:
        if error is ErrorCode.PRODUCER_FENCED:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if error is ErrorCode.TRANSACTION_ABORTABLE and not self._knows_abortable:
            return ErrorCode.INVALID_TXN_STATE
        return error

    def _done(self, errors: dict[TopicPartition, ErrorCode], now_ms: int) -> None:
        self._on_verified(errors, now_ms)


RETRIED_BY_PRODUCERS: Final = (
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)
"""Errors for which a Produce is answered with NOT_ENOUGH_REPLICAS, which all clients retry."""
