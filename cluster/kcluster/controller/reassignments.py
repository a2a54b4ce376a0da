"""AlterPartitionReassignments (API 45, v0-1), ListPartitionReassignments (API 46, v0): moving
partitions to other brokers.

Owns: which reassignments may begin or be given up, and the list of those under way.  Never: decides
what a reassignment makes of the replicas (reassigning.py), when it is over or who leads then
(elections.py).
Kafka: ReplicationControlManager.alterPartitionReassignments, listPartitionReassignments; KIP-455,
KIP-860 (the replication factor may be held fast).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from kcluster.controller import elections
from kcluster.controller.elections import ElectionMode
from kcluster.controller.leadership import record_of
from kcluster.controller.outcome import ApiError
from kcluster.controller.placement import check_manual
from kcluster.controller.reassigning import (
    Assignment,
    is_reassigning,
    reverted,
    towards,
)
from kcluster.controller.registry import answers
from kcluster.events.partitions import ReassignmentCancelled, ReassignmentStarted
from kcluster.events.reasons import ElectionKind, ReassignmentReverted, Requested
from kcluster.metadata.image import PartitionRecord, PartitionRegistration, TopicImage
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from kcluster.controller.node import ControllerNode

_OK = ApiError(ErrorCode.NONE)

Records = dict[tuple[bytes, int], PartitionRecord]
"""By partition, each judged by the partition as it was before the request.  DIFFERS: of one named
twice the last change stands; Kafka writes both, and what the last leaves alone is the first's."""


# ------------------------------------------------------------------------------------- alter


@answers("AlterPartitionReassignmentsRequest")
def alter_partition_reassignments(node: ControllerNode, request: Any, _now_ms: int) -> Any:
    """Behaviour: each partition by itself succeeds or fails; `replicas` null gives up what is under
    way.  Versions: v1 may forbid that the number of replicas changes (KIP-860)."""
    response = m.AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_message=None,
    )
    records: Records = {}
    for topic in request.topics:
        answer = m.AlterPartitionReassignmentsResponse.ReassignableTopicResponse(name=topic.name)
        response.responses.append(answer)
        for asked in topic.partitions:
            error = _alter_one(
                node, topic.name, asked, request.allow_replication_factor_change, records
            )
            answer.partitions.append(
                m.AlterPartitionReassignmentsResponse.ReassignablePartitionResponse(
                    partition_index=asked.partition_index,
                    error_code=error.code,
                    error_message=error.message,
                )
            )
    node.commit(list(records.values()))
    return response


def _alter_one(
    node: ControllerNode, topic: str, asked: Any, may_change_factor: bool, records: Records
) -> ApiError:
    if topic not in node.image.topics:
        text = f"Unable to find a topic named {topic}."
        return ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
    partition = node.image.partition(topic, asked.partition_index)
    if partition is None:
        text = f"Unable to find partition {topic}:{asked.partition_index}."
        return ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
    if asked.replicas is None:
        return _cancel(node, topic, partition, records)
    error = check_manual(asked.replicas, node.image.brokers, None)
    if error is None and not may_change_factor:
        error = _factor_changed(partition, len(asked.replicas))
    if error is not None:
        return error
    _start(node, topic, partition, tuple(asked.replicas), records)
    return _OK


def _factor_changed(partition: PartitionRegistration, wanted: int) -> ApiError | None:
    """While it moves, a partition counts as many replicas as it would have in the end."""
    moving = {*partition.replicas, *partition.adding_replicas} - {*partition.removing_replicas}
    factor = len(moving) if is_reassigning(partition) else len(partition.replicas)
    if factor == wanted:
        return None
    text = f"The replication factor is changed from {factor} to {wanted}"
    return ApiError(ErrorCode.INVALID_REPLICATION_FACTOR, text)


def _start(
    node: ControllerNode,
    topic: str,
    partition: PartitionRegistration,
    target: tuple[int, ...],
    records: Records,
) -> None:
    election = elections.elect(
        partition,
        node.is_active,
        node.min_isr(topic),
        assignment=towards(partition, target),
        elr_enabled=node.elr_enabled,
    )
    if election is None:
        return
    after = election.registration
    key = (partition.topic_id, partition.partition)
    cause = node.note(
        ReassignmentStarted(
            topic=topic,
            partition=partition.partition,
            old_replicas=partition.replicas,
            replicas=target,
            partition_epoch=after.partition_epoch,
            adding=after.adding_replicas,
            removing=after.removing_replicas,
            replaced=is_reassigning(partition),
        ),
        node.reassignments.get(key),
    )
    if is_reassigning(after):
        node.reassignments[key] = cause
    records[key] = record_of(node, topic, partition, election, Requested(), cause)


def _cancel(
    node: ControllerNode, topic: str, partition: PartitionRegistration, records: Records
) -> ApiError:
    if not is_reassigning(partition):
        return ApiError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    back = reverted(partition)
    unclean_allowed = node.unclean_allowed(topic)
    if not back.clean and not unclean_allowed:
        text = (
            f"Unable to revert partition assignment for {topic}:{partition.partition} because it "
            "would require an unclean leader election."
        )
        return ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)
    election = elections.elect(
        partition,
        node.is_active,
        node.min_isr(topic),
        ElectionMode.UNCLEAN if unclean_allowed else ElectionMode.ONLINE,
        isr=back.isr,
        assignment=Assignment(back.replicas),
        elr_enabled=node.elr_enabled,
    )
    assert election is not None, partition
    if not back.clean:
        election = replace(election, kind=ElectionKind.UNCLEAN, clean=False)
    key = (partition.topic_id, partition.partition)
    cause = node.note(
        ReassignmentCancelled(
            topic=topic,
            partition=partition.partition,
            old_replicas=partition.replicas,
            replicas=back.replicas,
            partition_epoch=election.registration.partition_epoch,
            adding=partition.adding_replicas,
            removing=partition.removing_replicas,
        ),
        node.reassignments.pop(key, None),
    )
    records[key] = record_of(node, topic, partition, election, ReassignmentReverted(), cause)
    return _OK


# -------------------------------------------------------------------------------------- list


@answers("ListPartitionReassignmentsRequest")
def list_partition_reassignments(node: ControllerNode, request: Any, _now_ms: int) -> Any:
    """Behaviour: null topics mean all.  What is not reassigned, or does not exist, is left out."""
    image = node.image
    wanted: list[tuple[TopicImage, list[int]]] = []
    if request.topics is None:
        # DIFFERS: in order of their start; Kafka's order of topics is that of a hash table.
        moving: dict[bytes, list[int]] = {}
        for topic_id, partition in node.index.reassigning:
            moving.setdefault(topic_id, []).append(partition)
        wanted = [
            (image.topics[image.topic_names[topic_id]], partitions)
            for topic_id, partitions in moving.items()
        ]
    else:
        wanted = [
            (image.topics[topic.name], topic.partition_indexes)
            for topic in request.topics
            if topic.name in image.topics
        ]
    response = m.ListPartitionReassignmentsResponse(error_message=None)
    for topic, indexes in wanted:
        ongoing = [
            _ongoing(topic.partitions[index])
            for index in indexes
            if 0 <= index < len(topic.partitions) and is_reassigning(topic.partitions[index])
        ]
        if ongoing:
            response.topics.append(
                m.ListPartitionReassignmentsResponse.OngoingTopicReassignment(
                    name=topic.name, partitions=ongoing
                )
            )
    return response


def _ongoing(partition: PartitionRegistration) -> Any:
    return m.ListPartitionReassignmentsResponse.OngoingPartitionReassignment(
        partition_index=partition.partition,
        replicas=list(partition.replicas),
        adding_replicas=list(partition.adding_replicas),
        removing_replicas=list(partition.removing_replicas),
    )
