"""Formats of a streams group's records on __consumer_offsets.

Owns: their bytes, equal to Kafka's.  Never: decides what is written, keeps state.
Kafka: StreamsCoordinatorRecordHelpers, StreamsGroup*Key/Value; CoordinatorRecordType 17 to 23.

Without a value, a record is a tombstone: it deletes what its key names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from kcluster.broker.coordinator.group_log import GroupRecord, Reader
from kcluster.broker.coordinator.records import Encoded
from kcluster.broker.coordinator.streams.member import Endpoint, MemberDetails
from kcluster.broker.coordinator.streams.reconciliation import MemberProgress, StreamsMemberState
from kcluster.broker.coordinator.streams.tasks import (
    HeldTasks,
    Task,
    Tasks,
    TaskSet,
    by_subtopology,
    epochs_of,
    tasks_of,
)
from kcluster.broker.coordinator.streams.topology import StreamsTopology
from kcluster.protocol import messages as m
from kcluster.protocol.apis import record_codec
from kcluster.protocol.messages import Message

if TYPE_CHECKING:
    CurrentTaskIds = m.StreamsGroupCurrentMemberAssignmentValue.TaskIds

_VERSION: Final = 0
NOT_VALIDATED: Final = -1
"""No topology has been validated."""


def _encoded(name: str, key: Message, value: Message | None) -> Encoded:
    encoded_key = record_codec(f"{name}Key", _VERSION).encode_prefixed(key)
    if value is None:
        return encoded_key, None
    return encoded_key, record_codec(f"{name}Value", _VERSION).encode_prefixed(value)


def _decoded(name: str, key: bytes, value: bytes | None) -> tuple[Any, Any]:
    """Values have one version; the codec skips tagged fields that it does not know."""
    decoded_key = record_codec(f"{name}Key", _VERSION).decode_prefixed(key)
    if value is None:
        return decoded_key, None
    return decoded_key, record_codec(f"{name}Value", _VERSION).decode_prefixed(value)


# ------------------------------------------------------------------------------- the group


class GroupState(Struct, frozen=True):
    """The value of StreamsGroupRecord."""

    epoch: int
    metadata_hash: int
    validated_topology_epoch: int
    assignment_configs: tuple[tuple[str, str], ...]
    """Those that the last change of the epoch saw."""


class StreamsGroupRecord(GroupRecord, frozen=True):
    """A streams group as a whole."""

    state: GroupState | None

    def encode(self) -> Encoded:
        state = self.state
        value = None
        if state is not None:
            config = m.StreamsGroupMetadataValue.LastAssignmentConfig
            value = m.StreamsGroupMetadataValue(
                epoch=state.epoch,
                metadata_hash=state.metadata_hash,
                validated_topology_epoch=state.validated_topology_epoch,
                last_assignment_configs=[config(*pair) for pair in state.assignment_configs],
            )
        return _encoded("StreamsGroupMetadata", m.StreamsGroupMetadataKey(self.group_id), value)


def _read_group(key: bytes, value: bytes | None) -> StreamsGroupRecord:
    of, decoded = _decoded("StreamsGroupMetadata", key, value)
    if decoded is None:
        return StreamsGroupRecord(of.group_id, None)
    configs = tuple((pair.key, pair.value) for pair in decoded.last_assignment_configs or ())
    state = GroupState(
        decoded.epoch, decoded.metadata_hash, decoded.validated_topology_epoch, configs
    )
    return StreamsGroupRecord(of.group_id, state)


class StreamsTopologyRecord(GroupRecord, frozen=True):
    """The topology of the group."""

    topology: StreamsTopology | None

    def encode(self) -> Encoded:
        value = None if self.topology is None else self.topology.encoded()
        return _encoded("StreamsGroupTopology", m.StreamsGroupTopologyKey(self.group_id), value)


def _read_topology(key: bytes, value: bytes | None) -> StreamsTopologyRecord:
    of, decoded = _decoded("StreamsGroupTopology", key, value)
    return StreamsTopologyRecord(
        of.group_id, None if decoded is None else StreamsTopology.of(decoded)
    )


# ------------------------------------------------------------------------------ one member


class StreamsMemberRecord(GroupRecord, frozen=True):
    """What a member reported of itself."""

    member_id: str
    details: MemberDetails | None

    def encode(self) -> Encoded:
        key = m.StreamsGroupMemberMetadataKey(self.group_id, self.member_id)
        details = self.details
        if details is None:
            return _encoded("StreamsGroupMemberMetadata", key, None)
        written = m.StreamsGroupMemberMetadataValue
        endpoint = details.user_endpoint
        value = written(
            instance_id=details.instance_id,
            rack_id=details.rack_id,
            client_id=details.client_id,
            client_host=details.client_host,
            rebalance_timeout_ms=details.rebalance_timeout_ms,
            topology_epoch=details.topology_epoch,
            process_id=details.process_id,
            user_endpoint=(
                None if endpoint is None else written.Endpoint(endpoint.host, endpoint.port)
            ),
            client_tags=[written.KeyValue(*tag) for tag in details.client_tags],
        )
        return _encoded("StreamsGroupMemberMetadata", key, value)


def _read_member(key: bytes, value: bytes | None) -> StreamsMemberRecord:
    of, decoded = _decoded("StreamsGroupMemberMetadata", key, value)
    if decoded is None:
        return StreamsMemberRecord(of.group_id, of.member_id, None)
    endpoint = decoded.user_endpoint
    details = MemberDetails(
        rack_id=decoded.rack_id,
        client_id=decoded.client_id,
        client_host=decoded.client_host,
        rebalance_timeout_ms=decoded.rebalance_timeout_ms,
        topology_epoch=decoded.topology_epoch,
        process_id=decoded.process_id,
        user_endpoint=None if endpoint is None else Endpoint(endpoint.host, endpoint.port),
        client_tags=tuple((tag.key, tag.value) for tag in decoded.client_tags),
        instance_id=decoded.instance_id,
    )
    return StreamsMemberRecord(of.group_id, of.member_id, details)


# ------------------------------------------------------------------------------ assignments


class TargetMetadata(Struct, frozen=True):
    """The value of StreamsTargetRecord."""

    epoch: int
    assigned_ms: int
    """When the assignment was computed."""


class StreamsTargetRecord(GroupRecord, frozen=True):
    """The epoch of the target assignment of all members."""

    metadata: TargetMetadata | None

    def encode(self) -> Encoded:
        value = None
        if self.metadata is not None:
            value = m.StreamsGroupTargetAssignmentMetadataValue(
                self.metadata.epoch, self.metadata.assigned_ms
            )
        key = m.StreamsGroupTargetAssignmentMetadataKey(self.group_id)
        return _encoded("StreamsGroupTargetAssignmentMetadata", key, value)


def _read_target(key: bytes, value: bytes | None) -> StreamsTargetRecord:
    of, decoded = _decoded("StreamsGroupTargetAssignmentMetadata", key, value)
    metadata = None
    if decoded is not None:
        metadata = TargetMetadata(decoded.assignment_epoch, decoded.assignment_timestamp)
    return StreamsTargetRecord(of.group_id, metadata)


class StreamsMemberTargetRecord(GroupRecord, frozen=True):
    """The target assignment of one member."""

    member_id: str
    tasks: Tasks | None

    def encode(self) -> Encoded:
        key = m.StreamsGroupTargetAssignmentMemberKey(self.group_id, self.member_id)
        value = None
        if self.tasks is not None:
            written = m.StreamsGroupTargetAssignmentMemberValue
            value = written(
                *(
                    [written.TaskIds(*ids) for ids in by_subtopology(role).items()]
                    for role in (self.tasks.active, self.tasks.standby, self.tasks.warmup)
                )
            )
        return _encoded("StreamsGroupTargetAssignmentMember", key, value)


def _read_member_target(key: bytes, value: bytes | None) -> StreamsMemberTargetRecord:
    of, decoded = _decoded("StreamsGroupTargetAssignmentMember", key, value)
    tasks = None
    if decoded is not None:
        tasks = Tasks(
            tasks_of(decoded.active_tasks),
            tasks_of(decoded.standby_tasks),
            tasks_of(decoded.warmup_tasks),
        )
    return StreamsMemberTargetRecord(of.group_id, of.member_id, tasks)


class StreamsProgressRecord(GroupRecord, frozen=True):
    """What a member has, and how far it is towards its target."""

    member_id: str
    progress: MemberProgress | None

    def encode(self) -> Encoded:
        key = m.StreamsGroupCurrentMemberAssignmentKey(self.group_id, self.member_id)
        progress = self.progress
        value = None
        if progress is not None:
            assigned, pending = progress.assigned, progress.pending_revocation
            value = m.StreamsGroupCurrentMemberAssignmentValue(
                member_epoch=progress.member_epoch,
                previous_member_epoch=progress.previous_epoch,
                state=progress.state,
                active_tasks=_active_ids(assigned.active),
                standby_tasks=_ids(assigned.standby),
                warmup_tasks=_ids(assigned.warmup),
                active_tasks_pending_revocation=_active_ids(pending.active),
                standby_tasks_pending_revocation=_ids(pending.standby),
                warmup_tasks_pending_revocation=_ids(pending.warmup),
            )
        return _encoded("StreamsGroupCurrentMemberAssignment", key, value)


def _read_progress(key: bytes, value: bytes | None) -> StreamsProgressRecord:
    of, decoded = _decoded("StreamsGroupCurrentMemberAssignment", key, value)
    progress = None
    if decoded is not None:
        epoch = decoded.member_epoch
        known = decoded.state in StreamsMemberState.__members__.values()
        progress = MemberProgress(
            epoch,
            decoded.previous_member_epoch,
            StreamsMemberState(decoded.state) if known else StreamsMemberState.UNKNOWN,
            HeldTasks(
                _with_epochs(decoded.active_tasks, epoch),
                tasks_of(decoded.standby_tasks),
                tasks_of(decoded.warmup_tasks),
            ),
            HeldTasks(
                _with_epochs(decoded.active_tasks_pending_revocation, epoch),
                tasks_of(decoded.standby_tasks_pending_revocation),
                tasks_of(decoded.warmup_tasks_pending_revocation),
            ),
        )
    return StreamsProgressRecord(of.group_id, of.member_id, progress)


def _ids(tasks: TaskSet) -> list[CurrentTaskIds]:
    ids = m.StreamsGroupCurrentMemberAssignmentValue.TaskIds
    return [ids(*pair) for pair in by_subtopology(tasks).items()]


def _active_ids(tasks: Mapping[Task, int]) -> list[CurrentTaskIds]:
    ids = m.StreamsGroupCurrentMemberAssignmentValue.TaskIds
    epochs = epochs_of(tasks)
    return [ids(id_, parts, epochs[id_]) for id_, parts in by_subtopology(tasks).items()]


def _with_epochs(listed: Iterable[CurrentTaskIds], member_epoch: int) -> dict[Task, int]:
    """Records of older releases have no epochs of their own."""
    tasks: dict[Task, int] = {}
    for ids in listed:
        epochs = ids.assignment_epochs
        if epochs is None or len(epochs) != len(ids.partitions):
            epochs = [member_epoch] * len(ids.partitions)
        for partition, epoch in zip(ids.partitions, epochs, strict=True):
            tasks[Task(ids.subtopology_id, partition)] = epoch
    return tasks


RECORDS: Final[tuple[type[GroupRecord], ...]] = (
    StreamsGroupRecord,
    StreamsTopologyRecord,
    StreamsMemberRecord,
    StreamsTargetRecord,
    StreamsMemberTargetRecord,
    StreamsProgressRecord,
)

READERS: Final[Mapping[int, Reader]] = {
    17: _read_group,
    19: _read_member,
    20: _read_target,
    21: _read_member_target,
    22: _read_progress,
    23: _read_topology,
}
"""By kind of key."""
