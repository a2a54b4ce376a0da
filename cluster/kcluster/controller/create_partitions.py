"""CreatePartitions (API 37, v0-3): more partitions for a topic that exists.

Owns: which increases are allowed.  Never: chooses brokers (placement.py).
Kafka: ReplicationControlManager.createPartitions, ControllerApis.createPartitions.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from kcluster.controller.outcome import ApiError
from kcluster.controller.registry import answers
from kcluster.controller.topics import (
    MAX_PARTITIONS_PER_REQUEST,
    Assignment,
    assign,
    check_assignment,
    partition_records,
)
from kcluster.events.topics import PartitionsAdded
from kcluster.metadata.image import MetadataRecord, TopicImage
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from kcluster.controller.node import ControllerNode


@answers("CreatePartitionsRequest")
def create_partitions(node: ControllerNode, request: Any, _now_ms: int) -> Any:
    """Behaviour: each topic by itself; a topic named twice fails."""
    times = Counter(topic.name for topic in request.topics)
    results: dict[str, ApiError] = {}
    records: list[MetadataRecord] = []
    for asked in request.topics:
        if times[asked.name] > 1:
            results[asked.name] = ApiError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            continue
        topic = node.image.topics.get(asked.name)
        if topic is None:
            results[asked.name] = ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            continue
        if asked.count - len(topic.partitions) > MAX_PARTITIONS_PER_REQUEST - len(records):
            # DIFFERS: Kafka runs into the limit of its batch and answers UNKNOWN_SERVER_ERROR.
            text = "Excessively large number of partitions per request."
            results[asked.name] = ApiError(ErrorCode.POLICY_VIOLATION, text)
            continue
        assignments = _assign(node, topic, asked)
        if isinstance(assignments, ApiError):
            results[asked.name] = assignments
            continue
        throttled = node.mutations.charge(len(assignments))
        if throttled is not None:
            results[asked.name] = throttled
            continue
        results[asked.name] = ApiError(ErrorCode.NONE)
        if not request.validate_only:
            records += _records(node, topic, assignments)
    node.commit(records)
    return m.CreatePartitionsResponse(
        results=[
            m.CreatePartitionsResponse.CreatePartitionsTopicResult(
                name=name, error_code=error.code, error_message=error.message
            )
            for name, error in results.items()
        ]
    )


def _records(
    node: ControllerNode, topic: TopicImage, assignments: list[Assignment]
) -> list[MetadataRecord]:
    first = len(topic.partitions)
    cause = node.note(PartitionsAdded(topic.name, first, first + len(assignments)))
    return partition_records(topic.topic_id, first, assignments, cause)


def _assign(node: ControllerNode, topic: TopicImage, asked: Any) -> list[Assignment] | ApiError:
    first = len(topic.partitions)
    if asked.count == first:
        text = f"Topic already has {first} partition(s)."
        return ApiError(ErrorCode.INVALID_PARTITIONS, text)
    if asked.count < first:
        text = (
            f"The topic {topic.name} currently has {first} partition(s); {asked.count} would not "
            "be an increase."
        )
        return ApiError(ErrorCode.INVALID_PARTITIONS, text)
    additional = asked.count - first
    factor = len(topic.partitions[0].replicas)
    if asked.assignments is None:
        return assign(node, additional, factor)
    if len(asked.assignments) != additional:
        text = (
            f"Attempted to add {additional} additional partition(s), but only "
            f"{len(asked.assignments)} assignment(s) were specified."
        )
        return ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)
    assignments: list[Assignment] = []
    for i, manual in enumerate(asked.assignments):
        assignment = check_assignment(node, first + i, manual.broker_ids, factor)
        if isinstance(assignment, ApiError):
            return assignment
        assignments.append(assignment)
    return assignments
