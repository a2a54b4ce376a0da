"""How a group gets from one generation to the next: phases, deadlines, answers to those who wait.

Owns: prepare -> complete join -> sync, all timers of a group, replies to parked JoinGroup and
SyncGroup requests.  Never: reads a request (membership.py does), writes a group's fields other than
by its methods.
Kafka: GroupMetadataManager.prepareRebalance, completeClassicGroupJoin, expirePendingSync, …;
KIP-62, KIP-134 (initial delay), KIP-345.

Timers of a group: ("group", id, "join") ends the join phase, ("group", id, "sync") the sync phase,
("group", id, "member", member id) is that member's session.
"""

from __future__ import annotations

from typing import Final

from kcluster.broker.coordinator.group_log import group_record, subscribed_topics
from kcluster.broker.coordinator.group_state import Group, GroupState, Member
from kcluster.broker.coordinator.interface import CoordinatorBroker
from kcluster.broker.coordinator.shard import GroupShard, ignore_outcome
from kcluster.contract import Request
from kcluster.events.clients import GroupMemberExpired, GroupRebalanced
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode

NEW_MEMBER_TIMEOUT_MS: Final = 5 * 60 * 1000
"""How long a new member may wait for its first answer, whatever its session timeout: it cannot
heartbeat meanwhile.  Kafka: classicGroupNewMemberJoinTimeoutMs, not configurable."""

NULLABLE_PROTOCOL_NAME: Final = 7
"""From this version of JoinGroup on, no protocol is null and not ""."""


# --------------------------------------------------------------------------------- answers


def reply_join(broker: CoordinatorBroker, request: Request, body: m.JoinGroupResponse) -> None:
    if request.api_version < NULLABLE_PROTOCOL_NAME:
        body.protocol_name = body.protocol_name or ""
    else:
        body.protocol_name = body.protocol_name or None
    broker.reply(request, body)


def join_error(member_id: str, error: ErrorCode) -> m.JoinGroupResponse:
    return m.JoinGroupResponse(
        error_code=error, generation_id=-1, protocol_name=None, leader="", member_id=member_id
    )


def join_answer(
    group: Group, member: Member, with_members: bool, skip_assignment: bool = False
) -> m.JoinGroupResponse:
    """What a member learns of its generation; the leader learns of the others too."""
    members = []
    if with_members:
        protocol = group.protocol_name or ""
        members = [
            m.JoinGroupResponse.JoinGroupResponseMember(
                member_id=other.member_id,
                group_instance_id=other.instance_id,
                metadata=other.protocols.get(protocol, b""),
            )
            for other in group.members.values()
        ]
    return m.JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=group.leader or "",
        skip_assignment=skip_assignment,
        member_id=member.member_id,
        members=members,
    )


def answer_join(shard: GroupShard, member: Member, body: m.JoinGroupResponse) -> None:
    """Answer the JoinGroup that a member has parked, if any."""
    request, member.join = member.join, None
    if request is not None:
        reply_join(shard.broker, request, body)


def answer_sync(shard: GroupShard, member: Member, body: m.SyncGroupResponse) -> bool:
    """Answer the SyncGroup that a member has parked; False if there is none."""
    request, member.sync = member.sync, None
    if request is None:
        return False
    shard.broker.reply(request, body)
    return True


def answer_both(shard: GroupShard, member: Member, member_id: str, error: ErrorCode) -> None:
    """The member is on its way out: whatever it waits for ends in `error`."""
    answer_join(shard, member, join_error(member_id, error))
    answer_sync(shard, member, m.SyncGroupResponse(error_code=error))


# -------------------------------------------------------------------------------- sessions


def extend_session(
    shard: GroupShard, group: Group, member: Member, now_ms: int, timeout_ms: int | None = None
) -> None:
    """The member was heard of: its session ends `timeout_ms` (its own) from now."""
    await_member(
        shard, group, member.member_id,
        now_ms + (member.session_timeout_ms if timeout_ms is None else timeout_ms),
    )  # fmt: skip


def await_member(shard: GroupShard, group: Group, member_id: str, at_ms: int) -> None:
    """Expire the member, pending or not, at `at_ms`."""
    shard.broker.timers.set(
        ("group", group.group_id, "member", member_id),
        at_ms,
        lambda now_ms: _expire_member(shard, group, member_id, now_ms),
    )


def end_session(shard: GroupShard, group: Group, member_id: str) -> None:
    shard.broker.timers.cancel(("group", group.group_id, "member", member_id))


def _expire_member(shard: GroupShard, group: Group, member_id: str, now_ms: int) -> None:
    if member_id in group.pending_members:
        group.remove(member_id)
        complete_join_if_all_joined(shard, group, now_ms)
        return
    member = group.members.get(member_id)
    if member is None or member.excused_from_heartbeat:
        return
    shard.broker.note(GroupMemberExpired(group.group_id, member_id, member.session_timeout_ms))
    answer_both(shard, member, "", ErrorCode.UNKNOWN_MEMBER_ID)
    group.remove(member_id)
    if group.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
        prepare(shard, group, f"member {member_id} expired", now_ms)
    else:
        complete_join_if_all_joined(shard, group, now_ms)


# ------------------------------------------------------------------------------ join phase


def prepare_or_complete(shard: GroupShard, group: Group, reason: str, now_ms: int) -> None:
    """Something changed: start a rebalance, or see whether the running one can go on."""
    if group.can_rebalance:
        prepare(shard, group, reason, now_ms)
    else:
        complete_join_if_ready(shard, group, now_ms)


def prepare(shard: GroupShard, group: Group, reason: str, now_ms: int) -> None:
    """Start a rebalance: members have until the rebalance timeout to join again."""
    if group.state is GroupState.COMPLETING_REBALANCE:
        _drop_assignment(shard, group, ErrorCode.REBALANCE_IN_PROGRESS, now_ms)
    group.pending_sync.clear()
    timers = shard.broker.timers
    timers.cancel(("group", group.group_id, "sync"))
    initial = group.state is GroupState.EMPTY
    group.transition_to(GroupState.PREPARING_REBALANCE, now_ms)
    group.rebalance_reason = reason
    if initial:
        delay_ms = shard.broker.config.group_initial_rebalance_delay_ms
        remaining_ms = max(group.rebalance_timeout_ms() - delay_ms, 0)
        _wait_for_more_members(shard, group, delay_ms, remaining_ms, now_ms)
    elif group.has_all_members_joined():
        complete_join(shard, group, now_ms)
    else:
        _limit_join_phase(shard, group, now_ms)


def _wait_for_more_members(
    shard: GroupShard, group: Group, delay_ms: int, remaining_ms: int, now_ms: int
) -> None:
    """group.initial.rebalance.delay.ms: an empty group waits, and again for as long as somebody
    new came in the meantime, up to the rebalance timeout (KIP-134)."""

    def delay_over(at_ms: int) -> None:
        if not group.new_member_added or remaining_ms == 0:
            complete_join(shard, group, at_ms)
            return
        group.new_member_added = False
        next_ms = min(shard.broker.config.group_initial_rebalance_delay_ms, remaining_ms)
        _wait_for_more_members(shard, group, next_ms, max(remaining_ms - delay_ms, 0), at_ms)

    shard.broker.timers.set(("group", group.group_id, "join"), now_ms + delay_ms, delay_over)


def _limit_join_phase(shard: GroupShard, group: Group, now_ms: int) -> None:
    shard.broker.timers.set(
        ("group", group.group_id, "join"),
        now_ms + group.rebalance_timeout_ms(),
        lambda at_ms: complete_join(shard, group, at_ms),
    )


def complete_join_if_ready(shard: GroupShard, group: Group, now_ms: int) -> None:
    """As below, but the initial delay of a group that was empty is sat out."""
    if group.previous_state is not GroupState.EMPTY:
        complete_join_if_all_joined(shard, group, now_ms)


def complete_join_if_all_joined(shard: GroupShard, group: Group, now_ms: int) -> None:
    if group.state is GroupState.PREPARING_REBALANCE and group.has_all_members_joined():
        complete_join(shard, group, now_ms)


def complete_join(shard: GroupShard, group: Group, now_ms: int) -> None:
    """End the join phase: those who came make the next generation."""
    timers = shard.broker.timers
    timers.cancel(("group", group.group_id, "join"))
    late = [x.member_id for x in group.members.values() if x.join is None and not x.is_static]
    for member_id in late:
        group.remove(member_id)
        end_session(shard, group, member_id)
    if group.members and not group.keep_or_replace_leader():
        # Static members only, and none is back yet: they keep their places (KIP-345).
        _limit_join_phase(shard, group, now_ms)
        return
    group.protocol_name = group.select_protocol() if group.members else None
    group.next_generation(subscribed_topics(group), now_ms)
    _tell(shard, group)
    if not group.members:
        shard.write([group_record(group, {})], ignore_outcome, now_ms)
        return
    for member in list(group.members.values()):
        answer_join(shard, member, join_answer(group, member, group.leader == member.member_id))
        extend_session(shard, group, member, now_ms)
        member.is_new = False
        group.pending_sync[member.member_id] = None
    generation = group.generation
    timers.set(
        ("group", group.group_id, "sync"),
        now_ms + group.rebalance_timeout_ms(),
        lambda at_ms: _expire_sync(shard, group, generation, at_ms),
    )


def _tell(shard: GroupShard, group: Group) -> None:
    members = tuple(group.members)
    shard.broker.note(
        GroupRebalanced(group.group_id, group.generation, members, group.rebalance_reason)
    )


# ------------------------------------------------------------------------------ sync phase


def sync_received(shard: GroupShard, group: Group, member_id: str) -> None:
    """One SyncGroup less to wait for."""
    group.pending_sync.pop(member_id, None)
    if not group.pending_sync:
        shard.broker.timers.cancel(("group", group.group_id, "sync"))


def assign(shard: GroupShard, group: Group, assignment: dict[str, bytes], now_ms: int) -> None:
    """The leader has spoken: hand out the assignment once it is in the log."""
    generation = group.generation

    def stored(error: ErrorCode, at_ms: int) -> None:
        if (
            group.state is not GroupState.COMPLETING_REBALANCE
            or group.generation != generation
        ):  # fmt: skip
            return
        if error is not ErrorCode.NONE:
            _drop_assignment(shard, group, error, at_ms)
            prepare(shard, group, f"the assignment was not stored: {error.name}", at_ms)
            return
        for member in group.members.values():
            member.assignment = assignment.get(member.member_id, b"")
        _hand_out(shard, group, ErrorCode.NONE, at_ms)
        group.transition_to(GroupState.STABLE, at_ms)

    shard.write([group_record(group, assignment)], stored, now_ms)


def sync_answer(group: Group, member: Member) -> m.SyncGroupResponse:
    return m.SyncGroupResponse(
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        assignment=member.assignment,
    )


def _drop_assignment(shard: GroupShard, group: Group, error: ErrorCode, now_ms: int) -> None:
    for member in group.members.values():
        member.assignment = b""
    _hand_out(shard, group, error, now_ms)


def _hand_out(shard: GroupShard, group: Group, error: ErrorCode, now_ms: int) -> None:
    for member in group.members.values():
        failed = error is not ErrorCode.NONE
        body = m.SyncGroupResponse(error_code=error) if failed else sync_answer(group, member)
        if answer_sync(shard, member, body):
            extend_session(shard, group, member, now_ms)


def _expire_sync(shard: GroupShard, group: Group, generation: int, now_ms: int) -> None:
    """Members that joined but never synced are gone (KAFKA-12984's cure)."""
    if generation != group.generation or not group.can_rebalance or not group.pending_sync:
        return
    silent = list(group.pending_sync)
    for member_id in silent:
        group.remove(member_id)
        end_session(shard, group, member_id)
    prepare(shard, group, f"no SyncGroup came from {', '.join(silent)}", now_ms)


# --------------------------------------------------------------------------- the end of it


def resume(shard: GroupShard, group: Group, now_ms: int) -> None:
    """Loaded from the log: members have a session timeout to be heard of here."""
    for member in list(group.members.values()):
        extend_session(shard, group, member, now_ms)
    if len(group.members) > shard.broker.config.group_max_size:
        prepare(shard, group, "the loaded group is larger than group.max.size", now_ms)


def abandon(shard: GroupShard, group: Group, now_ms: int) -> None:
    """This broker no longer coordinates the group: send everybody on."""
    group.transition_to(GroupState.DEAD, now_ms)
    forget_timers(shard, group)
    for member in group.members.values():
        answer_both(shard, member, member.member_id, ErrorCode.NOT_COORDINATOR)


def forget_timers(shard: GroupShard, group: Group) -> None:
    timers = shard.broker.timers
    timers.cancel(("group", group.group_id, "join"))
    timers.cancel(("group", group.group_id, "sync"))
    for member_id in (*group.members, *group.pending_members):
        end_session(shard, group, member_id)
