"""The steps of a heartbeat that groups with epochs of all kinds share.

Owns: finding or refusing the member, the place of a static member that is back, leaving, the
effects after the records are in the log.  Never: assigns (a kind's heartbeat.py), changes the group
(the records do, when they are replayed).  Kafka: GroupMetadataManager.getOrMaybeCreateMember,
throwIfConsumerGroupMemberEpochIsInvalid, consumerGroupLeave and the like for other kinds; KIP-848,
KIP-932, KIP-1071.

    1 the member        it joins, changes, or is refused
    2 the group epoch   increases with a change of subscription, or of the topics' metadata
    3 the target        is computed for a new group epoch, once per assignment interval
    4 the assignment    of this member goes a step towards the target
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from kcluster.broker.coordinator.group_log import LogRecord
from kcluster.broker.coordinator.interface import A, CoordinatorResult, RequestRefused
from kcluster.broker.coordinator.modern.group import (
    JOIN_EPOCH,
    LEAVE_STATIC_EPOCH,
    AnyModernGroup,
    M,
    ModernGroup,
    T,
    ToJoin,
)
from kcluster.broker.coordinator.modern.refusals import (
    fenced_epoch,
    full_group,
    known_static_member,
    unknown_member,
    unreleased_instance,
)
from kcluster.contract import Request
from kcluster.events.clients import Departure

G = TypeVar("G", bound=AnyModernGroup)


class MemberChange(ABC, Generic[G, M, T]):
    """A member's request; each step adds to `records`."""

    def __init__(self, group: G, first: Sequence[LogRecord], now_ms: int) -> None:
        """A member's request to `group`.  `first`: records that turn another group into this
        one."""
        self.group = group
        self.now_ms = now_ms
        self.records = list(first)
        self.epoch = group.epoch
        """The group epoch after the request."""
        self.is_new = False
        """Whether the group did not have the member."""
        self.replaced: str | None = None
        """The id of the static member whose place the member takes."""
        self.new_targets: dict[str, T] | None = None
        """The new target assignment, if it was computed."""

    def note_written(self, member: M) -> None:
        """Note events, because the records are in the log."""
        if self.is_new:
            self.group.note_joined(member, self.replaced)
        if self.new_targets is not None:
            self.group.note_assigned(self.epoch, self.new_targets)

    def take_place_of(self, previous: M, member_id: str) -> M:
        """Give a static member that is back its old place, under a new id."""
        group = self.group
        self.replaced = previous.member_id
        member = previous.back_as(member_id)
        target = group.targets.get(previous.member_id, group.nothing)
        self.records += [
            *group.member_tombstones(previous.member_id),
            group.member_record(member),
            group.target_record(member_id, target),
            group.current_record(member),
        ]
        return member

    def members_with(self, updated: M) -> dict[str, M]:
        """The members after this request."""
        members = dict(self.group.members)
        if self.replaced is not None:
            members.pop(self.replaced, None)  # it may come back under its old id
        members[updated.member_id] = updated
        return members


class Heartbeat(MemberChange[G, M, T]):
    """One heartbeat of a member that stays, or joins."""

    def __init__(self, found: ToJoin[G], request: Request, now_ms: int) -> None:
        super().__init__(found.group, found.records, now_ms)
        self.request = request
        self.body: Any = request.body
        self.is_conversion = bool(found.records)
        self.instance_id: str | None = getattr(request.body, "instance_id", None)
        self.joins = request.body.member_epoch == JOIN_EPOCH

    @abstractmethod
    def decide(self) -> CoordinatorResult[Any] | RequestRefused:
        """Decide on the records to write, and the answer."""

    def repeats(self, member: M) -> bool:
        """Whether a heartbeat with the member's last epoch repeats one whose answer was lost."""
        return True

    def find(self, member_id: str) -> M | RequestRefused:
        """The member before the request; a new one if it joins."""
        group, instance_id = self.group, self.instance_id
        known: M | None = group.members.get(member_id)
        self.is_new = known is None
        new: M = group.member_type(member_id) if known is None else known
        if instance_id is None:
            if known is None and not self.joins:
                return unknown_member(group.group_id, member_id)
            return self._check_epoch(new)
        holder: M | None = group.static_member(instance_id)
        if not self.joins:
            static = known_static_member(holder, instance_id, member_id)
            return static if isinstance(static, RequestRefused) else self._check_epoch(static)
        if holder is None:
            return new
        if not holder.may_be_replaced:
            return unreleased_instance(instance_id, holder.member_id, member_id)
        return self.take_place_of(holder, member_id)

    def _check_epoch(self, member: M) -> M | RequestRefused:
        epoch = self.body.member_epoch
        if self.joins or epoch == member.epoch:
            return member
        if epoch < member.epoch and epoch == member.previous_epoch and self.repeats(member):
            return member
        return fenced_epoch(epoch, member.epoch, member.previous_epoch)

    def start_timers(self, member: M, has_moved: bool) -> None:
        """Start the timers after the records are in the log: the session, and the time to give up
        partitions."""
        group = self.group.stored
        if self.is_conversion:
            group.resume(self.now_ms)
        group.start_session(member.member_id, self.now_ms)
        if has_moved:
            group.watch_rebalance(member, self.now_ms)


def refuse_if_full(
    group: AnyModernGroup, member_id: str, instance_id: str | None
) -> RequestRefused | None:
    """Refuse a member that joins a full group.  `member_id`: the request's, "" if it has none.
    From 4.4 on, a static member that comes back needs no additional place."""
    if len(group.members) < group.max_size or member_id in group.members:
        return None
    if group.is_of_4_4 and group.static_member(instance_id) is not None:
        return None
    return full_group(group.max_size, group.size_config)


def decide_leave(
    group: AnyModernGroup, body: Any, answer: A, now_ms: int
) -> CoordinatorResult[A] | RequestRefused:
    """Let a member leave, for good or (a static one) until it comes back."""
    instance_id = getattr(body, "instance_id", None)
    if instance_id is None:
        member = known_member(group, body.member_id)
    else:
        holder = group.static_member(instance_id)
        member = known_static_member(holder, instance_id, body.member_id)
    if isinstance(member, RequestRefused):
        return member
    if instance_id is not None and body.member_epoch == LEAVE_STATIC_EPOCH:
        return CoordinatorResult([group.current_record(member.away())], answer)
    events = [group.left(member.member_id, Departure.LEFT)]
    return group.decide_removal([member], events, answer, now_ms)


def known_member(group: ModernGroup[M, Any], member_id: str) -> M | RequestRefused:
    member = group.members.get(member_id)
    return unknown_member(group.group_id, member_id) if member is None else member
