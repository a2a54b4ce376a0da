"""A streams group: its topology, its members, and their tasks.

Owns: the state of the group's records, its names for clients, its timers, its rules for offsets.
Never: decides on a heartbeat (heartbeat.py).  Kafka: StreamsGroup, GroupMetadataManager's methods
for it; KIP-1071.

The configured topology, the epoch of endpoints and a requested shutdown are not in the log: a new
coordinator configures the topology with the next heartbeat, and forgets the rest.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum
from typing import Final

from kcluster.broker.coordinator.classic_group import ClassicGroup
from kcluster.broker.coordinator.group import Committer, Group
from kcluster.broker.coordinator.group_log import LogRecord
from kcluster.broker.coordinator.interface import GroupHome, RequestRefused, ignore_outcome
from kcluster.broker.coordinator.modern.configs import group_config
from kcluster.broker.coordinator.modern.group import FIRST_EPOCH, ModernGroup, ToJoin
from kcluster.broker.coordinator.modern.records import (
    STREAMS,
    GroupMetadata,
    StreamsGroupMetadata,
    StreamsGroupTopology,
)
from kcluster.broker.coordinator.streams.configured import ConfiguredTopology
from kcluster.broker.coordinator.streams.member import StreamsMember, TaskOffsets
from kcluster.broker.coordinator.streams.target import (
    RACK_AWARE_TAGS,
    STANDBYS,
    new_targets,
    read_partitions,
)
from kcluster.broker.coordinator.streams.tasks import (
    NOTHING,
    Holders,
    Task,
    Tasks,
    by_subtopology,
    tasks_of,
)
from kcluster.broker.coordinator.streams.topology import StreamsTopology
from kcluster.events.clients import AssignedPartitions
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode

MEMBER_COMMITS_SINCE: Final = 9
"""OffsetCommit version from which requests name a member epoch."""

_INITIAL_DELAY: Final = "initial-rebalance"
"""The phase in which an empty group waits for more members."""

NOT_VALIDATED: Final = -1
"""The epoch of a topology that has not been validated."""


class StreamsGroupState(StrEnum):
    """The states, by the names that clients see."""

    EMPTY = "Empty"
    NOT_READY = "NotReady"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class StreamsGroup(ModernGroup[StreamsMember, Tasks]):
    """A streams group: members by id, their targets, and the topology that they share."""

    kind = "streams"
    noun = "streams group"
    protocol = "streams"
    session_config = "streams.session.timeout.ms"
    interval_config = "streams.assignment.interval.ms"
    heartbeat_config = "streams.heartbeat.interval.ms"
    size_config = "group.streams.max.size"
    record_types = STREAMS
    member_type = StreamsMember
    nothing = NOTHING
    yields_to_classic = True

    def __init__(self, group_id: str, home: GroupHome) -> None:
        super().__init__(group_id, home)
        self.target_epoch = FIRST_EPOCH
        self.topology: StreamsTopology | None = None
        self._reader_of: dict[str, str] = {}
        """The id of the subtopology that reads each topic of the application."""
        self.validated_topology_epoch = 0
        """The epoch of the topology for which the topics were found valid; -1 if they are not."""
        self.assignment_configs: tuple[tuple[str, str], ...] = ()
        self.holders = Holders()
        self.configured: ConfiguredTopology | None = None
        self.endpoint_epoch = 0
        """A number that increases when a member with an endpoint gets other tasks."""
        self.shutdown_requested_by: str | None = None
        """The member that requested a shutdown."""
        self.task_offsets: dict[str, TaskOffsets] = {}
        """The task offsets that each member reported; a new coordinator knows none."""

    @classmethod
    def find_to_join(
        cls, current: Group | None, group_id: str, home: GroupHome, now_ms: int
    ) -> ToJoin[StreamsGroup] | RequestRefused:
        """Find the group of a member that joins; a streams group takes the place of a classic group
        without members."""
        if isinstance(current, ClassicGroup) and current.is_unused:
            return ToJoin(cls(group_id, home), current.tombstones())
        return super().find_to_join(current, group_id, home, now_ms)

    # ------------------------------------------------------------------- for clients

    @property
    def assignor_name(self) -> str:
        """The assignor of the next assignment: streams.assignor.name, or the broker's first."""
        name = group_config(self.broker, self.group_id, "streams.assignor.name")
        available = self.broker.config.group_streams_assignors
        return str(name) if name in available else available[0]

    @property
    def state(self) -> StreamsGroupState:
        if not self.members:
            return StreamsGroupState.EMPTY
        topology = self.topology
        if topology is None or topology.epoch != self.validated_topology_epoch:
            return StreamsGroupState.NOT_READY
        if self.epoch > self.target_epoch:
            return StreamsGroupState.ASSIGNING
        if all(each.progress.is_reconciled_to(self.target_epoch) for each in self.members.values()):
            return StreamsGroupState.STABLE
        return StreamsGroupState.RECONCILING

    @property
    def state_name(self) -> str:
        return self.state.value

    @property
    def protocol_type(self) -> str:
        return "streams"

    @property
    def max_size(self) -> int:
        return self.broker.config.group_streams_max_size

    # ----------------------------------------------------------------------- records

    def epoch_record(self, epoch: int, hash_of_topics: int) -> GroupMetadata:
        return self.state_record(
            epoch, hash_of_topics, self.validated_topology_epoch, self.assignment_configs
        )

    def state_record(
        self,
        epoch: int,
        hash_of_topics: int,
        validated_topology_epoch: int,
        configs: Iterable[tuple[str, str]],
    ) -> StreamsGroupMetadata:
        """The group's own record."""
        message = m.StreamsGroupMetadataValue
        value = message(
            epoch=epoch,
            metadata_hash=hash_of_topics,
            validated_topology_epoch=validated_topology_epoch,
            last_assignment_configs=[message.LastAssignmentConfig(*pair) for pair in configs],
        )
        return StreamsGroupMetadata(self.group_id, value)

    def topology_record(self, topology: StreamsTopology) -> StreamsGroupTopology:
        return StreamsGroupTopology(self.group_id, topology.encoded())

    def read_target(self, value: m.StreamsGroupTargetAssignmentMemberValue) -> Tasks:
        return Tasks(
            tasks_of(value.active_tasks),
            tasks_of(value.standby_tasks),
            tasks_of(value.warmup_tasks),
        )

    def written_target(self, target: Tasks) -> m.StreamsGroupTargetAssignmentMemberValue:
        message = m.StreamsGroupTargetAssignmentMemberValue
        roles = (target.active, target.standby, target.warmup)
        return message(
            *([message.TaskIds(*ids) for ids in by_subtopology(role).items()] for role in roles)
        )

    def hash_without(self, leavers: Collection[StreamsMember]) -> int:
        """The hash of the topology's topics; members have no effect on it."""
        return self.metadata_hash

    def tombstones_of(self, member_ids: Iterable[str]) -> list[LogRecord]:
        return [*super().tombstones_of(member_ids), StreamsGroupTopology(self.group_id, None)]

    def replay_group(self, value: m.StreamsGroupMetadataValue) -> None:
        self.validated_topology_epoch = value.validated_topology_epoch
        configs = value.last_assignment_configs or ()
        self.assignment_configs = tuple((pair.key, pair.value) for pair in configs)

    def replay_other(self, record: LogRecord) -> None:
        match record:
            case StreamsGroupTopology(value=None):
                self.topology, self._reader_of = None, {}
            case StreamsGroupTopology(value=value):
                self.topology = StreamsTopology.of(value)
                self._reader_of = self.topology.subtopology_of_topic
            case _:
                super().replay_other(record)

    def on_exit(self, member: StreamsMember) -> None:
        for held in (member.progress.assigned, member.progress.pending_revocation):
            self.holders.remove(held, member.process_id)

    def on_enter(self, member: StreamsMember) -> None:
        for held in (member.progress.assigned, member.progress.pending_revocation):
            self.holders.add(held, member.process_id)

    def on_removed(self, member_id: str) -> None:
        super().on_removed(member_id)
        self.task_offsets.pop(member_id, None)
        if not self.members:
            self.shutdown_requested_by = None

    # ------------------------------------------------------------------------ timers

    @property
    def is_delayed(self) -> bool:
        """Whether the group, empty until just now, still waits for more members."""
        return self.timers.has_phase(_INITIAL_DELAY)

    @property
    def initial_delay_ms(self) -> int:
        return self.config_ms("streams.initial.rebalance.delay.ms")

    @property
    def current_configs(self) -> tuple[tuple[str, str], ...]:
        """The present configs of the assignment."""
        standbys = self.config_ms("streams.num.standby.replicas")
        configs = ((STANDBYS, str(standbys)),)
        tags = self.rack_aware_tags
        return (*configs, (RACK_AWARE_TAGS, ",".join(tags))) if tags else configs

    @property
    def rack_aware_tags(self) -> tuple[str, ...]:
        """The keys of the client tags that members should have (from 4.4 on)."""
        if not self.is_of_4_4:
            return ()
        tags = group_config(self.broker, self.group_id, "streams.rack.aware.assignment.tags")
        assert isinstance(tags, tuple), tags
        return tags

    def assigned_partitions(self, targets: Mapping[str, Tasks]) -> Iterable[AssignedPartitions]:
        assert self.configured is not None
        return read_partitions(targets, self.configured, self.broker.image)

    def request_shutdown(self, member_id: str) -> None:
        """Answer every heartbeat from now on with a request to shut down the application."""
        if self.shutdown_requested_by is None:
            self.shutdown_requested_by = member_id

    def start_initial_delay(self, now_ms: int) -> None:
        ends_ms = now_ms + self.initial_delay_ms
        self.timers.start_phase(_INITIAL_DELAY, ends_ms, self._end_initial_delay)

    def _end_initial_delay(self, now_ms: int) -> None:
        configured = self.configured
        is_due = self.members and self.epoch > self.target_epoch and self.can_assign(now_ms)
        if configured is None or not is_due:
            return
        offsets = self.task_offsets if self.is_of_4_4 else None
        targets = new_targets(
            self.members, self.targets, configured, self.assignment_configs, offsets
        )
        records = self.target_records(targets, self.targets, self.epoch, now_ms)
        if self.write(records, ignore_outcome, now_ms):
            self.note_assigned(self.epoch, targets)

    def abandon(self) -> None:
        super().abandon()
        self.timers.end_phase(_INITIAL_DELAY)

    # ----------------------------------------------------------------------- offsets

    def admit_commit(self, committer: Committer, now_ms: int) -> ErrorCode:
        if committer.generation < 0 and not self.members:
            return ErrorCode.NONE
        is_anonymous = committer.generation == -1 and not committer.member_id
        if committer.is_in_transaction and is_anonymous and committer.instance_id is None:
            return ErrorCode.NONE
        member = self.members.get(committer.member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if not committer.is_in_transaction and committer.api_version < MEMBER_COMMITS_SINCE:
            return ErrorCode.UNSUPPORTED_VERSION
        is_older = committer.generation < member.epoch
        if committer.generation > member.epoch or (is_older and self.topology is None):
            return ErrorCode.STALE_MEMBER_EPOCH
        return ErrorCode.NONE

    def check_commit_of(self, committer: Committer, topic_id: bytes, partition: int) -> ErrorCode:
        """Check a commit: a member of an older epoch may commit tasks that were assigned to it in
        that epoch or an earlier one."""
        member = self.members.get(committer.member_id)
        if member is None or committer.generation == member.epoch or self.topology is None:
            return ErrorCode.NONE
        topic = self.broker.image.topic_names.get(topic_id, "")
        subtopology_id = self._reader_of.get(topic)
        if subtopology_id is None:
            return ErrorCode.STALE_MEMBER_EPOCH
        task = Task(subtopology_id, partition)
        progress = member.progress
        since = progress.assigned.active.get(task, progress.pending_revocation.active.get(task))
        is_fenced = since is None or committer.generation < since
        return ErrorCode.STALE_MEMBER_EPOCH if is_fenced else ErrorCode.NONE

    def check_fetch(self, member_id: str | None, epoch: int) -> ErrorCode:
        if member_id is None:
            return ErrorCode.NONE if epoch < 0 else ErrorCode.UNKNOWN_SERVER_ERROR  # as in Kafka
        member = self.members.get(member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.NONE if member.epoch == epoch else ErrorCode.STALE_MEMBER_EPOCH

    def check_offset_deletion(self) -> ErrorCode:
        return ErrorCode.NONE

    def is_subscribed_to(self, topic: str) -> bool:
        return bool(self.members) and topic in self._reader_of

    def retention_starts_ms(self, commit_timestamp_ms: int) -> int:
        return commit_timestamp_ms
