"""Metadata (API 3, v0-13): topics, their partitions' leaders and replicas, and the brokers.

Owns: the answer, from this broker's own image, and asking the controller to create missing topics.
Never: looks at replicas here, or at another node's image; the answer may be stale, as Kafka's.
Kafka: KafkaApis.handleTopicMetadataRequest, KRaftMetadataCache, AutoTopicCreationManager; KIP-4,
KIP-112, KIP-320, KIP-516.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from kcluster.broker.auto_topics import auto_created_topic
from kcluster.broker.broker import Broker
from kcluster.broker.registry import handles
from kcluster.broker.versions import zookeeper_controller
from kcluster.config.kafka.definitions import BrokerConfig
from kcluster.contract import Request
from kcluster.metadata.image import MetadataImage, TopicImage
from kcluster.metadata.records import PartitionRegistration
from kcluster.principals import DEFAULT_LISTENER, BrokerEndpoint
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.names import is_internal

NO_CONTROLLER: Final = -1
NO_TOPIC_ID: Final = bytes(16)
OPERATIONS_NOT_ASKED: Final = -(1 << 31)
LISTENER_NOT_FOUND_SINCE: Final = 6

ALL_TOPIC_OPERATIONS: Final = sum(1 << operation for operation in (3, 4, 5, 6, 7, 8, 10, 11))
"""AclOperation bits: read, write, create, delete, alter, describe, and both for configs."""
ALL_CLUSTER_OPERATIONS: Final = sum(1 << operation for operation in (5, 7, 8, 9, 10, 11, 12))
"""Create, alter, describe, cluster action, both for configs, idempotent write."""

_TOPIC_NAME: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")


@handles(ApiKey.METADATA, versions=(0, 13))
def metadata(broker: Broker, request: Request, now_ms: int) -> m.MetadataResponse:
    """Describe topics, by name or id, and brokers.

    Behaviour:
    - without topics (null; in v0 the empty list) all topics;
    - otherwise each topic once: unknown ids first, then known topics, then unknown names; if an id
      is given, the name is ignored;
    - a topic that may be created automatically is unknown until the controller has created it;
    - the controller id is a broker's: KRaft hides its controllers from clients. Versions:
    - v0: leaves out replicas that are down, with REPLICA_NOT_AVAILABLE
    - v1: null for all topics
    - v4: allow_auto_topic_creation (KIP-204)
    - v5: offline replicas (KIP-112)
    - v6: LISTENER_NOT_FOUND for leaders without the client's listener
    - v7: leader epochs (KIP-320)
    - v8-10: cluster operations (KIP-430)
    - v10: topic ids in answers, v12 in requests (KIP-516)
    - v13: an error for the whole request (KIP-1102) Not done: authorization; REBOOTSTRAP_REQUIRED.
    """
    response = build_metadata(
        broker.image,
        request.body,
        request.api_version,
        broker.cluster_id,
        request.identity.listener,
    )
    if not broker.release.is_kraft:
        response.controller_id = zookeeper_controller(broker.image)
    missing = topics_to_create(response, request.body, broker.config)
    if missing:
        if not broker.release.is_kraft:
            _say_being_created(response, missing)
        create_topics(broker, missing, now_ms)
    return response


# ------------------------------------------------------------------------------ the answer


def build_metadata(
    image: MetadataImage,
    request: m.MetadataRequest,
    version: int,
    cluster_id: str,
    listener: str = DEFAULT_LISTENER,
) -> m.MetadataResponse:
    """The answer to `request` from `image`, with the addresses for clients of this listener."""
    requested = request.topics
    if requested is not None:
        error = _malformed(requested, version)
        if error is not ErrorCode.NONE:
            return _whole_request_failed(requested, error)
    unknown_ids, known, unknown_names = _resolve(image, requested, version)
    dead = tuple(sorted(id_ for id_, broker in image.brokers.items() if broker.fenced))
    addresses = {
        broker_id: address
        for broker_id, broker in sorted(image.brokers.items())
        if (address := broker.endpoint(listener)) is not None
    }
    describe = _partitions_v0 if version == 0 else _partitions
    unheard = (
        ErrorCode.LISTENER_NOT_FOUND
        if version >= LISTENER_NOT_FOUND_SINCE
        else ErrorCode.LEADER_NOT_AVAILABLE
    )
    topics = [
        m.MetadataResponse.MetadataResponseTopic(
            name=topic.name,
            topic_id=topic.topic_id,
            is_internal=is_internal(topic.name),
            partitions=describe(image, topic, dead, addresses, unheard),
        )
        for topic in known
    ]
    topics += [
        m.MetadataResponse.MetadataResponseTopic(
            error_code=unknown_topic_error(name), name=name, is_internal=is_internal(name)
        )
        for name in unknown_names
    ]
    if version >= 8 and request.include_topic_authorized_operations:
        for topic in topics:
            topic.topic_authorized_operations = ALL_TOPIC_OPERATIONS
    response = m.MetadataResponse(
        brokers=[
            m.MetadataResponse.MetadataResponseBroker(
                node_id=broker_id, host=address.host, port=address.port, rack=broker.rack
            )
            for broker_id, address in addresses.items()
            if not (broker := image.brokers[broker_id]).fenced
        ],
        cluster_id=cluster_id,
        controller_id=controller_of(image),
        topics=[
            *(
                m.MetadataResponse.MetadataResponseTopic(
                    error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=topic_id
                )
                for topic_id in unknown_ids
            ),
            *topics,
        ],
    )
    if 8 <= version <= 10 and request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = ALL_CLUSTER_OPERATIONS
    return response


def controller_of(image: MetadataImage) -> int:
    """The id of the broker that clients take for the controller; NO_CONTROLLER if none is up.

    Kafka draws a live broker at random for each answer.
    """
    # DIFFERS: the id changes with the metadata, not with every answer, so that equal requests get
    # equal bytes, and equal seeds get equal traces.
    alive = [id_ for id_, broker in sorted(image.brokers.items()) if not broker.fenced]
    return alive[image.offset % len(alive)] if alive else NO_CONTROLLER


def unknown_topic_error(name: str) -> ErrorCode:
    """The error for a name that is not in the image: unknown, or not a valid name."""
    if _TOPIC_NAME.fullmatch(name) and name not in (".", ".."):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.INVALID_TOPIC_EXCEPTION


def offline_replicas(
    image: MetadataImage, partition: PartitionRegistration, dead: tuple[int, ...]
) -> list[int]:
    """The replicas on brokers that are fenced (`dead`) or not registered."""
    brokers = image.brokers
    return [id_ for id_ in partition.replicas if id_ in dead or id_ not in brokers]


def _malformed(requested: list[m.MetadataRequest.MetadataRequestTopic], version: int) -> ErrorCode:
    for topic in requested:
        if version < 12 and (topic.name is None or topic.topic_id != NO_TOPIC_ID):
            return ErrorCode.INVALID_REQUEST
    if any(topic.topic_id != NO_TOPIC_ID for topic in requested):
        return ErrorCode.NONE
    if any(topic.name is None for topic in requested):
        return ErrorCode.UNKNOWN_SERVER_ERROR
    return ErrorCode.NONE


def _whole_request_failed(
    requested: list[m.MetadataRequest.MetadataRequestTopic], error: ErrorCode
) -> m.MetadataResponse:
    """A response that has only the error: once for each topic, and from v13 on also for the whole
    request."""
    return m.MetadataResponse(
        cluster_id=None,
        controller_id=NO_CONTROLLER,
        topics=[
            m.MetadataResponse.MetadataResponseTopic(
                error_code=error, name=topic.name or "", topic_id=topic.topic_id
            )
            for topic in requested
        ],
        error_code=error,
    )


def _resolve(
    image: MetadataImage,
    requested: list[m.MetadataRequest.MetadataRequestTopic] | None,
    version: int,
) -> tuple[list[bytes], Iterable[TopicImage], list[str]]:
    """(unknown ids, known topics, unknown names), each once, in the order of the request."""
    if requested is None or (version == 0 and not requested):
        # DIFFERS: in order of creation; Kafka's is the order of a hash table.
        return [], image.topics.values(), []
    ids = dict.fromkeys(t.topic_id for t in requested if t.topic_id != NO_TOPIC_ID)
    if ids:
        topics_by_id = {topic_id: image.topic_by_id(topic_id) for topic_id in ids}
        unknown = [topic_id for topic_id, topic in topics_by_id.items() if topic is None]
        return unknown, [topic for topic in topics_by_id.values() if topic is not None], []
    names = dict.fromkeys(t.name for t in requested if t.name is not None)
    known = [image.topics[name] for name in names if name in image.topics]
    return [], known, [name for name in names if name not in image.topics]


def _partitions(
    image: MetadataImage,
    topic: TopicImage,
    dead: tuple[int, ...],
    addresses: Mapping[int, BrokerEndpoint],
    unheard: ErrorCode,
) -> list[m.MetadataResponse.MetadataResponsePartition]:
    """Partitions of a topic.  `addresses`: those of brokers with the client's listener; `unheard`:
    the error where a leader does not have it."""
    new = m.MetadataResponse.MetadataResponsePartition
    brokers = image.brokers
    answers = []
    for partition in topic.partitions:
        leader = partition.leader
        # As in Kafka, a fenced leader is still listed; the controller replaces a leader when it
        # fences it.
        has_leader = leader in addresses
        error = ErrorCode.NONE
        if not has_leader:
            error = unheard if leader in brokers else ErrorCode.LEADER_NOT_AVAILABLE
        answers.append(
            new(
                error,
                partition.partition,
                leader if has_leader else -1,
                partition.leader_epoch,
                list(partition.replicas),
                list(partition.isr),
                offline_replicas(image, partition, dead),
            )
        )
    return answers


def _partitions_v0(
    image: MetadataImage,
    topic: TopicImage,
    dead: tuple[int, ...],
    addresses: Mapping[int, BrokerEndpoint],
    unheard: ErrorCode,
) -> list[m.MetadataResponse.MetadataResponsePartition]:
    """Partitions for version 0, which leaves out offline replicas and reports them by an error."""
    answers = _partitions(image, topic, dead, addresses, unheard)
    for answer in answers:
        offline = answer.offline_replicas
        alive = [id_ for id_ in answer.replica_nodes if id_ not in offline]
        in_sync = [id_ for id_ in answer.isr_nodes if id_ not in offline]
        shortened = (len(alive), len(in_sync)) != (len(answer.replica_nodes), len(answer.isr_nodes))
        if shortened and answer.error_code == ErrorCode.NONE:
            answer.error_code = ErrorCode.REPLICA_NOT_AVAILABLE
        answer.replica_nodes, answer.isr_nodes = alive, in_sync
    return answers


# --------------------------------------------------------------------------- auto creation


def topics_to_create(
    response: m.MetadataResponse, request: m.MetadataRequest, config: BrokerConfig
) -> list[str]:
    """The names that are unknown in `response` and may be created automatically."""
    if not (config.auto_create_topics_enable and request.allow_auto_topic_creation):
        return []
    return [
        topic.name
        for topic in response.topics
        if topic.name is not None and topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    ]


def _say_being_created(response: m.MetadataResponse, missing: list[str]) -> None:
    for topic in response.topics:
        if topic.name in missing:
            topic.error_code = ErrorCode.LEADER_NOT_AVAILABLE


def create_topics(broker: Broker, names: Iterable[str], now_ms: int) -> None:
    """Ask the controller to create these topics.  Nothing waits: clients ask for metadata again.

    While a creation is under way, asking again is harmless: TOPIC_ALREADY_EXISTS.
    """
    config = broker.config
    body = m.CreateTopicsRequest(
        topics=[auto_created_topic(name, config) for name in names],
        timeout_ms=config.request_timeout_ms,
    )
    broker.ask_controller(body, _ignore, config.request_timeout_ms, now_ms)


def _ignore(answer: object, now_ms: int) -> None:
    """Ignore the answer: the next Metadata request shows whether the topic exists."""
