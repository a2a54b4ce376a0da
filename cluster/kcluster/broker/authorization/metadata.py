"""The guards of Metadata, DescribeTopicPartitions and DescribeCluster.

Owns: these guards.  Never: discloses whether a topic exists that a client may not DESCRIBE.
Kafka: KafkaApis.handleTopicMetadataRequest, DescribeTopicPartitionsRequestHandler,
AuthHelper.computeDescribeClusterResponse; KIP-430, KIP-966.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from kcluster.broker.authorization.guards import Guard, Result
from kcluster.broker.broker import Broker
from kcluster.broker.handlers.metadata.metadata import NO_TOPIC_ID, OPERATIONS_NOT_ASKED
from kcluster.contract import Request
from kcluster.metadata.image import MetadataImage
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.names import is_internal
from kcluster.security.acls import CLUSTER_NAME, AclOperation, AclResource
from kcluster.security.rights import Admitted, Rights

_DENIED: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED
_Row = m.MetadataResponse.MetadataResponseTopic


def _metadata(broker: Broker, request: Request, rights: Rights) -> Result:
    """DESCRIBE on each topic, and CREATE for topics that would be created."""
    body: m.MetadataRequest = request.body
    wanted = body.topics
    if wanted is None or (request.api_version == 0 and not wanted):
        return _all_topics(broker.image, body, rights)
    ids = dict.fromkeys(topic.topic_id for topic in wanted if topic.topic_id != NO_TOPIC_ID)
    if ids:
        refused, denied_ids = _denied_ids(broker.image, ids, rights)
        rest = [topic for topic in wanted if topic.topic_id not in denied_ids]
    else:
        names = dict.fromkeys(topic.name for topic in wanted if topic.name is not None)
        if any(topic.name is None for topic in wanted):
            return None  # malformed
        refused, denied = _denied_names(broker, body, names, rights)
        rest = [topic for topic in wanted if topic.name not in denied]

    def complete(answer: m.MetadataResponse) -> m.MetadataResponse:
        if not rest:
            answer.topics = []  # in version 0, no topics means all
        _show_operations(answer, rights)
        answer.topics += refused
        return answer

    return Admitted(replace(body, topics=rest), complete)


def _all_topics(image: MetadataImage, body: m.MetadataRequest, rights: Rights) -> Result:
    hidden = rights.denied(AclOperation.DESCRIBE, AclResource.TOPIC, image.topics, silently=True)

    def complete(answer: m.MetadataResponse) -> m.MetadataResponse:
        answer.topics = [topic for topic in answer.topics if topic.name not in hidden]
        _show_operations(answer, rights)
        return answer

    return Admitted(body, complete)


def _denied_ids(
    image: MetadataImage, ids: Mapping[bytes, None], rights: Rights
) -> tuple[list[_Row], set[bytes]]:
    names = {id_: image.topic_names[id_] for id_ in ids if id_ in image.topic_names}
    hidden = rights.denied(AclOperation.DESCRIBE, AclResource.TOPIC, names.values())
    denied = {id_ for id_, name in names.items() if name in hidden}
    rows = [_Row(error_code=_DENIED, name=None, topic_id=id_) for id_ in names if id_ in denied]
    return rows, denied


def _denied_names(
    broker: Broker, body: m.MetadataRequest, names: Mapping[str, None], rights: Rights
) -> tuple[list[_Row], set[str]]:
    hidden = rights.denied(AclOperation.DESCRIBE, AclResource.TOPIC, names)
    uncreatable: frozenset[str] = frozenset()
    missing = [name for name in names if name not in hidden and name not in broker.image.topics]
    if (
        missing
        and body.allow_auto_topic_creation
        and broker.config.auto_create_topics_enable
        and not rights.may_on_cluster(AclOperation.CREATE, silently=True)
    ):
        uncreatable = rights.denied(AclOperation.CREATE, AclResource.TOPIC, missing)
    rows = [
        _Row(error_code=_DENIED, name=name, is_internal=is_internal(name))
        for name in missing
        if name in uncreatable
    ]
    rows += [_Row(error_code=_DENIED, name=name) for name in names if name in hidden]
    return rows, {*hidden, *uncreatable}


def _show_operations(answer: m.MetadataResponse, rights: Rights) -> None:
    """Replace all operations by those that the client may do."""
    for topic in answer.topics:
        if topic.topic_authorized_operations != OPERATIONS_NOT_ASKED:
            name = topic.name or ""
            topic.topic_authorized_operations = rights.operations(AclResource.TOPIC, name)
    if answer.cluster_authorized_operations != OPERATIONS_NOT_ASKED:
        answer.cluster_authorized_operations = _cluster_operations(rights)


def _cluster_operations(rights: Rights) -> int:
    """The operations on the cluster; none for a client that may not DESCRIBE it."""
    if not rights.may_on_cluster(AclOperation.DESCRIBE):
        return 0
    return rights.operations(AclResource.CLUSTER, CLUSTER_NAME)


def _describe_cluster(_broker: Broker, request: Request, rights: Rights) -> Result:
    """DESCRIBE on the cluster for its operations; the brokers are no secret."""

    def complete(answer: m.DescribeClusterResponse) -> m.DescribeClusterResponse:
        if answer.cluster_authorized_operations != OPERATIONS_NOT_ASKED:
            answer.cluster_authorized_operations = _cluster_operations(rights)
        return answer

    return Admitted(request.body, complete)


def _describe_topic_partitions(broker: Broker, request: Request, rights: Rights) -> Result:
    """DESCRIBE on each topic.  Denied ones do not count for the size of a page."""
    body: m.DescribeTopicPartitionsRequest = request.body
    cursor, named = body.cursor, body.topics
    if any(not topic.name for topic in named) or (
        cursor is not None
        and (
            cursor.partition_index < 0
            or (named and cursor.topic_name not in {topic.name for topic in named})
        )
    ):
        return None  # refused for these
    start = "" if cursor is None else cursor.topic_name
    wanted = [topic.name for topic in named] or broker.image.topics
    names = [name for name in dict.fromkeys(wanted) if name >= start]
    denied = rights.denied(AclOperation.DESCRIBE, AclResource.TOPIC, names, silently=not named)
    allowed = [name for name in names if name not in denied]
    row = m.DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic
    refused = [row(error_code=_DENIED, name=name) for name in names if name in denied and named]

    def complete(answer: m.DescribeTopicPartitionsResponse) -> m.DescribeTopicPartitionsResponse:
        for topic in answer.topics:
            name = topic.name or ""
            topic.topic_authorized_operations = rights.operations(AclResource.TOPIC, name)
        answer.topics += refused
        return answer

    if not allowed:
        return m.DescribeTopicPartitionsResponse(topics=refused)
    rest = replace(
        body,
        topics=[m.DescribeTopicPartitionsRequest.TopicRequest(name) for name in allowed],
        cursor=cursor if start in allowed else None,
    )
    return Admitted(rest, complete)


GUARDS: Final[Mapping[int, Guard]] = {
    ApiKey.DESCRIBE_CLUSTER: _describe_cluster,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: _describe_topic_partitions,
    ApiKey.METADATA: _metadata,
}
