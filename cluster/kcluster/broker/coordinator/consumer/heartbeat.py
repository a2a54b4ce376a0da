"""ConsumerGroupHeartbeat: what one heartbeat changes.

Owns: the order of checks, and the decision: the records to write and the answer.  Never: changes
the group (the records do, when they are replayed).
Kafka: GroupMetadataManager.consumerGroupHeartbeat, consumerGroupLeave; KIP-848.

    1 the member        it joins, changes, or is refused
    2 the group epoch   increases with a change of subscription, or of the topics' metadata
    3 the target        is computed for a new group epoch, once per assignment interval
    4 the assignment    of this member goes a step towards the target (reconcile.py)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from msgspec import Struct
from msgspec.structs import replace

from kcluster.broker.coordinator.consumer.change import MemberChange, refuse_if_full
from kcluster.broker.coordinator.consumer.group import ConsumerGroup
from kcluster.broker.coordinator.consumer.member import (
    NONE_ASSIGNED,
    AssignedPartitions,
    ConsumerMember,
)
from kcluster.broker.coordinator.consumer.regexes import RegexChange, change_regex, resolve_if_due
from kcluster.broker.coordinator.group_log import LogRecord
from kcluster.broker.coordinator.modern.group import JOIN_EPOCH, LEAVE_STATIC_EPOCH, GroupRefusal
from kcluster.broker.coordinator.modern.refusals import (
    fenced_epoch,
    known_static_member,
    unknown_member,
)
from kcluster.contract import Request
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode

NO_TIMEOUT: Final = -1


class Decided(Struct):
    """What to write, and the answer when it is committed."""

    records: list[LogRecord]
    answer: m.ConsumerGroupHeartbeatResponse
    member: ConsumerMember | None = None
    """The member afterwards; None: it left, so no session is to be started."""
    leaver: ConsumerMember | None = None
    """The member to be removed."""
    is_reconciled: bool = False
    """Whether its assignment went a step towards the target."""


# ----------------------------------------------------------------------------------------- leave


def decide_leave(
    group: ConsumerGroup, body: m.ConsumerGroupHeartbeatRequest
) -> Decided | GroupRefusal:
    """A member leaves, for good or (a static one) until it comes back."""
    answer = m.ConsumerGroupHeartbeatResponse(
        member_id=body.member_id, member_epoch=body.member_epoch
    )
    if body.instance_id is None:
        found = known_member(group, body.member_id)
        if isinstance(found, GroupRefusal):
            return found
        return Decided([], answer, leaver=found)
    static = known_static_member(
        group.static_member(body.instance_id), body.instance_id, body.member_id
    )
    if isinstance(static, GroupRefusal):
        return static
    if body.member_epoch != LEAVE_STATIC_EPOCH:
        return Decided([], answer, leaver=static)
    # It will be back under another member id, and has had its partitions from the beginning then.
    away = replace(
        static,
        epoch=LEAVE_STATIC_EPOCH,
        assigned={
            topic_id: dict.fromkeys(partitions, 0)
            for topic_id, partitions in static.assigned.items()
        },
        revoking=NONE_ASSIGNED,
    )
    return Decided([away.current_record(group.group_id)], answer)


def known_member(group: ConsumerGroup, member_id: str) -> ConsumerMember | GroupRefusal:
    member = group.members.get(member_id)
    if member is None:
        return unknown_member(group.group_id, member_id)
    return member


# ------------------------------------------------------------------------------------- heartbeat


class Heartbeat(MemberChange):
    """One heartbeat of a member that stays, or joins."""

    def __init__(
        self, group: ConsumerGroup, request: Request, first: Sequence[LogRecord], now_ms: int
    ) -> None:
        """`first`: records that turn another group into this one."""
        self.request = request
        self.body: m.ConsumerGroupHeartbeatRequest = request.body
        owned: dict[bytes, list[int]] = {}
        for one in self.body.topic_partitions or ():
            owned.setdefault(one.topic_id, []).extend(one.partitions)
        said = self.body.topic_partitions is not None
        super().__init__(group, first, owned if said else None, now_ms)

    def decide(self) -> Decided | GroupRefusal:
        group, body = self.group, self.body
        member_id = body.member_id or str(UUID(bytes=group.broker.rng.randbytes(16), version=4))
        full = refuse_if_full(group, body.member_id, body.instance_id)
        if full is not None:
            return full
        member = self._find(member_id)
        if isinstance(member, GroupRefusal):
            return member
        updated = self._updated(member)
        names_changed = self.update_member(member, updated)
        regex_change = change_regex(group, member, updated, self.records)
        if isinstance(regex_change, GroupRefusal):
            return regex_change
        resolve_if_due(group, member, updated, self.now_ms)
        bump = names_changed or regex_change is RegexChange.CHANGED_AND_RESOLVED
        if group.is_of_4_4 and not bump:
            bump = group.assignor_name() != group.assignor_name((member, -1), (updated, 1))
        self.update_epoch(member, updated, bump)
        target_epoch, target = self.update_target(member, updated)
        changed = names_changed or regex_change is not RegexChange.NONE
        reconciled = self.reconcile(updated, target_epoch, target, changed)
        if isinstance(reconciled, GroupRefusal):
            return reconciled
        answer = self._answer(member, reconciled)
        return Decided(self.records, answer, reconciled, None, reconciled is not updated)

    # --------------------------------------------------------------------- 1: the member

    def _find(self, member_id: str) -> ConsumerMember | GroupRefusal:
        """The member as it was; a new one if it joins."""
        group, body = self.group, self.body
        joins = body.member_epoch == JOIN_EPOCH
        if body.instance_id is None:
            if joins and member_id not in group.members:
                return ConsumerMember(member_id)
            found = known_member(group, member_id)
            return found if isinstance(found, GroupRefusal) else self._check_epoch(found)
        if not joins:
            static = known_static_member(
                group.static_member(body.instance_id), body.instance_id, member_id
            )
            return static if isinstance(static, GroupRefusal) else self._check_epoch(static)
        previous = group.static_member(body.instance_id)
        if previous is None:
            return group.members.get(member_id) or ConsumerMember(member_id)
        if not previous.is_classic and previous.epoch != LEAVE_STATIC_EPOCH:
            message = (
                f"{member_id} cannot join as instance id {body.instance_id}: "
                f"member {previous.member_id} has it"
            )
            return GroupRefusal(ErrorCode.UNRELEASED_INSTANCE_ID, message)
        return self.take_place_of(previous, member_id)

    def _check_epoch(self, member: ConsumerMember) -> ConsumerMember | GroupRefusal:
        epoch = self.body.member_epoch
        if epoch in (JOIN_EPOCH, member.epoch):
            return member
        if epoch < member.epoch and epoch == member.previous_epoch and self._owns_subset(member):
            return member  # the answer with the new epoch may have been lost
        return fenced_epoch(epoch, member.epoch, member.previous_epoch)

    def _owns_subset(self, member: ConsumerMember) -> bool:
        """Whether all that the client reports as its own is assigned to it."""
        if self.owned is None:
            return False
        return all(
            partition in member.assigned.get(topic_id, {})
            for topic_id, partitions in self.owned.items()
            for partition in partitions
        )

    def _updated(self, member: ConsumerMember) -> ConsumerMember:
        """With the fields that this heartbeat reports."""
        body = self.body
        names, timeout_ms = body.subscribed_topic_names, body.rebalance_timeout_ms
        regex = body.subscribed_topic_regex
        return replace(
            member,
            instance_id=member.instance_id if body.instance_id is None else body.instance_id,
            rack_id=member.rack_id if body.rack_id is None else body.rack_id,
            rebalance_timeout_ms=(
                member.rebalance_timeout_ms if timeout_ms == NO_TIMEOUT else timeout_ms
            ),
            assignor=member.assignor if body.server_assignor is None else body.server_assignor,
            topics=member.topics if names is None else tuple(sorted(set(names))),
            regex=member.regex if regex is None else regex,
            client_id=self.request.client_id or "",
            client_host=f"/{self.request.client_host}",
            classic=None,
        )

    def _answer(
        self, before: ConsumerMember, after: ConsumerMember
    ) -> m.ConsumerGroupHeartbeatResponse:
        """A member gets its assignment when it joins, reports all fields, or when it changed."""
        body = self.body
        is_full = (
            body.rebalance_timeout_ms != NO_TIMEOUT
            and (body.subscribed_topic_names is not None or body.subscribed_topic_regex is not None)
            and body.topic_partitions is not None
        )
        answer = m.ConsumerGroupHeartbeatResponse(
            member_id=after.member_id,
            member_epoch=after.epoch,
            heartbeat_interval_ms=self.group.config_ms("consumer.heartbeat.interval.ms"),
        )
        changed = before.assigned != after.assigned
        if body.member_epoch == JOIN_EPOCH or is_full or changed:
            answer.assignment = _assignment(after.assigned)
        return answer


def _assignment(assigned: AssignedPartitions) -> m.ConsumerGroupHeartbeatResponse.Assignment:
    entry = m.ConsumerGroupHeartbeatResponse.TopicPartitions
    return m.ConsumerGroupHeartbeatResponse.Assignment(
        topic_partitions=[
            entry(topic_id=topic_id, partitions=sorted(partitions))
            for topic_id, partitions in assigned.items()
        ]
    )
