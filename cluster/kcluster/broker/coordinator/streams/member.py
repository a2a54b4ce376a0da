"""A member of a streams group, a thread of a Kafka Streams application: a value, made from its two
records.

Owns: a member's fields, and its records.  Never: decides its tasks (reconciliation.py).  Kafka:
StreamsGroupMember; KIP-1071.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from kcluster.broker.coordinator.modern.group import LEAVE_EPOCH, LEAVE_STATIC_EPOCH
from kcluster.broker.coordinator.streams.reconciliation import MemberProgress, StreamsMemberState
from kcluster.broker.coordinator.streams.tasks import (
    NOTHING_HELD,
    HeldTasks,
    Task,
    TaskSet,
    by_subtopology,
    epochs_of,
    tasks_of,
)
from kcluster.protocol import messages as m

if TYPE_CHECKING:
    from kcluster.protocol.messages import (
        StreamsGroupCurrentMemberAssignmentValue,
        StreamsGroupHeartbeatRequest,
        StreamsGroupMemberMetadataValue,
    )

    CurrentTaskIds = StreamsGroupCurrentMemberAssignmentValue.TaskIds

TaskOffsets = Mapping[Task, int]
"""The progress of a task's state in its member's report: the sum of changelog offsets."""


class Endpoint(NamedTuple):
    """The address at which an application answers interactive queries."""

    host: str
    port: int


NOT_STARTED: Final = MemberProgress(0, 0, StreamsMemberState.STABLE, NOTHING_HELD, NOTHING_HELD)
LEAVING: Final = MemberProgress(
    LEAVE_EPOCH, LEAVE_EPOCH, StreamsMemberState.STABLE, NOTHING_HELD, NOTHING_HELD
)


class StreamsMember(Struct, frozen=True):
    """A member's report about itself, and its progress."""

    member_id: str
    instance_id: str | None = None
    """The instance id of a static member (from 4.4 on); None: it is dynamic."""
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topology_epoch: int = -1
    process_id: str = ""
    user_endpoint: Endpoint | None = None
    client_tags: tuple[tuple[str, str], ...] = ()
    """The client's tags, in order of keys."""

    progress: MemberProgress = NOT_STARTED

    @property
    def epoch(self) -> int:
        return self.progress.member_epoch

    @property
    def previous_epoch(self) -> int:
        return self.progress.previous_epoch

    @property
    def revocation_timeout_ms(self) -> int | None:
        must_revoke = self.progress.state is StreamsMemberState.UNREVOKED_TASKS
        return self.rebalance_timeout_ms if must_revoke else None

    def is_relevantly_other(self, before: StreamsMember) -> bool:
        """Whether the static member has changed in a way that needs a new assignment.  Kafka:
        hasEpochRelevantMemberConfigChanged."""
        return (self.topology_epoch, self.rack_id, self.client_tags, self.process_id) != (
            before.topology_epoch, before.rack_id, before.client_tags, before.process_id
        )  # fmt: skip

    # ----------------------------------------------------------------- as a static member

    @property
    def may_be_replaced(self) -> bool:
        return self.epoch == LEAVE_STATIC_EPOCH

    def away(self) -> StreamsMember:
        assigned = self.progress.assigned
        kept = HeldTasks(dict.fromkeys(assigned.active, 0), assigned.standby, assigned.warmup)
        progress = replace(
            self.progress,
            member_epoch=LEAVE_STATIC_EPOCH,
            assigned=kept,
            pending_revocation=NOTHING_HELD,
        )
        return replace(self, progress=progress)

    def back_as(self, member_id: str) -> StreamsMember:
        progress = replace(self.progress, member_epoch=0, previous_epoch=0)
        return replace(self, member_id=member_id, progress=progress)

    # ------------------------------------------------------------------------- its records

    def metadata(self) -> StreamsGroupMemberMetadataValue:
        written = m.StreamsGroupMemberMetadataValue
        endpoint = self.user_endpoint
        return written(
            instance_id=self.instance_id,
            rack_id=self.rack_id,
            client_id=self.client_id,
            client_host=self.client_host,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            topology_epoch=self.topology_epoch,
            process_id=self.process_id,
            user_endpoint=None if endpoint is None else written.Endpoint(*endpoint),
            client_tags=[written.KeyValue(*tag) for tag in self.client_tags],
        )

    def with_metadata(self, value: StreamsGroupMemberMetadataValue) -> StreamsMember:
        endpoint = value.user_endpoint
        return replace(
            self,
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            topology_epoch=value.topology_epoch,
            process_id=value.process_id,
            user_endpoint=None if endpoint is None else Endpoint(endpoint.host, endpoint.port),
            client_tags=tuple((tag.key, tag.value) for tag in value.client_tags),
        )

    def current(self) -> StreamsGroupCurrentMemberAssignmentValue:
        progress = self.progress
        assigned, pending = progress.assigned, progress.pending_revocation
        return m.StreamsGroupCurrentMemberAssignmentValue(
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

    def with_current(self, value: StreamsGroupCurrentMemberAssignmentValue | None) -> StreamsMember:
        if value is None:
            return replace(self, progress=LEAVING)
        epoch = value.member_epoch
        progress = MemberProgress(
            epoch,
            value.previous_member_epoch,
            StreamsMemberState(value.state),
            HeldTasks(
                _with_epochs(value.active_tasks, epoch),
                tasks_of(value.standby_tasks),
                tasks_of(value.warmup_tasks),
            ),
            HeldTasks(
                _with_epochs(value.active_tasks_pending_revocation, epoch),
                tasks_of(value.standby_tasks_pending_revocation),
                tasks_of(value.warmup_tasks_pending_revocation),
            ),
        )
        return replace(self, progress=progress)


def _ids(tasks: TaskSet) -> list[CurrentTaskIds]:
    ids = m.StreamsGroupCurrentMemberAssignmentValue.TaskIds
    return [ids(*pair) for pair in by_subtopology(tasks).items()]


def _active_ids(tasks: Mapping[Task, int]) -> list[CurrentTaskIds]:
    ids = m.StreamsGroupCurrentMemberAssignmentValue.TaskIds
    epochs = epochs_of(tasks)
    return [ids(id_, parts, epochs[id_]) for id_, parts in by_subtopology(tasks).items()]


def _with_epochs(listed: Iterable[CurrentTaskIds], member_epoch: int) -> dict[Task, int]:
    """The tasks in a record, with their epochs; records of older releases have no epochs."""
    tasks: dict[Task, int] = {}
    for ids in listed:
        epochs = ids.assignment_epochs
        if epochs is None or len(epochs) != len(ids.partitions):
            epochs = [member_epoch] * len(ids.partitions)
        for partition, epoch in zip(ids.partitions, epochs, strict=True):
            tasks[Task(ids.subtopology_id, partition)] = epoch
    return tasks


def with_reported(
    member: StreamsMember,
    body: StreamsGroupHeartbeatRequest,
    client_id: str,
    client_host: str,
    is_endpoint_whole: bool,
) -> StreamsMember:
    """The member after a heartbeat, which reports only changes.  `is_endpoint_whole`: a heartbeat
    without an endpoint removes the member's."""
    changes: dict[str, Any] = {"client_id": client_id, "client_host": client_host}
    if body.instance_id is not None:
        changes["instance_id"] = body.instance_id
    if is_endpoint_whole:
        changes["user_endpoint"] = None
    if body.rack_id is not None:
        changes["rack_id"] = body.rack_id
    if body.rebalance_timeout_ms != -1:
        changes["rebalance_timeout_ms"] = body.rebalance_timeout_ms
    if body.topology is not None:
        changes["topology_epoch"] = body.topology.epoch
    if body.process_id is not None:
        changes["process_id"] = body.process_id
    if body.user_endpoint is not None:
        changes["user_endpoint"] = Endpoint(body.user_endpoint.host, body.user_endpoint.port)
    if body.client_tags is not None:
        tags = {tag.key: tag.value for tag in body.client_tags}
        changes["client_tags"] = tuple(sorted(tags.items()))
    return replace(member, **changes)
