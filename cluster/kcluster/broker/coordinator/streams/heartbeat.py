"""What a heartbeat of a streams group's member does: the records to write, and the answer.

Owns: the decision, made on the group as it is; nothing changes before the records are written.
Never: writes, sets a timer, creates a topic (handlers/groups/streams_groups.py has that done).
Kafka: GroupMetadataManager.streamsGroupHeartbeat, streamsGroupLeave.

    1. the member: joins, or reports what is new about it
    2. the topology: of the first member that joins; it cannot change yet
    3. the topics: configure the topology, if they have changed
    4. the group epoch: one more if something of the above changed
    5. the target: computed if it is older than the group epoch, and no delay holds it back
    6. the member's own next step towards its target
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from kcluster.broker.coordinator.group_log import LogRecord
from kcluster.broker.coordinator.modern.group import JOIN_EPOCH, LEAVE_STATIC_EPOCH, GroupRefusal
from kcluster.broker.coordinator.modern.refusals import (
    fenced_epoch,
    full_group,
    known_static_member,
    unknown_member,
    unknown_state,
)
from kcluster.broker.coordinator.streams.configured import (
    ConfiguredTopology,
    InvalidTopology,
    StatusDetail,
    StreamsStatus,
    configure,
)
from kcluster.broker.coordinator.streams.endpoints import endpoints
from kcluster.broker.coordinator.streams.group import StreamsDecision, StreamsGroup
from kcluster.broker.coordinator.streams.member import (
    StreamsMember,
    TaskOffsets,
    away,
    is_relevant_change,
    updated_details,
)
from kcluster.broker.coordinator.streams.reconciliation import next_step
from kcluster.broker.coordinator.streams.records import (
    NOT_VALIDATED,
    GroupState,
    StreamsGroupRecord,
    StreamsMemberRecord,
    StreamsMemberTargetRecord,
    StreamsProgressRecord,
    StreamsTopologyRecord,
    TargetMetadata,
)
from kcluster.broker.coordinator.streams.target import new_target
from kcluster.broker.coordinator.streams.tasks import NOTHING, Task, Tasks, by_subtopology, tasks_of
from kcluster.broker.coordinator.streams.topology import StreamsTopology, is_well_formed
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from kcluster.protocol.messages import (
        StreamsGroupHeartbeatRequest,
        StreamsGroupHeartbeatResponse,
    )

    TaskIdsRow = StreamsGroupHeartbeatRequest.TaskIds


MISSING_TAGS_SINCE: Final = 1
"""The version from which clients know MISSING_CLIENT_TAGS."""


class _Refusal(Exception):
    """Ends a decision; never leaves this module."""

    def __init__(self, refused: GroupRefusal) -> None:
        super().__init__(refused)
        self.refused = refused


def decide_leave(
    group: StreamsGroup, member_id: str, instance_id: str | None, epoch: int
) -> StreamsDecision | GroupRefusal:
    """The member leaves; a static one maybe only until it is back."""
    response = m.StreamsGroupHeartbeatResponse(member_id=member_id, member_epoch=epoch, status=[])
    if instance_id is None:
        if member_id not in group.members:
            return unknown_member(group.group_id, member_id)
        return StreamsDecision(group.without(member_id), response)
    member = known_static_member(group.static_member(instance_id), instance_id, member_id)
    if isinstance(member, GroupRefusal):
        return member
    if epoch != LEAVE_STATIC_EPOCH:
        return StreamsDecision(group.without(member_id), response)
    progress = away(member.progress, LEAVE_STATIC_EPOCH)
    return StreamsDecision([StreamsProgressRecord(group.group_id, member_id, progress)], response)


def decide_heartbeat(
    group: StreamsGroup,
    body: StreamsGroupHeartbeatRequest,
    client: tuple[str, str],
    version: int,
    first: Sequence[LogRecord],
    now_ms: int,
) -> StreamsDecision | GroupRefusal:
    """`client`: its id and host.  `version`: of the request.  `first`: records that turn a classic
    group into this one."""
    try:
        return _StreamsHeartbeat(group, body, client, version, first, now_ms).decide()
    except _Refusal as refusal:
        return refusal.refused


# ---------------------------------------------------------------------------- one heartbeat


class _StreamsHeartbeat:
    def __init__(
        self,
        group: StreamsGroup,
        body: StreamsGroupHeartbeatRequest,
        client: tuple[str, str],
        version: int,
        first: Sequence[LogRecord],
        now_ms: int,
    ) -> None:
        self._group = group
        self._body = body
        self._client = client
        self._version = version
        self._now_ms = now_ms
        self._records = list(first)
        self._statuses: list[StatusDetail] = []
        self._bumps = False
        """Whether the group gets a new epoch."""
        self._new_targets: dict[str, Tasks] | None = None
        self._replaced: str | None = None
        """The id of the static member whose place this one takes."""
        self._offsets: TaskOffsets | None = None

    def decide(self) -> StreamsDecision:
        group = self._group
        before = self._member()
        after = self._with_details(before)
        topology = self._topology()
        if group.topology is not None and after.details.topology_epoch < topology.epoch:
            self._add_stale(after.details.topology_epoch, topology.epoch)
        configured, hash_ = self._configured(topology)
        self._offsets = self._reported_offsets()
        configs = group.current_configs
        epoch = self._epoch(configured, hash_, configs)
        starts_delay = not group.members and not group.is_delayed and group.initial_delay_ms > 0
        target_epoch, target = self._target(after, epoch, configured, configs, starts_delay)
        after, has_progressed = self._next(after, target_epoch, target)
        decision = StreamsDecision(
            self._records,
            self._response(before, after),
            configured=configured,
            endpoint_epoch=group.endpoint_epoch,
            group_epoch=epoch,
            starts_initial_delay=starts_delay,
            has_progressed=has_progressed,
            joined=after.details if before.member_id not in group.members else None,
            targets=self._new_targets,
            replaced=self._replaced,
            task_offsets=self._offsets,
        )
        self._add_endpoints(decision, before, after)
        if configured.problem is not None:
            decision.missing_topics = configured.missing_topics
            self._statuses.append(configured.problem)
        self._add_shutdown()
        self._add_missing_tags(after)
        status = m.StreamsGroupHeartbeatResponse.Status
        decision.response.status = [status(each.status, each.detail) for each in self._statuses]
        return decision

    # ---------------------------------------------------------------------- the member

    def _member(self) -> StreamsMember:
        group, body = self._group, self._body
        member = group.members.get(body.member_id)
        is_joining = body.member_epoch == JOIN_EPOCH
        if is_joining:
            self._check_size(member)
        if body.instance_id is not None:
            return self._static_member(body.instance_id, is_joining)
        if is_joining:
            return StreamsMember(body.member_id) if member is None else member
        if member is None:
            raise _Refusal(unknown_member(group.group_id, body.member_id))
        self._check_epoch(member)
        return member

    def _check_size(self, member: StreamsMember | None) -> None:
        group, size = self._group, self._group.broker.config.group_streams_max_size
        if len(group.members) < size:
            return
        is_known = member is not None or group.static_member(self._body.instance_id) is not None
        if not (group.is_of_4_4 and is_known):
            raise _Refusal(full_group(size, "group.streams.max.size"))

    def _static_member(self, instance_id: str, is_joining: bool) -> StreamsMember:
        group, member_id = self._group, self._body.member_id
        if not is_joining:
            known = known_static_member(group.static_member(instance_id), instance_id, member_id)
            if isinstance(known, GroupRefusal):
                raise _Refusal(known)
            self._check_epoch(known)
            return known
        previous = group.static_member(instance_id)
        if previous is None:
            return group.members.get(member_id) or StreamsMember(member_id)
        if previous.epoch != LEAVE_STATIC_EPOCH:
            message = (
                f"{member_id} cannot join as instance id {instance_id}: "
                f"member {previous.member_id} has it"
            )
            raise _Refusal(GroupRefusal(ErrorCode.UNRELEASED_INSTANCE_ID, message))
        return self._take_place_of(previous)

    def _take_place_of(self, previous: StreamsMember) -> StreamsMember:
        """Under the new member id, with the tasks of the old one."""
        group, id_ = self._group, self._body.member_id
        self._replaced = previous.member_id
        progress = replace(previous.progress, member_epoch=0, previous_epoch=0)
        self._records += [
            *group.removal_of(previous.member_id),
            StreamsMemberRecord(group.group_id, id_, previous.details),
            StreamsMemberTargetRecord(
                group.group_id, id_, group.targets.get(previous.member_id, NOTHING)
            ),
            StreamsProgressRecord(group.group_id, id_, progress),
        ]
        return replace(previous, member_id=id_, progress=progress)

    def _check_epoch(self, member: StreamsMember) -> None:
        """The epoch before is taken if nothing else is owned: the answer may have been lost."""
        received, known = self._body.member_epoch, member.epoch
        if received == known:
            return
        owned = self._owned()
        if (
            received == member.progress.previous_epoch
            and received < known
            and owned is not None
            and member.progress.assigned.contains(owned)
        ):
            return
        raise _Refusal(fenced_epoch(received, known, member.progress.previous_epoch))

    def _owned(self) -> Tasks | None:
        """What the member reports to have; None if it does not."""
        body = self._body
        if body.active_tasks is None or body.standby_tasks is None or body.warmup_tasks is None:
            return None
        return Tasks(
            tasks_of(body.active_tasks), tasks_of(body.standby_tasks), tasks_of(body.warmup_tasks)
        )

    def _with_details(self, member: StreamsMember) -> StreamsMember:
        body, is_of_4_4 = self._body, self._group.is_of_4_4
        is_endpoint_whole = is_of_4_4 and body.member_epoch == JOIN_EPOCH
        details = updated_details(member.details, body, *self._client, is_endpoint_whole)
        if details == member.details:
            return member
        self._records.append(StreamsMemberRecord(self._group.group_id, member.member_id, details))
        self._bumps |= body.instance_id is None or is_relevant_change(member.details, details)
        return replace(member, details=details)

    # -------------------------------------------------------------------- the topology

    def _topology(self) -> StreamsTopology:
        known, declared = self._group.topology, self._body.topology
        if declared is None:
            if known is None:
                raise _Refusal(GroupRefusal(ErrorCode.UNKNOWN_SERVER_ERROR))
            return known
        if not is_well_formed(declared):
            raise _Refusal(GroupRefusal(ErrorCode.UNKNOWN_SERVER_ERROR))
        topology = StreamsTopology.of(declared)
        if known is None:
            self._records.append(StreamsTopologyRecord(self._group.group_id, topology))
            return topology
        if known.epoch <= topology.epoch and not known.same_as(topology):
            raise _invalid("Topology: that of a group cannot change yet")
        return known

    def _add_stale(self, of_member: int, of_group: int) -> None:
        detail = f"the member has topology epoch {of_member}, older than {of_group} of the group"
        self._statuses.append(StatusDetail(StreamsStatus.STALE_TOPOLOGY, detail))

    def _configured(self, topology: StreamsTopology) -> tuple[ConfiguredTopology, int]:
        """(the topology with the topics as they are, the hash of their metadata)."""
        group = self._group
        configured = group.configured
        if group.topology is not None and configured is not None and group.has_checked_metadata():
            return configured, group.metadata_hash
        image = group.broker.image
        hash_ = group.hash_of(topology.required_topics)
        has_changed = hash_ != group.metadata_hash
        self._bumps |= has_changed
        if configured is None or group.topology is None or has_changed:
            existing = {name: len(topic.partitions) for name, topic in image.topics.items()}
            result = configure(topology, existing)
            if isinstance(result, InvalidTopology):
                raise _Refusal(GroupRefusal(result.error, result.message))
            configured = result
        return configured, hash_

    def _epoch(
        self, configured: ConfiguredTopology, hash_: int, configs: tuple[tuple[str, str], ...]
    ) -> int:
        """The group epoch after this heartbeat."""
        group = self._group
        validated = NOT_VALIDATED
        if configured.is_ready:
            validated = configured.epoch
            for listed in (
                self._body.active_tasks, self._body.standby_tasks, self._body.warmup_tasks
            ):  # fmt: skip
                _check_tasks(configured, listed)
        if validated != group.validated_topology_epoch or configs != group.assignment_configs:
            self._bumps = True
        if not self._bumps:
            return group.epoch
        epoch = group.epoch + 1
        state = GroupState(epoch, hash_, validated, configs)
        self._records.append(StreamsGroupRecord(group.group_id, state))
        return epoch

    def _reported_offsets(self) -> TaskOffsets | None:
        """Sums of changelog offsets, by task."""
        body = self._body
        for listed in (body.task_offsets, body.task_end_offsets):
            tasks = [Task(each.subtopology_id, each.partition) for each in listed or ()]
            if len(set(tasks)) < len(tasks):
                raise _invalid("TaskOffsets: a task is named twice")
        if body.task_offsets is None:
            return None
        return {
            Task(each.subtopology_id, each.partition): each.offset for each in body.task_offsets
        }

    # ---------------------------------------------------------------------- the target

    def _target(
        self,
        member: StreamsMember,
        epoch: int,
        configured: ConfiguredTopology,
        configs: tuple[tuple[str, str], ...],
        starts_delay: bool,
    ) -> tuple[int, Tasks]:
        """(target epoch, the member's target)."""
        group = self._group
        if starts_delay or group.is_delayed:
            self._add_delay("streams.initial.rebalance.delay.ms")
            return group.target_epoch, NOTHING
        targets = dict(group.targets)
        members = {**group.members, member.member_id: member}
        if self._replaced is not None:
            targets[member.member_id] = targets.pop(self._replaced, NOTHING)
            del members[self._replaced]
        last = group.target_epoch, targets.get(member.member_id, NOTHING)
        if group.target_epoch >= epoch:
            return last
        if not group.can_assign(self._now_ms):
            self._add_delay(group.interval_config)
            return last
        offsets = None
        if group.is_of_4_4:
            offsets = dict(group.task_offsets)
            if self._offsets is not None:
                offsets[member.member_id] = self._offsets
        metadata = TargetMetadata(epoch, self._now_ms)
        new = new_target(group.group_id, members, targets, configured, configs, metadata, offsets)
        self._records += new.records
        self._new_targets = new.targets
        return epoch, new.targets[member.member_id]

    def _add_delay(self, config: str) -> None:
        detail = f"the next assignment waits: {config}"
        self._statuses.append(StatusDetail(StreamsStatus.ASSIGNMENT_DELAYED, detail))

    def _next(
        self, member: StreamsMember, target_epoch: int, target: Tasks
    ) -> tuple[StreamsMember, bool]:
        """(the member after its next step, whether it took one)."""
        progress = member.progress
        if progress.is_reconciled_to(target_epoch):
            return member, False
        process_id, holders = member.details.process_id, self._group.holders
        is_of_4_4 = self._group.is_of_4_4
        owned = self._owned()
        after = next_step(progress, process_id, target_epoch, target, owned, holders, is_of_4_4)
        if after is None:
            raise _Refusal(unknown_state())
        if after == progress:
            return member, False
        record = StreamsProgressRecord(self._group.group_id, member.member_id, after)
        self._records.append(record)
        return replace(member, progress=after), True

    # ---------------------------------------------------------------------- the answer

    def _response(
        self, before: StreamsMember, after: StreamsMember
    ) -> StreamsGroupHeartbeatResponse:
        response = m.StreamsGroupHeartbeatResponse(
            member_id=after.member_id,
            member_epoch=after.epoch,
            heartbeat_interval_ms=self._group.config_ms("streams.heartbeat.interval.ms"),
        )
        if self._group.is_of_4_4:
            config_ms = self._group.config_ms
            response.task_offset_interval_ms = config_ms("streams.task.offset.interval.ms")
            response.acceptable_recovery_lag = config_ms("streams.acceptable.recovery.lag")
        if self._shows_tasks(before, after):
            assigned = after.progress.assigned
            response.active_tasks = _rows(assigned.active)
            response.standby_tasks = _rows(assigned.standby)
            response.warmup_tasks = _rows(assigned.warmup)
        return response

    def _shows_tasks(self, before: StreamsMember, after: StreamsMember) -> bool:
        """Tasks are shown to who joins, and when they have changed."""
        is_joining = self._body.member_epoch == JOIN_EPOCH
        return is_joining or before.progress.assigned != after.progress.assigned

    def _add_endpoints(
        self, decision: StreamsDecision, before: StreamsMember, after: StreamsMember
    ) -> None:
        group = self._group
        if self._changes_endpoints(before, after):
            decision.endpoint_epoch += 1
        if decision.endpoint_epoch != self._body.endpoint_information_epoch:
            assert decision.configured is not None
            rows = endpoints(
                group.members,
                after,
                decision.configured,
                group.broker.image,
                self._replaced,
                group.is_of_4_4,
            )
            if rows is None:
                raise _Refusal(GroupRefusal(ErrorCode.UNKNOWN_SERVER_ERROR))
            decision.response.partitions_by_user_endpoint = rows
        if group.is_stored:
            decision.response.endpoint_information_epoch = decision.endpoint_epoch

    def _changes_endpoints(self, before: StreamsMember, after: StreamsMember) -> bool:
        endpoint = after.details.user_endpoint
        if not self._group.is_of_4_4:
            return endpoint is not None and self._shows_tasks(before, after)
        if before.details.user_endpoint != endpoint:
            return True
        return endpoint is not None and before.progress.assigned != after.progress.assigned

    def _add_missing_tags(self, member: StreamsMember) -> None:
        """Older clients do not know this status."""
        if self._version < MISSING_TAGS_SINCE:
            return
        known = dict(member.details.client_tags)
        missing = [tag for tag in self._group.rack_aware_tags if tag not in known]
        if missing:
            detail = f"the client has no tags {', '.join(missing)}: set client.tag.<key>"
            self._statuses.append(StatusDetail(StreamsStatus.MISSING_CLIENT_TAGS, detail))

    def _add_shutdown(self) -> None:
        by = self._group.shutdown_requested_by
        if by is None and self._body.shutdown_application:
            by = self._body.member_id
        if by is not None:
            detail = f"member {by} has failed and asked all members to shut down"
            self._statuses.append(StatusDetail(StreamsStatus.SHUTDOWN_APPLICATION, detail))


def _invalid(message: str) -> _Refusal:
    return _Refusal(GroupRefusal(ErrorCode.INVALID_REQUEST, message))


def _rows(tasks: Iterable[Task]) -> list[StreamsGroupHeartbeatResponse.TaskIds]:
    row = m.StreamsGroupHeartbeatResponse.TaskIds
    return [row(*each) for each in by_subtopology(tasks).items()]


def _check_tasks(configured: ConfiguredTopology, listed: list[TaskIdsRow] | None) -> None:
    """Refuse tasks that the topology does not have."""
    assert configured.subtopologies is not None
    for ids in listed or ():
        known = configured.subtopologies.get(ids.subtopology_id)
        if known is None:
            raise _invalid(f"the topology has no subtopology {ids.subtopology_id}")
        for partition in ids.partitions:
            if not 0 <= partition < known.task_count:
                raise _invalid(
                    f"task {partition}: subtopology {ids.subtopology_id} has "
                    f"{known.task_count} tasks, from 0"
                )
