"""A share group: the sum of its records.

Owns: the effect of each record, the group's state, having the persister initialize and delete share
partitions, the refusal of commits. Never: decides on a request (heartbeat.py, offsets.py), assigns
(assignor.py).  Kafka: modern.share.ShareGroup, GroupMetadataManager.replay; KIP-932.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum

from kcluster.broker.coordinator.group import Committer
from kcluster.broker.coordinator.group_log import LogRecord
from kcluster.broker.coordinator.interface import GroupHome, Settled
from kcluster.broker.coordinator.modern.partition_group import PartitionGroup
from kcluster.broker.coordinator.modern.records import SHARE, ShareGroupStatePartitionMetadata
from kcluster.broker.coordinator.modern.topics import NO_PARTITIONS, Assignment
from kcluster.broker.coordinator.share.assignor import ShareMemberSpec, assign_simply
from kcluster.broker.coordinator.share.member import ShareMember
from kcluster.broker.coordinator.share.state_partitions import (
    StatePartitions,
    Topics,
    state_partitions_of,
)
from kcluster.broker.coordinator.share_state.state import SharePartition
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode


class ShareGroupState(StrEnum):
    """The values are the names that clients see."""

    EMPTY = "Empty"
    STABLE = "Stable"


class ShareGroup(PartitionGroup[ShareMember]):
    """A share group.  Other modules only read its fields; records change them."""

    kind = "share"
    noun = "share group"
    protocol = "share"
    session_config = "share.session.timeout.ms"
    interval_config = "share.assignment.interval.ms"
    heartbeat_config = "share.heartbeat.interval.ms"
    size_config = "group.share.max.size"
    record_types = SHARE
    member_type = ShareMember

    def __init__(self, group_id: str, home: GroupHome) -> None:
        super().__init__(group_id, home)
        self.states: StatePartitions | None = None
        """The states of the group's share partitions; None if there is no record about them."""
        self._states_written_ms = 0
        self._is_unloaded = False

    # ------------------------------------------------------------------------- replaying

    def replay_other(self, record: LogRecord) -> None:
        match record:
            case ShareGroupStatePartitionMetadata(value=value):
                self.states = None if value is None else state_partitions_of(value)
            case _:
                super().replay_other(record)

    # ------------------------------------------------------------------------- questions

    def subscribed_topics(self, members: Iterable[ShareMember]) -> set[str]:
        """The topics to which any of these members subscribes."""
        return {name for member in members for name in member.topics}

    def names_of(self, member: ShareMember) -> Iterable[str]:
        return member.topics

    @property
    def has_unassigned(self) -> bool:
        """Whether the initialized partitions of a subscribed topic differ from the assigned ones.

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
        """False: a share group does not expire, because its share partitions have a state."""
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

    def hash_without(self, leavers: Collection[ShareMember]) -> int:
        rest = [one for one in self.members.values() if one not in leavers]
        return self.hash_of(self.subscribed_topics(rest))

    def further_tombstones(self) -> list[LogRecord]:
        return [ShareGroupStatePartitionMetadata(self.group_id, None)]

    @property
    def max_size(self) -> int:
        return self.broker.config.group_share_max_size

    # ------------------------------------------------------------------ share partitions

    def states_to_initialize(self, names: Iterable[str], now_ms: int) -> Topics:
        """The share partitions of these topics that the persister must initialize, including share
        partitions whose last request has gone unanswered for too long."""
        interval_ms = self.broker.config.group_share_initialize_retry_interval_ms
        retries = now_ms - self._states_written_ms >= interval_ms
        states = StatePartitions() if self.states is None else self.states
        return states.missing(self.broker.image, names, retries)

    def note_states_written(self, now_ms: int) -> None:
        self._states_written_ms = now_ms

    def initialize_states(self, topics: Topics, epoch: int, now_ms: int) -> None:
        """Have the persister initialize share partitions, and write the outcome.

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
        """Whether this is still the group of its id, on the broker that coordinates it."""
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
        """No records: share coordinators delete the states of deleted topics by themselves."""
        if self.states is None:
            return []
        names = self.broker.image.topic_names
        gone = [topic_id for topic_id in self.states.topic_ids if topic_id not in names]
        return [self.states_record(self.states.without_topics(gone))] if gone else []

    # --------------------------------------------------------------------------- offsets

    def admit_commit(self, committer: Committer, now_ms: int) -> ErrorCode:
        """Refuse: a share group's progress is per record, and kept by share coordinators."""
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
