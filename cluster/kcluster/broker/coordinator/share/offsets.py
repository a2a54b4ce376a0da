"""AlterShareGroupOffsets and DeleteShareGroupOffsets: an admin moves a share group without members.

Owns: the changes by each, their order, and the answers.  Never: finds the group
(handlers/share/share_group_offsets.py does), keeps a start offset (share_state/ does).  Kafka:
GroupMetadataManager.alterShareGroupOffsets, sharePartitionsEligibleForOffsetDeletion,
completeDeleteShareGroupOffsets; GroupCoordinatorService.

Both go through the persister, between two records of the group: share partitions are initializing,
or their topic is deleting, until the share coordinators have answered.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kcluster.broker.coordinator.share.group import ShareGroup
from kcluster.broker.coordinator.share.state_partitions import StatePartitions, TopicStates
from kcluster.broker.coordinator.share_state.state import SharePartition
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode

NOTHING_TO_DELETE: Final = "the group has no offsets of this topic"

OnAltered = Callable[[m.AlterShareGroupOffsetsResponse, int], None]
OnDeleted = Callable[[m.DeleteShareGroupOffsetsResponse, int], None]


# ----------------------------------------------------------------------------------------- alter


class _Altering(Struct):
    """The decision on an AlterShareGroupOffsets request."""

    answer: m.AlterShareGroupOffsetsResponse
    topics: dict[bytes, TopicStates]
    start_offsets: dict[SharePartition, int]


def alter_offsets(
    group: ShareGroup, body: m.AlterShareGroupOffsetsRequest, on_done: OnAltered, now_ms: int
) -> None:
    """Initialize share partitions again, at other start offsets."""
    if group.members:
        on_done(alter_failed(ErrorCode.NON_EMPTY_GROUP), now_ms)
        return
    altering = _read_alter(group, body)
    if not altering.topics:
        on_done(altering.answer, now_ms)
        return
    epoch = group.epoch
    states = StatePartitions() if group.states is None else group.states
    record = group.states_record(states.with_initializing(altering.topics))

    def initialized(errors: dict[SharePartition, ErrorCode], at_ms: int) -> None:
        if any(error is not ErrorCode.NONE for error in errors.values()):
            _show_errors(group, altering.answer, errors)
        else:
            note_initialized(group, altering.topics, at_ms)
        on_done(altering.answer, at_ms)

    def written(error: ErrorCode, at_ms: int) -> None:
        if error is not ErrorCode.NONE:
            on_done(alter_failed(error), at_ms)
        elif not altering.start_offsets:
            on_done(altering.answer, at_ms)
        else:
            wanted = {one: (epoch, start) for one, start in altering.start_offsets.items()}
            group.broker.persister.initialize(wanted, initialized, at_ms)

    group.write([record], written, now_ms)


def alter_failed(error: ErrorCode, message: str | None = None) -> m.AlterShareGroupOffsetsResponse:
    """The answer if nothing was altered."""
    text = error.text if message is None else message
    return m.AlterShareGroupOffsetsResponse(error_code=error, error_message=text)


def _read_alter(group: ShareGroup, body: m.AlterShareGroupOffsetsRequest) -> _Altering:
    kind = m.AlterShareGroupOffsetsResponse
    altering = _Altering(kind(), {}, {})
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    for wanted in body.topics:
        topic = group.broker.image.topics.get(wanted.topic_name)
        count = 0 if topic is None else len(topic.partitions)
        row = kind.AlterShareGroupOffsetsResponseTopic(topic_name=wanted.topic_name)
        known: set[int] = set()
        for one in wanted.partitions:
            cell = kind.AlterShareGroupOffsetsResponsePartition(one.partition_index)
            row.partitions.append(cell)
            if topic is None or one.partition_index >= count:
                cell.error_code, cell.error_message = unknown, unknown.text
                continue
            known.add(one.partition_index)
            key = SharePartition(group.group_id, topic.topic_id, one.partition_index)
            altering.start_offsets[key] = one.start_offset
        if topic is not None:
            row.topic_id = topic.topic_id
            altering.topics[topic.topic_id] = TopicStates(topic.name, frozenset(known))
        altering.answer.responses.append(row)
    return altering


def _show_errors(
    group: ShareGroup,
    answer: m.AlterShareGroupOffsetsResponse,
    errors: dict[SharePartition, ErrorCode],
) -> None:
    """Add the persister's refusals to the answer.  The refused share partitions stay initializing,
    for a later attempt."""
    for row in answer.responses:
        for cell in row.partitions:
            key = SharePartition(group.group_id, row.topic_id, cell.partition_index)
            error = errors.get(key, ErrorCode.NONE)
            if error is not ErrorCode.NONE:
                cell.error_code, cell.error_message = error, error.text


def note_initialized(group: ShareGroup, topics: dict[bytes, TopicStates], now_ms: int) -> None:
    """Write that the persister has initialized these share partitions."""
    stored = group.stored
    if stored.is_current and stored.states is not None:
        new = stored.states.with_initialized(topics)
        stored.write_alone([stored.states_record(new)], now_ms)
        stored.note_states_written(now_ms)


# ---------------------------------------------------------------------------------------- delete


class _Deleting(Struct):
    """The decision on a DeleteShareGroupOffsets request."""

    states: StatePartitions
    """The states of the group's share partitions, with these topics as deleting."""
    partitions: dict[bytes, frozenset[int]]
    """The share partitions whose state must be deleted, by topic id."""
    refused: list[m.DeleteShareGroupOffsetsResponse.DeleteShareGroupOffsetsResponseTopic]


def delete_offsets(
    group: ShareGroup, body: m.DeleteShareGroupOffsetsRequest, on_done: OnDeleted, now_ms: int
) -> None:
    """Delete the states of topics, as if the group had never read them."""
    if group.members:
        on_done(delete_failed(ErrorCode.NON_EMPTY_GROUP), now_ms)
        return
    if group.states is None:
        on_done(m.DeleteShareGroupOffsetsResponse(), now_ms)
        return
    deleting = _read_delete(group, group.states, body)
    refused = m.DeleteShareGroupOffsetsResponse(responses=deleting.refused)
    if not deleting.partitions:
        on_done(refused, now_ms)
        return

    def deleted(errors: dict[SharePartition, ErrorCode], at_ms: int) -> None:
        _complete_delete(group, deleting, errors, on_done, at_ms)

    def written(error: ErrorCode, at_ms: int) -> None:
        if error is not ErrorCode.NONE:
            on_done(delete_failed(error), at_ms)
            return
        wanted = [
            SharePartition(group.group_id, topic_id, partition)
            for topic_id, partitions in deleting.partitions.items()
            for partition in sorted(partitions)
        ]
        group.broker.persister.delete(wanted, deleted, at_ms)

    group.write([group.states_record(deleting.states)], written, now_ms)


def delete_failed(
    error: ErrorCode, message: str | None = None
) -> m.DeleteShareGroupOffsetsResponse:
    """The answer if nothing was deleted."""
    text = error.text if message is None else message
    return m.DeleteShareGroupOffsetsResponse(error_code=error, error_message=text)


def _read_delete(
    group: ShareGroup, states: StatePartitions, body: m.DeleteShareGroupOffsetsRequest
) -> _Deleting:
    row_of = m.DeleteShareGroupOffsetsResponse.DeleteShareGroupOffsetsResponseTopic
    initialized = dict(states.initialized)
    deleting, partitions, refused = set(states.deleting), {}, []
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    for wanted in body.topics:
        topic = group.broker.image.topics.get(wanted.topic_name)
        if topic is not None and topic.topic_id in initialized:
            partitions[topic.topic_id] = initialized.pop(topic.topic_id).partitions
            deleting.add(topic.topic_id)
        elif topic is not None and topic.topic_id in deleting:
            partitions[topic.topic_id] = frozenset(range(len(topic.partitions)))
        else:
            text = unknown.text if topic is None else NOTHING_TO_DELETE
            refused.append(
                row_of(topic_name=wanted.topic_name, error_code=unknown, error_message=text)
            )
    changed = replace(states, initialized=initialized, deleting=frozenset(deleting))
    return _Deleting(changed, partitions, refused)


def _complete_delete(
    group: ShareGroup,
    deleting: _Deleting,
    errors: dict[SharePartition, ErrorCode],
    on_done: OnDeleted,
    now_ms: int,
) -> None:
    """Write the finished topics, after the persister's answer."""
    names = group.broker.image.topic_names
    row_of = m.DeleteShareGroupOffsetsResponse.DeleteShareGroupOffsetsResponseTopic
    done, failed = [], []
    for topic_id, partitions in deleting.partitions.items():
        keys = (SharePartition(group.group_id, topic_id, one) for one in sorted(partitions))
        its_errors = (errors.get(key, ErrorCode.NONE) for key in keys)
        error = next((one for one in its_errors if one is not ErrorCode.NONE), ErrorCode.NONE)
        row = row_of(topic_name=names.get(topic_id, ""), topic_id=topic_id)
        if error is ErrorCode.NONE:
            done.append(row)
        else:
            row.error_code, row.error_message = error, error.text
            failed.append(row)
    answer = m.DeleteShareGroupOffsetsResponse(responses=[*done, *deleting.refused, *failed])
    stored = group.stored
    if not done or not stored.is_current or stored.states is None:
        on_done(answer, now_ms)
        return

    def written(error: ErrorCode, at_ms: int) -> None:
        on_done(answer if error is ErrorCode.NONE else delete_failed(error), at_ms)

    left = stored.states.deleting.difference(row.topic_id for row in done)
    stored.write([stored.states_record(replace(stored.states, deleting=left))], written, now_ms)
