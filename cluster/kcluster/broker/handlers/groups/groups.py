"""Consumer groups: JoinGroup 11 (v0-9), Heartbeat 12 (v0-4), LeaveGroup 13 (v0-5), SyncGroup 14
(v0-5), DescribeGroups 15 (v0-6), ListGroups 16 (v0-5), DeleteGroups 42 (v0-2).

Owns: the checks that need no group, and the shape of the answers.  Never: changes a group
(coordinator/ does).
Kafka: KafkaApis and GroupCoordinatorService, one method per API.
Behaviour:
- INVALID_GROUP_ID for an empty group id;
- NOT_COORDINATOR if this broker does not lead the group's partition;
- JoinGroup and SyncGroup wait for the other members.
Versions:
- JoinGroup v4: member id required (KIP-394)
- JoinGroup v5: static members (KIP-345)
- JoinGroup v7: protocol type in answers (KIP-559)
- JoinGroup v8: reason (KIP-800)
- JoinGroup v9: skip assignment (KIP-814)
- LeaveGroup v3: many members (KIP-345)
- ListGroups v4: states (KIP-518)
- ListGroups v5: types (KIP-848)
- DescribeGroups v6: GROUP_ID_NOT_FOUND (KIP-1043)
Not done: consumer (KIP-848), share and streams groups.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from kcluster.broker.coordinator import membership, rebalance
from kcluster.broker.coordinator.group_state import Group, GroupState, Member
from kcluster.broker.coordinator.shard import GroupShard
from kcluster.broker.registry import PARKED, Parked, handles
from kcluster.contract import Request
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from kcluster.broker.node import BrokerNode

LEAVE_MANY_SINCE: Final = 3
SYNC_NAMES_PROTOCOL_SINCE: Final = 5
DESCRIBE_NOT_FOUND_SINCE: Final = 6
DESCRIBE_OPERATIONS_SINCE: Final = 3

GROUP_TYPE: Final = "classic"
GROUP_OPERATIONS: Final = 1 << 3 | 1 << 6 | 1 << 8 | 1 << 10 | 1 << 11
"""Without an authorizer every client may READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS.
Kafka: AclEntry.supportedOperations(GROUP), as a bit field of AclOperation codes."""
OPERATIONS_NOT_ASKED: Final = -(1 << 31)


def shard_of(broker: BrokerNode, group_id: str) -> GroupShard | ErrorCode:
    """The shard of a group; an error if this broker does not have it, or the id is empty."""
    if not group_id:
        return ErrorCode.INVALID_GROUP_ID
    found: GroupShard | ErrorCode = broker.coordinator.shard_for(group_id)
    return found


# ------------------------------------------------------------------------------------ members


@handles(ApiKey.JOIN_GROUP, versions=(0, 9))
def join_group(broker: BrokerNode, request: Request, now_ms: int) -> m.JoinGroupResponse | Parked:
    body: m.JoinGroupRequest = request.body
    config = broker.config
    error = ErrorCode.NONE
    member_id = body.member_id
    shard = shard_of(broker, body.group_id)
    if not body.group_id:
        error = ErrorCode.INVALID_GROUP_ID
    elif not (
        config.group_min_session_timeout_ms
        <= body.session_timeout_ms
        <= config.group_max_session_timeout_ms
    ):
        error = ErrorCode.INVALID_SESSION_TIMEOUT
    elif isinstance(shard, ErrorCode):
        error, member_id = shard, ""
    if error is not ErrorCode.NONE:
        membership.refuse(broker, request, member_id, error)
    else:
        assert isinstance(shard, GroupShard)
        membership.join(shard, request, now_ms)
    return PARKED


@handles(ApiKey.SYNC_GROUP, versions=(0, 5))
def sync_group(broker: BrokerNode, request: Request, now_ms: int) -> m.SyncGroupResponse | Parked:
    body: m.SyncGroupRequest = request.body
    if request.api_version >= SYNC_NAMES_PROTOCOL_SINCE and (
        body.protocol_type is None or body.protocol_name is None
    ):
        return m.SyncGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    shard = shard_of(broker, body.group_id)
    if isinstance(shard, ErrorCode):
        return m.SyncGroupResponse(error_code=shard)
    membership.sync(shard, request, now_ms)
    return PARKED


@handles(ApiKey.HEARTBEAT, versions=(0, 4))
def heartbeat(broker: BrokerNode, request: Request, now_ms: int) -> m.HeartbeatResponse:
    shard = shard_of(broker, request.body.group_id)
    if isinstance(shard, ErrorCode):
        return m.HeartbeatResponse(error_code=shard)
    return m.HeartbeatResponse(error_code=membership.heartbeat(shard, request.body, now_ms))


@handles(ApiKey.LEAVE_GROUP, versions=(0, 5))
def leave_group(broker: BrokerNode, request: Request, now_ms: int) -> m.LeaveGroupResponse | Parked:
    body: m.LeaveGroupRequest = request.body
    shard = shard_of(broker, body.group_id)
    if isinstance(shard, ErrorCode):
        return m.LeaveGroupResponse(error_code=shard)
    many = request.api_version >= LEAVE_MANY_SINCE
    if not many:
        body = m.LeaveGroupRequest(
            group_id=body.group_id,
            members=[m.LeaveGroupRequest.MemberIdentity(member_id=body.member_id)],
        )
    answers = membership.leave(shard, body, now_ms)
    answer = (
        m.LeaveGroupResponse(members=answers)
        if many
        else m.LeaveGroupResponse(error_code=answers[0].error_code)
    )

    def settled(error: ErrorCode, _at_ms: int) -> None:
        failed = error is not ErrorCode.NONE
        broker.reply(request, m.LeaveGroupResponse(error_code=error) if failed else answer)

    # When the last member leaves, the empty group is written: it has left once that is committed.
    shard.after_writes(settled, now_ms)
    return PARKED


# --------------------------------------------------------------------------------- inspection


@handles(ApiKey.DESCRIBE_GROUPS, versions=(0, 6))
def describe_groups(broker: BrokerNode, request: Request, now_ms: int) -> m.DescribeGroupsResponse:
    body: m.DescribeGroupsRequest = request.body
    with_operations = (
        request.api_version >= DESCRIBE_OPERATIONS_SINCE and body.include_authorized_operations
    )
    groups = []
    for group_id in body.groups:
        described = _describe(broker, group_id, request.api_version)
        if with_operations and described.error_code == ErrorCode.NONE:
            described.authorized_operations = GROUP_OPERATIONS
        groups.append(described)
    return m.DescribeGroupsResponse(groups=groups)


def _describe(
    broker: BrokerNode, group_id: str, version: int
) -> m.DescribeGroupsResponse.DescribedGroup:
    answer = m.DescribeGroupsResponse.DescribedGroup(
        group_id=group_id, authorized_operations=OPERATIONS_NOT_ASKED
    )
    shard = broker.coordinator.shard_for(group_id)
    if isinstance(shard, ErrorCode):
        answer.error_code = shard
        return answer
    group = shard.groups.get(group_id)
    if group is None:
        answer.group_state = GroupState.DEAD.value
        if version >= DESCRIBE_NOT_FOUND_SINCE:
            answer.error_code = ErrorCode.GROUP_ID_NOT_FOUND
            answer.error_message = f"Group {group_id} not found."
        return answer
    answer.group_state = group.state.value
    answer.protocol_type = group.protocol_type or ""
    stable = group.state is GroupState.STABLE
    if stable:
        answer.protocol_data = group.protocol_name or ""
    answer.members = [_describe_member(group, x, stable) for x in group.members.values()]
    return answer


def _describe_member(
    group: Group, member: Member, stable: bool
) -> m.DescribeGroupsResponse.DescribedGroupMember:
    """Metadata is shown for a stable group only: it belongs to the chosen protocol."""
    return m.DescribeGroupsResponse.DescribedGroupMember(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        member_metadata=member.protocols.get(group.protocol_name or "", b"") if stable else b"",
        member_assignment=member.assignment,
    )


@handles(ApiKey.LIST_GROUPS, versions=(0, 5))
def list_groups(broker: BrokerNode, request: Request, now_ms: int) -> m.ListGroupsResponse:
    body: m.ListGroupsRequest = request.body
    states = [state.lower() for state in body.states_filter]
    types = [kind.lower() for kind in body.types_filter]
    listed = []
    for shard in broker.coordinator.shards.values():
        for group in shard.groups.values():
            if states and group.state.lower() not in states:
                continue
            if types and GROUP_TYPE not in types:
                continue
            listed.append(
                m.ListGroupsResponse.ListedGroup(
                    group_id=group.group_id,
                    protocol_type=group.protocol_type or "",
                    group_state=group.state.value,
                    group_type=GROUP_TYPE,
                )
            )
    return m.ListGroupsResponse(groups=listed)


# ----------------------------------------------------------------------------------- deletion


@handles(ApiKey.DELETE_GROUPS, versions=(0, 2))
def delete_groups(
    broker: BrokerNode, request: Request, now_ms: int
) -> m.DeleteGroupsResponse | Parked:
    """Each group by itself; the answer is sent when the last tombstone is committed."""
    results = {
        group_id: m.DeleteGroupsResponse.DeletableGroupResult(group_id=group_id)
        for group_id in request.body.groups_names
    }
    waiting = dict.fromkeys(results)

    def finish(group_id: str, error: ErrorCode) -> None:
        results[group_id].error_code = error
        del waiting[group_id]
        if not waiting:
            broker.reply(request, m.DeleteGroupsResponse(results=list(results.values())))

    for group_id in list(results):
        _delete(broker, group_id, finish, now_ms)
    if not results:
        return m.DeleteGroupsResponse()
    return PARKED


def _delete(
    broker: BrokerNode, group_id: str, finish: Callable[[str, ErrorCode], None], now_ms: int
) -> None:
    shard = broker.coordinator.shard_for(group_id)
    if isinstance(shard, ErrorCode):
        finish(group_id, shard)
        return
    group = shard.groups.get(group_id)
    if group is None:
        finish(group_id, ErrorCode.GROUP_ID_NOT_FOUND)
        return
    if group.state is not GroupState.EMPTY:
        finish(group_id, ErrorCode.NON_EMPTY_GROUP)
        return

    def stored(error: ErrorCode, _at_ms: int) -> None:
        if error is not ErrorCode.NONE:
            shard.groups.setdefault(group_id, group)
        finish(group_id, error)

    rebalance.forget_timers(shard, group)
    shard.write(shard.delete_group(group_id), stored, now_ms)
