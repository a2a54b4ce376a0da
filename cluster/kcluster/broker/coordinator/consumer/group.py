"""A consumer group: the state that its records add up to.

Owns: what each record changes, who has which partition, the group's state, who may commit.
Never: decides what is written on a request (heartbeat.py), assigns partitions (modern/assignors).
Kafka: modern.consumer.ConsumerGroup, GroupMetadataManager.replay; KIP-848.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kcluster.broker.coordinator.classic_group import ClassicGroup
from kcluster.broker.coordinator.consumer.member import (
    NONE_ASSIGNED,
    ConsumerMember,
    ConsumerMemberState,
    member_tombstones,
)
from kcluster.broker.coordinator.consumer.migration import can_downgrade, downgraded, upgraded
from kcluster.broker.coordinator.consumer.records import (
    RECORDS,
    ConsumerGroupCurrentMemberAssignment,
    ConsumerGroupMemberMetadata,
    ConsumerGroupMetadata,
    ConsumerGroupPartitionMetadata,
    ConsumerGroupRegularExpression,
    ConsumerGroupTargetAssignmentMember,
    ConsumerGroupTargetAssignmentMetadata,
)
from kcluster.broker.coordinator.group import Committer, Group
from kcluster.broker.coordinator.group_log import LogRecord
from kcluster.broker.coordinator.interface import GroupHome, Settled, ignore_outcome
from kcluster.broker.coordinator.modern.assignors.assignor import Assignor, GroupSpec, MemberSpec
from kcluster.broker.coordinator.modern.assignors.range import assign_ranges
from kcluster.broker.coordinator.modern.assignors.uniform import assign_uniformly
from kcluster.broker.coordinator.modern.group import (
    LEAVE_EPOCH,
    RETRY_MS,
    GroupRefusal,
    ModernGroup,
    ToJoin,
)
from kcluster.broker.coordinator.modern.topics import NO_PARTITIONS, Assignment, topic_ids
from kcluster.events.clients import (
    AssignedPartitions,
    Departure,
    GroupAssigned,
    GroupMemberExpired,
    GroupMemberJoined,
    GroupMemberLeft,
)
from kcluster.events.rebalance_reasons import Leaver, MembersLeft
from kcluster.protocol import messages as m
from kcluster.protocol.consumer_protocol import CONSUMER_PROTOCOL_TYPE
from kcluster.protocol.errors import ErrorCode

EPOCHS_SINCE: Final = 9
"""OffsetCommit version from which members with epochs may commit."""

ASSIGNORS: Final[dict[str, Assignor]] = {"uniform": assign_uniformly, "range": assign_ranges}


DEADLINES: Final = {"join": Departure.NOT_JOINED, "sync": Departure.NOT_SYNCED}
"""Timers of a classic member -> why it is removed when one is over."""


class ConsumerGroupState(StrEnum):
    """The values are the names that clients see."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    DEAD = "Dead"


class ResolvedRegex(Struct, frozen=True):
    """The topics that matched a regular expression.  Kafka: ResolvedRegularExpression."""

    topics: frozenset[str]
    version: int
    """Metadata offset at which it was resolved."""
    timestamp_ms: int


class ConsumerGroup(ModernGroup[ConsumerMember, Assignment]):
    """Other modules only read its fields; records change them."""

    kind = "consumer"
    noun = "consumer group"
    protocol = "consumer"
    session_config = "consumer.session.timeout.ms"
    interval_config = "consumer.assignment.interval.ms"
    yields_to_classic = True

    def __init__(self, group_id: str, home: GroupHome) -> None:
        super().__init__(group_id, home)
        self.static_members: dict[str, str] = {}
        """Instance id -> member id."""
        self.regexes: dict[str, ResolvedRegex] = {}
        self.has_old_metadata = False
        """A record of a release before 4.1 is to be removed."""
        self.topic_counts: Counter[str] = Counter()
        """Name -> members that subscribe to it by name."""
        self.regex_counts: Counter[str] = Counter()
        """Regular expression -> members that subscribe to it."""
        self._assignor_counts: Counter[str] = Counter()
        self._topics_seen: frozenset[bytes] | None = None
        """Ids of the topics when regular expressions were last resolved; None: not by this
        coordinator."""
        self.revision = 0
        """Counts the records replayed: between two looks at one revision nothing has changed."""
        self._owners: dict[tuple[bytes, int], str] = {}
        """Topic id and partition -> the member that has it, or has yet to revoke it."""

    @classmethod
    def find_to_join(
        cls, current: Group | None, group_id: str, home: GroupHome, now_ms: int
    ) -> ToJoin[ConsumerGroup] | GroupRefusal:
        """A consumer group takes the place of a classic group: of its members too, where the
        migration policy allows it."""
        if not isinstance(current, ClassicGroup):
            return super().find_to_join(current, group_id, home, now_ms)
        group = cls(group_id, home)
        if current.is_unused:
            return ToJoin(group, current.tombstones())
        records = upgraded(current, home.broker.image, home.broker.config)
        if isinstance(records, GroupRefusal):
            return records
        for record in records:
            if type(record) in RECORDS:
                group.replay(record)
        return ToJoin(group, records)

    # ------------------------------------------------------------------------- replaying

    def replay(self, record: LogRecord) -> bool:
        self.revision += 1
        match record:
            case ConsumerGroupMetadata(value=None):
                self.is_stored = False
                return False
            case ConsumerGroupMetadata(value=value):
                self.epoch = value.epoch
                self.metadata_hash = value.metadata_hash
            case ConsumerGroupPartitionMetadata(value=value):
                self.has_old_metadata = value is not None
            case ConsumerGroupMemberMetadata(member_id=member_id, value=value):
                member = self._member(member_id)
                self._put(member_id, None if value is None else member.with_metadata(value))
            case ConsumerGroupTargetAssignmentMetadata(value=None as value):
                self.target_epoch, self.target_timestamp_ms = -1, 0
            case ConsumerGroupTargetAssignmentMetadata(value=value):
                self.target_epoch = value.assignment_epoch
                self.target_timestamp_ms = value.assignment_timestamp
            case ConsumerGroupTargetAssignmentMember(member_id=member_id, value=None as value):
                self.targets.pop(member_id, None)
            case ConsumerGroupTargetAssignmentMember(member_id=member_id, value=value):
                self.targets[member_id] = {
                    entry.topic_id: frozenset(entry.partitions) for entry in value.topic_partitions
                }
            case ConsumerGroupCurrentMemberAssignment(member_id=member_id, value=value):
                self._replay_current(member_id, value)
            case ConsumerGroupRegularExpression(regular_expression=regex, value=None as value):
                self.regexes.pop(regex, None)
            case ConsumerGroupRegularExpression(regular_expression=regex, value=value):
                topics = frozenset(value.topics)
                self.regexes[regex] = ResolvedRegex(topics, value.version, value.timestamp)
            case _:
                raise AssertionError(record)
        self.is_stored = self.is_stored or value is not None
        return self.is_stored

    def _replay_current(
        self, member_id: str, value: m.ConsumerGroupCurrentMemberAssignmentValue | None
    ) -> None:
        if value is not None:
            self._put(member_id, self._member(member_id).with_current(value))
        elif member_id in self.members:
            left = replace(
                self.members[member_id],
                epoch=LEAVE_EPOCH,
                previous_epoch=LEAVE_EPOCH,
                assigned=NONE_ASSIGNED,
                revoking=NONE_ASSIGNED,
            )
            self._put(member_id, left)

    def _member(self, member_id: str) -> ConsumerMember:
        return self.members.get(member_id) or ConsumerMember(member_id)

    def _put(self, member_id: str, member: ConsumerMember | None) -> None:
        """Put a member in the place of the old one; None: remove it."""
        old = self.members.get(member_id)
        if old is not None:
            self._count(old, -1)
            for partition in _partitions(old):
                if self._owners.get(partition) == member_id:
                    del self._owners[partition]
            if old.instance_id is not None and self._static_id(old.instance_id) == member_id:
                del self.static_members[old.instance_id]
        if member is None:
            self.members.pop(member_id, None)
            self.end_timers(member_id)
            return
        self.members[member_id] = member
        self._count(member, 1)
        self._owners.update(dict.fromkeys(_partitions(member), member_id))
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member_id

    def _count(self, member: ConsumerMember, by: int) -> None:
        for name in member.topics:
            _add(self.topic_counts, name, by)
        if member.regex:
            _add(self.regex_counts, member.regex, by)
        if member.assignor:
            _add(self._assignor_counts, member.assignor, by)

    # ------------------------------------------------------------------------- questions

    def epoch_of(self, member: ConsumerMember) -> int:
        return member.epoch

    def is_taken(self, topic_id: bytes, partition: int) -> bool:
        """Whether any member has a partition, or has yet to revoke it."""
        return (topic_id, partition) in self._owners

    def static_member(self, instance_id: str | None) -> ConsumerMember | None:
        return None if instance_id is None else self.members.get(self._static_id(instance_id))

    def _static_id(self, instance_id: str) -> str:
        return self.static_members.get(instance_id, "")

    def names_of(self, member: ConsumerMember) -> Iterable[str]:
        """The topics that a member subscribes to, by name and by regular expression."""
        resolved = self.regexes.get(member.regex) if member.regex else None
        return member.topics if resolved is None else resolved.topics.union(member.topics)

    def subscribed_ids(self, member: ConsumerMember) -> tuple[bytes, ...]:
        """Those of them that exist, in order of their names."""
        return tuple(topic_ids(self.broker.image, self.names_of(member)))

    def subscribed_topics(self, *changes: tuple[ConsumerMember, int]) -> set[str]:
        """The topics of all members, by name and by regular expression, when these have come (1)
        or gone (-1)."""
        by_name, by_regex = Counter(self.topic_counts), Counter(self.regex_counts)
        for member, by in changes:
            for name in member.topics:
                _add(by_name, name, by)
            if member.regex:
                _add(by_regex, member.regex, by)
        names = set(by_name)
        for regex in by_regex:
            if regex in self.regexes:
                names |= self.regexes[regex].topics
        return names

    @property
    def has_new_topics(self) -> bool:
        """Whether topics have been created since regular expressions were last resolved."""
        seen = self._topics_seen
        return seen is None or any(one not in seen for one in self.broker.image.topic_names)

    def note_topics(self) -> None:
        """Regular expressions are resolved now."""
        self._topics_seen = frozenset(self.broker.image.topic_names)

    def assignor_name(self, *members: tuple[ConsumerMember, int]) -> str:
        """The assignor that most members want; the broker's first if none names one."""
        counts = Counter(self._assignor_counts)
        for member, by in members:
            if member.assignor:
                _add(counts, member.assignor, by)
        default = self.broker.config.group_consumer_assignors[0]
        return max(counts, key=counts.__getitem__, default=default)

    @property
    def state(self) -> ConsumerGroupState:
        if not self.members:
            return ConsumerGroupState.EMPTY
        if self.epoch > self.target_epoch:
            return ConsumerGroupState.ASSIGNING
        if all(one.has_reached(self.target_epoch) for one in self.members.values()):
            return ConsumerGroupState.STABLE
        return ConsumerGroupState.RECONCILING

    @property
    def state_name(self) -> str:
        return self.state.value

    @property
    def protocol_type(self) -> str:
        return CONSUMER_PROTOCOL_TYPE

    # --------------------------------------------------------------------------- writing

    def epoch_record(self, epoch: int, hash_of_topics: int) -> ConsumerGroupMetadata:
        value = m.ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=hash_of_topics)
        return ConsumerGroupMetadata(self.group_id, value)

    def target_of(
        self, members: dict[str, ConsumerMember], previous: dict[str, Assignment], assignor: str
    ) -> dict[str, Assignment]:
        """A new target assignment for these members."""
        image = self.broker.image
        ids_of = {member_id: self.subscribed_ids(one) for member_id, one in members.items()}
        every = dict.fromkeys(topic_id for some in ids_of.values() for topic_id in some)
        spec = GroupSpec(
            members={
                member_id: MemberSpec(
                    ids_of[member_id],
                    previous.get(member_id, NO_PARTITIONS),
                    one.instance_id,
                    one.rack_id,
                )
                for member_id, one in members.items()
            },
            partition_counts={
                topic_id: len(image.topics[image.topic_names[topic_id]].partitions)
                for topic_id in every
            },
        )
        return ASSIGNORS[assignor](spec)

    def fence(self, member_id: str, now_ms: int) -> None:
        member = self.members[member_id]
        if self._remove([member], ignore_outcome, now_ms):
            session_ms = self._session_ms(member)
            self.broker.note(GroupMemberExpired(self.group_id, member_id, session_ms))

    def fence_unrevoked(self, member_id: str, now_ms: int) -> None:
        members = [self.members[member_id]]
        self.remove(members, Departure.NOT_REVOKED, ignore_outcome, now_ms)

    def remove(
        self,
        leavers: Sequence[ConsumerMember],
        departure: Departure,
        on_settled: Settled,
        now_ms: int,
    ) -> bool:
        """Remove members.  False: the write was refused, and nothing has changed."""
        written = self._remove(leavers, on_settled, now_ms)
        if written:
            for member in leavers:
                self.broker.note(GroupMemberLeft(self.group_id, member.member_id, departure))
        return written

    def _remove(self, leavers: Sequence[ConsumerMember], on_settled: Settled, now_ms: int) -> bool:
        """If only classic members are left, they get a classic group, which rebalances."""
        if can_downgrade(self.members.values(), leavers, self.broker.config):
            return self.downgrade([], leavers, None, self.epoch, True, on_settled, now_ms)
        return self.write(self._removal_records(leavers), on_settled, now_ms)

    def note_joined(self, member: ConsumerMember, replaced: str | None) -> None:
        """A new member has been written; `replaced`: the id of the static one before it."""
        if replaced is not None:
            self.broker.note(GroupMemberLeft(self.group_id, replaced, Departure.REPLACED))
        host = member.client_host.removeprefix("/")
        joined = GroupMemberJoined(self.group_id, member.member_id, member.client_id, host, "")
        self.broker.note(joined)

    def note_assigned(self, epoch: int, target: Mapping[str, Assignment]) -> None:
        """A new target assignment has been written."""
        names = self.broker.image.topic_names
        rows = tuple(
            AssignedPartitions(member_id, names[topic_id], tuple(sorted(partitions)))
            for member_id, assignment in target.items()
            for topic_id, partitions in assignment.items()
        )
        self.broker.note(GroupAssigned(self.group_id, epoch, rows))

    def downgrade(
        self,
        first: Sequence[LogRecord],
        leavers: Sequence[ConsumerMember],
        joiner: ConsumerMember | None,
        epoch: int,
        rebalances: bool,
        on_settled: Settled,
        now_ms: int,
    ) -> bool:
        """A classic group takes the place of this one.  `joiner` takes that of the one leaver."""
        gone = {member.member_id for member in leavers}
        rest = [one for one in self.members.values() if one.member_id not in gone]
        targets = dict(self.targets)
        if joiner is not None:
            rest.append(joiner)
            targets[joiner.member_id] = targets.get(leavers[0].member_id, NO_PARTITIONS)
        members = dict.fromkeys((*self.members, *(one.member_id for one in rest)))
        classic = downgraded(self.group_id, epoch, rest, targets, self.broker.image, now_ms)
        records = [*first, *self._tombstones_of(members), classic]
        written = self.write(records, on_settled, now_ms)
        group = self.home.groups.get(self.group_id)
        if written and isinstance(group, ClassicGroup):
            group.resume(now_ms)
            if rebalances:
                left = tuple(Leaver(member.member_id) for member in leavers)
                group.rebalance(MembersLeft(left), now_ms)
        return written

    def _removal_records(self, leavers: Sequence[ConsumerMember]) -> list[LogRecord]:
        """What removes members and increases the group epoch."""
        records: list[LogRecord] = []
        for member in leavers:
            records += member_tombstones(self.group_id, member.member_id)
        left = Counter(member.regex for member in leavers if member.regex)
        for regex, count in left.items():
            if self.regex_counts[regex] == count:
                records.append(ConsumerGroupRegularExpression(self.group_id, regex, None))
        topics = self.subscribed_topics(*((member, -1) for member in leavers))
        hashed = self.hash_of(topics)
        records.append(self.epoch_record(self.epoch + 1, hashed))
        if len(leavers) == len(self.members) and self.is_of_4_4:
            value = m.ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=self.epoch + 1)
            records.append(ConsumerGroupTargetAssignmentMetadata(self.group_id, value))
        return records

    def tombstones(self) -> list[LogRecord]:
        return self._tombstones_of(self.members)

    def _tombstones_of(self, member_ids: Iterable[str]) -> list[LogRecord]:
        ids = list(member_ids)
        records: list[LogRecord] = []
        for make in (ConsumerGroupCurrentMemberAssignment, ConsumerGroupTargetAssignmentMember):
            records += [make(self.group_id, member_id, None) for member_id in ids]
        records.append(ConsumerGroupTargetAssignmentMetadata(self.group_id, None))
        records += [ConsumerGroupMemberMetadata(self.group_id, one, None) for one in ids]
        records += [
            ConsumerGroupRegularExpression(self.group_id, one, None) for one in self.regexes
        ]
        records.append(ConsumerGroupPartitionMetadata(self.group_id, None))
        records.append(ConsumerGroupMetadata(self.group_id, None))
        return records

    # --------------------------------------------------------------------------- offsets

    def admit_commit(self, committer: Committer, now_ms: int) -> ErrorCode:
        epoch = committer.generation
        if epoch < 0 and not self.members:
            return ErrorCode.NONE
        is_anonymous = not committer.member_id and committer.instance_id is None
        if committer.is_in_transaction and epoch == -1 and is_anonymous:
            return ErrorCode.NONE
        member = self.members.get(committer.member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        is_old = committer.api_version < EPOCHS_SINCE
        if not committer.is_in_transaction and not member.is_classic and is_old:
            return ErrorCode.UNSUPPORTED_VERSION
        return _stale(member) if epoch > member.epoch else ErrorCode.NONE

    def check_commit_of(self, committer: Committer, topic_id: bytes, partition: int) -> ErrorCode:
        """An older epoch may commit what the member has had since then (KIP-1251)."""
        member = self.members.get(committer.member_id)
        if member is None or committer.generation >= member.epoch:
            return ErrorCode.NONE
        since = member.assignment_epoch(topic_id, partition)
        is_older = since is None or committer.generation < since
        return _stale(member) if is_older else ErrorCode.NONE

    def check_fetch(self, member_id: str | None, epoch: int) -> ErrorCode:
        if member_id is None and epoch < 0:
            return ErrorCode.NONE
        member = self.members.get(member_id or "")
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.NONE if epoch == member.epoch else _stale(member)

    def check_offset_deletion(self) -> ErrorCode:
        return ErrorCode.NONE

    def is_subscribed_to(self, topic: str) -> bool:
        if topic in self.topic_counts:
            return True
        return any(topic in one.topics for one in self.regexes.values())

    def retention_starts_ms(self, commit_timestamp_ms: int) -> int | None:
        return commit_timestamp_ms

    # ------------------------------------------------------------------------- lifecycle

    def resume(self, now_ms: int) -> None:
        super().resume(now_ms)
        for member in self.members.values():
            self.watch_rebalance(member, now_ms)

    def start_session(self, member_id: str, now_ms: int) -> None:
        member = self.members.get(member_id)
        if member is not None:
            ends_ms = now_ms + self._session_ms(member)
            self.timers.start_session(member_id, ends_ms, self.expire)

    def _session_ms(self, member: ConsumerMember) -> int:
        """A classic member has named its own session timeout."""
        if member.classic is not None:
            return member.classic.session_timeout_ms
        return self.config_ms(self.session_config)

    def fence_at(self, timer: str, member_id: str, ends_ms: int) -> None:
        """Fence a classic member that has not joined, or synced, by then."""
        departure = DEADLINES[timer]

        def over(at_ms: int) -> None:
            member = self.members.get(member_id)
            if member is not None:
                self.remove([member], departure, ignore_outcome, at_ms)
            if member_id in self.members:
                self.fence_at(timer, member_id, at_ms + RETRY_MS)

        self.timers.start_of_member(timer, member_id, ends_ms, over)

    def end_timers(self, member_id: str) -> None:
        super().end_timers(member_id)
        for timer in DEADLINES:
            self.timers.end_of_member(timer, member_id)

    def abandon(self) -> None:
        super().abandon()
        self.timers.end_phase("regex")

    def watch_rebalance(self, member: ConsumerMember, now_ms: int) -> None:
        """A member that must revoke partitions is fenced when its rebalance timeout is over."""
        if member.state is ConsumerMemberState.UNREVOKED_PARTITIONS and not member.is_classic:
            ends_ms = now_ms + member.rebalance_timeout_ms
            self.start_rebalance_timeout(member.member_id, ends_ms, member.epoch)
        else:
            self.end_rebalance_timeout(member.member_id)


def _stale(member: ConsumerMember) -> ErrorCode:
    """The error for an epoch that is not the current one, in the member's protocol."""
    return ErrorCode.ILLEGAL_GENERATION if member.is_classic else ErrorCode.STALE_MEMBER_EPOCH


def _partitions(member: ConsumerMember) -> Iterable[tuple[bytes, int]]:
    for assigned in (member.assigned, member.revoking):
        for topic_id, partitions in assigned.items():
            for partition in partitions:
                yield topic_id, partition


def _add(counts: Counter[str], key: str, by: int) -> None:
    """Change a count; those of zero are dropped."""
    counts[key] += by
    if not counts[key]:
        del counts[key]
