"""The guards of producer ids and transactions.

Owns: these guards.  Never: guards Produce (data.py).
Kafka: KafkaApis.handleInitProducerIdRequest, handleAddPartitionsToTxnRequest and the others;
KIP-98, KIP-679, KIP-939.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kcluster.broker.authorization.guards import (
    Guard,
    Result,
    after,
    call_of,
    on_group,
    on_topics,
    on_transactional_id,
)
from kcluster.broker.broker import Broker
from kcluster.broker.handlers.transactions.init_producer_id import failed
from kcluster.contract import Request
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.names import is_internal, name_fault
from kcluster.security.acls import AclOperation, AclResource
from kcluster.security.refusals import with_text
from kcluster.security.rights import Admitted, Rights

FIRST_OF_BROKERS: Final = 4
"""From this version on, brokers send AddPartitionsToTxn."""
_DENIED: Final = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def _init_producer_id(_broker: Broker, request: Request, rights: Rights) -> Result:
    """WRITE on the transactional id.  Without one, IDEMPOTENT_WRITE on the cluster, or WRITE on any
    topic."""
    transactional_id = request.body.transactional_id
    if transactional_id is not None:
        if rights.may(AclOperation.WRITE, AclResource.TRANSACTIONAL_ID, transactional_id):
            return None
        return failed(_DENIED)
    if rights.may_on_any(AclOperation.WRITE, AclResource.TOPIC):
        return None
    if rights.may_on_cluster(AclOperation.IDEMPOTENT_WRITE):
        return None
    return failed(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)


def _add_partitions(broker: Broker, request: Request, rights: Rights) -> Result:
    """WRITE on the transactional id and on each topic; nothing is added if a topic is denied."""
    body: m.AddPartitionsToTxnRequest = request.body
    answer = m.AddPartitionsToTxnResponse
    if request.api_version >= FIRST_OF_BROKERS:
        if rights.may_on_cluster(AclOperation.CLUSTER_ACTION):
            return None
        return answer(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    name = body.v3_and_below_transactional_id
    if not rights.may(AclOperation.WRITE, AclResource.TRANSACTIONAL_ID, name):
        return call_of(broker, request).refused(_DENIED)
    topics = body.v3_and_below_topics
    denied = {topic.name for topic in topics if is_internal(topic.name)}
    others = [topic.name for topic in topics if topic.name not in denied]
    denied |= rights.denied(AclOperation.WRITE, AclResource.TOPIC, others)
    if not denied:
        return None

    def error(topic: str, partition: int) -> ErrorCode:
        if topic in denied:
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED
        if broker.image.partition(topic, partition) is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return ErrorCode.OPERATION_NOT_ATTEMPTED

    result = answer.AddPartitionsToTxnTopicResult
    row = answer.AddPartitionsToTxnPartitionResult
    return answer(
        results_by_topic_v3_and_below=[
            result(topic.name, [row(index, error(topic.name, index)) for index in topic.partitions])
            for topic in topics
        ]
    )


def _write_markers(broker: Broker, request: Request, rights: Rights) -> Result:
    """ALTER or CLUSTER_ACTION on the cluster."""
    if rights.may_on_cluster(AclOperation.ALTER, silently=True):
        return None
    if rights.may_on_cluster(AclOperation.CLUSTER_ACTION):
        return None
    return call_of(broker, request).refused(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)


def _describe_transactions(_broker: Broker, request: Request, rights: Rights) -> Result:
    """DESCRIBE on each transactional id; the answer has only topics that the client may
    DESCRIBE."""
    body: m.DescribeTransactionsRequest = request.body
    ids = body.transactional_ids
    denied = rights.denied(AclOperation.DESCRIBE, AclResource.TRANSACTIONAL_ID, ids)
    row = m.DescribeTransactionsResponse.TransactionState

    def complete(answer: m.DescribeTransactionsResponse) -> m.DescribeTransactionsResponse:
        described = iter(answer.transaction_states)
        answer.transaction_states = [
            row(error_code=_DENIED, transactional_id=name) if name in denied else next(described)
            for name in ids
        ]
        for state in answer.transaction_states:
            names = [topic.topic for topic in state.topics]
            hidden = rights.denied(AclOperation.DESCRIBE, AclResource.TOPIC, names, silently=True)
            state.topics = [topic for topic in state.topics if topic.topic not in hidden]
        return answer

    allowed = [name for name in ids if name not in denied]
    return Admitted(m.DescribeTransactionsRequest(allowed), complete)


def _describe_producers(_broker: Broker, request: Request, rights: Rights) -> Result:
    """READ on each topic that has a valid name."""
    topics = request.body.topics
    names = [topic.name for topic in topics if name_fault(topic.name) is None]
    denied = rights.denied(AclOperation.READ, AclResource.TOPIC, names)
    if not denied:
        return None
    answer = m.DescribeProducersResponse
    row = answer.PartitionResponse
    error = ErrorCode.TOPIC_AUTHORIZATION_FAILED

    def complete(described: m.DescribeProducersResponse) -> m.DescribeProducersResponse:
        rows = iter(described.topics)
        described.topics = [
            answer.TopicResponse(
                topic.name,
                [with_text(row(index, error_code=error)) for index in topic.partition_indexes],
            )
            if topic.name in denied
            else next(rows)
            for topic in topics
        ]
        return described

    rest = [topic for topic in topics if topic.name not in denied]
    return Admitted(m.DescribeProducersRequest(topics=rest), complete)


def _list_transactions(_broker: Broker, request: Request, rights: Rights) -> Result:
    """The transactions whose ids the client may DESCRIBE."""

    def complete(answer: m.ListTransactionsResponse) -> m.ListTransactionsResponse:
        names = [state.transactional_id for state in answer.transaction_states]
        hidden = rights.denied(
            AclOperation.DESCRIBE, AclResource.TRANSACTIONAL_ID, names, silently=True
        )
        answer.transaction_states = [
            state for state in answer.transaction_states if state.transactional_id not in hidden
        ]
        return answer

    return Admitted(request.body, complete)


_write_id: Final = on_transactional_id(AclOperation.WRITE)
_write_id_and_read_group: Final = after(_write_id, on_group(AclOperation.READ))

GUARDS: Final[Mapping[int, Guard]] = {
    ApiKey.ADD_OFFSETS_TO_TXN: _write_id_and_read_group,
    ApiKey.ADD_PARTITIONS_TO_TXN: _add_partitions,
    ApiKey.DESCRIBE_PRODUCERS: _describe_producers,
    ApiKey.DESCRIBE_TRANSACTIONS: _describe_transactions,
    ApiKey.END_TXN: _write_id,
    ApiKey.INIT_PRODUCER_ID: _init_producer_id,
    ApiKey.LIST_TRANSACTIONS: _list_transactions,
    ApiKey.TXN_OFFSET_COMMIT: after(_write_id_and_read_group, on_topics(AclOperation.READ)),
    ApiKey.WRITE_TXN_MARKERS: _write_markers,
}
