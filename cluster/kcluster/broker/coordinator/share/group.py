"""A share group: the state that its records add up to.

Owns: what each record changes, the group's state, having the persister initialize and delete share
partitions, who may commit (nobody).
Never: decides what is written on a request (heartbeat.py, offsets.py), assigns (assignor.py).
Kafka: modern.share.ShareGroup, GroupMetadataManager.replay; KIP-932.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum

from msgspec.structs import replace

from kcluster.broker.coordinator.group import Committer
from kcluster.broker.coordinator.group_log import LogRecord
from kcluster.broker.coordinator.interface import GroupHome, Settled, ignore_outcome
from kcluster.broker.coordinator.modern.group import LEAVE_EPOCH, ModernGroup
from kcluster.broker.coordinator.modern.topics import NO_PARTITIONS, Assignment, topic_ids
from kcluster.broker.coordinator.share.assignor import ShareMemberSpec, assign_simply
from kcluster.broker.coordinator.share.member import ShareMember, share_member_tombstones
from kcluster.broker.coordinator.share.records import (
    ShareGroupCurrentMemberAssignment,
    ShareGroupMemberMetadata,
    ShareGroupMetadata,
    ShareGroupStatePartitionMetadata,
    ShareGroupTargetAssignmentMember,
    ShareGroupTargetAssignmentMetadata,
)
from kcluster.broker.coordinator.share.state_partitions import (
    StatePartitions,
    Topics,
    state_partitions_of,
)
from kcluster.broker.coordinator.share_state.state import SharePartition
from kcluster.events.clients import (
    AssignedPartitions,
    Departure,
    GroupAssigned,
    GroupMemberExpired,
    GroupMemberJoined,
    GroupMemberLeft,
)
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode


class ShareGroupState(StrEnum):
    """The values are the names that clients see."""

    EMPTY = "Empty"
    STABLE = "Stable"


class ShareGroup(ModernGroup[ShareMember, Assignment]):
    """Other modules only read its fields; records change them."""

    kind = "share"
    noun = "share group"
    protocol = "share"
    session_config = "share.session.timeout.ms"
    interval_config = "share.assignment.interval.ms"

    def __init__(self, group_id: str, home: GroupHome) -> None:
        super().__init__(group_id, home)
        self.states: StatePartitions | None = None
        """None: there is no record about them."""
        self._states_written_ms = 0
        self._is_unloaded = False

    # ------------------------------------------------------------------------- replaying

    def replay(self, record: LogRecord) -> bool:
        match record:
            case ShareGroupMetadata(value=None):
                self.is_stored = False
                return False
            case ShareGroupMetadata(value=value):
                self.epoch = value.epoch
                self.metadata_hash = value.metadata_hash
            case ShareGroupMemberMetadata(member_id=member_id, value=None):
                self.members.pop(member_id, None)
                self.end_timers(member_id)
            case ShareGroupMemberMetadata(member_id=member_id, value=value):
                self.members[member_id] = self._member(member_id).with_metadata(value)
            case ShareGroupTargetAssignmentMetadata(value=None):
                self.target_epoch, self.target_timestamp_ms = -1, 0
            case ShareGroupTargetAssignmentMetadata(value=value):
                self.target_epoch = value.assignment_epoch
                self.target_timestamp_ms = value.assignment_timestamp
            case ShareGroupTargetAssignmentMember(member_id=member_id, value=None):
                self.targets.pop(member_id, None)
            case ShareGroupTargetAssignmentMember(member_id=member_id, value=value):
                self.targets[member_id] = {
                    entry.topic_id: frozenset(entry.partitions) for entry in value.topic_partitions
                }
            case ShareGroupCurrentMemberAssignment(member_id=member_id, value=None):
                if member_id in self.members:
                    self.members[member_id] = replace(
                        self.members[member_id],
                        epoch=LEAVE_EPOCH,
                        previous_epoch=LEAVE_EPOCH,
                        assigned=NO_PARTITIONS,
                    )
            case ShareGroupCurrentMemberAssignment(member_id=member_id, value=value):
                self.members[member_id] = self._member(member_id).with_current(value)
            case ShareGroupStatePartitionMetadata(value=value):
                self.states = None if value is None else state_partitions_of(value)
            case _:
                raise AssertionError(record)
        self.is_stored = self.is_stored or value is not None
        return self.is_stored

    def _member(self, member_id: str) -> ShareMember:
        return self.members.get(member_id) or ShareMember(member_id)

    # ------------------------------------------------------------------------- questions

    def epoch_of(self, member: ShareMember) -> int:
        return member.epoch

    def subscribed_topics(self, members: Iterable[ShareMember]) -> set[str]:
        """The topics of all these members."""
        return {name for member in members for name in member.topics}

    def subscribed_ids(self, member: ShareMember) -> tuple[bytes, ...]:
        """The topics of a member that exist, in order of their names."""
        return tuple(topic_ids(self.broker.image, member.topics))

    @property
    def has_unassigned(self) -> bool:
        """Whether initialized partitions of a topic that members subscribe to are not the same as
        the assigned ones.

        DIFFERS: in Kafka a topic that was deleted while the group had no coordinator counts too,
        and the group epoch increases with each heartbeat.
        """
        if self.states is None or not self.members:
            return False
        assigned: dict[bytes, set[int]] = {}
        for target in self.targets.values():
            for topic_id, partitions in target.items():
                assigned.setdefault(topic_id, set()).update(partitions)
        subscribed = self.subscribed_topics(self.members.values())
        names = self.broker.image.topic_names
        return any(
            topic_id in names
            and one.name in subscribed
            and assigned.get(topic_id, set()) != one.partitions
            for topic_id, one in self.states.initialized.items()
        )

    @property
    def state_name(self) -> str:
        state = ShareGroupState.STABLE if self.members else ShareGroupState.EMPTY
        return state.value

    @property
    def protocol_type(self) -> str:
        return self.protocol

    @property
    def is_unused(self) -> bool:
        """A share group does not expire: its share partitions have a state."""
        return False

    def described_as_share_group(self) -> m.ShareGroupDescribeResponse.DescribedGroup:
        """The group's row of ShareGroupDescribe."""
        kind = m.ShareGroupDescribeResponse
        names = self.broker.image.topic_names
        return kind.DescribedGroup(
            group_id=self.group_id,
            group_state=self.state_name,
            group_epoch=self.epoch,
            assignment_epoch=self.target_epoch,
            assignor_name=self.broker.config.group_share_assignors[0],
            members=[
                kind.Member(
                    member_id=member.member_id,
                    rack_id=member.rack_id,
                    member_epoch=member.epoch,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    subscribed_topic_names=list(member.topics),
                    assignment=kind.Assignment(
                        [
                            kind.TopicPartitions(topic_id, names[topic_id], sorted(partitions))
                            for topic_id, partitions in member.assigned.items()
                            if topic_id in names
                        ]
                    ),
                )
                for member in self.members.values()
            ],
        )

    # --------------------------------------------------------------------------- writing

    def epoch_record(self, epoch: int, hash_of_topics: int) -> ShareGroupMetadata:
        value = m.ShareGroupMetadataValue(epoch=epoch, metadata_hash=hash_of_topics)
        return ShareGroupMetadata(self.group_id, value)

    def states_record(self, states: StatePartitions) -> ShareGroupStatePartitionMetadata:
        return states.record(self.group_id, self.broker.image)

    def target_of(
        self, members: Mapping[str, ShareMember], previous: Mapping[str, Assignment]
    ) -> dict[str, Assignment]:
        """A new target assignment for these members, of the initialized share partitions."""
        specs = {
            member_id: ShareMemberSpec(
                self.subscribed_ids(one), previous.get(member_id, NO_PARTITIONS)
            )
            for member_id, one in members.items()
        }
        states = StatePartitions() if self.states is None else self.states
        return assign_simply(specs, states.assignable)

    def fence(self, member_id: str, now_ms: int) -> None:
        timeout_ms = self.config_ms(self.session_config)
        if self.write(self.removal_records(self.members[member_id]), ignore_outcome, now_ms):
            self.broker.note(GroupMemberExpired(self.group_id, member_id, timeout_ms))

    def removal_records(self, leaver: ShareMember) -> list[LogRecord]:
        """What removes a member and increases the group epoch."""
        rest = [one for one in self.members.values() if one.member_id != leaver.member_id]
        hashed = self.hash_of(self.subscribed_topics(rest))
        records: list[LogRecord] = [
            *share_member_tombstones(self.group_id, leaver.member_id),
            self.epoch_record(self.epoch + 1, hashed),
        ]
        if not rest and self.is_of_4_4:
            value = m.ShareGroupTargetAssignmentMetadataValue(assignment_epoch=self.epoch + 1)
            records.append(ShareGroupTargetAssignmentMetadata(self.group_id, value))
        return records

    def tombstones(self) -> list[LogRecord]:
        records: list[LogRecord] = []
        for make in (ShareGroupCurrentMemberAssignment, ShareGroupTargetAssignmentMember):
            records += [make(self.group_id, member_id, None) for member_id in self.members]
        records.append(ShareGroupTargetAssignmentMetadata(self.group_id, None))
        records += [ShareGroupMemberMetadata(self.group_id, one, None) for one in self.members]
        records.append(ShareGroupStatePartitionMetadata(self.group_id, None))
        records.append(ShareGroupMetadata(self.group_id, None))
        return records

    # ---------------------------------------------------------------------------- events

    def note_joined(self, member: ShareMember) -> None:
        """A new member has been written."""
        host = member.client_host.removeprefix("/")
        joined = GroupMemberJoined(self.group_id, member.member_id, member.client_id, host, "")
        self.broker.note(joined)

    def note_left(self, member_id: str) -> None:
        """The removal of a member that leaves has been written."""
        self.broker.note(GroupMemberLeft(self.group_id, member_id, Departure.LEFT))

    def note_assigned(self, epoch: int, target: Mapping[str, Assignment]) -> None:
        """A new target assignment has been written."""
        names = self.broker.image.topic_names
        rows = tuple(
            AssignedPartitions(member_id, names[topic_id], tuple(sorted(partitions)))
            for member_id, assignment in target.items()
            for topic_id, partitions in assignment.items()
            if topic_id in names
        )
        self.broker.note(GroupAssigned(self.group_id, epoch, rows))

    # ------------------------------------------------------------------ share partitions

    def states_to_initialize(self, names: Iterable[str], now_ms: int) -> Topics:
        """The share partitions of these topics for which the persister has to be asked.  Those that
        it has been asked for long ago are among them."""
        interval_ms = self.broker.config.group_share_initialize_retry_interval_ms
        retries = now_ms - self._states_written_ms >= interval_ms
        states = StatePartitions() if self.states is None else self.states
        return states.missing(self.broker.image, names, retries)

    def note_states_written(self, now_ms: int) -> None:
        self._states_written_ms = now_ms

    def initialize_states(self, topics: Topics, epoch: int, now_ms: int) -> None:
        """Have the persister initialize share partitions, and write whether it has.

        `epoch`: the group epoch, which is their state epoch.
        """
        wanted = dict.fromkeys(self.share_partitions(topics), (epoch, -1))

        def done(errors: dict[SharePartition, ErrorCode], at_ms: int) -> None:
            if not self.is_current or self.states is None:
                return
            failed = any(error is not ErrorCode.NONE for error in errors.values())
            states = self.states
            new = states.without_initializing(topics) if failed else states.with_initialized(topics)
            self.write_alone([self.states_record(new)], at_ms)
            self.note_states_written(at_ms)

        self.broker.persister.initialize(wanted, done, now_ms)

    def share_partitions(self, topics: Topics) -> list[SharePartition]:
        return [
            SharePartition(self.group_id, topic_id, partition)
            for topic_id, one in topics.items()
            for partition in sorted(one.partitions)
        ]

    @property
    def is_current(self) -> bool:
        """Whether this is the group of its id, on the broker that coordinates it."""
        return not self._is_unloaded and self.home.groups.get(self.group_id) is self

    def prepare_deletion(self, on_ready: Settled, now_ms: int) -> None:
        """Have the states of all share partitions deleted."""
        if self.states is None:
            on_ready(ErrorCode.NONE, now_ms)
            return
        changed, partitions = self.states.all_deleting(self.broker.image)

        def deleted(errors: dict[SharePartition, ErrorCode], at_ms: int) -> None:
            failed = (error for error in errors.values() if error is not ErrorCode.NONE)
            on_ready(next(failed, ErrorCode.NONE), at_ms)

        def written(error: ErrorCode, at_ms: int) -> None:
            if error is not ErrorCode.NONE:
                on_ready(error, at_ms)
                return
            wanted = [
                SharePartition(self.group_id, topic_id, partition)
                for topic_id, some in partitions.items()
                for partition in sorted(some)
            ]
            if wanted:
                self.broker.persister.delete(wanted, deleted, at_ms)
            else:
                on_ready(ErrorCode.NONE, at_ms)

        self.write([self.states_record(changed)], written, now_ms)

    def without_deleted_topics(self) -> list[LogRecord]:
        """Share coordinators delete the states of such topics by themselves."""
        if self.states is None:
            return []
        names = self.broker.image.topic_names
        gone = [topic_id for topic_id in self.states.topic_ids if topic_id not in names]
        return [self.states_record(self.states.without_topics(gone))] if gone else []

    # --------------------------------------------------------------------------- offsets

    def admit_commit(self, committer: Committer, now_ms: int) -> ErrorCode:
        """Its progress is per record, and kept by share coordinators."""
        return ErrorCode.GROUP_ID_NOT_FOUND

    def check_offset_deletion(self) -> ErrorCode:
        return ErrorCode.GROUP_ID_NOT_FOUND

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.subscribed_topics(self.members.values())

    def retention_starts_ms(self, commit_timestamp_ms: int) -> int | None:
        return commit_timestamp_ms

    # ------------------------------------------------------------------------- lifecycle

    def resume(self, now_ms: int) -> None:
        super().resume(now_ms)
        self.note_states_written(now_ms)

    def unload(self, now_ms: int) -> None:
        super().unload(now_ms)
        self._is_unloaded = True
