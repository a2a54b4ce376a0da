"""JoinGroup, SyncGroup, Heartbeat, LeaveGroup: what each may do in each state of a group.

Owns: the order of checks and the error of each.  Never: phases and timers (rebalance.py), fields
(group_state.py).  The handlers have checked the group id and found the shard.
Kafka: GroupMetadataManager.classicGroupJoin/Sync/Heartbeat/Leave; KIP-345 (static members), KIP-394
(member id required), KIP-800 (reasons), KIP-814 (skip assignment).

JoinGroup and SyncGroup are always parked and answered through the broker; the others return.
"""

from __future__ import annotations

from typing import Final
from uuid import UUID

from kcluster.broker.coordinator import rebalance
from kcluster.broker.coordinator.group_log import empty_group_record, group_record
from kcluster.broker.coordinator.group_state import Group, GroupState, Member
from kcluster.broker.coordinator.interface import CoordinatorBroker
from kcluster.broker.coordinator.shard import GroupShard
from kcluster.contract import Request
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode

MEMBER_ID_REQUIRED_SINCE: Final = 4
"""JoinGroup version from which a new member must come back with the id it was given (KIP-394)."""
SKIP_ASSIGNMENT_SINCE: Final = 9
"""JoinGroup version from which a returning static leader learns not to assign anew (KIP-814)."""
NOT_PROVIDED: Final = "not provided"


# ----------------------------------------------------------------------------------- JoinGroup


def join(shard: GroupShard, request: Request, now_ms: int) -> None:
    body: m.JoinGroupRequest = request.body
    member_id = body.member_id
    group = shard.groups.get(body.group_id)
    is_new_group = group is None
    if group is None:
        if member_id:
            refuse(shard.broker, request, member_id, ErrorCode.UNKNOWN_MEMBER_ID)
            return
        group = Group(body.group_id, state_since_ms=now_ms)
        shard.groups[body.group_id] = group
    writes_before = shard.writes
    protocols = {protocol.name: bytes(protocol.metadata) for protocol in body.protocols}
    if not group.has_room(member_id, shard.broker.config.group_max_size):
        group.remove(member_id)
        rebalance.end_session(shard, group, member_id)
        refuse(shard.broker, request, "", ErrorCode.GROUP_MAX_SIZE_REACHED)
    elif not group.supports_protocols(body.protocol_type, protocols):
        refuse(shard.broker, request, member_id, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    elif not member_id:
        _join_new(shard, request, group, protocols, now_ms)
    else:
        _join_known(shard, request, group, protocols, now_ms)
    if is_new_group and shard.writes == writes_before:
        _store_new_group(shard, group, now_ms)


def refuse(broker: CoordinatorBroker, request: Request, member_id: str, error: ErrorCode) -> None:
    """Answer a JoinGroup with an error."""
    rebalance.reply_join(broker, request, rebalance.join_error(member_id, error))


def _store_new_group(shard: GroupShard, group: Group, now_ms: int) -> None:
    """Make the group known to whoever coordinates next; if that fails, nobody joins it here."""

    def stored(error: ErrorCode, _at_ms: int) -> None:
        if error is not ErrorCode.NONE:
            for member in group.members.values():
                rebalance.answer_join(shard, member, rebalance.join_error("", error))

    shard.write([empty_group_record(group)], stored, now_ms)


def _join_new(
    shard: GroupShard, request: Request, group: Group, protocols: dict[str, bytes], now_ms: int
) -> None:
    """No member id yet."""
    body: m.JoinGroupRequest = request.body
    instance_id = body.group_instance_id
    prefix = (request.client_id or "") if instance_id is None else instance_id
    member_id = f"{prefix}-{UUID(bytes=shard.broker.rng.randbytes(16), version=4)}"
    if instance_id is not None and instance_id in group.static_members:
        _replace_static(shard, request, group, instance_id, member_id, protocols, now_ms)
    elif instance_id is None and request.api_version >= MEMBER_ID_REQUIRED_SINCE:
        group.pending_members[member_id] = None
        rebalance.await_member(shard, group, member_id, now_ms + body.session_timeout_ms)
        refuse(shard.broker, request, member_id, ErrorCode.MEMBER_ID_REQUIRED)
    else:
        _add(shard, request, group, member_id, protocols, now_ms)


def _add(
    shard: GroupShard, request: Request, group: Group, member_id: str,
    protocols: dict[str, bytes], now_ms: int,
) -> None:  # fmt: skip
    body: m.JoinGroupRequest = request.body
    if (
        group.state is GroupState.PREPARING_REBALANCE
        and group.previous_state is GroupState.EMPTY
    ):  # fmt: skip
        group.new_member_added = True
    member = Member(
        member_id=member_id,
        instance_id=body.group_instance_id,
        client_id=request.client_id or "",
        client_host=f"/{request.client_host}",
        rebalance_timeout_ms=_rebalance_timeout_ms(request),
        session_timeout_ms=body.session_timeout_ms,
        protocol_type=body.protocol_type,
        protocols=protocols,
        join=request,
        is_new=True,
    )
    group.add(member)
    rebalance.extend_session(shard, group, member, now_ms, rebalance.NEW_MEMBER_TIMEOUT_MS)
    reason = f"new member {member_id} joined; its reason: {_reason(body.reason)}"
    rebalance.prepare_or_complete(shard, group, reason, now_ms)


def _join_known(
    shard: GroupShard, request: Request, group: Group, protocols: dict[str, bytes], now_ms: int
) -> None:
    """A member id that this coordinator, or the one before, has given out."""
    body: m.JoinGroupRequest = request.body
    member_id = body.member_id
    if member_id in group.pending_members:
        if body.group_instance_id is not None:
            # Static members never get a pending id, so this is no client that we know.
            refuse(shard.broker, request, member_id, ErrorCode.UNKNOWN_SERVER_ERROR)
            return
        _add(shard, request, group, member_id, protocols, now_ms)
        return
    error = group.check_member(member_id, body.group_instance_id)
    if error is ErrorCode.NONE and group.state is GroupState.EMPTY:
        error = ErrorCode.UNKNOWN_MEMBER_ID
    if error is not ErrorCode.NONE:
        refuse(shard.broker, request, member_id, error)
        return
    member = group.members[member_id]
    is_leader = group.leader == member_id
    same = member.matches(protocols)
    completing = group.state is GroupState.COMPLETING_REBALANCE
    if (completing and same) or (group.state is GroupState.STABLE and same and not is_leader):
        # It did not get our first answer, or asks again for no reason of ours: no rebalance.
        answer = rebalance.join_answer(group, member, with_members=is_leader)
        rebalance.reply_join(shard.broker, request, answer)
        return
    what = "leader joined again" if is_leader and same else "member joined again"
    _update(shard, request, member, protocols)
    rebalance.prepare_or_complete(
        shard, group, f"{what}: {member_id}; its reason: {_reason(body.reason)}", now_ms
    )


def _update(
    shard: GroupShard, request: Request, member: Member, protocols: dict[str, bytes]
) -> None:
    # DIFFERS: Kafka never answers a JoinGroup that the same member has repeated elsewhere.
    retry = rebalance.join_error(member.member_id, ErrorCode.REBALANCE_IN_PROGRESS)
    rebalance.answer_join(shard, member, retry)
    member.protocols = protocols
    member.rebalance_timeout_ms = _rebalance_timeout_ms(request)
    member.session_timeout_ms = request.body.session_timeout_ms
    member.join = request


def _replace_static(
    shard: GroupShard, request: Request, group: Group, instance_id: str, new_id: str,
    protocols: dict[str, bytes], now_ms: int,
) -> None:  # fmt: skip
    """A static member has restarted: it takes its old place under a new id (KIP-345)."""
    body: m.JoinGroupRequest = request.body
    old_id = group.static_members[instance_id]
    old = group.members[old_id]
    rebalance.answer_both(shard, old, old_id, ErrorCode.FENCED_INSTANCE_ID)
    rebalance.end_session(shard, group, old_id)
    before = (old.protocols, old.rebalance_timeout_ms, old.session_timeout_ms)
    old_leader = group.leader or ""
    member = group.rename_static_member(instance_id, new_id)
    rebalance.extend_session(shard, group, member, now_ms)
    _update(shard, request, member, protocols)
    reason = f"static member {instance_id} is back as {new_id}; its reason: {_reason(body.reason)}"
    if group.state is not GroupState.STABLE:
        rebalance.prepare_or_complete(shard, group, reason, now_ms)
        return
    if group.select_protocol() != group.protocol_name:
        rebalance.prepare_or_complete(shard, group, f"{reason}; other protocols", now_ms)
        return

    def stored(error: ErrorCode, at_ms: int) -> None:
        if group.members.get(new_id) is not member:
            return
        if error is ErrorCode.NONE:
            skips = request.api_version >= SKIP_ASSIGNMENT_SINCE
            leads = skips and group.leader == new_id
            answer = rebalance.join_answer(group, member, leads, skip_assignment=leads)
            if not skips:
                # It must not think that it leads, or it would assign without a rebalance.
                answer.leader = old_leader
            rebalance.answer_join(shard, member, answer)
            return
        rebalance.answer_join(shard, member, rebalance.join_error("", error))
        rebalance.end_session(shard, group, new_id)
        group.rename_static_member(instance_id, old_id)
        member.protocols, member.rebalance_timeout_ms, member.session_timeout_ms = before
        rebalance.extend_session(shard, group, member, at_ms)

    assignment = {other.member_id: other.assignment for other in group.members.values()}
    shard.write([group_record(group, assignment)], stored, now_ms)


def _rebalance_timeout_ms(request: Request) -> int:
    """Version 0 has only the session timeout (KIP-62)."""
    body: m.JoinGroupRequest = request.body
    return body.session_timeout_ms if request.api_version == 0 else body.rebalance_timeout_ms


def _reason(reason: str | None) -> str:
    return reason or NOT_PROVIDED


# ----------------------------------------------------------------------------------- SyncGroup


def sync(shard: GroupShard, request: Request, now_ms: int) -> None:
    body: m.SyncGroupRequest = request.body
    group = shard.groups.get(body.group_id)
    error = ErrorCode.UNKNOWN_MEMBER_ID if group is None else _check_sync(group, body)
    if group is None or error is not ErrorCode.NONE:
        shard.broker.reply(request, m.SyncGroupResponse(error_code=error))
        return
    member = group.members[body.member_id]
    rebalance.sync_received(shard, group, body.member_id)
    if group.state is GroupState.STABLE:
        shard.broker.reply(request, rebalance.sync_answer(group, member))
        return
    # DIFFERS: Kafka never answers a SyncGroup that the same member has repeated elsewhere.
    retry = m.SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
    rebalance.answer_sync(shard, member, retry)
    member.sync = request
    if group.leader == body.member_id:
        given = {one.member_id: bytes(one.assignment) for one in body.assignments}
        assignment = {member_id: given.get(member_id, b"") for member_id in group.members}
        rebalance.assign(shard, group, assignment, now_ms)


def _check_sync(group: Group, body: m.SyncGroupRequest) -> ErrorCode:
    error = group.check_generation(body.member_id, body.group_instance_id, body.generation_id)
    if error is not ErrorCode.NONE:
        return error
    if _differs(body.protocol_type, group.protocol_type):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if _differs(body.protocol_name, group.protocol_name):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if group.state is GroupState.PREPARING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE


def _differs(given: str | None, own: str | None) -> bool:
    """Versions before 5 give none, which is fine."""
    return given is not None and own is not None and given != own


# ----------------------------------------------------------------------------------- Heartbeat


def heartbeat(shard: GroupShard, body: m.HeartbeatRequest, now_ms: int) -> ErrorCode:
    group = shard.groups.get(body.group_id)
    if group is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    error = group.check_generation(body.member_id, body.group_instance_id, body.generation_id)
    if error is not ErrorCode.NONE:
        return error
    rebalance.extend_session(shard, group, group.members[body.member_id], now_ms)
    if group.state is GroupState.PREPARING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE


# ---------------------------------------------------------------------------------- LeaveGroup


def leave(
    shard: GroupShard, body: m.LeaveGroupRequest, now_ms: int
) -> list[m.LeaveGroupResponse.MemberResponse]:
    """Each member's outcome, in the order asked; the group rebalances once for all of them."""
    group = shard.groups.get(body.group_id)
    answers = []
    gone: list[str] = []
    for leaver in body.members:
        error = ErrorCode.UNKNOWN_MEMBER_ID if group is None else _leave_one(shard, group, leaver)
        if error is ErrorCode.NONE:
            name = leaver.member_id or leaver.group_instance_id
            gone.append(f"{name} left; its reason: {_reason(leaver.reason)}")
        answers.append(
            m.LeaveGroupResponse.MemberResponse(
                member_id=leaver.member_id,
                group_instance_id=leaver.group_instance_id,
                error_code=error,
            )
        )
    if group is not None and gone:
        if group.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
            rebalance.prepare(shard, group, "; ".join(gone), now_ms)
        elif group.state is GroupState.PREPARING_REBALANCE:
            rebalance.complete_join_if_ready(shard, group, now_ms)
    return answers


def _leave_one(
    shard: GroupShard, group: Group, leaver: m.LeaveGroupRequest.MemberIdentity
) -> ErrorCode:
    member_id = leaver.member_id
    if not member_id:
        # An admin removes a static member, knowing only its instance id (KIP-345).
        member_id = group.static_members.get(leaver.group_instance_id or "", "")
        if not member_id:
            return ErrorCode.UNKNOWN_MEMBER_ID
    elif member_id not in group.pending_members:
        error = group.check_member(member_id, leaver.group_instance_id)
        if error is not ErrorCode.NONE:
            return error
    rebalance.end_session(shard, group, member_id)
    member = group.members.get(member_id)
    if member is not None:
        rebalance.answer_both(shard, member, "", ErrorCode.UNKNOWN_MEMBER_ID)
    group.remove(member_id)
    return ErrorCode.NONE
