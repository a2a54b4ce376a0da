"""A transactional Produce whose partitions are being verified or added to the transaction.

Owns: the batches to verify or add, and the meaning of the coordinator's answer for each.  Never:
appends (produce.py does), asks (handlers/transactions/verification.py does).  Kafka:
ReplicaManager.handleProduceAppend, UnifiedLog.maybeStartTransactionVerification; KIP-890.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct as Layout
from typing import Final, final

from kcluster.broker.broker import Broker
from kcluster.broker.coordinator.transactions.transaction import ProducerIdentity, TopicPartition
from kcluster.broker.handlers.transactions.verification import (
    RETRIED_BY_PRODUCERS,
    PartitionsQuestion,
)
from kcluster.contract import Request
from kcluster.partition.producers import Verification
from kcluster.partition.replica import Replica
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.records.batches import HEADER_BYTES, TRANSACTIONAL_BIT

FIRST_OF_V2: Final = 12
"""From this version on a Produce adds its partitions to the transaction."""
ABORTABLE_SINCE: Final = 11
_ATTRIBUTES_LOW_BYTE: Final = 22
_PRODUCER: Final = Layout(">qhi")
"""Producer id, epoch, base sequence."""
_PRODUCER_AT: Final = 43


@final
class VerifiedPartitions:
    """The partitions of one transactional Produce.

    `errors`: the reasons why partitions must not be appended to; `verified`: the guard of each
    partition for which this is the first batch of the transaction.  A partition in neither is
    already in the transaction, or gets no transactional batch.  `has_many_producers`: no batch of
    the request may be appended.
    """

    __slots__ = ("errors", "has_many_producers", "is_checked", "producer_id", "verified")

    def __init__(self, is_checked: bool) -> None:
        self.errors: dict[TopicPartition, ErrorCode] = {}
        self.verified: dict[TopicPartition, Verification] = {}
        self.producer_id = -1
        self.has_many_producers = False
        self.is_checked = is_checked
        """False with transaction.partition.verification.enable=false: no batch is checked."""

    def error(self, partition: TopicPartition) -> ErrorCode | None:
        return self.errors.get(partition)

    def is_verified(self, replica: Replica) -> bool:
        """Whether a first batch may be appended: no marker has come since its verification."""
        if not self.is_checked:
            return True
        guard = self.verified.get((replica.topic, replica.partition))
        return guard is not None and replica.log.producers.is_verified(self.producer_id, guard)


def verify(
    broker: Broker,
    request: Request,
    find: Callable[[m.ProduceRequest.TopicProduceData, int], Replica | ErrorCode],
    proceed: Callable[[VerifiedPartitions, int], None],
    now_ms: int,
) -> None:
    """Call `proceed` when every partition is known.  `find(topic, index)`: the replica of a
    partition."""
    body, version = request.body, request.api_version
    is_v2 = version >= FIRST_OF_V2
    outcome = VerifiedPartitions(is_v2 or broker.config.transaction_partition_verification_enable)
    producers: dict[ProducerIdentity, None] = {}
    for topic in body.topic_data:
        for data in topic.partition_data:
            replica = find(topic, data.index)
            records = data.records
            if (
                isinstance(replica, Replica)
                and replica.is_leader
                and records is not None
                and len(records) >= HEADER_BYTES
                and records[_ATTRIBUTES_LOW_BYTE] & TRANSACTIONAL_BIT
            ):
                producer_id, epoch, sequence = _PRODUCER.unpack_from(records, _PRODUCER_AT)
                if producer_id < 0:
                    continue  # not in a transaction: it is appended as an ordinary batch
                producers[ProducerIdentity(producer_id, epoch)] = None
                if outcome.is_checked:
                    guard = replica.log.producers.verification(producer_id, epoch, sequence, is_v2)
                    if guard is not None:
                        outcome.verified[replica.topic, replica.partition] = guard
    outcome.has_many_producers = len(producers) > 1
    if outcome.has_many_producers or not outcome.verified:
        proceed(outcome, now_ms)
        return
    (producer,) = producers
    outcome.producer_id = producer.producer_id

    def verified(errors: dict[TopicPartition, ErrorCode], at_ms: int) -> None:
        for partition, error in errors.items():
            if error in RETRIED_BY_PRODUCERS or (
                error is ErrorCode.CONCURRENT_TRANSACTIONS and not is_v2
            ):
                error = ErrorCode.NOT_ENOUGH_REPLICAS
            if error is not ErrorCode.NONE:
                outcome.errors[partition] = error
        proceed(outcome, at_ms)

    PartitionsQuestion(
        broker,
        body.transactional_id,
        producer,
        list(outcome.verified),
        is_v2,
        version >= ABORTABLE_SINCE,
        verified,
    ).ask(now_ms)
