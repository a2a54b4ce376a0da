"""Classic members of a consumer group: their JoinGroup, SyncGroup, Heartbeat and LeaveGroup.

Owns: the effects of these requests in a consumer group.  Never: serves a classic group
(classic_group.py).  Kafka: GroupMetadataManager.classicGroup*ToConsumerGroup; KIP-848 (upgrade and
downgrade).

For such a member each step of its reconciliation is a rebalance: Heartbeat returns
REBALANCE_IN_PROGRESS, JoinGroup takes the step and is answered at once, SyncGroup returns the
member's new partitions.  Its member epoch is its generation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from msgspec.structs import replace

from kcluster.broker.coordinator.classic_calls import (
    JoinCall,
    leave_answer,
    refuse_join,
    reply_join,
)
from kcluster.broker.coordinator.consumer.group import ConsumerGroup
from kcluster.broker.coordinator.consumer.heartbeat import ConsumerChange
from kcluster.broker.coordinator.consumer.member import (
    ConsumerMember,
    ConsumerMemberState,
    partitions_of,
)
from kcluster.broker.coordinator.consumer.migration import (
    MigrationPolicy,
    assignment_by_id,
    can_downgrade,
    classic_metadata,
    encoded_assignment,
    policy_of,
    protocols_of,
)
from kcluster.broker.coordinator.consumer.regexes import RegexChange, change_regex
from kcluster.broker.coordinator.interface import CoordinatorResult, RequestRefused
from kcluster.broker.coordinator.modern.heartbeat import known_member, refuse_if_full
from kcluster.broker.coordinator.modern.refusals import known_static_member
from kcluster.broker.coordinator.modern.topics import NO_PARTITIONS
from kcluster.contract import Request
from kcluster.events.clients import Departure
from kcluster.events.rebalance_reasons import Leaver, MembersLeft
from kcluster.protocol import messages as m
from kcluster.protocol.consumer_protocol import (
    CONSUMER_PROTOCOL_TYPE,
    SUBSCRIPTION,
    decode_consumer_message,
)
from kcluster.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from kcluster.broker.coordinator.classic_calls import MemberIdentity, MemberResponse


class ConsumerGroupClassicSide:
    """The requests of classic members to a consumer group: the interface that ClassicGroup has."""

    def __init__(self, group: ConsumerGroup) -> None:
        self.group = group
        self.broker = group.broker

    # ---------------------------------------------------------------------- JoinGroup

    def join(self, request: Request, now_ms: int) -> None:
        """Take the member's next step, and answer when it is committed."""
        call = JoinCall.read(request)
        outcome = self._join(call, now_ms)
        if isinstance(outcome, ErrorCode):
            refuse_join(self.broker, request, "", outcome)

    def _join(self, call: JoinCall, now_ms: int) -> ErrorCode | None:
        group, broker = self.group, self.broker
        if policy_of(broker.config) is MigrationPolicy.DISABLED:
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        if refuse_if_full(group, call.member_id, call.instance_id) is not None:
            return ErrorCode.GROUP_MAX_SIZE_REACHED
        if call.protocol_type != CONSUMER_PROTOCOL_TYPE or not self._supports(call.protocols):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        member_id = call.member_id or str(UUID(bytes=broker.rng.randbytes(16), version=4))
        if not call.member_id and call.must_join_again:
            refuse_join(broker, call.request, member_id, ErrorCode.MEMBER_ID_REQUIRED)
            return None
        first = next(iter(call.protocols.values()))
        subscription = decode_consumer_message(SUBSCRIPTION, first)
        if subscription is None:
            if group.is_of_4_4:
                return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
            return ErrorCode.UNKNOWN_SERVER_ERROR
        change = ClassicJoin(group, call, subscription, now_ms)
        member = change.find(member_id)
        if isinstance(member, ErrorCode):
            return member
        change.apply(member)
        return None

    def _supports(self, protocols: dict[str, bytes]) -> bool:
        """Whether all classic members know one of these protocols."""
        others = [one for one in self.group.members.values() if one.is_classic]
        if not others:
            return bool(protocols)
        return any(all(name in protocols_of(one) for one in others) for name in protocols)

    # ---------------------------------------------------------- SyncGroup and Heartbeat

    def sync(self, request: Request, now_ms: int) -> None:
        """Answer with the member's partitions, once they are committed."""
        group, body = self.group, request.body
        error = self._check_sync(body, now_ms)
        if error is not ErrorCode.NONE:
            self.broker.reply(request, m.SyncGroupResponse(error_code=error))
            return
        member = group.members[body.member_id]

        def settled(outcome: ErrorCode, at_ms: int) -> None:
            if outcome is not ErrorCode.NONE:
                self.broker.reply(request, m.SyncGroupResponse(error_code=outcome))
                return
            group.timers.end_of_member("sync", member.member_id)
            group.start_session(member.member_id, at_ms)
            subscription = next(iter(protocols_of(member).values()))
            assigned = partitions_of(member.assigned)
            image = self.broker.image
            self.broker.reply(
                request,
                m.SyncGroupResponse(
                    protocol_type=body.protocol_type,
                    protocol_name=body.protocol_name,
                    assignment=encoded_assignment(assigned, subscription, image),
                ),
            )

        group.write((), settled, now_ms)

    def _check_sync(self, body: m.SyncGroupRequest, now_ms: int) -> ErrorCode:
        member = self._member(body.member_id, body.group_instance_id, body.generation_id)
        if isinstance(member, ErrorCode):
            return member
        if body.protocol_type not in (None, CONSUMER_PROTOCOL_TYPE):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        if body.protocol_name not in (None, next(iter(protocols_of(member)))):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        is_behind = self.group.target_epoch > member.epoch
        if is_behind and member.state is not ConsumerMemberState.UNREVOKED_PARTITIONS:
            self._await_join(member, now_ms)
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    def heartbeat(self, body: m.HeartbeatRequest, now_ms: int) -> ErrorCode:
        member = self._member(body.member_id, body.group_instance_id, body.generation_id)
        if isinstance(member, ErrorCode):
            return member
        self.group.start_session(member.member_id, now_ms)
        if self._must_rejoin(member):
            self._await_join(member, now_ms)
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    def _must_rejoin(self, member: ConsumerMember) -> bool:
        """Whether the member must join again: the target is new, it has partitions to revoke, or a
        partition that it waits for is free."""
        group = self.group
        if member.epoch < group.target_epoch:
            return True
        if member.state is ConsumerMemberState.UNREVOKED_PARTITIONS:
            return True
        if member.state is not ConsumerMemberState.UNRELEASED_PARTITIONS:
            return False
        awaited = [
            (topic_id, partition)
            for topic_id, partitions in group.targets.get(member.member_id, {}).items()
            for partition in partitions
            if partition not in member.assigned.get(topic_id, {})
        ]
        return not any(group.is_taken(*one) for one in awaited)

    def _await_join(self, member: ConsumerMember, now_ms: int) -> None:
        """Give the member until the rebalance timeout to join."""
        group, member_id = self.group, member.member_id
        if not group.timers.has_of_member("join", member_id):
            ends_ms = now_ms + member.rebalance_timeout_ms
            group.fence_at("join", member_id, ends_ms)

    def _member(
        self, member_id: str, instance_id: str | None, generation: int
    ) -> ConsumerMember | ErrorCode:
        """The classic member that a request is from."""
        if instance_id is None:
            member = known_member(self.group, member_id)
        else:
            member = known_static_member(
                self.group.static_member(instance_id), instance_id, member_id
            )
        if isinstance(member, RequestRefused):
            return member.error
        if not member.is_classic:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return member if member.epoch == generation else ErrorCode.ILLEGAL_GENERATION

    # --------------------------------------------------------------------- LeaveGroup

    def leave(self, leavers: list[MemberIdentity], now_ms: int) -> list[MemberResponse] | ErrorCode:
        """The outcome for each member, or one error for all if the write was refused."""
        answers, gone = [], {}
        for leaver in leavers:
            found = self._leaver(leaver)
            if isinstance(found, ConsumerMember):
                gone[found.member_id] = found
            error = found.error if isinstance(found, RequestRefused) else ErrorCode.NONE
            answers.append(leave_answer(leaver, error))
        outcome = ErrorCode.NONE

        def settled(error: ErrorCode, _at_ms: int) -> None:
            nonlocal outcome
            outcome = error

        if not gone:
            return answers
        events = [self.group.left(member_id, Departure.LEFT) for member_id in gone]
        removal = self.group.decide_removal(list(gone.values()), events, None, now_ms)
        return answers if self.group.carry_out(removal, now_ms, settled) else outcome

    def _leaver(self, leaver: MemberIdentity) -> ConsumerMember | RequestRefused:
        instance_id = leaver.group_instance_id
        if instance_id is None:
            return known_member(self.group, leaver.member_id)
        static = self.group.static_member(instance_id)
        if static is not None and not leaver.member_id:
            return static
        return known_static_member(
            self.group.static_member(instance_id), instance_id, leaver.member_id
        )


class ClassicJoin(ConsumerChange):
    """A JoinGroup of a classic member that is not refused."""

    def __init__(
        self,
        group: ConsumerGroup,
        call: JoinCall,
        subscription: m.ConsumerProtocolSubscription,
        now_ms: int,
    ) -> None:
        self.call = call
        self.subscription = subscription
        image = group.broker.image
        super().__init__(group, (), now_ms)
        self.owned = assignment_by_id(getattr(subscription, "owned_partitions", ()), image)

    def find(self, member_id: str) -> ConsumerMember | ErrorCode:
        """The member before the request; a new member if it joins."""
        group, call = self.group, self.call
        if call.instance_id is None:
            return group.members.get(member_id) or ConsumerMember(member_id)
        if call.member_id:
            static = known_static_member(
                group.static_member(call.instance_id), call.instance_id, member_id
            )
            return static.error if isinstance(static, RequestRefused) else static
        previous = group.static_member(call.instance_id)
        if previous is None:
            return ConsumerMember(member_id)
        return self.take_place_of(previous, member_id)

    def apply(self, member: ConsumerMember) -> None:
        """Write the records of the member's next step, and answer when they are committed."""
        group, call = self.group, self.call
        self.is_new = member.member_id not in group.members
        replaced = group.static_member(call.instance_id)
        updated = self._updated(member)
        names_changed = self.update_member(member, updated)
        regex_change = change_regex(group, member, updated, self.records)
        assert not isinstance(regex_change, RequestRefused), regex_change  # it has no expression
        changed = names_changed or regex_change is not RegexChange.NONE
        self.update_epoch(member, updated, changed)
        if replaced is not None:
            others = [one for one in group.members.values() if one is not replaced]
            if can_downgrade([*others, updated], (), group.broker.config):
                self._downgrade(updated, replaced, others, changed)
                return
        target_epoch, target = self.update_target(member, updated)
        reconciled = self.reconcile(updated, target_epoch, target, changed)
        assert isinstance(reconciled, ConsumerMember), reconciled

        def settled(error: ErrorCode, _at_ms: int) -> None:
            self._answer(reconciled, error)

        if group.write(self.records, settled, self.now_ms):
            # DIFFERS: Kafka sets these timers when the write is committed. Its member whose write
            # timed out has no session, and stays for ever if it does not come back.
            self.note_written(reconciled)
            group.timers.end_of_member("join", reconciled.member_id)
            group.start_session(reconciled.member_id, self.now_ms)
            ends_ms = self.now_ms + call.rebalance_timeout_ms
            group.fence_at("sync", reconciled.member_id, ends_ms)

    def _downgrade(
        self,
        updated: ConsumerMember,
        replaced: ConsumerMember,
        others: list[ConsumerMember],
        changed: bool,
    ) -> None:
        """Make the group classic again, because the last member of the other protocol is
        replaced."""
        group = self.group
        target = group.targets.get(replaced.member_id, NO_PARTITIONS)
        rebalances = None
        if group.target_epoch < self.epoch:
            rebalances = MembersLeft((Leaver(replaced.member_id),))
        else:
            reconciled = self.reconcile(updated, group.target_epoch, target, changed)
            assert isinstance(reconciled, ConsumerMember), reconciled
            updated = reconciled

        def settled(error: ErrorCode, _at_ms: int) -> None:
            self._answer(updated, error)

        targets = {**group.targets, updated.member_id: target}
        classic = group.downgrade([*others, updated], targets, self.epoch, rebalances, self.now_ms)
        records = [*self.records, *classic.records]
        group.carry_out(CoordinatorResult(records, None, classic.on_written), self.now_ms, settled)

    def _updated(self, member: ConsumerMember) -> ConsumerMember:
        call = self.call
        timeout_ms = call.rebalance_timeout_ms
        rack_id = getattr(self.subscription, "rack_id", None) or None
        return replace(
            member,
            instance_id=member.instance_id if call.instance_id is None else call.instance_id,
            rack_id=member.rack_id if rack_id is None else rack_id,
            rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
            topics=tuple(sorted(set(self.subscription.topics))),
            regex="",
            client_id=call.request.client_id or "",
            client_host=f"/{call.request.client_host}",
            classic=classic_metadata(call.session_timeout_ms, call.protocols),
        )

    def _answer(self, member: ConsumerMember, error: ErrorCode) -> None:
        broker, request = self.group.broker, self.call.request
        if error is not ErrorCode.NONE:
            refuse_join(broker, request, "", error)
            return
        reply_join(
            broker,
            request,
            m.JoinGroupResponse(
                generation_id=member.epoch,
                protocol_type=CONSUMER_PROTOCOL_TYPE,
                protocol_name=next(iter(protocols_of(member))),
                leader="",
                member_id=member.member_id,
            ),
        )
