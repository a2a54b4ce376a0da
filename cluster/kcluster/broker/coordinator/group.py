"""The interface of a group of any kind, for its shard and for the handlers.

Owns: `Group`, `Committer`.  Never: members, generations or epochs, which differ from kind to kind.
Kafka: org.apache.kafka.coordinator.group.Group.

A kind is a subclass of `Group`, its records with their readers (group_records.py has the table),
and a row per record type in group_kinds.py.  classic_group.py: classic groups; modern/: the common
part of groups with epochs, whose kinds are in consumer/, share/ and streams/.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, Protocol

from msgspec import Struct

from kcluster.broker.coordinator.group_log import LogRecord
from kcluster.broker.coordinator.interface import GroupHome, Settled
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from kcluster.contract import Request
    from kcluster.protocol.messages import (
        DescribeGroupsResponse,
        LeaveGroupRequest,
        LeaveGroupResponse,
        ListGroupsResponse,
    )

    MemberIdentity = LeaveGroupRequest.MemberIdentity
    MemberResponse = LeaveGroupResponse.MemberResponse
    ListedGroup = ListGroupsResponse.ListedGroup
    DescribedGroup = DescribeGroupsResponse.DescribedGroup


class Committer(Struct, frozen=True):
    """The identity that an offset commit claims."""

    member_id: str
    instance_id: str | None
    generation: int
    """The generation of a classic member, or the epoch of any other; negative: not a member."""
    api_version: int
    is_in_transaction: bool = False
    """Whether the commit is a TxnOffsetCommit; older producers do not name the member."""


class ClassicSide(Protocol):
    """A group's interface for classic members."""

    def join(self, request: Request, now_ms: int) -> None:
        """Answer JoinGroup, now or later."""

    def sync(self, request: Request, now_ms: int) -> None:
        """Answer SyncGroup, now or later."""

    def heartbeat(self, body: m.HeartbeatRequest, now_ms: int) -> ErrorCode: ...

    def leave(self, leavers: list[MemberIdentity], now_ms: int) -> list[MemberResponse] | ErrorCode:
        """The outcome for each member, or an error for all if the write was refused."""


class GroupView(Protocol):
    """A group as the handlers see it: to be shown, not to be changed."""

    kind: ClassVar[str]

    @property
    def state_name(self) -> str: ...

    def listed(self) -> ListedGroup: ...

    def described(self) -> DescribedGroup | None: ...


class Group(ABC):
    """One group, for its shard."""

    kind: ClassVar[str]
    """Name of the kind as clients see it.  Kafka: Group.GroupType."""

    def __init__(self, group_id: str, home: GroupHome) -> None:
        self.group_id = group_id
        self._home = home

    yields_to_classic: ClassVar[bool] = False
    """Whether a new classic group replaces this one, if it is empty, when a classic member
    joins."""

    # ----------------------------------------------------------------- what clients see

    @property
    @abstractmethod
    def state_name(self) -> str:
        """The state's name in ListGroups and the Describe requests."""

    @property
    @abstractmethod
    def protocol_type(self) -> str:
        """The protocol type in ListGroups; a classic group has its members' type, "" if it never
        had members."""

    def listed(self) -> ListedGroup:
        """The group's row of ListGroups."""
        return m.ListGroupsResponse.ListedGroup(
            group_id=self.group_id,
            protocol_type=self.protocol_type,
            group_state=self.state_name,
            group_type=self.kind,
        )

    @abstractmethod
    def described(self) -> DescribedGroup | None:
        """The group's row of DescribeGroups; None if that request does not show this kind."""

    # ------------------------------------------------------------------------- deletion

    @property
    @abstractmethod
    def is_unused(self) -> bool:
        """Whether the group has neither members nor pending members, so that it may be deleted with
        its last offset."""

    @abstractmethod
    def check_deletion(self) -> ErrorCode:
        """Whether the group may be deleted; NON_EMPTY_GROUP if not."""

    def prepare_deletion(self, on_ready: Settled, now_ms: int) -> None:
        """Delete the group's state elsewhere; then its records are deleted, unless this fails."""
        on_ready(ErrorCode.NONE, now_ms)

    @abstractmethod
    def tombstones(self) -> list[LogRecord]:
        """The records that delete the group, without its offsets."""

    def without_deleted_topics(self) -> list[LogRecord]:
        """The records to write when the broker's image has lost a topic."""
        return []

    # -------------------------------------------------------------------------- offsets

    @abstractmethod
    def admit_commit(self, committer: Committer, now_ms: int) -> ErrorCode:
        """Whether this member may commit offsets.  If so, the commit counts as a heartbeat."""

    def check_commit_of(self, committer: Committer, topic_id: bytes, partition: int) -> ErrorCode:
        """Whether an admitted member may commit an offset of this partition."""
        return ErrorCode.NONE

    def check_fetch(self, member_id: str | None, epoch: int) -> ErrorCode:
        """Whether this sender may read the group's offsets (OffsetFetch 9 and later)."""
        return ErrorCode.NONE

    @abstractmethod
    def check_offset_deletion(self) -> ErrorCode:
        """Whether the group's state allows single offsets to be deleted."""

    @abstractmethod
    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member subscribes to `topic`, so that its offsets neither expire nor can be
        deleted."""

    @abstractmethod
    def retention_starts_ms(self, commit_timestamp_ms: int) -> int | None:
        """The start of an offset's retention; None: no offset expires in this state."""

    # ------------------------------------------------------------------------ lifecycle

    @abstractmethod
    def replay(self, record: LogRecord) -> bool:
        """Apply a record of this group read from the log; False: it deletes the group."""

    @abstractmethod
    def resume(self, now_ms: int) -> None:
        """Set the timers, because the log has been replayed."""

    @abstractmethod
    def unload(self, now_ms: int) -> None:
        """Cancel timers and answer parked requests, because this broker no longer coordinates the
        group."""

    @abstractmethod
    def abandon(self) -> None:
        """Cancel timers and forget pending members, because the group is being deleted."""
