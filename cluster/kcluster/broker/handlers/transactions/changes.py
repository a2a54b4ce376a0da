"""Changes of a transaction: AddPartitionsToTxn 24 (v0-5), AddOffsetsToTxn 25 (v0-4), EndTxn 26
(v0-5).

Owns: checks that need no transaction, and the shape of the answers.  Never: decides about a
transaction (coordinator/transactions/transaction.py does).
Kafka: KafkaApis.handleAddPartitionsToTxnRequest, handleAddOffsetsToTxnRequest, handleEndTxnRequest.
"""

from __future__ import annotations

from typing import Final

from kcluster.broker.broker import Broker
from kcluster.broker.coordinator.interface import RequestRefused
from kcluster.broker.coordinator.transactions.changes import (
    AddToTransaction,
    EndTransaction,
    Identified,
    error_in,
)
from kcluster.broker.coordinator.transactions.transaction import (
    FIRST_OF_V2,
    ProducerIdentity,
    TopicPartition,
)
from kcluster.broker.gather import OnPart, gather
from kcluster.broker.registry import PARKED, Parked, handles
from kcluster.contract import Request
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.names import GROUP_METADATA_TOPIC, INTERNAL_TOPICS

FENCED_SINCE: Final = 2
"""The first version with PRODUCER_FENCED; older ones have INVALID_PRODUCER_EPOCH in its place."""
BATCHED_SINCE: Final = 4
END_V2_SINCE: Final = 5

Added = m.AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction
AddedResult = m.AddPartitionsToTxnResponse.AddPartitionsToTxnResult
AddedTopic = m.AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult
AddedPartition = m.AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult


def _known_to(version: int, error: ErrorCode) -> ErrorCode:
    is_old = version < FENCED_SINCE and error is ErrorCode.PRODUCER_FENCED
    return ErrorCode.INVALID_PRODUCER_EPOCH if is_old else error


# ------------------------------------------------------------------------- AddPartitionsToTxn


@handles(ApiKey.ADD_PARTITIONS_TO_TXN, versions=(0, 5))
def add_partitions_to_txn(broker: Broker, request: Request, now_ms: int) -> Parked:
    """Add partitions to a transaction, or check that they are in it (verify_only).

    Behaviour:
    - all partitions of a transaction, or none: if one does not exist, the others get
    OPERATION_NOT_ATTEMPTED. Versions:
    - v0-3: from clients, one transaction
    - v4: from brokers, many transactions, verify_only (KIP-890)
    - v5: from brokers, for clients of transactions V2
    """
    body: m.AddPartitionsToTxnRequest = request.body
    version = request.api_version
    if version >= BATCHED_SINCE:
        transactions = body.transactions
    else:
        transactions = [
            m.AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction(
                transactional_id=body.v3_and_below_transactional_id,
                producer_id=body.v3_and_below_producer_id,
                producer_epoch=body.v3_and_below_producer_epoch,
                topics=body.v3_and_below_topics,
            )
        ]

    def add(index: int, on_added: OnPart[AddedResult]) -> None:
        _add(broker, transactions[index], version, on_added, now_ms)

    def added(results: dict[int, AddedResult], _at_ms: int) -> None:
        if version >= BATCHED_SINCE:
            answer = m.AddPartitionsToTxnResponse(results_by_transaction=list(results.values()))
        else:
            topics = results[0].topic_results
            answer = m.AddPartitionsToTxnResponse(results_by_topic_v3_and_below=topics)
        broker.reply(request, answer)

    gather(range(len(transactions)), add, added, now_ms)
    return PARKED


def _add(
    broker: Broker, wanted: Added, version: int, on_added: OnPart[AddedResult], now_ms: int
) -> None:
    partitions = [(topic.name, index) for topic in wanted.topics for index in topic.partitions]
    transactional_id = wanted.transactional_id
    refused = _refused(broker, partitions, version)
    if refused:
        errors = dict.fromkeys(partitions, ErrorCode.OPERATION_NOT_ATTEMPTED)
        on_added(_by_partition(transactional_id, errors | refused), now_ms)
        return
    producer = ProducerIdentity(wanted.producer_id, wanted.producer_epoch)
    if wanted.verify_only:
        errors = dict.fromkeys(partitions, ErrorCode.INVALID_REQUEST)
        if transactional_id:
            errors = broker.transactions.verify(transactional_id, producer, partitions, now_ms)
        on_added(_by_partition(transactional_id, errors), now_ms)
        return

    def settled(outcome: Identified, at_ms: int) -> None:
        on_added(_as_asked(wanted, _known_to(version, error_in(outcome))), at_ms)

    if not transactional_id:
        settled(RequestRefused(ErrorCode.INVALID_REQUEST), now_ms)
        return
    client_version = FIRST_OF_V2 if version >= BATCHED_SINCE else 0
    change = AddToTransaction(transactional_id, producer, frozenset(partitions), client_version)
    broker.transactions.submit(change, settled, now_ms)


def _refused(
    broker: Broker, partitions: list[TopicPartition], version: int
) -> dict[TopicPartition, ErrorCode]:
    """The partitions that cannot be in a transaction; clients may not add partitions of internal
    topics."""
    refused = {}
    for partition in partitions:
        if version < BATCHED_SINCE and partition[0] in INTERNAL_TOPICS:
            refused[partition] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif broker.image.partition(*partition) is None:
            refused[partition] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return refused


def _as_asked(wanted: Added, error: ErrorCode) -> AddedResult:
    """One error for all partitions, in the order of the request, with repetitions. Kafka:
    AddPartitionsToTxnRequest.errorResponseForTransaction."""
    topics = [
        AddedTopic(
            name=topic.name,
            results_by_partition=[AddedPartition(index, error) for index in topic.partitions],
        )
        for topic in wanted.topics
    ]
    return AddedResult(transactional_id=wanted.transactional_id, topic_results=topics)


def _by_partition(transactional_id: str, errors: dict[TopicPartition, ErrorCode]) -> AddedResult:
    """An error for each partition.  Kafka: AddPartitionsToTxnResponse.resultForTransaction."""
    topics: dict[str, list[AddedPartition]] = {}
    for (topic, index), error in errors.items():
        topics.setdefault(topic, []).append(AddedPartition(index, error))
    return AddedResult(
        transactional_id=transactional_id,
        topic_results=[
            AddedTopic(name=name, results_by_partition=results) for name, results in topics.items()
        ],
    )


# ---------------------------------------------------------------------------- AddOffsetsToTxn


@handles(ApiKey.ADD_OFFSETS_TO_TXN, versions=(0, 4))
def add_offsets_to_txn(broker: Broker, request: Request, now_ms: int) -> Parked:
    """Add a group's partition of __consumer_offsets to a transaction."""
    body: m.AddOffsetsToTxnRequest = request.body

    def settled(outcome: Identified, _at_ms: int) -> None:
        error = _known_to(request.api_version, error_in(outcome))
        broker.reply(request, m.AddOffsetsToTxnResponse(error_code=error))

    if not body.transactional_id:
        settled(RequestRefused(ErrorCode.INVALID_REQUEST), now_ms)
        return PARKED
    partition = (GROUP_METADATA_TOPIC, broker.coordinator.partition_for(body.group_id))
    producer = ProducerIdentity(body.producer_id, body.producer_epoch)
    change = AddToTransaction(body.transactional_id, producer, frozenset([partition]), 0)
    broker.transactions.submit(change, settled, now_ms)
    return PARKED


# ------------------------------------------------------------------------------------- EndTxn


@handles(ApiKey.END_TXN, versions=(0, 5))
def end_txn(broker: Broker, request: Request, now_ms: int) -> Parked:
    """Commit or abort a transaction.

    Behaviour:
    - answered when the decision is committed, before the markers are written.
    Versions:
    - v2: PRODUCER_FENCED (KIP-588)
    - v5: transactions V2: the answer has the producer's next id and epoch (KIP-890)
    """
    body: m.EndTxnRequest = request.body
    if not body.transactional_id:
        broker.reply(request, _not_ended(ErrorCode.INVALID_REQUEST))
        return PARKED

    def ended(outcome: Identified, _at_ms: int) -> None:
        if isinstance(outcome, RequestRefused):
            answer = _not_ended(_known_to(request.api_version, outcome.error))
        else:
            answer = m.EndTxnResponse(
                producer_id=outcome.producer_id, producer_epoch=outcome.producer_epoch
            )
        broker.reply(request, answer)

    producer = ProducerIdentity(body.producer_id, body.producer_epoch)
    version = FIRST_OF_V2 if request.api_version >= END_V2_SINCE else 0
    change = EndTransaction(body.transactional_id, producer, body.committed, version)
    broker.transactions.submit(change, ended, now_ms)
    return PARKED


def _not_ended(error: ErrorCode) -> m.EndTxnResponse:
    return m.EndTxnResponse(error_code=error, producer_id=-1, producer_epoch=-1)
