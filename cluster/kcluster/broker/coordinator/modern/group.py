"""A group with epochs: the common part of consumer, share and streams groups.

Owns: the group epoch, the target assignment and its epoch, the table of members, the effect of each
record on these, the records that remove members or the group, the sessions and rebalance timeouts
of members.  Never: decides on a heartbeat (heartbeat.py), knows the assignments of a kind.  Kafka:
ModernGroup; GroupMetadataManager.replay; CoordinatorTimer.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final, Generic, Protocol, Self, TypeVar

from msgspec import Struct

from kcluster.broker.coordinator.group import Group
from kcluster.broker.coordinator.group_log import LogRecord
from kcluster.broker.coordinator.group_timers import GroupTimers
from kcluster.broker.coordinator.interface import (
    A,
    CoordinatorResult,
    GroupHome,
    RequestRefused,
    Settled,
    ignore_outcome,
)
from kcluster.broker.coordinator.modern.configs import group_time_ms
from kcluster.broker.coordinator.modern.records import (
    CurrentMember,
    GroupMetadata,
    MemberMetadata,
    RecordTypes,
    TargetMember,
    TargetMetadata,
)
from kcluster.broker.coordinator.modern.topics import TopicHashes
from kcluster.events.clients import (
    AssignedPartitions,
    Departure,
    GroupAssigned,
    GroupEvent,
    GroupMemberExpired,
    GroupMemberJoined,
    GroupMemberLeft,
)
from kcluster.protocol.errors import ErrorCode

FIRST_EPOCH: Final = 1
"""The epoch of a group before its first member."""
JOIN_EPOCH: Final = 0
"""The member epoch of a heartbeat that joins, or joins again."""
LEAVE_EPOCH: Final = -1
"""The member epoch of a heartbeat that leaves."""
LEAVE_STATIC_EPOCH: Final = -2
"""The member epoch of a heartbeat of a static member that leaves, and will be back."""

RETRY_MS: Final = 500
"""The time after which a member is fenced again if the write of its fencing was refused.  Kafka:
CoordinatorTimerImpl, which schedules a failed operation once more."""

_4_4: Final = (4, 4)


class Member(Protocol):
    """A member of any kind of group: a value, made from its two records."""

    @property
    def member_id(self) -> str: ...
    @property
    def instance_id(self) -> str | None:
        """The instance id of a static member; None: it is dynamic."""

    @property
    def client_id(self) -> str: ...
    @property
    def client_host(self) -> str: ...
    @property
    def epoch(self) -> int: ...
    @property
    def previous_epoch(self) -> int: ...
    @property
    def may_be_replaced(self) -> bool:
        """Whether a new member may take the place of this static one."""

    @property
    def revocation_timeout_ms(self) -> int | None:
        """The time that it has to give up partitions or tasks; None: it has none to give up."""

    def metadata(self) -> Any:
        """The value of the member's first record."""

    def with_metadata(self, value: Any) -> Self: ...

    def current(self) -> Any:
        """The value of the member's second record."""

    def with_current(self, value: Any | None) -> Self:
        """The member with this assignment; None: its assignment was deleted, and the member will be
        deleted next."""

    def away(self) -> Self:
        """The static member while it is away and may come back under another id: it keeps its
        partitions, and then has them from the beginning."""

    def back_as(self, member_id: str) -> Self:
        """The static member that has come back."""


M = TypeVar("M", bound=Member)
T = TypeVar("T")
G = TypeVar("G", bound="AnyModernGroup")


class ToJoin(Struct, Generic[G], frozen=True):
    """The group of a heartbeat that joins: it may be new, or not yet converted."""

    group: G
    records: Sequence[LogRecord] = ()
    """Records to write before all others, which turn another group with this id into this one."""


class ModernGroup(Group, Generic[M, T]):
    """M: a member.  T: a member's part of the target assignment.

    Members and targets are values: replaying a record replaces one.
    """

    noun: ClassVar[str]
    """Its name in messages: "consumer group"."""
    protocol: ClassVar[str]
    """Its name in group.coordinator.rebalance.protocols: "consumer"."""
    session_config: ClassVar[str]
    """The group config with the session timeout: "consumer.session.timeout.ms"."""
    interval_config: ClassVar[str]
    """The group config with the assignment interval."""
    heartbeat_config: ClassVar[str]
    """The group config with the heartbeat interval."""
    size_config: ClassVar[str]
    """The broker config with the limit of members: "group.consumer.max.size"."""
    record_types: ClassVar[RecordTypes]
    member_type: ClassVar[type[Any]]
    """The class of the group's members; a new member is made from its id."""
    nothing: ClassVar[Any]
    """The target of a member without one."""

    def __init__(self, group_id: str, home: GroupHome) -> None:
        super().__init__(group_id, home)
        self.home = home
        self.broker = home.broker
        self.timers = GroupTimers(home.broker.timers, group_id)
        self.epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.target_epoch = 0
        self.target_timestamp_ms = 0
        """The time at which the target was computed; 0 if there is none, or the time is unknown."""
        self.members: dict[str, M] = {}
        self.static_members: dict[str, str] = {}
        """Instance id -> member id.  Share groups have none."""
        self.targets: dict[str, T] = {}
        self.is_stored = False
        """Whether the log has any record of it."""
        self._checked: tuple[int, int] | None = None
        self._hashes = TopicHashes()

    # ------------------------------------------------------------------ what a kind adds

    @abstractmethod
    def read_target(self, value: Any) -> T:
        """A member's part of the target assignment, from its record."""

    @abstractmethod
    def written_target(self, target: T) -> Any:
        """The value of a member's record of the target assignment."""

    @abstractmethod
    def assigned_partitions(self, targets: Mapping[str, T]) -> Iterable[AssignedPartitions]:
        """The partitions that the members read under this target assignment."""

    @property
    @abstractmethod
    def max_size(self) -> int:
        """The most members that the group may have."""

    @abstractmethod
    def hash_without(self, leavers: Collection[M]) -> int:
        """The hash of the topics of all members but these."""

    def replay_other(self, record: LogRecord) -> None:
        """Replay a record that other kinds do not have."""
        raise AssertionError(record)

    def replay_group(self, value: Any) -> None:
        """Replay the part of the group's own record that differs between kinds."""

    def on_enter(self, member: M) -> None:
        """Count a member from now on."""

    def on_exit(self, member: M) -> None:
        """Stop counting a member in this state."""

    def on_removed(self, member_id: str) -> None:
        """Forget a member that the group no longer has."""
        self.end_timers(member_id)

    def further_tombstones(self) -> list[LogRecord]:
        """The tombstones of records that other kinds do not have."""
        return []

    def tombstones_without(self, leavers: Collection[M]) -> list[LogRecord]:
        """The tombstones of records that only these members needed."""
        return []

    # ---------------------------------------------------------------------- finding it

    @classmethod
    def find(
        cls: type[G], current: Group | None, group_id: str, noun: str | None = None
    ) -> G | RequestRefused:
        """The group of a request that is not a join.  `noun`: the group's name in the error if it
        is missing."""
        if current is None:
            message = f"there is no {noun or cls.noun} {group_id}"
            return RequestRefused(ErrorCode.GROUP_ID_NOT_FOUND, message)
        if isinstance(current, cls):
            return current
        message = f"group {group_id} exists, but is no {cls.noun}"
        return RequestRefused(ErrorCode.GROUP_ID_NOT_FOUND, message)

    @classmethod
    def find_to_join(
        cls: type[G], current: Group | None, group_id: str, home: GroupHome, now_ms: int
    ) -> ToJoin[G] | RequestRefused:
        """The group of a request that joins; a new one is kept when its first record is written.

        A kind that takes the place of an empty classic group overrides it.
        """
        if current is None:
            return ToJoin(cls(group_id, home))
        found = cls.find(current, group_id)
        return found if isinstance(found, RequestRefused) else ToJoin(found)

    @classmethod
    def find_for_heartbeat(
        cls: type[G],
        current: Group | None,
        group_id: str,
        home: GroupHome,
        member_epoch: int,
        now_ms: int,
    ) -> ToJoin[G] | RequestRefused:
        """The group of a heartbeat of a member that joins, stays, or leaves."""
        if member_epoch == JOIN_EPOCH:
            return cls.find_to_join(current, group_id, home, now_ms)
        known = cls.find(current, group_id, "group" if member_epoch < JOIN_EPOCH else None)
        return known if isinstance(known, RequestRefused) else ToJoin(known)

    def static_member(self, instance_id: str | None) -> M | None:
        return None if instance_id is None else self.members.get(self._static_id(instance_id))

    def _static_id(self, instance_id: str) -> str:
        return self.static_members.get(instance_id, "")

    @property
    def is_of_4_4(self) -> bool:
        """Whether the broker's release is 4.4 or later, in which the target assignment of a group
        that has become empty has the group's epoch."""
        return self.broker.release.number >= _4_4

    # ------------------------------------------------------------------------- replaying

    def replay(self, record: LogRecord) -> bool:
        match record:
            case GroupMetadata(value=None):
                self.is_stored = False
                return False
            case GroupMetadata(value=value):
                self.epoch, self.metadata_hash = value.epoch, value.metadata_hash
                self.replay_group(value)
            case MemberMetadata(member_id=member_id, value=None as value):
                self._put(member_id, None)
            case MemberMetadata(member_id=member_id, value=value):
                self._put(member_id, self._member(member_id).with_metadata(value))
            case TargetMetadata(value=None as value):
                self.target_epoch, self.target_timestamp_ms = -1, 0
            case TargetMetadata(value=value):
                self.target_epoch = value.assignment_epoch
                self.target_timestamp_ms = value.assignment_timestamp
            case TargetMember(member_id=member_id, value=None as value):
                self.targets.pop(member_id, None)
            case TargetMember(member_id=member_id, value=value):
                self.targets[member_id] = self.read_target(value)
            case CurrentMember(member_id=member_id, value=value):
                if value is not None or member_id in self.members:
                    self._put(member_id, self._member(member_id).with_current(value))
            case _:
                self.replay_other(record)
                value = getattr(record, "value", None)
        self.is_stored = self.is_stored or value is not None
        return self.is_stored

    def _member(self, member_id: str) -> M:
        known = self.members.get(member_id)
        if known is None:
            known = self.member_type(member_id)
        return known

    def _put(self, member_id: str, member: M | None) -> None:
        """Put a member in the place of its old value; None: remove it."""
        old = self.members.get(member_id)
        if old is not None:
            self.on_exit(old)
            if old.instance_id is not None and self._static_id(old.instance_id) == member_id:
                del self.static_members[old.instance_id]
        if member is None:
            self.members.pop(member_id, None)
            self.on_removed(member_id)
            return
        self.members[member_id] = member
        self.on_enter(member)
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member_id

    # --------------------------------------------------------------------------- records

    def epoch_record(self, epoch: int, hash_of_topics: int) -> GroupMetadata:
        """The group's own record, with another epoch."""
        kind = self.record_types.group
        return kind(self.group_id, kind.value_type()(epoch=epoch, metadata_hash=hash_of_topics))

    def member_record(self, member: M) -> MemberMetadata:
        return self.record_types.member(self.group_id, member.member_id, member.metadata())

    def current_record(self, member: M) -> CurrentMember:
        return self.record_types.current(self.group_id, member.member_id, member.current())

    def target_record(self, member_id: str, target: T) -> TargetMember:
        value = self.written_target(target)
        return self.record_types.target_member(self.group_id, member_id, value)

    def target_records(
        self, targets: Mapping[str, T], known: Mapping[str, T], epoch: int, now_ms: int
    ) -> list[LogRecord]:
        """The records of a new target assignment: the changes from the `known` one, and its
        epoch."""
        return [
            *(
                self.target_record(member_id, target)
                for member_id, target in targets.items()
                if target != known.get(member_id)
            ),
            self._target_epoch_record(epoch, now_ms),
        ]

    def _target_epoch_record(self, epoch: int, now_ms: int) -> TargetMetadata:
        kind = self.record_types.target
        value = kind.value_type()(assignment_epoch=epoch, assignment_timestamp=now_ms)
        return kind(self.group_id, value)

    def member_tombstones(self, member_id: str) -> list[LogRecord]:
        """The records that remove a member, in Kafka's order."""
        types = self.record_types
        return [
            make(self.group_id, member_id, None)
            for make in (types.current, types.target_member, types.member)
        ]

    def removal_records(self, leavers: Collection[M]) -> list[LogRecord]:
        """The records that remove members and increase the group epoch."""
        records: list[LogRecord] = []
        for member in leavers:
            records += self.member_tombstones(member.member_id)
        records += self.tombstones_without(leavers)
        records.append(self.epoch_record(self.epoch + 1, self.hash_without(leavers)))
        if len(leavers) == len(self.members) and self.is_of_4_4:
            records.append(self._target_epoch_record(self.epoch + 1, 0))
        return records

    def tombstones(self) -> list[LogRecord]:
        return self.tombstones_of(self.members)

    def tombstones_of(self, member_ids: Iterable[str]) -> list[LogRecord]:
        """The records that delete a group with these members."""
        ids, types, group_id = list(member_ids), self.record_types, self.group_id
        return [
            *(types.current(group_id, one, None) for one in ids),
            *(types.target_member(group_id, one, None) for one in ids),
            types.target(group_id, None),
            *(types.member(group_id, one, None) for one in ids),
            *self.further_tombstones(),
            types.group(group_id, None),
        ]

    # ------------------------------------------------------------------------- writing

    def write(self, records: Sequence[LogRecord], on_settled: Settled, now_ms: int) -> bool:
        """Append the records in one batch and replay them; call back when they are committed.
        Without records, call back when all earlier writes are committed.

        False: the append was refused, and nothing has changed.
        """
        if not records:
            self._home.after_writes(on_settled, now_ms)
            return True
        return self._home.append(records, on_settled, now_ms, at_once=True)

    def write_alone(self, records: Sequence[LogRecord], now_ms: int) -> None:
        """Write records that no client waits for."""
        if records:
            self.write(records, ignore_outcome, now_ms)

    def carry_out(
        self, decision: CoordinatorResult[Any], now_ms: int, on_settled: Settled = ignore_outcome
    ) -> bool:
        """Write a decision that does not answer a client's request by itself.  False: the append
        was refused, and nothing has changed."""
        written = self.write(decision.records, on_settled, now_ms)
        if written:
            decision.on_written(now_ms)
        return written

    def removal(self, leavers: Collection[M], now_ms: int) -> CoordinatorResult[None]:
        """Remove members."""
        return CoordinatorResult(self.removal_records(leavers), None)

    def decide_removal(
        self, leavers: Collection[M], events: Sequence[GroupEvent], response: A, now_ms: int
    ) -> CoordinatorResult[A]:
        """Decide to remove members; `events` have the reasons."""
        removal = self.removal(leavers, now_ms)

        def written(at_ms: int) -> None:
            removal.on_written(at_ms)
            for event in events:
                self.broker.note(event)

        return CoordinatorResult(removal.records, response, written)

    def left(self, member_id: str, departure: Departure) -> GroupMemberLeft:
        return GroupMemberLeft(self.group_id, member_id, departure)

    def remove(self, member: M, departure: Departure, now_ms: int) -> None:
        events = [self.left(member.member_id, departure)]
        self.carry_out(self.decide_removal([member], events, None, now_ms), now_ms)

    # -------------------------------------------------------------------------- events

    def note_joined(self, member: M, replaced: str | None) -> None:
        """Note that a new member has been written; `replaced`: the id of the static member before
        it."""
        if replaced is not None:
            self.broker.note(self.left(replaced, Departure.REPLACED))
        host = member.client_host.removeprefix("/")
        joined = GroupMemberJoined(self.group_id, member.member_id, member.client_id, host, "")
        self.broker.note(joined)

    def note_assigned(self, epoch: int, targets: Mapping[str, T]) -> None:
        """Note that a new target assignment has been written."""
        rows = tuple(self.assigned_partitions(targets))
        self.broker.note(GroupAssigned(self.group_id, epoch, rows))

    # -------------------------------------------------------------------------- timers

    @property
    def stored(self: G) -> G:
        """The group that the shard has under this id, after a write."""
        group = self._home.groups.get(self.group_id)
        return group if isinstance(group, type(self)) else self

    def config_ms(self, name: str) -> int:
        """The group's value of a group config."""
        return group_time_ms(self.broker, self.group_id, name)

    def session_ms(self, member: M) -> int:
        return self.config_ms(self.session_config)

    def start_session(self, member_id: str, now_ms: int) -> None:
        """Restart a member's session, because it made contact."""
        member = self.members.get(member_id)
        if member is not None:
            ends_ms = now_ms + self.session_ms(member)
            self.timers.start_session(member_id, ends_ms, self.expire)

    def expire(self, member_id: str, now_ms: int) -> None:
        """Fence a member whose session is over."""
        member = self.members.get(member_id)
        if member is not None:
            expired = GroupMemberExpired(self.group_id, member_id, self.session_ms(member))
            self.carry_out(self.decide_removal([member], [expired], None, now_ms), now_ms)
        if member_id in self.members:
            self.timers.start_session(member_id, now_ms + RETRY_MS, self.expire)

    def watch_rebalance(self, member: M, now_ms: int) -> None:
        """Fence a member that does not give up partitions or tasks in time."""
        timeout_ms = member.revocation_timeout_ms
        if timeout_ms is None:
            self.end_rebalance_timeout(member.member_id)
        else:
            self._fence_unrevoked_at(member.member_id, now_ms + timeout_ms, member.epoch)

    def _fence_unrevoked_at(self, member_id: str, ends_ms: int, member_epoch: int) -> None:
        """Fence the member at `ends_ms`, if it is still in this epoch at that time."""

        def over(at_ms: int) -> None:
            member = self.members.get(member_id)
            if member is None or member.epoch != member_epoch:
                return
            self.remove(member, Departure.NOT_REVOKED, at_ms)
            if member_id in self.members:
                self._fence_unrevoked_at(member_id, at_ms + RETRY_MS, member_epoch)

        self.timers.start_of_member("rebalance", member_id, ends_ms, over)

    def end_rebalance_timeout(self, member_id: str) -> None:
        self.timers.end_of_member("rebalance", member_id)

    def can_assign(self, now_ms: int) -> bool:
        """Whether the assignment interval has passed since the last target assignment."""
        interval_ms = self.config_ms(self.interval_config)
        last_ms = self.target_timestamp_ms
        return last_ms == 0 or interval_ms == 0 or now_ms >= last_ms + interval_ms

    # ------------------------------------------------------------------------ metadata

    def has_checked_metadata(self) -> bool:
        """Whether the hash of the topics has been compared since the cluster's metadata changed.

        If the group epoch noted at the comparison is later than the present one, the write of its
        result was refused, and it does not count.
        """
        if self._checked is None:
            return False
        offset, epoch = self._checked
        return offset == self.broker.image.offset and epoch <= self.epoch

    def note_checked_metadata(self, epoch: int) -> None:
        """Record the check.  `epoch`: the group epoch after it."""
        self._checked = (self.broker.image.offset, epoch)

    def hash_of(self, topics: Iterable[str]) -> int:
        """The hash of these topics' metadata now."""
        return self._hashes.of_topics(self.broker.image, topics)

    # ----------------------------------------------------------------------- lifecycle

    def resume(self, now_ms: int) -> None:
        """Give each member one session timeout to contact this coordinator."""
        for member_id, member in self.members.items():
            self.start_session(member_id, now_ms)
            self.watch_rebalance(member, now_ms)

    def unload(self, now_ms: int) -> None:
        self.abandon()

    def abandon(self) -> None:
        for member_id in self.members:
            self.end_timers(member_id)

    def end_timers(self, member_id: str) -> None:
        """End the timers of a member that is gone."""
        self.timers.end_session(member_id)
        self.end_rebalance_timeout(member_id)

    # ---------------------------------------------------------------------- other APIs

    def described(self) -> None:
        """None, because DescribeGroups shows classic groups only."""
        return

    @property
    def is_unused(self) -> bool:
        return not self.members

    def check_deletion(self) -> ErrorCode:
        return ErrorCode.NON_EMPTY_GROUP if self.members else ErrorCode.NONE


AnyModernGroup = ModernGroup[Any, Any]
"""A group of one of the three kinds."""
