"""CreateTopics (API 19, v2-7) and DeleteTopics (API 20, v1-6).

Owns: which topics may be created or deleted, and the records for it.  Never: chooses brokers
(placement.py), judges configs (kcluster.config does).
Kafka: ReplicationControlManager.createTopics, deleteTopics; ControllerApis (duplicates).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from kcluster.contract import NoteId, Rng
from kcluster.controller import elections
from kcluster.controller.outcome import ApiError
from kcluster.controller.placement import Replicas, UsableBroker, check_manual, place
from kcluster.controller.registry import answers
from kcluster.controller.topic_configs import config_problem, describe_configs
from kcluster.controller.topic_names import name_problem
from kcluster.events.topics import TopicCreated, TopicDeleted
from kcluster.metadata.image import (
    TOPIC_RESOURCE,
    ConfigRecord,
    MetadataRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from kcluster.controller.node import ControllerNode

MAX_PARTITIONS_PER_REQUEST: Final = 10_000
"""Kafka: QuorumController.MAX_RECORDS_PER_USER_OP."""

_METADATA_TOPIC: Final = "__cluster_metadata"
_ZERO_ID: Final = bytes(16)


class Assignment(Struct, frozen=True, gc=False):
    """Where a new partition goes: all its replicas, and those of them that are active."""

    replicas: Replicas
    isr: Replicas


class _NewTopic(Struct, frozen=True):
    name: str
    topic_id: bytes
    assignments: list[Assignment]
    configs: dict[str, str]


# ----------------------------------------------------------------------------------- create


@answers("CreateTopicsRequest")
def create_topics(node: ControllerNode, request: Any, _now_ms: int) -> Any:
    """Behaviour: each topic by itself succeeds or fails.  Configs are answered, never null: the
    Java admin client breaks on null.  Versions: v4 partition count and replication factor -1 mean
    the broker's defaults (KIP-464), v5 answers configs (KIP-525), v7 topic ids (KIP-516)."""
    asked = sum(_partition_count(node, topic) for topic in request.topics)
    if asked > MAX_PARTITIONS_PER_REQUEST:
        text = "Excessively large number of partitions per request."
        return m.CreateTopicsResponse(
            topics=[
                _failed(topic.name, ApiError(ErrorCode.POLICY_VIOLATION, text))
                for topic in request.topics
            ]
        )
    times = Counter(topic.name for topic in request.topics)
    response = m.CreateTopicsResponse()
    records: list[MetadataRecord] = []
    for topic in request.topics:
        if times[topic.name] > 1:
            continue
        new = _check_new(node, topic)
        if isinstance(new, ApiError):
            response.topics.append(_failed(topic.name, new))
            continue
        response.topics.append(_created(node, new))
        if not request.validate_only:
            records += _creation_records(node, new)
    for name, count in times.items():
        if count > 1:
            error = ApiError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            response.topics.append(_failed(name, error))
    node.commit(records)
    return response


def _partition_count(node: ControllerNode, topic: Any) -> int:
    if topic.assignments:
        return len(topic.assignments)
    return (
        node.config.num_partitions if topic.num_partitions == -1 else max(0, topic.num_partitions)
    )


def _check_new(node: ControllerNode, topic: Any) -> _NewTopic | ApiError:
    """Kafka's checks in Kafka's order: name, existence, configs, then placement."""
    if topic.name == _METADATA_TOPIC:
        text = f"Creation of internal topic {_METADATA_TOPIC} is prohibited."
        return ApiError(ErrorCode.INVALID_REQUEST, text)
    if topic.name in node.image.topics:
        text = f"Topic '{topic.name}' already exists."
        return ApiError(ErrorCode.TOPIC_ALREADY_EXISTS, text)
    other = node.topic_names.collision(topic.name)
    if other is not None:
        text = f"Topic '{topic.name}' collides with existing topic: {other}"
        return ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, text)
    problem = name_problem(topic.name)
    if problem is not None:
        return ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
    nulls = [config.name for config in topic.configs if config.value is None]
    if nulls:
        text = f"Null value not supported for topic configs: {','.join(nulls)}"
        return ApiError(ErrorCode.INVALID_CONFIG, text)
    configs = {config.name: config.value for config in topic.configs}
    problem = config_problem(node.cluster_config, configs)
    if problem is not None:
        return ApiError(ErrorCode.INVALID_CONFIG, problem)
    assignments = _assign_by_hand(node, topic) if topic.assignments else _assign(node, topic)
    if isinstance(assignments, ApiError):
        return assignments
    throttled = node.mutations.charge(len(assignments))
    if throttled is not None:
        return throttled
    return _NewTopic(topic.name, random_topic_id(node.rng), assignments, configs)


def _assign(node: ControllerNode, topic: Any) -> list[Assignment] | ApiError:
    if topic.replication_factor < -1 or topic.replication_factor == 0:
        return ApiError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    if topic.num_partitions < -1 or topic.num_partitions == 0:
        return ApiError(
            ErrorCode.INVALID_PARTITIONS,
            "Number of partitions was set to an invalid non-positive value.",
        )
    count = node.config.num_partitions if topic.num_partitions == -1 else topic.num_partitions
    factor = (
        node.config.default_replication_factor
        if topic.replication_factor == -1
        else topic.replication_factor
    )
    return assign(node, count, factor)


def assign(node: ControllerNode, count: int, factor: int) -> list[Assignment] | ApiError:
    """Place `count` new partitions over the brokers that are there."""
    brokers = [
        UsableBroker(broker.broker_id, broker.rack, broker.fenced)
        for _, broker in sorted(node.image.brokers.items())
        if not broker.in_controlled_shutdown
    ]
    placed = place(brokers, count, factor, node.rng)
    if isinstance(placed, ApiError):
        return placed
    active = {broker.broker_id for broker in brokers if not broker.fenced}
    return [
        Assignment(replicas, tuple(broker for broker in replicas if broker in active))
        for replicas in placed
    ]


def _assign_by_hand(node: ControllerNode, topic: Any) -> list[Assignment] | ApiError:
    for value, what in (
        (topic.replication_factor, "replication factor"), (topic.num_partitions, "numPartitions"),
    ):  # fmt: skip
        if value != -1:
            text = f"A manual partition assignment was specified, but {what} was not set to -1."
            return ApiError(ErrorCode.INVALID_REQUEST, text)
    by_partition: dict[int, Assignment] = {}
    factor: int | None = None
    for manual in topic.assignments:
        partition = manual.partition_index
        if partition in by_partition:
            text = f"Found multiple manual partition assignments for partition {partition}"
            return ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)
        assignment = check_assignment(node, partition, manual.broker_ids, factor)
        if isinstance(assignment, ApiError):
            return assignment
        by_partition[partition] = assignment
        factor = len(assignment.replicas)
    if any(partition not in by_partition for partition in range(len(by_partition))):
        text = "partitions should be a consecutive 0-based integer sequence"
        return ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)
    return [by_partition[partition] for partition in range(len(by_partition))]


def check_assignment(
    node: ControllerNode, partition: int, broker_ids: list[int], factor: int | None
) -> Assignment | ApiError:
    """An assignment made by hand, with its ISR; `factor` as the partitions before it have."""
    error = check_manual(broker_ids, node.image.brokers, factor)
    if error is not None:
        return error
    isr = tuple(broker for broker in broker_ids if node.is_active(broker))
    if not isr:
        return ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "All brokers specified in the manual partition assignment for partition "
            f"{partition} are fenced or in controlled shutdown.",
        )
    return Assignment(tuple(broker_ids), isr)


def _creation_records(node: ControllerNode, new: _NewTopic) -> list[MetadataRecord]:
    count, factor = len(new.assignments), len(new.assignments[0].replicas)
    cause = node.note(TopicCreated(new.name, count, factor, dict(new.configs)))
    return [
        TopicRecord(new.name, new.topic_id, cause),
        *(
            ConfigRecord(TOPIC_RESOURCE, new.name, name, value, cause)
            for name, value in new.configs.items()
        ),
        *partition_records(new.topic_id, 0, new.assignments, cause),
    ]


def partition_records(
    topic_id: bytes, first: int, assignments: list[Assignment], cause: NoteId
) -> list[MetadataRecord]:
    """New partitions from number `first` on."""
    return [
        PartitionRecord(
            elections.new_partition(topic_id, first + i, assignment.replicas, assignment.isr), cause
        )
        for i, assignment in enumerate(assignments)
    ]


def random_topic_id(rng: Rng) -> bytes:
    """A version 4 UUID whose base64 form does not start with '-', which tools take for an option.
    Kafka: Uuid.randomUuid."""
    while True:
        raw = bytearray(rng.randbytes(16))
        raw[6] = raw[6] & 0x0F | 0x40
        raw[8] = raw[8] & 0x3F | 0x80
        if raw[0] >> 2 != 62:
            return bytes(raw)


def _created(node: ControllerNode, new: _NewTopic) -> Any:
    return m.CreateTopicsResponse.CreatableTopicResult(
        name=new.name,
        topic_id=new.topic_id,
        error_message=None,
        num_partitions=len(new.assignments),
        replication_factor=len(new.assignments[0].replicas),
        configs=[
            m.CreateTopicsResponse.CreatableTopicConfigs(
                name=config.name, value=config.value, config_source=config.source
            )
            for config in describe_configs(node, new.configs)
        ],
    )


def _failed(name: str, error: ApiError) -> Any:
    return m.CreateTopicsResponse.CreatableTopicResult(
        name=name,
        error_code=error.code,
        error_message=error.message,
        num_partitions=-1,
        replication_factor=-1,
        configs=[],
    )


# ----------------------------------------------------------------------------------- delete


@answers("DeleteTopicsRequest")
def delete_topics(node: ControllerNode, request: Any, _now_ms: int) -> Any:
    """Behaviour: each topic by itself; one that is named twice, by name or id, is not deleted.
    Versions: v5 error messages, v6 topics by id (KIP-516)."""
    wanted: Counter[tuple[str | None, bytes]] = Counter()
    wanted.update((name, _ZERO_ID) for name in request.topic_names)
    wanted.update((topic.name, topic.topic_id) for topic in request.topics)
    ids = node.image.topic_names
    resolved = Counter(
        name if name is not None else ids.get(id_)
        for (name, id_), times in wanted.items()
        if times == 1
    )
    response = m.DeleteTopicsResponse()
    records: list[MetadataRecord] = []
    for (name, topic_id), times in wanted.items():
        twice = times == 1 and resolved[name if name is not None else ids.get(topic_id)] > 1
        if twice and name is None and topic_id in ids:
            continue  # told once, with the name
        response.responses.append(_delete_one(node, name, topic_id, times, twice, records))
    node.commit(records)
    return response


def _delete_one(
    node: ControllerNode,
    name: str | None,
    topic_id: bytes,
    times: int,
    twice: bool,
    records: list[MetadataRecord],
) -> Any:
    def result(code: ErrorCode, text: str | None = None, id_: bytes = topic_id) -> Any:
        return m.DeleteTopicsResponse.DeletableTopicResult(
            name=name, topic_id=id_, error_code=code, error_message=text
        )

    if not node.config.delete_topic_enable:
        return result(ErrorCode.TOPIC_DELETION_DISABLED, ErrorCode.TOPIC_DELETION_DISABLED.text)
    if name is None and topic_id == _ZERO_ID:
        return result(ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified.")
    if name is not None and topic_id != _ZERO_ID:
        return result(
            ErrorCode.INVALID_REQUEST, "You may not specify both topic name and topic id."
        )
    if times > 1:
        what = "id" if name is None else "name"
        return result(ErrorCode.INVALID_REQUEST, f"Duplicate topic {what}.")
    known = node.image.topic_names.get(topic_id) if name is None else name
    topic = None if known is None else node.image.topics.get(known)
    if topic is None:
        code = ErrorCode.UNKNOWN_TOPIC_ID if name is None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return result(code, code.text)
    if twice:
        text = "The provided topic name maps to an ID that was already supplied."
        return result(ErrorCode.INVALID_REQUEST, text, topic.topic_id)
    throttled = node.mutations.charge(len(topic.partitions))
    if throttled is not None:
        return result(throttled.code, throttled.message, topic.topic_id)
    cause = node.note(TopicDeleted(topic.name))
    records.append(RemoveTopicRecord(topic.topic_id, cause))
    name = topic.name
    return result(ErrorCode.NONE, None, topic.topic_id)
