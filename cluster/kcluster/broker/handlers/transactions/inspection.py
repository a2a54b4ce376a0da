"""DescribeProducers 61 (v0), DescribeTransactions 65 (v0), ListTransactions 66 (v0-2).

Owns: the producers of a partition, from its log; the answers about transactions.  Never: changes a
producer or a transaction.  Kafka: ReplicaManager.activeProducerState,
TransactionCoordinator.handleDescribeTransactions, handleListTransactions; KIP-664, KIP-994,
KIP-1152.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kcluster.broker.broker import Broker
from kcluster.broker.coordinator.transactions.transaction import (
    Transaction,
    TransactionState,
    by_topic,
)
from kcluster.broker.handlers.metadata.metadata import unknown_topic_error
from kcluster.broker.registry import handles
from kcluster.contract import Request
from kcluster.partition.producers import ProducerState
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.patterns import InvalidPattern, compile_pattern

if TYPE_CHECKING:
    PartitionProducers = m.DescribeProducersResponse.PartitionResponse

STATE_NAMES: Final = tuple(state.label for state in TransactionState)

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
    elif replica.log.producer_table is not None:
        states = sorted(replica.log.producer_table.states.items())
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
    """The state of transactions, by transactional id.

    Behaviour:
    - INVALID_REQUEST for an empty id;
    - NOT_COORDINATOR and COORDINATOR_LOAD_IN_PROGRESS as for producers.
    Versions:
    - v0: KIP-664
    """
    return m.DescribeTransactionsResponse(
        transaction_states=[
            _described_transaction(broker, transactional_id, now_ms)
            for transactional_id in request.body.transactional_ids
        ]
    )


def _described_transaction(
    broker: Broker, transactional_id: str, now_ms: int
) -> m.DescribeTransactionsResponse.TransactionState:
    known: Transaction | ErrorCode = ErrorCode.INVALID_REQUEST
    if transactional_id:
        known = broker.transactions.transaction(transactional_id, now_ms)
    if isinstance(known, ErrorCode):
        return m.DescribeTransactionsResponse.TransactionState(
            error_code=known, transactional_id=transactional_id
        )
    return m.DescribeTransactionsResponse.TransactionState(
        transactional_id=transactional_id,
        transaction_state=known.state.label,
        transaction_timeout_ms=known.timeout_ms,
        transaction_start_time_ms=known.start_ms,
        producer_id=known.producer_id,
        producer_epoch=known.producer_epoch,
        topics=[
            m.DescribeTransactionsResponse.TopicData(topic=topic, partitions=indexes)
            for topic, indexes in by_topic(known.in_order).items()
        ],
    )


@handles(ApiKey.LIST_TRANSACTIONS, versions=(0, 2))
def list_transactions(broker: Broker, request: Request, now_ms: int) -> m.ListTransactionsResponse:
    """The transactions that this broker coordinates.

    Behaviour:
    - COORDINATOR_LOAD_IN_PROGRESS while any shard of this broker is loading;
    - unknown names of states are returned in a list of their own; if no name is known, no
      transaction matches;
    - the duration filter leaves ids without a transaction in the list, as Kafka's does;
    - INVALID_REGULAR_EXPRESSION for a pattern that RE2 does not accept.
    Versions:
    - v1: the duration filter (KIP-994)
    - v2: the pattern (KIP-1152)
    """
    body: m.ListTransactionsRequest = request.body
    known = broker.transactions.all_transactions()
    if isinstance(known, ErrorCode):
        return m.ListTransactionsResponse(error_code=known)
    pattern = None
    if body.transactional_id_pattern:
        compiled = compile_pattern(body.transactional_id_pattern)
        if isinstance(compiled, InvalidPattern):
            return m.ListTransactionsResponse(error_code=ErrorCode.INVALID_REGULAR_EXPRESSION)
        pattern = compiled
    states = set(body.state_filters)
    return m.ListTransactionsResponse(
        unknown_state_filters=[name for name in body.state_filters if name not in STATE_NAMES],
        transaction_states=[
            m.ListTransactionsResponse.TransactionState(
                transactional_id=one.transactional_id,
                producer_id=one.producer_id,
                transaction_state=one.state.label,
            )
            for one in known
            if (not states or one.state.label in states)
            and (not body.producer_id_filters or one.producer_id in body.producer_id_filters)
            and (body.duration_filter < 0 or now_ms - one.start_ms > body.duration_filter)
            and (pattern is None or pattern.matches(one.transactional_id))
        ],
    )
