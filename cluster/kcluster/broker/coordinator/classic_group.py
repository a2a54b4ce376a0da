"""A classic consumer group: its generations and every transition of its state.

Owns: the effects of JoinGroup, SyncGroup, Heartbeat and LeaveGroup in each state, the order of
checks and the error of each, the phases of a rebalance, all timers of the group, the answers to
parked requests.  Never: finds a group, reads or writes the log itself (shard.py does both).  Kafka:
ClassicGroup, ClassicGroupState, GroupMetadataManager.classicGroup*; KIP-62 (rebalance timeout),
KIP-134 (initial delay), KIP-345 (static members), KIP-394 (member id required), KIP-814 (skip
assignment).

    EMPTY ──▶ PREPARING_REBALANCE ◀──▶ COMPLETING_REBALANCE ──▶ STABLE ──▶ PREPARING_REBALANCE
      ▲               │                                       any state ──▶ DEAD
      └───────────────┘ (all members gone)

PREPARING_REBALANCE is the join phase: members have until the rebalance timeout to send JoinGroup.
COMPLETING_REBALANCE is the sync phase: the leader assigns, and the assignment is written.  A timer
limits each phase, another one each member's session.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Final
from uuid import UUID

from kcluster.broker.coordinator.classic_calls import (
    JoinCall,
    join_error,
    leave_answer,
    refuse_join,
    reply_join,
)
from kcluster.broker.coordinator.classic_members import ClassicMember, Roster
from kcluster.broker.coordinator.group import Committer, Group
from kcluster.broker.coordinator.group_log import ClassicGroupRecord, LogRecord, new_classic_group
from kcluster.broker.coordinator.group_timers import GroupTimers
from kcluster.broker.coordinator.interface import GroupHome, Settled, ignore_outcome
from kcluster.contract import Request
from kcluster.events.clients import (
    Departure,
    GroupAssigned,
    GroupMemberExpired,
    GroupMemberJoined,
    GroupMemberLeft,
    GroupRebalanced,
)
from kcluster.events.rebalance_reasons import (
    AnyRebalanceReason,
    AssignmentNotStored,
    GroupOverCapacity,
    HeartbeatExpired,
    LeaderRejoined,
    Leaver,
    MemberAdded,
    MembersLeft,
    MetadataUpdated,
    PendingSyncExpired,
    ProtocolChanged,
)
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from kcluster.broker.coordinator.classic_calls import MemberIdentity, MemberResponse
    from kcluster.broker.coordinator.group import DescribedGroup

NEW_MEMBER_TIMEOUT_MS: Final = 5 * 60 * 1000
"""How long a new member may wait for its first answer, independently of its session timeout, since
the member cannot heartbeat meanwhile.  Kafka: classicGroupNewMemberJoinTimeoutMs, not
configurable."""

JOIN: Final = "join"
SYNC: Final = "sync"
"""Names of the phases' timers."""


class ClassicGroupState(StrEnum):
    """The values are the names that clients see."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


EMPTY, PREPARING_REBALANCE, COMPLETING_REBALANCE, STABLE, DEAD = ClassicGroupState

TRANSITIONS: Final[Mapping[ClassicGroupState, tuple[ClassicGroupState, ...]]] = {
    EMPTY: (PREPARING_REBALANCE, DEAD),
    PREPARING_REBALANCE: (COMPLETING_REBALANCE, EMPTY, DEAD),
    COMPLETING_REBALANCE: (STABLE, PREPARING_REBALANCE, DEAD),
    STABLE: (PREPARING_REBALANCE, DEAD),
    DEAD: (DEAD,),
}
"""The states that may follow each state."""


class IllegalTransitionError(AssertionError):
    """A bug of ours: a transition that `TRANSITIONS` does not have."""


class ClassicGroup(Group):
    """A classic group.  Other modules only read its fields; requests and timers change them."""

    kind = "classic"

    def __init__(
        self,
        group_id: str,
        home: GroupHome,
        created_ms: int = -1,
        is_new: bool = False,
        replaced: Group | None = None,
    ) -> None:
        """`is_new`: the group is created for the JoinGroup that follows, and is not yet in the log.
        `replaced`: the empty group of another kind whose place this group takes."""
        super().__init__(group_id, home)
        self._broker = home.broker
        self._timers = GroupTimers(home.broker.timers, group_id)
        self._is_new = is_new
        self._replaced = replaced
        self.state = EMPTY
        self.previous_state = DEAD
        self.state_since_ms = created_ms
        self.roster = Roster()
        self._rebalance_reason: AnyRebalanceReason | None = None
        """The reason for the last rebalance; None before the first."""
        self._new_member_added = False
        """Whether a member joined since the initial delay was last extended."""

    def _transition_to(self, state: ClassicGroupState, now_ms: int) -> None:
        if state not in TRANSITIONS[self.state]:
            text = f"group {self.group_id}: no transition from {self.state} to {state}"
            raise IllegalTransitionError(text)
        self.previous_state = self.state
        self.state = state
        self.state_since_ms = now_ms

    # ----------------------------------------------------------------------- JoinGroup

    def join(self, request: Request, now_ms: int) -> None:
        """Answer at once, or park the request until the join phase ends."""
        call = JoinCall.read(request)
        member_id = call.member_id
        if not self._has_room(member_id):
            self._remove(member_id)
            self._refuse(call, "", ErrorCode.GROUP_MAX_SIZE_REACHED)
        elif not self._supports(call):
            self._refuse(call, member_id, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        elif not member_id:
            self._join_without_id(call, now_ms)
        elif member_id in self.roster.pending:
            self._join_pending(call, now_ms)
        else:
            self._join_again(call, now_ms)
        if self._is_new:
            self._store_new(now_ms)

    def _store_new(self, now_ms: int) -> None:
        """Write the new group to the log, for the next coordinator; if this fails, its members are
        refused."""

        def stored(error: ErrorCode, _at_ms: int) -> None:
            if error is not ErrorCode.NONE:
                for member in self.roster.members.values():
                    self.roster.answer_join(self._broker, member, join_error("", error))

        self._is_new = False
        record = new_classic_group(self.group_id, self.state_since_ms)
        replaced = self._replaced
        tombstones = [] if replaced is None else replaced.tombstones()
        if not self._home.append([*tombstones, record], stored, now_ms):
            self.abandon()
            self._home.put_back(self.group_id, replaced)
        elif replaced is not None:
            replaced.abandon()
        self._replaced = None

    def _join_without_id(self, call: JoinCall, now_ms: int) -> None:
        instance_id = call.instance_id
        prefix = (call.request.client_id or "") if instance_id is None else instance_id
        member_id = f"{prefix}-{UUID(bytes=self._broker.rng.randbytes(16), version=4)}"
        if instance_id is not None and instance_id in self.roster.static_members:
            self._replace_static(call, instance_id, member_id, now_ms)
        elif call.must_join_again:
            self.roster.pending[member_id] = None
            ends_ms = now_ms + call.session_timeout_ms
            self._timers.start_session(member_id, ends_ms, self._expire_member)
            self._refuse(call, member_id, ErrorCode.MEMBER_ID_REQUIRED)
        else:
            self._add_member(call, member_id, now_ms)

    def _join_pending(self, call: JoinCall, now_ms: int) -> None:
        """Join a member whose first JoinGroup was answered MEMBER_ID_REQUIRED."""
        if call.instance_id is None:
            self._add_member(call, call.member_id, now_ms)
        else:
            # Static members never get a pending id, so this client is unknown.
            self._refuse(call, call.member_id, ErrorCode.UNKNOWN_SERVER_ERROR)

    def _add_member(self, call: JoinCall, member_id: str, now_ms: int) -> None:
        if self.state is PREPARING_REBALANCE and self.previous_state is EMPTY:
            self._new_member_added = True
        self.roster.add(ClassicMember.joining(member_id, call))
        self._note_joined(call, member_id)
        ends_ms = now_ms + NEW_MEMBER_TIMEOUT_MS
        self._timers.start_session(member_id, ends_ms, self._expire_member)
        reason = MemberAdded(member_id, call.instance_id, call.client_reason)
        self._prepare_or_complete(reason, now_ms)

    def _note_joined(self, call: JoinCall, member_id: str) -> None:
        request = call.request
        client_id, host = request.client_id or "", request.client_host
        reason = call.client_reason
        self._broker.note(GroupMemberJoined(self.group_id, member_id, client_id, host, reason))

    def _note_left(self, member_id: str, departure: Departure, client_reason: str = "") -> None:
        self._broker.note(GroupMemberLeft(self.group_id, member_id, departure, client_reason))

    def _note_replaced(self, call: JoinCall, old_id: str, new_id: str) -> None:
        self._note_left(old_id, Departure.REPLACED)
        self._note_joined(call, new_id)

    def _join_again(self, call: JoinCall, now_ms: int) -> None:
        """Join a member with an id that this coordinator, or its predecessor, has assigned."""
        member_id = call.member_id
        error = self.roster.check_identity(member_id, call.instance_id)
        if error is ErrorCode.NONE and self.state is EMPTY:
            error = ErrorCode.UNKNOWN_MEMBER_ID
        if error is not ErrorCode.NONE:
            self._refuse(call, member_id, error)
            return
        member = self.roster.members[member_id]
        is_leader = self.roster.leader == member_id
        same = member.matches(call.protocols)
        completing = self.state is COMPLETING_REBALANCE
        if (completing and same) or (self.state is STABLE and same and not is_leader):
            # The member missed the first answer, or repeats the request without being asked to, so
            # there is no rebalance.
            reply_join(self._broker, call.request, self.roster.join_answer(member))
            return
        reason: AnyRebalanceReason = MetadataUpdated(member_id, None, call.client_reason)
        if is_leader and self.state is STABLE:
            reason = LeaderRejoined(member_id, call.client_reason)
        self.roster.join_again(self._broker, member, call)
        self._prepare_or_complete(reason, now_ms)

    def _replace_static(self, call: JoinCall, instance_id: str, new_id: str, now_ms: int) -> None:
        """Give a restarted static member its old place under a new id (KIP-345)."""
        roster, broker = self.roster, self._broker
        old_id = roster.static_members[instance_id]
        old = roster.members[old_id]
        roster.answer_both(broker, old, old_id, ErrorCode.FENCED_INSTANCE_ID)
        self._timers.end_session(old_id)
        before = (old.protocols, old.rebalance_timeout_ms, old.session_timeout_ms)
        old_leader = roster.leader or ""
        member = roster.rename_static(instance_id, new_id)
        self._extend_session(member, now_ms)
        roster.join_again(broker, member, call)
        if self.state is not STABLE:
            self._note_replaced(call, old_id, new_id)
            updated = MetadataUpdated(new_id, instance_id, call.client_reason)
            self._prepare_or_complete(updated, now_ms)
            return
        if roster.elect_protocol() != roster.protocol_name:
            self._note_replaced(call, old_id, new_id)
            changed = ProtocolChanged(new_id, instance_id, call.client_reason)
            self._prepare_or_complete(changed, now_ms)
            return

        def stored(error: ErrorCode, at_ms: int) -> None:
            if roster.members.get(new_id) is not member:
                return
            if error is ErrorCode.NONE:
                self._note_replaced(call, old_id, new_id)
                answer = roster.answer_to_returned(member, call, old_leader)
                roster.answer_join(broker, member, answer)
                return
            roster.answer_both(broker, member, "", error)
            self._timers.end_session(new_id)
            roster.rename_static(instance_id, old_id)
            protocols, member.rebalance_timeout_ms, member.session_timeout_ms = before
            roster.set_protocols(member, protocols)
            self._extend_session(member, at_ms)

        assignment = {one.member_id: one.assignment for one in roster.members.values()}
        self._store(assignment, stored, now_ms)

    def _has_room(self, member_id: str) -> bool:
        """Whether group.max.size allows this member to join (again)."""
        if self.state in (EMPTY, DEAD):
            return True
        max_size = self._broker.config.group_max_size
        member = self.roster.members.get(member_id)
        if self.state is PREPARING_REBALANCE:
            has_joined = member is not None and member.join is not None
            return has_joined or self.roster.joined_count < max_size
        return member is not None or len(self.roster.members) < max_size

    def _supports(self, call: JoinCall) -> bool:
        """Whether a member with these protocols may be in the group."""
        if self.state is EMPTY:
            return bool(call.protocol_type) and bool(call.protocols)
        return self.roster.supports(call.protocol_type, call.protocols)

    def _refuse(self, call: JoinCall, member_id: str, error: ErrorCode) -> None:
        refuse_join(self._broker, call.request, member_id, error)

    # ----------------------------------------------------------------------- SyncGroup

    def sync(self, request: Request, now_ms: int) -> None:
        """Answer at once, or park the request until the leader's assignment is stored."""
        body: m.SyncGroupRequest = request.body
        error = self._check_sync(body)
        if error is not ErrorCode.NONE:
            self._broker.reply(request, m.SyncGroupResponse(error_code=error))
            return
        member = self.roster.members[body.member_id]
        self.roster.pending_sync.pop(body.member_id, None)
        if not self.roster.pending_sync:
            self._timers.end_phase(SYNC)
        if self.state is STABLE:
            self._broker.reply(request, self.roster.sync_answer(member))
            return
        # DIFFERS: Kafka never answers a SyncGroup that the same member has repeated elsewhere.
        retry = m.SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
        member.answer_sync(self._broker, retry)
        member.sync = request
        if self.roster.leader == body.member_id:
            sent = {one.member_id: bytes(one.assignment) for one in body.assignments}
            self._assign({one: sent.get(one, b"") for one in self.roster.members}, now_ms)

    def _check_sync(self, body: m.SyncGroupRequest) -> ErrorCode:
        error = self.roster.check_sender(body)
        if error is not ErrorCode.NONE:
            return error
        if not self.roster.agreed_on(body.protocol_type, body.protocol_name):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        if self.state is PREPARING_REBALANCE:
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    # -------------------------------------------------------- Heartbeat and LeaveGroup

    def heartbeat(self, body: m.HeartbeatRequest, now_ms: int) -> ErrorCode:
        error = self.roster.check_sender(body)
        if error is not ErrorCode.NONE:
            return error
        self._extend_session(self.roster.members[body.member_id], now_ms)
        if self.state is PREPARING_REBALANCE:
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    def leave(self, leavers: list[MemberIdentity], now_ms: int) -> list[MemberResponse]:
        """The outcome for each member, in the order of the request; the group rebalances once for
        all of them."""
        answers = []
        departures: list[Leaver] = []
        for leaver in leavers:
            error = self._leave_one(leaver)
            if error is ErrorCode.NONE:
                member = leaver.member_id or leaver.group_instance_id or ""
                departures.append(Leaver(member, leaver.reason or ""))
            answers.append(leave_answer(leaver, error))
        if departures:
            if self.state in (STABLE, COMPLETING_REBALANCE):
                self._prepare(MembersLeft(tuple(departures)), now_ms)
            elif self.state is PREPARING_REBALANCE:
                self._complete_join_if_ready(now_ms)
        return answers

    def _leave_one(self, leaver: MemberIdentity) -> ErrorCode:
        member_id = self.roster.id_of(leaver)
        if isinstance(member_id, ErrorCode):
            return member_id
        member = self.roster.members.get(member_id)
        if member is not None:
            self._note_left(member_id, Departure.LEFT, leaver.reason or "")
            self.roster.answer_both(self._broker, member, "", ErrorCode.UNKNOWN_MEMBER_ID)
        self._remove(member_id)
        return ErrorCode.NONE

    def _remove(self, member_id: str) -> None:
        """Forget a member or a pending id, and its session."""
        self.roster.remove(member_id)
        self._timers.end_session(member_id)

    # ---------------------------------------------------------------------- join phase

    def _prepare_or_complete(self, reason: AnyRebalanceReason, now_ms: int) -> None:
        """Start a rebalance after a change, or check whether the current one can continue."""
        if self._can_rebalance:
            self._prepare(reason, now_ms)
        else:
            self._complete_join_if_ready(now_ms)

    @property
    def _can_rebalance(self) -> bool:
        return PREPARING_REBALANCE in TRANSITIONS[self.state]

    def rebalance(self, reason: AnyRebalanceReason, now_ms: int) -> None:
        """Start a rebalance, because this classic group was a consumer group in the middle of
        one."""
        self._prepare(reason, now_ms)

    def _prepare(self, reason: AnyRebalanceReason, now_ms: int) -> None:
        """Start a rebalance: members have until the rebalance timeout to join again."""
        if self.state is COMPLETING_REBALANCE:
            self._drop_assignment(ErrorCode.REBALANCE_IN_PROGRESS, now_ms)
        self.roster.pending_sync.clear()
        self._timers.end_phase(SYNC)
        initial = self.state is EMPTY
        self._transition_to(PREPARING_REBALANCE, now_ms)
        self._rebalance_reason = reason
        if initial:
            delay_ms = self._broker.config.group_initial_rebalance_delay_ms
            remaining_ms = max(self.roster.rebalance_timeout_ms - delay_ms, 0)
            self._wait_for_more_members(delay_ms, remaining_ms, now_ms)
        elif self.roster.all_have_joined:
            self._complete_join(now_ms)
        else:
            self._limit_join_phase(now_ms)

    def _wait_for_more_members(self, delay_ms: int, remaining_ms: int, now_ms: int) -> None:
        """Wait for group.initial.rebalance.delay.ms with an empty group.  The wait is extended
        while new members arrive, up to the rebalance timeout (KIP-134)."""

        def delay_over(at_ms: int) -> None:
            if not self._new_member_added or remaining_ms == 0:
                self._complete_join(at_ms)
                return
            self._new_member_added = False
            next_ms = min(self._broker.config.group_initial_rebalance_delay_ms, remaining_ms)
            self._wait_for_more_members(next_ms, max(remaining_ms - delay_ms, 0), at_ms)

        self._timers.start_phase(JOIN, now_ms + delay_ms, delay_over)

    def _limit_join_phase(self, now_ms: int) -> None:
        # A client may have named a timeout of -1: with static members that stay away, the phase
        # would begin again at once, for ever.
        ends_ms = now_ms + max(self.roster.rebalance_timeout_ms, 1)
        self._timers.start_phase(JOIN, ends_ms, self._complete_join)

    def _complete_join_if_ready(self, now_ms: int) -> None:
        """End the join phase if every member has joined; in a group that was empty, not before its
        initial delay is over."""
        if self.previous_state is not EMPTY:
            self._complete_join_if_all_joined(now_ms)

    def _complete_join_if_all_joined(self, now_ms: int) -> None:
        if self.state is PREPARING_REBALANCE and self.roster.all_have_joined:
            self._complete_join(now_ms)

    def _complete_join(self, now_ms: int) -> None:
        """End the join phase: the members that joined are the next generation, and agree on a
        protocol."""
        roster = self.roster
        self._timers.end_phase(JOIN)
        for member_id in roster.late():
            self._note_left(member_id, Departure.NOT_JOINED)
            self._remove(member_id)
        if roster.members and not roster.keep_or_replace_leader():
            # All members are static and none has returned yet; they keep their places (KIP-345).
            self._limit_join_phase(now_ms)
            return
        roster.next_generation()
        self._transition_to(COMPLETING_REBALANCE if roster.members else EMPTY, now_ms)
        members, reason = tuple(roster.members), self._rebalance_reason
        assert reason is not None
        self._broker.note(GroupRebalanced(self.group_id, roster.generation, members, reason))
        if not roster.members:
            self._store({}, ignore_outcome, now_ms)
            return
        for member in list(roster.members.values()):
            roster.answer_join(self._broker, member, roster.join_answer(member))
            self._extend_session(member, now_ms)
            member.is_new = False
        generation = roster.generation
        ends_ms = now_ms + roster.rebalance_timeout_ms
        self._timers.start_phase(SYNC, ends_ms, lambda at_ms: self._expire_sync(generation, at_ms))

    # ---------------------------------------------------------------------- sync phase

    def _assign(self, assignment: dict[str, bytes], now_ms: int) -> None:
        """Send the leader's assignment to the members once it is in the log."""
        generation = self.roster.generation

        def stored(error: ErrorCode, at_ms: int) -> None:
            completing = self.state is COMPLETING_REBALANCE
            if not completing or self.roster.generation != generation:
                return
            if error is not ErrorCode.NONE:
                self._drop_assignment(error, at_ms)
                self._prepare(AssignmentNotStored(error.name), at_ms)
                return
            for member in self.roster.members.values():
                member.assignment = assignment.get(member.member_id, b"")
            self._broker.note(
                GroupAssigned(self.group_id, generation, self.roster.assigned_partitions())
            )
            self._hand_out(ErrorCode.NONE, at_ms)
            self._transition_to(STABLE, at_ms)

        self._store(assignment, stored, now_ms)

    def _drop_assignment(self, error: ErrorCode, now_ms: int) -> None:
        for member in self.roster.members.values():
            member.assignment = b""
        self._hand_out(error, now_ms)

    def _hand_out(self, error: ErrorCode, now_ms: int) -> None:
        """Answer every parked SyncGroup with the member's assignment, or with `error`."""
        for member in self.roster.members.values():
            if member.answer_sync(self._broker, self.roster.sync_answer(member, error)):
                self._extend_session(member, now_ms)

    def _expire_sync(self, generation: int, now_ms: int) -> None:
        """Remove members that joined but never synced (KAFKA-12984)."""
        silent = list(self.roster.pending_sync)
        is_over = generation != self.roster.generation or not self._can_rebalance
        if is_over or not silent:
            return
        for member_id in silent:
            self._note_left(member_id, Departure.NOT_SYNCED)
            self._remove(member_id)
        self._prepare(PendingSyncExpired(tuple(silent)), now_ms)

    # ------------------------------------------------------------------------ sessions

    def _extend_session(self, member: ClassicMember, now_ms: int) -> None:
        """Restart a member's session timeout after it made contact."""
        ends_ms = now_ms + member.session_timeout_ms
        self._timers.start_session(member.member_id, ends_ms, self._expire_member)

    def _expire_member(self, member_id: str, now_ms: int) -> None:
        if member_id in self.roster.pending:
            self._remove(member_id)
            self._complete_join_if_all_joined(now_ms)
            return
        member = self.roster.members.get(member_id)
        if member is None or member.excused_from_heartbeat:
            return
        self._broker.note(GroupMemberExpired(self.group_id, member_id, member.session_timeout_ms))
        self.roster.answer_both(self._broker, member, "", ErrorCode.UNKNOWN_MEMBER_ID)
        self._remove(member_id)
        if self.state in (STABLE, COMPLETING_REBALANCE):
            self._prepare(HeartbeatExpired(member_id), now_ms)
        else:
            self._complete_join_if_all_joined(now_ms)

    # ---------------------------------------------------------------------- other APIs

    @property
    def state_name(self) -> str:
        return self.state.value

    @property
    def protocol_type(self) -> str:
        return self.roster.protocol_type or ""

    def described(self) -> DescribedGroup:
        """The group's description; only a stable group is certain to have a protocol, and metadata
        for it."""
        stable = self.state is STABLE
        protocol_name = (self.roster.protocol_name or "") if stable else None
        return m.DescribeGroupsResponse.DescribedGroup(
            group_id=self.group_id,
            group_state=self.state.value,
            protocol_type=self.protocol_type,
            protocol_data=protocol_name or "",
            members=[one.described(protocol_name) for one in self.roster.members.values()],
        )

    @property
    def is_unused(self) -> bool:
        return self.state is EMPTY and not self.roster.pending

    def check_deletion(self) -> ErrorCode:
        return ErrorCode.NONE if self.state is EMPTY else ErrorCode.NON_EMPTY_GROUP

    def tombstones(self) -> list[LogRecord]:
        return [ClassicGroupRecord(self.group_id, None)]

    def admit_commit(self, committer: Committer, now_ms: int) -> ErrorCode:
        """Admit a commit.  A commit without a generation (by an admin, or a consumer with
        partitions assigned by hand) is admitted only into a group without members."""
        generation = committer.generation
        if self.state is DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        if generation < 0:
            if self.state is EMPTY:
                return ErrorCode.NONE
            if not committer.member_id and committer.instance_id is None:
                is_allowed = committer.is_in_transaction
                return ErrorCode.NONE if is_allowed else ErrorCode.UNKNOWN_MEMBER_ID
        error = self.roster.check_member(committer.member_id, committer.instance_id, generation)
        if error is not ErrorCode.NONE:
            return error
        if self.state is COMPLETING_REBALANCE and not committer.is_in_transaction:
            return ErrorCode.REBALANCE_IN_PROGRESS
        self._extend_session(self.roster.members[committer.member_id], now_ms)
        return ErrorCode.NONE

    def check_offset_deletion(self) -> ErrorCode:
        allowed = self.state is EMPTY or self.roster.are_consumers
        return ErrorCode.NONE if allowed else ErrorCode.NON_EMPTY_GROUP

    def is_subscribed_to(self, topic: str) -> bool:
        return self.roster.is_subscribed_to(topic)

    def retention_starts_ms(self, commit_timestamp_ms: int) -> int | None:
        """The time from which an offset's retention counts: the departure of the last member from
        an empty group, or the commit if the group never had members.  In a group with members, only
        offsets of a stable consumer group expire."""
        if self.roster.protocol_type is None:
            return commit_timestamp_ms
        if self.state is EMPTY:
            return commit_timestamp_ms if self.state_since_ms < 0 else self.state_since_ms
        if self.state is STABLE and self.roster.subscribed_topics is not None:
            return commit_timestamp_ms
        return None

    # ------------------------------------------------------------------------- the log

    def _store(self, assignment: Mapping[str, bytes], on_settled: Settled, now_ms: int) -> None:
        """Write the present group, each member with its part of `assignment`."""
        value = self.roster.saved(assignment, self.state_since_ms)
        self._home.append([ClassicGroupRecord(self.group_id, value)], on_settled, now_ms)

    def replay(self, record: LogRecord) -> bool:
        assert isinstance(record, ClassicGroupRecord), record
        value = record.value
        if value is None:
            return False
        self.state = STABLE if value.members else EMPTY
        self.state_since_ms = value.current_state_timestamp
        self.roster = Roster.restored(value)
        return True

    def resume(self, now_ms: int) -> None:
        """Give each member one session timeout to contact this coordinator."""
        for member in list(self.roster.members.values()):
            self._extend_session(member, now_ms)
        size, max_size = len(self.roster.members), self._broker.config.group_max_size
        if size > max_size:
            self._prepare(GroupOverCapacity(size, max_size), now_ms)

    def unload(self, now_ms: int) -> None:
        self._transition_to(DEAD, now_ms)
        for member in self.roster.members.values():
            member_id = member.member_id
            self.roster.answer_both(self._broker, member, member_id, ErrorCode.NOT_COORDINATOR)
        self.abandon()

    def abandon(self) -> None:
        for member in self.roster.members.values():
            # A consumer group takes the place of this one, and its members join again.
            self.roster.answer_both(self._broker, member, "", ErrorCode.REBALANCE_IN_PROGRESS)
        self._timers.end_phase(JOIN)
        self._timers.end_phase(SYNC)
        self._timers.end_sessions((*self.roster.members, *self.roster.pending))
        self.roster.pending.clear()
