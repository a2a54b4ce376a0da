"""A group with epochs: what consumer, share and streams groups have in common.

Owns: the group epoch, the target assignment and its epoch, the table of members, the sessions and
rebalance timeouts of members, writing and answering.  Never: decides what is written, knows a
member or an assignment (a subclass does).
Kafka: ModernGroup; CoordinatorRuntime.append, CoordinatorTimer.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Final, Generic, TypeVar

from msgspec import Struct

from kcluster.broker.coordinator.group import Group
from kcluster.broker.coordinator.group_log import LogRecord
from kcluster.broker.coordinator.group_timers import GroupTimers
from kcluster.broker.coordinator.interface import GroupHome, Settled, ignore_outcome
from kcluster.broker.coordinator.modern.configs import group_time_ms
from kcluster.broker.coordinator.modern.topics import TopicHashes
from kcluster.protocol.errors import ErrorCode

FIRST_EPOCH: Final = 1
"""The epoch of a group before anybody joins."""
JOIN_EPOCH: Final = 0
"""The member epoch of a heartbeat that joins, or joins again."""
LEAVE_EPOCH: Final = -1
"""The member epoch of a heartbeat that leaves."""
LEAVE_STATIC_EPOCH: Final = -2
"""As above, of a static member that will be back."""

RETRY_MS: Final = 500
"""When a member is fenced again after the write of that was refused.  Kafka: CoordinatorTimerImpl,
which schedules a failed operation once more."""

_4_4: Final = (4, 4)

M = TypeVar("M")
T = TypeVar("T")
G = TypeVar("G", bound="ModernGroup[Any, Any]")


class GroupRefusal(Struct, frozen=True):
    """Why a request is not served."""

    error: ErrorCode
    message: str | None = None


class ToJoin(Struct, Generic[G], frozen=True):
    """The group of a heartbeat that joins: it may be new, or still to be converted."""

    group: G
    records: Sequence[LogRecord] = ()
    """To be written before all others: they turn the group of that id into this one."""


class ModernGroup(Group, Generic[M, T]):
    """M: a member.  T: a member's part of the target assignment.

    Members and targets are values: replaying a record puts another one in the place of the old.
    """

    noun: ClassVar[str]
    """What messages call it: "consumer group"."""
    protocol: ClassVar[str]
    """As in group.coordinator.rebalance.protocols: "consumer"."""
    session_config: ClassVar[str]
    """The group config with the session timeout: "consumer.session.timeout.ms"."""
    interval_config: ClassVar[str]
    """That with the assignment interval."""

    def __init__(self, group_id: str, home: GroupHome) -> None:
        super().__init__(group_id, home)
        self.home = home
        self.broker = home.broker
        self.timers = GroupTimers(home.broker.timers, group_id)
        self.epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.target_epoch = 0
        self.target_timestamp_ms = 0
        """When the target was computed; 0 when there is none, or that is not known."""
        self.members: dict[str, M] = {}
        self.targets: dict[str, T] = {}
        self.is_stored = False
        """Whether any record of it is in the log."""
        self._checked: tuple[int, int] | None = None
        self._hashes = TopicHashes()

    # ------------------------------------------------------------------ what a kind adds

    @abstractmethod
    def fence(self, member_id: str, now_ms: int) -> None:
        """Remove a member that has failed: write what that takes."""

    # ---------------------------------------------------------------------- finding it

    @classmethod
    def find(
        cls: type[G], current: Group | None, group_id: str, noun: str | None = None
    ) -> G | GroupRefusal:
        """The group of a request that does not join; `noun`: what it is called if it is missing."""
        if current is None:
            message = f"there is no {noun or cls.noun} {group_id}"
            return GroupRefusal(ErrorCode.GROUP_ID_NOT_FOUND, message)
        if isinstance(current, cls):
            return current
        message = f"group {group_id} exists, but is no {cls.noun}"
        return GroupRefusal(ErrorCode.GROUP_ID_NOT_FOUND, message)

    @classmethod
    def find_to_join(
        cls: type[G], current: Group | None, group_id: str, home: GroupHome, now_ms: int
    ) -> ToJoin[G] | GroupRefusal:
        """The group of a request that joins; a new one is kept when its first record is written.

        A kind that takes the place of an empty classic group overrides it.
        """
        if current is None:
            return ToJoin(cls(group_id, home))
        found = cls.find(current, group_id)
        return found if isinstance(found, GroupRefusal) else ToJoin(found)

    @property
    def is_of_4_4(self) -> bool:
        """Whether the broker is of Kafka 4.4 or later.  From then on the target assignment of a
        group that has become empty has the group's epoch."""
        return self.broker.release.number >= _4_4

    # ------------------------------------------------------------------------- writing

    def write(self, records: Sequence[LogRecord], on_settled: Settled, now_ms: int) -> bool:
        """Append the records in one batch and replay them; call back when they are committed.
        Without records: when everything before is.

        False: the append was refused, and nothing has changed.
        """
        if not records:
            self._home.after_writes(on_settled, now_ms)
            return True
        return self._home.write(records, on_settled, now_ms)

    def write_alone(self, records: Sequence[LogRecord], now_ms: int) -> None:
        """As above, when no client waits for it."""
        if records:
            self._home.write(records, ignore_outcome, now_ms)

    # -------------------------------------------------------------------------- timers

    @property
    def stored(self: G) -> G:
        """The group that the shard has under this id, after a write."""
        group = self._home.groups.get(self.group_id)
        return group if isinstance(group, type(self)) else self

    def config_ms(self, name: str) -> int:
        """The group's value of a group config."""
        return group_time_ms(self.broker, self.group_id, name)

    def start_session(self, member_id: str, now_ms: int) -> None:
        """The member made contact: restart its session."""
        ends_ms = now_ms + self.config_ms(self.session_config)
        self.timers.start_session(member_id, ends_ms, self.expire)

    def expire(self, member_id: str, now_ms: int) -> None:
        """The member's session is over."""
        if member_id in self.members:
            self.fence(member_id, now_ms)
        if member_id in self.members:
            self.timers.start_session(member_id, now_ms + RETRY_MS, self.expire)

    def start_rebalance_timeout(self, member_id: str, ends_ms: int, member_epoch: int) -> None:
        """Fence the member at `ends_ms`, if it is still in this epoch then."""

        def over(at_ms: int) -> None:
            member = self.members.get(member_id)
            if member is None or self.epoch_of(member) != member_epoch:
                return
            self.fence_unrevoked(member_id, at_ms)
            if member_id in self.members:
                self.start_rebalance_timeout(member_id, at_ms + RETRY_MS, member_epoch)

        self.timers.start_of_member("rebalance", member_id, ends_ms, over)

    def fence_unrevoked(self, member_id: str, now_ms: int) -> None:
        """The member's rebalance timeout is over."""
        self.fence(member_id, now_ms)

    def end_rebalance_timeout(self, member_id: str) -> None:
        self.timers.end_of_member("rebalance", member_id)

    @abstractmethod
    def epoch_of(self, member: M) -> int:
        """A member's epoch."""

    def can_assign(self, now_ms: int) -> bool:
        """Whether the assignment interval has passed since the last target assignment."""
        interval_ms = self.config_ms(self.interval_config)
        last_ms = self.target_timestamp_ms
        return last_ms == 0 or interval_ms == 0 or now_ms >= last_ms + interval_ms

    # ------------------------------------------------------------------------ metadata

    def has_checked_metadata(self) -> bool:
        """Whether the hash of the topics has been compared since the cluster's metadata changed.

        A later group epoch than now means that the write of that comparison was refused.
        """
        if self._checked is None:
            return False
        offset, epoch = self._checked
        return offset == self.broker.image.offset and epoch <= self.epoch

    def note_checked_metadata(self, epoch: int) -> None:
        """`epoch`: the group epoch after it."""
        self._checked = (self.broker.image.offset, epoch)

    def hash_of(self, topics: Iterable[str]) -> int:
        """The hash of these topics' metadata now."""
        return self._hashes.of_topics(self.broker.image, topics)

    # ----------------------------------------------------------------------- lifecycle

    def resume(self, now_ms: int) -> None:
        """Each member has one session timeout to contact this coordinator."""
        for member_id in self.members:
            self.start_session(member_id, now_ms)

    def unload(self, now_ms: int) -> None:
        self.abandon()

    def abandon(self) -> None:
        for member_id in self.members:
            self.end_timers(member_id)

    def end_timers(self, member_id: str) -> None:
        """The member is gone."""
        self.timers.end_session(member_id)
        self.end_rebalance_timeout(member_id)

    # ---------------------------------------------------------------------- other APIs

    def described(self) -> None:
        """DescribeGroups shows classic groups only."""
        return

    @property
    def is_unused(self) -> bool:
        return not self.members

    def check_deletion(self) -> ErrorCode:
        return ErrorCode.NON_EMPTY_GROUP if self.members else ErrorCode.NONE
