"""The guards of Produce, ListOffsets, OffsetForLeaderEpoch and DeleteRecords.

Owns: these guards.  Never: guards Fetch, whose sessions keep denied topics (data/fetch.py).
Kafka: KafkaApis.handleProduceRequest and the following.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kcluster.broker.authorization.guards import Guard, Result, call_of, on_topics
from kcluster.broker.broker import Broker
from kcluster.broker.handlers.data.produce import ATTRIBUTES_LOW_BYTE
from kcluster.broker.registry import NO_RESPONSE
from kcluster.contract import CloseConnection, Request
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.messages import Message
from kcluster.protocol.records.batches import TRANSACTIONAL_BIT
from kcluster.security.acls import AclOperation, AclResource
from kcluster.security.rights import Admitted, Rights


def _produce(broker: Broker, request: Request, rights: Rights) -> Result:
    """WRITE on the transactional id of transactional records, which must have one, and on each
    topic."""
    body: m.ProduceRequest = request.body
    call = call_of(broker, request)
    if _has_transactional_records(body) and (
        body.transactional_id is None
        or not rights.may(AclOperation.WRITE, AclResource.TRANSACTIONAL_ID, body.transactional_id)
    ):
        result: Message | Admitted | None = call.refused(
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        )
    else:
        result = call.refused_topics(
            rights.denied(AclOperation.WRITE, AclResource.TOPIC, call.topics)
        )
    if body.acks != 0 or result is None:
        return result

    def close(_answer: object) -> None:
        reason = "Produce with acks=0 was denied"
        broker.emit(CloseConnection(request.connection_id, reason))

    if isinstance(result, Admitted):
        return Admitted(result.body, close)
    close(result)
    return NO_RESPONSE


def _has_transactional_records(body: m.ProduceRequest) -> bool:
    return any(
        data.records is not None
        and len(data.records) > ATTRIBUTES_LOW_BYTE
        and data.records[ATTRIBUTES_LOW_BYTE] & TRANSACTIONAL_BIT
        for topic in body.topic_data
        for data in topic.partition_data
    )


def _offset_for_leader_epoch(broker: Broker, request: Request, rights: Rights) -> Result:
    """CLUSTER_ACTION, or DESCRIBE on each topic."""
    if rights.may_on_cluster(AclOperation.CLUSTER_ACTION, silently=True):
        return None
    call = call_of(broker, request)
    denied = rights.denied(AclOperation.DESCRIBE, AclResource.TOPIC, call.topics)
    return call.refused_topics(denied, _without_epochs)


def _without_epochs(answer: m.OffsetForLeaderEpochResponse) -> m.OffsetForLeaderEpochResponse:
    for topic in answer.topics:
        for row in topic.partitions:
            row.leader_epoch = -1
    return answer


GUARDS: Final[Mapping[int, Guard]] = {
    ApiKey.DELETE_RECORDS: on_topics(AclOperation.DELETE),
    ApiKey.LIST_OFFSETS: on_topics(AclOperation.DESCRIBE),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: _offset_for_leader_epoch,
    ApiKey.PRODUCE: _produce,
}
