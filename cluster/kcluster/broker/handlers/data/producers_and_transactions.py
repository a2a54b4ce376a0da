"""DescribeProducers 61 (v0), DescribeTransactions 65 (v0), ListTransactions 66 (v0-2).

Owns: the producers of a partition, from its log; the answers about transactions of a broker that
coordinates none.  Never: coordinates one.
Kafka: ReplicaManager.activeProducerState, TransactionCoordinator.handleDescribeTransactions,
handleListTransactions; KIP-664, KIP-994, KIP-1152.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from kcluster.broker.broker import Broker
from kcluster.broker.handlers.metadata.metadata import unknown_topic_error
from kcluster.broker.registry import handles
from kcluster.contract import Request
from kcluster.metadata.placement import coordinator_partition
from kcluster.partition.producers import ProducerState
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.names import TRANSACTION_STATE_TOPIC

if TYPE_CHECKING:
    PartitionProducers = m.DescribeProducersResponse.PartitionResponse

TRANSACTION_STATES: Final = (
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "Dead",
    "PrepareEpochFence",
)
"""Kafka: TransactionState."""

NO_SEQUENCE: Final = -1
NO_OFFSET: Final = -1


# --------------------------------------------------------------------------- DescribeProducers


@handles(ApiKey.DESCRIBE_PRODUCERS, versions=(0, 0))
def describe_producers(
    broker: Broker, request: Request, now_ms: int
) -> m.DescribeProducersResponse:
    """The idempotent producers that a partition remembers, by id.

    Behaviour:
    - any replica answers, leader or not.
    Versions:
    - v0: KIP-664
    """
    body: m.DescribeProducersRequest = request.body
    return m.DescribeProducersResponse(
        topics=[
            m.DescribeProducersResponse.TopicResponse(
                name=topic.name,
                partitions=[
                    _producers_of(broker, topic.name, index) for index in topic.partition_indexes
                ],
            )
            for topic in body.topics
        ]
    )


def _producers_of(broker: Broker, topic: str, partition: int) -> PartitionProducers:
    answer = m.DescribeProducersResponse.PartitionResponse(
        partition_index=partition, error_message=None
    )
    if topic not in broker.image.topics:
        error = unknown_topic_error(topic)
        answer.error_code, answer.error_message = error, error.text
        return answer
    replica = broker.replicas.find(topic, partition)
    if isinstance(replica, ErrorCode):
        answer.error_code = replica
    elif replica.log.has_producers:
        states = sorted(replica.log.producers.states.items())
        answer.active_producers = [_described(*state) for state in states]
    return answer


def _described(producer_id: int, state: ProducerState) -> m.DescribeProducersResponse.ProducerState:
    start = state.transaction_first_offset
    return m.DescribeProducersResponse.ProducerState(
        producer_id=producer_id,
        producer_epoch=state.producer_epoch,
        last_sequence=state.batches[-1].last_sequence if state.batches else NO_SEQUENCE,
        last_timestamp=state.last_timestamp,
        coordinator_epoch=state.coordinator_epoch,
        current_txn_start_offset=NO_OFFSET if start is None else start,
    )


# -------------------------------------------------------------------------------- transactions


@handles(ApiKey.DESCRIBE_TRANSACTIONS, versions=(0, 0))
def describe_transactions(
    broker: Broker, request: Request, now_ms: int
) -> m.DescribeTransactionsResponse:
    """NOT_COORDINATOR for each id; TRANSACTIONAL_ID_NOT_FOUND from the leader of its partition.

    Behaviour:
    - INVALID_REQUEST for an empty id.
    Versions:
    - v0: KIP-664
    """
    return m.DescribeTransactionsResponse(
        transaction_states=[
            m.DescribeTransactionsResponse.TransactionState(
                error_code=_no_transaction(broker, transactional_id),
                transactional_id=transactional_id,
            )
            for transactional_id in request.body.transactional_ids
        ]
    )


def _no_transaction(broker: Broker, transactional_id: str) -> ErrorCode:
    if not transactional_id:
        return ErrorCode.INVALID_REQUEST
    topic = broker.image.topics.get(TRANSACTION_STATE_TOPIC)
    if topic is None:
        return ErrorCode.NOT_COORDINATOR
    partition = coordinator_partition(transactional_id, len(topic.partitions))
    if topic.partitions[partition].leader != broker.node_id:
        return ErrorCode.NOT_COORDINATOR
    return ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


@handles(ApiKey.LIST_TRANSACTIONS, versions=(0, 2))
def list_transactions(broker: Broker, request: Request, now_ms: int) -> m.ListTransactionsResponse:
    """No transaction: none is coordinated here.

    Behaviour:
    - unknown names of states are returned as such;
    - INVALID_REGULAR_EXPRESSION for a pattern that is no regular expression.
    Versions:
    - v1: the duration filter (KIP-994)
    - v2: the pattern (KIP-1152)
    """
    body: m.ListTransactionsRequest = request.body
    if body.transactional_id_pattern:
        try:
            re.compile(body.transactional_id_pattern)
        except re.error:
            return m.ListTransactionsResponse(error_code=ErrorCode.INVALID_REGULAR_EXPRESSION)
    return m.ListTransactionsResponse(
        unknown_state_filters=[
            state for state in body.state_filters if state not in TRANSACTION_STATES
        ]
    )
