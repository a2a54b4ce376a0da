"""A streams group: its topology, its members, and what their tasks are.

Owns: the state that the group's records make, its names for clients, its timers, what it is for
offsets.  Never: decides on a heartbeat (heartbeat.py).
Kafka: StreamsGroup, GroupMetadataManager's methods for it; KIP-1071.

The configured topology, the epoch of endpoints and a requested shutdown are not in the log: a new
coordinator configures the topology with the next heartbeat, and forgets the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from kcluster.broker.coordinator.classic_group import ClassicGroup
from kcluster.broker.coordinator.group import Committer, Group
from kcluster.broker.coordinator.group_log import LogRecord
from kcluster.broker.coordinator.interface import GroupHome, ignore_outcome
from kcluster.broker.coordinator.modern.configs import group_config
from kcluster.broker.coordinator.modern.group import FIRST_EPOCH, GroupRefusal, ModernGroup, ToJoin
from kcluster.broker.coordinator.streams.configured import ConfiguredTopology
from kcluster.broker.coordinator.streams.holders import Holders
from kcluster.broker.coordinator.streams.member import (
    LEAVING,
    MemberDetails,
    StreamsMember,
    TaskOffsets,
)
from kcluster.broker.coordinator.streams.reconciliation import StreamsMemberState
from kcluster.broker.coordinator.streams.records import (
    GroupState,
    StreamsGroupRecord,
    StreamsMemberRecord,
    StreamsMemberTargetRecord,
    StreamsProgressRecord,
    StreamsTargetRecord,
    StreamsTopologyRecord,
    TargetMetadata,
)
from kcluster.broker.coordinator.streams.target import (
    RACK_AWARE_TAGS,
    STANDBYS,
    new_target,
    read_partitions,
)
from kcluster.broker.coordinator.streams.tasks import Task, Tasks
from kcluster.broker.coordinator.streams.topology import InternalTopic, StreamsTopology
from kcluster.events.clients import (
    Departure,
    GroupAssigned,
    GroupMemberExpired,
    GroupMemberJoined,
    GroupMemberLeft,
)
from kcluster.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from kcluster.protocol.messages import StreamsGroupHeartbeatResponse

MEMBER_COMMITS_SINCE: Final = 9
"""OffsetCommit version from which requests name a member epoch."""

_INITIAL_DELAY: Final = "initial-rebalance"
"""The phase in which a group that was empty waits for more members."""

_NO_TARGET: Final = TargetMetadata(-1, 0)
"""What a deleted target leaves."""


class StreamsDecision(Struct):
    """What a heartbeat writes, what it sets once that is in the log, what it answers once that is
    committed."""

    records: list[LogRecord]
    response: StreamsGroupHeartbeatResponse
    missing_topics: Mapping[str, InternalTopic] = {}
    """Internal topics to create."""
    configured: ConfiguredTopology | None = None
    endpoint_epoch: int = 0
    group_epoch: int = 0
    starts_initial_delay: bool = False
    has_progressed: bool = False
    """The member has taken a step: watch whether it gives its tasks back in time."""
    joined: MemberDetails | None = None
    """Of a new member."""
    targets: dict[str, Tasks] | None = None
    """The target assignment, if it was computed."""
    replaced: str | None = None
    """The id of the static member whose place a new one takes."""
    task_offsets: TaskOffsets | None = None
    """As the member reports them; None: it does not."""


class StreamsGroupState(StrEnum):
    """As clients see it."""

    EMPTY = "Empty"
    NOT_READY = "NotReady"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class StreamsGroup(ModernGroup[StreamsMember, Tasks]):
    """Members by id, their targets, and the topology that they share."""

    kind = "streams"
    noun = "streams group"
    protocol = "streams"
    session_config = "streams.session.timeout.ms"
    interval_config = "streams.assignment.interval.ms"
    yields_to_classic = True

    def __init__(self, group_id: str, home: GroupHome) -> None:
        super().__init__(group_id, home)
        self.target_epoch = FIRST_EPOCH
        self.topology: StreamsTopology | None = None
        self._reader_of: dict[str, str] = {}
        """By topic that the application reads: the id of the subtopology that does."""
        self.validated_topology_epoch = 0
        """That of the topology for which the topics were found to be right; -1 if they are not."""
        self.assignment_configs: tuple[tuple[str, str], ...] = ()
        self.holders = Holders()
        self.configured: ConfiguredTopology | None = None
        self.endpoint_epoch = 0
        """Increases when a member with an endpoint gets other tasks."""
        self.shutdown_requested_by: str | None = None
        """The member that asked for it."""
        self.static_members: dict[str, str] = {}
        """Instance id -> member id."""
        self.task_offsets: dict[str, TaskOffsets] = {}
        """By member, as reported; a new coordinator knows none."""

    @classmethod
    def find_to_join(
        cls, current: Group | None, group_id: str, home: GroupHome, now_ms: int
    ) -> ToJoin[StreamsGroup] | GroupRefusal:
        """A streams group takes the place of a classic group without members."""
        if isinstance(current, ClassicGroup) and current.is_unused:
            return ToJoin(cls(group_id, home), current.tombstones())
        return super().find_to_join(current, group_id, home, now_ms)

    def static_member(self, instance_id: str | None) -> StreamsMember | None:
        if instance_id is None:
            return None
        return self.members.get(self.static_members.get(instance_id, ""))

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

    def epoch_of(self, member: StreamsMember) -> int:
        return member.epoch

    # ----------------------------------------------------------------------- records

    def stored_state(self, epoch: int) -> StreamsGroupRecord:
        """The group's own record in another epoch."""
        state = GroupState(
            epoch, self.metadata_hash, self.validated_topology_epoch, self.assignment_configs
        )
        return StreamsGroupRecord(self.group_id, state)

    def removal_of(self, member_id: str) -> list[LogRecord]:
        """The records that remove a member, without a new epoch."""
        return [
            StreamsProgressRecord(self.group_id, member_id, None),
            StreamsMemberTargetRecord(self.group_id, member_id, None),
            StreamsMemberRecord(self.group_id, member_id, None),
        ]

    def without(self, member_id: str) -> list[LogRecord]:
        """The records with which a member leaves."""
        records = [*self.removal_of(member_id), self.stored_state(self.epoch + 1)]
        if len(self.members) == 1 and self.is_of_4_4:
            target = TargetMetadata(self.epoch + 1, 0)
            records.append(StreamsTargetRecord(self.group_id, target))
        return records

    def fence(self, member_id: str, now_ms: int) -> None:
        if self.write(self.without(member_id), ignore_outcome, now_ms):
            session_ms = self.config_ms(self.session_config)
            self.broker.note(GroupMemberExpired(self.group_id, member_id, session_ms))

    def fence_unrevoked(self, member_id: str, now_ms: int) -> None:
        if self.write(self.without(member_id), ignore_outcome, now_ms):
            self.note_left(member_id, Departure.NOT_REVOKED)

    def note_left(self, member_id: str, departure: Departure) -> None:
        self.broker.note(GroupMemberLeft(self.group_id, member_id, departure))

    def tombstones(self) -> list[LogRecord]:
        id_ = self.group_id
        return [
            *(StreamsProgressRecord(id_, member_id, None) for member_id in self.members),
            *(StreamsMemberTargetRecord(id_, member_id, None) for member_id in self.members),
            StreamsTargetRecord(id_, None),
            *(StreamsMemberRecord(id_, member_id, None) for member_id in self.members),
            StreamsGroupRecord(id_, None),
            StreamsTopologyRecord(id_, None),
        ]

    def replay(self, record: LogRecord) -> bool:
        match record:
            case StreamsGroupRecord(state=state):
                self._replay_state(state)
            case StreamsTopologyRecord(topology=topology):
                self.topology = topology
                self._reader_of = {} if topology is None else topology.subtopology_of_topic
                self.is_stored |= topology is not None
            case StreamsTargetRecord(metadata=metadata):
                target = metadata or _NO_TARGET
                self.target_epoch = target.epoch
                self.target_timestamp_ms = target.assigned_ms
                self.is_stored |= metadata is not None
            case StreamsMemberTargetRecord(member_id=member_id, tasks=tasks):
                self.targets.pop(member_id, None)
                if tasks is not None:
                    self.targets[member_id] = tasks
                    self.is_stored = True
            case StreamsMemberRecord() | StreamsProgressRecord():
                self._replay_member(record)
        return self.is_stored

    def _replay_state(self, state: GroupState | None) -> None:
        self.is_stored = state is not None
        if state is not None:
            self.epoch = state.epoch
            self.metadata_hash = state.metadata_hash
            self.validated_topology_epoch = state.validated_topology_epoch
            self.assignment_configs = state.assignment_configs

    def _replay_member(self, record: StreamsMemberRecord | StreamsProgressRecord) -> None:
        member_id = record.member_id
        before = self.members.get(member_id)
        match record:
            case StreamsMemberRecord(details=None):
                self._put(member_id, before, None)
            case StreamsMemberRecord(details=details):
                member = StreamsMember(member_id) if before is None else before
                self._put(member_id, before, replace(member, details=details))
            case StreamsProgressRecord(progress=None):
                if before is not None:
                    self._put(member_id, before, replace(before, progress=LEAVING))
            case StreamsProgressRecord(progress=progress):
                member = StreamsMember(member_id) if before is None else before
                self._put(member_id, before, replace(member, progress=progress))

    def _put(
        self, member_id: str, before: StreamsMember | None, after: StreamsMember | None
    ) -> None:
        """Put another member in the place of one; either may be absent."""
        if before is not None:
            for held in (before.progress.assigned, before.progress.pending_revocation):
                self.holders.remove(held, before.details.process_id)
            instance_id = before.details.instance_id
            if instance_id is not None and self.static_members.get(instance_id) == member_id:
                del self.static_members[instance_id]
        if after is None:
            self.members.pop(member_id, None)
            self.task_offsets.pop(member_id, None)
            self.end_timers(member_id)
        else:
            for held in (after.progress.assigned, after.progress.pending_revocation):
                self.holders.add(held, after.details.process_id)
            self.members[member_id] = after
            if after.details.instance_id is not None:
                self.static_members[after.details.instance_id] = member_id
            self.is_stored = True
        if not self.members:
            self.shutdown_requested_by = None

    # ------------------------------------------------------------------------ timers

    @property
    def is_delayed(self) -> bool:
        """Whether the group, empty a moment ago, still waits for more members."""
        return self.timers.has_phase(_INITIAL_DELAY)

    @property
    def initial_delay_ms(self) -> int:
        return self.config_ms("streams.initial.rebalance.delay.ms")

    @property
    def current_configs(self) -> tuple[tuple[str, str], ...]:
        """The configs of the assignment, as they are now."""
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

    def note_heartbeat(
        self, decision: StreamsDecision, member_id: str, is_known: bool, now_ms: int
    ) -> None:
        """The records of a heartbeat are in the log.  What is not in the log is kept by a group
        that was there before."""
        if decision.joined is not None:
            host = decision.joined.client_host.removeprefix("/")
            client_id = decision.joined.client_id
            if decision.replaced is not None:
                self.note_left(decision.replaced, Departure.REPLACED)
            self.broker.note(GroupMemberJoined(self.group_id, member_id, client_id, host, ""))
        if decision.targets is not None and decision.configured is not None:
            self._note_assigned(decision.targets, decision.configured)
        if is_known:
            self.configured = decision.configured
            self.endpoint_epoch = decision.endpoint_epoch
            self.note_checked_metadata(decision.group_epoch)
        if decision.task_offsets is not None:
            self.task_offsets[member_id] = decision.task_offsets
        self.start_session(member_id, now_ms)
        if decision.has_progressed:
            self._watch_revocation(member_id, now_ms)
        if decision.starts_initial_delay:
            self._start_initial_delay(now_ms)

    def _note_assigned(self, targets: dict[str, Tasks], configured: ConfiguredTopology) -> None:
        """A new target assignment has been written."""
        rows = read_partitions(targets, configured, self.broker.image)
        self.broker.note(GroupAssigned(self.group_id, self.target_epoch, rows))

    def request_shutdown(self, member_id: str) -> None:
        """Every heartbeat answers from now on that the application is to shut down."""
        if self.shutdown_requested_by is None:
            self.shutdown_requested_by = member_id

    def _start_initial_delay(self, now_ms: int) -> None:
        ends_ms = now_ms + self.initial_delay_ms
        self.timers.start_phase(_INITIAL_DELAY, ends_ms, self._end_initial_delay)

    def _end_initial_delay(self, now_ms: int) -> None:
        configured = self.configured
        is_due = self.members and self.epoch > self.target_epoch and self.can_assign(now_ms)
        if configured is None or not is_due:
            return
        metadata = TargetMetadata(self.epoch, now_ms)
        new = new_target(
            self.group_id,
            self.members,
            self.targets,
            configured,
            self.assignment_configs,
            metadata,
            self.task_offsets if self.is_of_4_4 else None,
        )
        if self.write(new.records, ignore_outcome, now_ms):
            self._note_assigned(new.targets, configured)

    def _watch_revocation(self, member_id: str, now_ms: int) -> None:
        """Fence the member if it does not give its tasks back in time."""
        member = self.members[member_id]
        if member.progress.state is StreamsMemberState.UNREVOKED_TASKS:
            ends_ms = now_ms + member.details.rebalance_timeout_ms
            self.start_rebalance_timeout(member_id, ends_ms, member.epoch)
        else:
            self.end_rebalance_timeout(member_id)

    def resume(self, now_ms: int) -> None:
        super().resume(now_ms)
        for member_id in self.members:
            self._watch_revocation(member_id, now_ms)

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
        """A member of an older epoch may commit what it was assigned no later than then."""
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
            return ErrorCode.NONE if epoch < 0 else ErrorCode.UNKNOWN_SERVER_ERROR  # as Kafka does
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
