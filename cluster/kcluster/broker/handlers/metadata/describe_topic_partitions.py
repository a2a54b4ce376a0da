"""DescribeTopicPartitions (API 75, v0): topics in pages, with eligible leaders outside of the ISR.

Owns: the answer, from this broker's own image.  Never: creates topics.
Kafka: DescribeTopicPartitionsRequestHandler, KIP-966.
"""

from __future__ import annotations

from kcluster.broker.broker import Broker
from kcluster.broker.handlers.metadata.metadata import (
    ALL_TOPIC_OPERATIONS,
    offline_replicas,
    unknown_topic_error,
)
from kcluster.broker.registry import handles
from kcluster.contract import Request
from kcluster.metadata.image import MetadataImage
from kcluster.metadata.records import PartitionRegistration
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.names import is_internal


@handles(ApiKey.DESCRIBE_TOPIC_PARTITIONS, versions=(0, 0))
def describe_topic_partitions(
    broker: Broker, request: Request, now_ms: int
) -> m.DescribeTopicPartitionsResponse:
    """Describe topics, all if none is named, from the cursor on.

    Behaviour:
    - topics in alphabetical order; the cursor's topic must be among the named topics;
    - at most the smaller of response_partition_limit and max.request.partition.size.limit
      partitions, at least one, and the cursor to continue from;
    - authorized operations are always included.
    Versions:
    - v0: KIP-966
    Not done: authorization.
    """
    limit = broker.config.max_request_partition_size_limit
    return build_describe_topic_partitions(broker.image, request.body, limit)


def build_describe_topic_partitions(
    image: MetadataImage, request: m.DescribeTopicPartitionsRequest, partition_limit: int
) -> m.DescribeTopicPartitionsResponse:
    """The answer to `request` from `image`."""
    response = m.DescribeTopicPartitionsResponse()
    cursor = request.cursor
    if any(not topic.name for topic in request.topics):
        # A cursor's topic name that makes Kafka fail the whole request.
        response.topics = _each_refused(request, ErrorCode.UNKNOWN_SERVER_ERROR)
        return response
    start_topic = "" if cursor is None else cursor.topic_name
    all_topics = not request.topics
    requested = image.topics if all_topics else dict.fromkeys(t.name for t in request.topics)
    names = sorted(name for name in requested if name >= start_topic)
    if cursor is not None and (
        cursor.partition_index < 0 or not (all_topics or start_topic in requested)
    ):
        response.topics = _each_refused(request, ErrorCode.INVALID_REQUEST)
        return response
    dead = tuple(sorted(id_ for id_, broker in image.brokers.items() if broker.fenced))
    remaining = max(1, min(partition_limit, request.response_partition_limit))
    for name in names:
        if remaining == 0:
            response.next_cursor = _cursor(name, 0)
            break
        start = cursor.partition_index if cursor is not None and name == start_topic else 0
        topic = image.topics.get(name)
        if topic is None:
            response.topics.append(_unknown(name))
            continue
        page = topic.partitions[start : start + remaining]
        response.topics.append(
            m.DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic(
                name=name,
                topic_id=topic.topic_id,
                is_internal=is_internal(name),
                partitions=[_partition(image, partition, dead) for partition in page],
                topic_authorized_operations=ALL_TOPIC_OPERATIONS,
            )
        )
        if start + remaining < len(topic.partitions):
            response.next_cursor = _cursor(name, start + remaining)
            break
        remaining -= len(page)
    return response


def _partition(
    image: MetadataImage, partition: PartitionRegistration, dead: tuple[int, ...]
) -> m.DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition:
    return m.DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition(
        partition_index=partition.partition,
        leader_id=partition.leader if partition.leader in image.brokers else -1,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.isr),
        eligible_leader_replicas=list(partition.elr),
        last_known_elr=list(partition.last_known_elr),
        offline_replicas=offline_replicas(image, partition, dead),
    )


def _each_refused(
    request: m.DescribeTopicPartitionsRequest, error: ErrorCode
) -> list[m.DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic]:
    """The error for every topic, in the order of the request."""
    return [
        m.DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic(
            error_code=error, name=topic.name
        )
        for topic in request.topics
    ]


def _unknown(name: str) -> m.DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic:
    return m.DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic(
        error_code=unknown_topic_error(name),
        name=name,
        is_internal=is_internal(name),
        topic_authorized_operations=ALL_TOPIC_OPERATIONS,
    )


def _cursor(topic: str, partition: int) -> m.DescribeTopicPartitionsResponse.Cursor:
    return m.DescribeTopicPartitionsResponse.Cursor(topic_name=topic, partition_index=partition)
