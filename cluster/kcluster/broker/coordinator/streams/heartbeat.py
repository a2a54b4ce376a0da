"""StreamsGroupHeartbeat: the changes by one heartbeat.

Owns: the steps of modern/heartbeat.py for a streams group, and the answer.  Never: changes the
group (the records do, when they are replayed), creates a topic (internal_topics.py).
Kafka: GroupMetadataManager.streamsGroupHeartbeat, streamsGroupLeave; KIP-1071.

    1 the member        joins, or reports its changes
      the topology      of the first member that joins; it cannot change yet
      the topics        configure the topology, if they have changed
    2 the group epoch   one more if any of this has changed
    3 the target        computed if it is older than the group epoch, and no delay holds it back
    4 the assignment    of this member goes a step towards the target (reconciliation.py)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from kcluster.broker.coordinator.interface import CoordinatorResult, RequestRefused, invalid
from kcluster.broker.coordinator.modern.group import JOIN_EPOCH, ToJoin
from kcluster.broker.coordinator.modern.heartbeat import Heartbeat, decide_leave, refuse_if_full
from kcluster.broker.coordinator.modern.refusals import unknown_state
from kcluster.broker.coordinator.streams.configured import (
    ConfiguredTopology,
    InvalidTopology,
    StatusDetail,
    StreamsStatus,
    configure,
)
from kcluster.broker.coordinator.streams.endpoints import endpoints
from kcluster.broker.coordinator.streams.group import NOT_VALIDATED, StreamsGroup
from kcluster.broker.coordinator.streams.internal_topics import InternalTopics
from kcluster.broker.coordinator.streams.member import StreamsMember, TaskOffsets, with_reported
from kcluster.broker.coordinator.streams.reconciliation import next_step
from kcluster.broker.coordinator.streams.target import new_targets
from kcluster.broker.coordinator.streams.tasks import NOTHING, Task, Tasks, by_subtopology, tasks_of
from kcluster.broker.coordinator.streams.topology import StreamsTopology, is_well_formed
from kcluster.contract import Request
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode
from kcluster.security.acls import AclOperation, AclResource

if TYPE_CHECKING:
    from kcluster.protocol.messages import (
        StreamsGroupHeartbeatRequest,
        StreamsGroupHeartbeatResponse,
    )

    TaskIdsRow = StreamsGroupHeartbeatRequest.TaskIds

MISSING_TAGS_SINCE: Final = 1
"""The version from which clients know MISSING_CLIENT_TAGS."""
_ERRORS_SHOWN: Final = 3
_HEARTBEATS_OF_AN_ERROR: Final = 2
"""The number of heartbeat intervals for which a topic that was not created is not tried again."""


def decide_streams_heartbeat(
    topics: InternalTopics, found: ToJoin[StreamsGroup], request: Request, now_ms: int
) -> CoordinatorResult[StreamsGroupHeartbeatResponse] | RequestRefused:
    """Decide on a heartbeat.  Kafka: streamsGroupHeartbeat."""
    body: StreamsGroupHeartbeatRequest = request.body
    group = found.group
    if body.member_epoch < JOIN_EPOCH:
        if body.shutdown_application:
            group.request_shutdown(body.member_id)
        answer = m.StreamsGroupHeartbeatResponse(
            member_id=body.member_id, member_epoch=body.member_epoch, status=[]
        )
        return decide_leave(group, body, answer, now_ms)
    return StreamsHeartbeat(topics, found, request, now_ms).decide()


class StreamsHeartbeat(Heartbeat[StreamsGroup, StreamsMember, Tasks]):
    """One heartbeat of a member that stays, or joins."""

    body: StreamsGroupHeartbeatRequest

    def __init__(
        self, topics: InternalTopics, found: ToJoin[StreamsGroup], request: Request, now_ms: int
    ) -> None:
        super().__init__(found, request, now_ms)
        self._topics = topics
        self._statuses: list[StatusDetail] = []
        self._configs = self.group.current_configs
        self._bumps = False
        """Whether the group gets a new epoch."""
        self._endpoint_epoch = self.group.endpoint_epoch
        self._offsets: TaskOffsets | None = None
        self._hash = self.group.metadata_hash

    def decide(self) -> CoordinatorResult[StreamsGroupHeartbeatResponse] | RequestRefused:
        before = self._full() or self.find(self.body.member_id)
        if isinstance(before, RequestRefused):
            return before
        reported = self._reported(before)
        topology = self._topology()
        if isinstance(topology, RequestRefused):
            return topology
        configured = self._configured(topology, reported)
        if isinstance(configured, RequestRefused):
            return configured
        refused = self._read_offsets() or self._update_epoch(configured)
        if refused is not None:
            return refused
        starts_delay = self._starts_delay
        after = self._reconcile(reported, *self._update_target(reported, configured, starts_delay))
        if isinstance(after, RequestRefused):
            return after
        answer = self._answer(before, after)
        refused = self._add_endpoints(answer, before, after, configured)
        if refused is not None:
            return refused
        if configured.problem is not None:
            self._statuses.append(configured.problem)
        self._add_shutdown()
        self._add_missing_tags(after)
        status = m.StreamsGroupHeartbeatResponse.Status
        answer.status = [status(each.status, each.detail) for each in self._statuses]

        def written(now_ms: int) -> None:
            self._keep(configured)
            self.note_written(after)
            self.start_timers(after, has_moved=after is not reported)
            stored = self.group.stored
            if self._offsets is not None:
                stored.task_offsets[after.member_id] = self._offsets
            if starts_delay:
                stored.start_initial_delay(now_ms)

        def committed(now_ms: int) -> None:
            if configured.missing_topics and configured.problem is not None:
                self._create_topics(configured, answer, now_ms)

        return CoordinatorResult(self.records, answer, written, committed)

    def _keep(self, configured: ConfiguredTopology) -> None:
        """Update the part of an existing group's state that is not in the log."""
        group, body = self.group, self.body
        group.configured = configured
        group.endpoint_epoch = self._endpoint_epoch
        group.note_checked_metadata(self.epoch)
        if body.shutdown_application:
            group.request_shutdown(body.member_id)

    # ---------------------------------------------------------------------- the member

    def _full(self) -> RequestRefused | None:
        """Refuse if the group is full; before 4.4, also refuse a known member that joins again."""
        body = self.body
        if not self.joins:
            return None
        known_id = body.member_id if self.group.is_of_4_4 else ""
        return refuse_if_full(self.group, known_id, body.instance_id)

    def repeats(self, member: StreamsMember) -> bool:
        """Whether all tasks that the client reports as its own are assigned to it."""
        owned = self._owned()
        return owned is not None and member.progress.assigned.contains(owned)

    def _owned(self) -> Tasks | None:
        """The tasks that the member reports to have; None if it does not report."""
        body = self.body
        if body.active_tasks is None or body.standby_tasks is None or body.warmup_tasks is None:
            return None
        return Tasks(
            tasks_of(body.active_tasks), tasks_of(body.standby_tasks), tasks_of(body.warmup_tasks)
        )

    def _reported(self, member: StreamsMember) -> StreamsMember:
        """The member, changed by the report in this heartbeat."""
        body, request = self.body, self.request
        is_endpoint_whole = self.group.is_of_4_4 and self.joins
        client = request.client_id or "", f"/{request.client_host}"
        updated = with_reported(member, body, *client, is_endpoint_whole)
        if updated != member:
            self.records.append(self.group.member_record(updated))
            self._bumps |= body.instance_id is None or updated.is_relevantly_other(member)
        return updated

    # -------------------------------------------------------------------- the topology

    def _topology(self) -> StreamsTopology | RequestRefused:
        known, declared = self.group.topology, self.body.topology
        if declared is None:
            return RequestRefused(ErrorCode.UNKNOWN_SERVER_ERROR) if known is None else known
        if not is_well_formed(declared):
            return RequestRefused(ErrorCode.UNKNOWN_SERVER_ERROR)
        topology = StreamsTopology.of(declared)
        if known is None:
            self.records.append(self.group.topology_record(topology))
            return topology
        if known.epoch <= topology.epoch and not known.same_as(topology):
            return invalid("Topology: that of a group cannot change yet")
        return known

    def _configured(
        self, topology: StreamsTopology, member: StreamsMember
    ) -> ConfiguredTopology | RequestRefused:
        """The topology matched with the present topics."""
        group = self.group
        if group.topology is not None and member.topology_epoch < topology.epoch:
            epochs = f"{member.topology_epoch}, older than {topology.epoch} of the group"
            detail = f"the member has topology epoch {epochs}"
            self._statuses.append(StatusDetail(StreamsStatus.STALE_TOPOLOGY, detail))
        configured = group.configured
        if group.topology is not None and configured is not None and group.has_checked_metadata():
            return configured
        image = group.broker.image
        self._hash = group.hash_of(topology.required_topics)
        has_changed = self._hash != group.metadata_hash
        self._bumps |= has_changed
        if configured is None or group.topology is None or has_changed:
            existing = {name: len(topic.partitions) for name, topic in image.topics.items()}
            result = configure(topology, existing)
            if isinstance(result, InvalidTopology):
                return RequestRefused(result.error, result.message)
            configured = result
        return configured

    def _update_epoch(self, configured: ConfiguredTopology) -> RequestRefused | None:
        """Increase the group epoch, if something has changed."""
        group, body = self.group, self.body
        validated = NOT_VALIDATED
        if configured.is_ready:
            validated = configured.epoch
            for listed in (body.active_tasks, body.standby_tasks, body.warmup_tasks):
                refused = _refuse_tasks(configured, listed)
                if refused is not None:
                    return refused
        is_other = validated != group.validated_topology_epoch
        if self._bumps or is_other or self._configs != group.assignment_configs:
            self.epoch += 1
            record = group.state_record(self.epoch, self._hash, validated, self._configs)
            self.records.append(record)
        return None

    def _read_offsets(self) -> RequestRefused | None:
        """Sums of changelog offsets, by task."""
        body = self.body
        for listed in (body.task_offsets, body.task_end_offsets):
            tasks = [Task(each.subtopology_id, each.partition) for each in listed or ()]
            if len(set(tasks)) < len(tasks):
                return invalid("TaskOffsets: a task is named twice")
        if body.task_offsets is not None:
            self._offsets = {
                Task(each.subtopology_id, each.partition): each.offset for each in body.task_offsets
            }
        return None

    # ---------------------------------------------------------------------- the target

    @property
    def _starts_delay(self) -> bool:
        """Whether the empty group begins to wait for more members."""
        group = self.group
        return not group.members and not group.is_delayed and group.initial_delay_ms > 0

    def _update_target(
        self, member: StreamsMember, configured: ConfiguredTopology, starts_delay: bool
    ) -> tuple[int, Tasks]:
        """The epoch of the target assignment, and this member's part of it."""
        group = self.group
        if starts_delay or group.is_delayed:
            self._add_delay("streams.initial.rebalance.delay.ms")
            return group.target_epoch, NOTHING
        known = dict(group.targets)
        if self.replaced is not None:
            known[member.member_id] = known.pop(self.replaced, NOTHING)
        last = group.target_epoch, known.get(member.member_id, NOTHING)
        if group.target_epoch >= self.epoch:
            return last
        if not group.can_assign(self.now_ms):
            self._add_delay(group.interval_config)
            return last
        offsets = None
        if group.is_of_4_4:
            offsets = dict(group.task_offsets)
            if self._offsets is not None:
                offsets[member.member_id] = self._offsets
        members = self.members_with(member)
        targets = new_targets(members, known, configured, self._configs, offsets)
        self.records += group.target_records(targets, known, self.epoch, self.now_ms)
        self.new_targets = targets
        return self.epoch, targets[member.member_id]

    def _add_delay(self, config: str) -> None:
        detail = f"the next assignment waits: {config}"
        self._statuses.append(StatusDetail(StreamsStatus.ASSIGNMENT_DELAYED, detail))

    def _reconcile(
        self, member: StreamsMember, target_epoch: int, target: Tasks
    ) -> StreamsMember | RequestRefused:
        """The member after a step towards its target; itself if there is none."""
        group, progress = self.group, member.progress
        if progress.is_reconciled_to(target_epoch):
            return member
        after = next_step(
            progress,
            member.process_id,
            target_epoch,
            target,
            self._owned(),
            group.holders,
            group.is_of_4_4,
        )
        if after is None:
            return unknown_state()
        if after == progress:
            return member
        moved = replace(member, progress=after)
        self.records.append(group.current_record(moved))
        return moved

    # ---------------------------------------------------------------------- the answer

    def _answer(self, before: StreamsMember, after: StreamsMember) -> StreamsGroupHeartbeatResponse:
        response = m.StreamsGroupHeartbeatResponse(
            member_id=after.member_id,
            member_epoch=after.epoch,
            heartbeat_interval_ms=self.group.config_ms(self.group.heartbeat_config),
        )
        if self.group.is_of_4_4:
            config_ms = self.group.config_ms
            response.task_offset_interval_ms = config_ms("streams.task.offset.interval.ms")
            response.acceptable_recovery_lag = config_ms("streams.acceptable.recovery.lag")
        if self._shows_tasks(before, after):
            assigned = after.progress.assigned
            response.active_tasks = _rows(assigned.active)
            response.standby_tasks = _rows(assigned.standby)
            response.warmup_tasks = _rows(assigned.warmup)
        return response

    def _shows_tasks(self, before: StreamsMember, after: StreamsMember) -> bool:
        """Whether the answer has tasks: it does if the member joins, or if its tasks have
        changed."""
        return self.joins or before.progress.assigned != after.progress.assigned

    def _add_endpoints(
        self,
        answer: StreamsGroupHeartbeatResponse,
        before: StreamsMember,
        after: StreamsMember,
        configured: ConfiguredTopology,
    ) -> RequestRefused | None:
        group = self.group
        if self._changes_endpoints(before, after):
            self._endpoint_epoch += 1
        if self._endpoint_epoch != self.body.endpoint_information_epoch:
            rows = endpoints(
                group.members, after, configured, group.broker.image, self.replaced, group.is_of_4_4
            )
            if rows is None:
                return RequestRefused(ErrorCode.UNKNOWN_SERVER_ERROR)
            answer.partitions_by_user_endpoint = rows
        if group.is_stored:
            answer.endpoint_information_epoch = self._endpoint_epoch
        return None

    def _changes_endpoints(self, before: StreamsMember, after: StreamsMember) -> bool:
        endpoint = after.user_endpoint
        if not self.group.is_of_4_4:
            return endpoint is not None and self._shows_tasks(before, after)
        if before.user_endpoint != endpoint:
            return True
        return endpoint is not None and before.progress.assigned != after.progress.assigned

    def _add_missing_tags(self, member: StreamsMember) -> None:
        """Add the status of missing tags, for clients that know it."""
        if self.request.api_version < MISSING_TAGS_SINCE:
            return
        known = dict(member.client_tags)
        missing = [tag for tag in self.group.rack_aware_tags if tag not in known]
        if missing:
            detail = f"the client has no tags {', '.join(missing)}: set client.tag.<key>"
            self._statuses.append(StatusDetail(StreamsStatus.MISSING_CLIENT_TAGS, detail))

    def _add_shutdown(self) -> None:
        by = self.group.shutdown_requested_by
        if by is None and self.body.shutdown_application:
            by = self.body.member_id
        if by is not None:
            detail = f"member {by} has failed and asked all members to shut down"
            self._statuses.append(StatusDetail(StreamsStatus.SHUTDOWN_APPLICATION, detail))

    def _create_topics(
        self, configured: ConfiguredTopology, answer: StreamsGroupHeartbeatResponse, now_ms: int
    ) -> None:
        """Request the missing topics, and add the errors of earlier requests to the answer."""
        denied = self._uncreatable(configured)
        if denied:
            detail = f"Unauthorized to CREATE on topics {', '.join(denied)}."
            for status in answer.status or ():
                if status.status_code == StreamsStatus.MISSING_INTERNAL_TOPICS:
                    status.status_detail += f"; {detail}"
            return
        interval_ms = self.group.config_ms(self.group.heartbeat_config)
        errors_ms = interval_ms * _HEARTBEATS_OF_AN_ERROR
        self._topics.create(configured.missing_topics, errors_ms, now_ms)
        errors = self._topics.errors_of(configured.missing_topics, now_ms)
        if not errors:
            return
        shown = ", ".join(f"{name} ({why})" for name, why in errors[:_ERRORS_SHOWN])
        if len(errors) > _ERRORS_SHOWN:
            shown += f" and {len(errors) - _ERRORS_SHOWN} more"
        for status in answer.status or ():
            if status.status_code == StreamsStatus.MISSING_INTERNAL_TOPICS:
                status.status_detail += f"; could not create {shown}"

    def _uncreatable(self, configured: ConfiguredTopology) -> list[str]:
        """The missing topics that the member's client may not create; if there are any, none is
        created."""
        access = self.group.broker.access
        if access is None:
            return []
        rights = access.rights_of(self.request)
        if rights.may_on_cluster(AclOperation.CREATE, silently=True):
            return []
        names = list(configured.missing_topics)
        denied = rights.denied(AclOperation.CREATE, AclResource.TOPIC, names)
        return [name for name in names if name in denied]


def _rows(tasks: Iterable[Task]) -> list[StreamsGroupHeartbeatResponse.TaskIds]:
    row = m.StreamsGroupHeartbeatResponse.TaskIds
    return [row(*each) for each in by_subtopology(tasks).items()]


def _refuse_tasks(
    configured: ConfiguredTopology, listed: list[TaskIdsRow] | None
) -> RequestRefused | None:
    """Refuse the first task that the topology does not have."""
    assert configured.subtopologies is not None
    for ids in listed or ():
        known = configured.subtopologies.get(ids.subtopology_id)
        if known is None:
            return invalid(f"the topology has no subtopology {ids.subtopology_id}")
        for partition in ids.partitions:
            if not 0 <= partition < known.task_count:
                return invalid(
                    f"task {partition}: subtopology {ids.subtopology_id} has "
                    f"{known.task_count} tasks, from 0"
                )
    return None
