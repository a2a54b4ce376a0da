"""A consumer group: the sum of its records.

Owns: the effect of each record, the holder of each partition, the group's state, the permission to
commit, its replacement by a classic group. Never: decides on a heartbeat (heartbeat.py), assigns
partitions (modern/assignors).  Kafka: modern.consumer.ConsumerGroup, GroupMetadataManager.replay;
KIP-848.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct

from kcluster.broker.coordinator.classic_group import ClassicGroup
from kcluster.broker.coordinator.consumer.member import ConsumerMember, partitions_of
from kcluster.broker.coordinator.consumer.migration import (
    can_downgrade,
    downgraded,
    upgraded_members,
)
from kcluster.broker.coordinator.group import Committer, Group
from kcluster.broker.coordinator.group_log import LogRecord
from kcluster.broker.coordinator.interface import CoordinatorResult, GroupHome, RequestRefused
from kcluster.broker.coordinator.modern.assignors.assignor import Assignor, GroupSpec, MemberSpec
from kcluster.broker.coordinator.modern.assignors.range import assign_ranges
from kcluster.broker.coordinator.modern.assignors.uniform import assign_uniformly
from kcluster.broker.coordinator.modern.group import RETRY_MS, ToJoin
from kcluster.broker.coordinator.modern.partition_group import PartitionGroup
from kcluster.broker.coordinator.modern.records import (
    CONSUMER,
    ConsumerGroupPartitionMetadata,
    ConsumerGroupRegularExpression,
)
from kcluster.broker.coordinator.modern.topics import NO_PARTITIONS, Assignment
from kcluster.events.clients import Departure
from kcluster.events.rebalance_reasons import Leaver, MembersLeft
from kcluster.protocol.consumer_protocol import CONSUMER_PROTOCOL_TYPE
from kcluster.protocol.errors import ErrorCode

EPOCHS_SINCE: Final = 9
"""OffsetCommit version from which members with epochs may commit."""

ASSIGNORS: Final[dict[str, Assignor]] = {"uniform": assign_uniformly, "range": assign_ranges}


DEADLINES: Final = {"join": Departure.NOT_JOINED, "sync": Departure.NOT_SYNCED}
"""The timers of a classic member, each with the reason why the member is removed when the timer
ends."""


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
    """The metadata offset at which the expression was resolved."""
    timestamp_ms: int


class ConsumerGroup(PartitionGroup[ConsumerMember]):
    """A consumer group.  Records change its fields; requests only note facts outside of the log,
    such as the topics that were last seen."""

    kind = "consumer"
    noun = "consumer group"
    protocol = "consumer"
    session_config = "consumer.session.timeout.ms"
    interval_config = "consumer.assignment.interval.ms"
    heartbeat_config = "consumer.heartbeat.interval.ms"
    size_config = "group.consumer.max.size"
    record_types = CONSUMER
    member_type = ConsumerMember
    yields_to_classic = True

    def __init__(self, group_id: str, home: GroupHome) -> None:
        super().__init__(group_id, home)
        self.regexes: dict[str, ResolvedRegex] = {}
        self.has_old_metadata = False
        """Whether a record of a release before 4.1 must be removed."""
        self.topic_counts: Counter[str] = Counter()
        """The number of members that subscribe to a topic by name."""
        self.regex_counts: Counter[str] = Counter()
        """The number of members that subscribe to a regular expression."""
        self._assignor_counts: Counter[str] = Counter()
        self._topics_seen: frozenset[bytes] | None = None
        """The ids of the topics when this coordinator last resolved regular expressions; None: it
        has not yet."""
        self.revision = 0
        """The number of replayed records: if two readings have one revision, nothing has changed
        between them."""
        self._owners: dict[tuple[bytes, int], str] = {}
        """The member that has a partition, or must still revoke it, by topic id and partition."""

    @classmethod
    def find_to_join(
        cls, current: Group | None, group_id: str, home: GroupHome, now_ms: int
    ) -> ToJoin[ConsumerGroup] | RequestRefused:
        """Find the group of a member that joins.  A consumer group takes the place of a classic
        group, and of its members too if the migration policy allows it."""
        if not isinstance(current, ClassicGroup):
            return super().find_to_join(current, group_id, home, now_ms)
        group = cls(group_id, home)
        if current.is_unused:
            return ToJoin(group, current.tombstones())
        members = upgraded_members(current, home.broker.image, home.broker.config)
        if isinstance(members, RequestRefused):
            return members
        records = group._upgrade_records(members, current.roster.generation)
        for record in records:
            group.replay(record)
        return ToJoin(group, [*current.tombstones(), *records])

    def _upgrade_records(self, members: Sequence[ConsumerMember], epoch: int) -> list[LogRecord]:
        """The records of a group of these members, each with its partitions as its target."""
        hashed = self.hash_of({name for one in members for name in one.topics})
        targets = {one.member_id: partitions_of(one.assigned) for one in members}
        return [
            *map(self.member_record, members),
            self.epoch_record(epoch, hashed),
            *self.target_records(targets, {}, epoch, 0),
            *map(self.current_record, members),
        ]

    # ------------------------------------------------------------------------- replaying

    def replay(self, record: LogRecord) -> bool:
        self.revision += 1
        return super().replay(record)

    def replay_other(self, record: LogRecord) -> None:
        match record:
            case ConsumerGroupPartitionMetadata(value=value):
                self.has_old_metadata = value is not None
            case ConsumerGroupRegularExpression(regular_expression=regex, value=None):
                self.regexes.pop(regex, None)
            case ConsumerGroupRegularExpression(regular_expression=regex, value=value):
                topics = frozenset(value.topics)
                self.regexes[regex] = ResolvedRegex(topics, value.version, value.timestamp)
            case _:
                super().replay_other(record)

    def on_exit(self, member: ConsumerMember) -> None:
        self._count(member, -1)
        for partition in _partitions(member):
            if self._owners.get(partition) == member.member_id:
                del self._owners[partition]

    def on_enter(self, member: ConsumerMember) -> None:
        self._count(member, 1)
        self._owners.update(dict.fromkeys(_partitions(member), member.member_id))

    def _count(self, member: ConsumerMember, by: int) -> None:
        for name in member.topics:
            _add(self.topic_counts, name, by)
        if member.regex:
            _add(self.regex_counts, member.regex, by)
        if member.assignor:
            _add(self._assignor_counts, member.assignor, by)

    # ------------------------------------------------------------------------- questions

    def is_taken(self, topic_id: bytes, partition: int) -> bool:
        """Whether any member has a partition, or must still revoke it."""
        return (topic_id, partition) in self._owners

    def names_of(self, member: ConsumerMember) -> Iterable[str]:
        """The topics that a member subscribes to, by name and by regular expression."""
        resolved = self.regexes.get(member.regex) if member.regex else None
        return member.topics if resolved is None else resolved.topics.union(member.topics)

    def subscribed_topics(self, *changes: tuple[ConsumerMember, int]) -> set[str]:
        """The topics to which any member subscribes, by name and by regular expression, after these
        changes: 1 adds a subscription, -1 removes it."""
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
        """Take note that regular expressions are resolved now."""
        self._topics_seen = frozenset(self.broker.image.topic_names)

    def assignor_name(self, *members: tuple[ConsumerMember, int]) -> str:
        """The assignor that most members want; the broker's first if no member names one."""
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

    def removal(self, leavers: Collection[ConsumerMember], now_ms: int) -> CoordinatorResult[None]:
        """Remove members; if only classic members are left, they get a classic group, which
        rebalances."""
        if not can_downgrade(self.members.values(), leavers, self.broker.config):
            return super().removal(leavers, now_ms)
        reason = MembersLeft(tuple(Leaver(member.member_id) for member in leavers))
        gone = {member.member_id for member in leavers}
        rest = [one for one in self.members.values() if one.member_id not in gone]
        return self.downgrade(rest, self.targets, self.epoch, reason, now_ms)

    def downgrade(
        self,
        members: Sequence[ConsumerMember],
        targets: Mapping[str, Assignment],
        epoch: int,
        rebalances: MembersLeft | None,
        now_ms: int,
    ) -> CoordinatorResult[None]:
        """Put a classic group of these members in the place of this one.  `rebalances`: the reason
        if it begins with a rebalance."""

        def written(at_ms: int) -> None:
            group = self.home.groups.get(self.group_id)
            if isinstance(group, ClassicGroup):
                group.resume(at_ms)
                if rebalances is not None:
                    group.rebalance(rebalances, at_ms)

        ids = dict.fromkeys((*self.members, *(one.member_id for one in members)))
        image = self.broker.image
        classic = downgraded(self.group_id, epoch, members, targets, image, now_ms)
        return CoordinatorResult([*self.tombstones_of(ids), classic], None, written)

    def hash_without(self, leavers: Collection[ConsumerMember]) -> int:
        return self.hash_of(self.subscribed_topics(*((member, -1) for member in leavers)))

    def tombstones_without(self, leavers: Collection[ConsumerMember]) -> list[LogRecord]:
        left = Counter(member.regex for member in leavers if member.regex)
        return [
            ConsumerGroupRegularExpression(self.group_id, regex, None)
            for regex, count in left.items()
            if self.regex_counts[regex] == count
        ]

    def further_tombstones(self) -> list[LogRecord]:
        return [
            *(ConsumerGroupRegularExpression(self.group_id, one, None) for one in self.regexes),
            ConsumerGroupPartitionMetadata(self.group_id, None),
        ]

    @property
    def max_size(self) -> int:
        return self.broker.config.group_consumer_max_size

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
        """Check a commit. With an older epoch, it may commit the partitions that the member has
        kept since that epoch (KIP-1251)."""
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

    def session_ms(self, member: ConsumerMember) -> int:
        """The session timeout of a member; a classic member has named its own."""
        if member.classic is not None:
            return member.classic.session_timeout_ms
        return super().session_ms(member)

    def fence_at(self, timer: str, member_id: str, ends_ms: int) -> None:
        """Fence a classic member at that time, unless it has joined or synced by then."""
        departure = DEADLINES[timer]

        def over(at_ms: int) -> None:
            member = self.members.get(member_id)
            if member is not None:
                self.remove(member, departure, at_ms)
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


def _stale(member: ConsumerMember) -> ErrorCode:
    """The error for an epoch other than the current one, in the member's protocol."""
    return ErrorCode.ILLEGAL_GENERATION if member.is_classic else ErrorCode.STALE_MEMBER_EPOCH


def _partitions(member: ConsumerMember) -> Iterable[tuple[bytes, int]]:
    for assigned in (member.assigned, member.revoking):
        for topic_id, partitions in assigned.items():
            for partition in partitions:
                yield topic_id, partition


def _add(counts: Counter[str], key: str, by: int) -> None:
    """Change a count, and drop it at zero."""
    counts[key] += by
    if not counts[key]:
        del counts[key]
