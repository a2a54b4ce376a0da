"""Consumer groups: JoinGroup 11 (v0-9), Heartbeat 12 (v0-4), LeaveGroup 13 (v0-5), SyncGroup 14
(v0-5), DescribeGroups 15 (v0-6), ListGroups 16 (v0-5), DeleteGroups 42 (v0-3).

Owns: the checks that need no group, and the shape of the answers.  Never: changes a group
(coordinator/classic_group.py does).
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
"""

from __future__ import annotations

from typing import Final

from kcluster.broker.broker import Broker
from kcluster.broker.coordinator.classic_calls import refuse_join
from kcluster.broker.coordinator.classic_group import ClassicGroupState
from kcluster.broker.coordinator.interface import RequestRefused, Settled
from kcluster.broker.gather import gather
from kcluster.broker.registry import PARKED, Parked, handles
from kcluster.contract import Request
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode

LEAVE_MANY_SINCE: Final = 3
SYNC_NAMES_PROTOCOL_SINCE: Final = 5
DESCRIBE_NOT_FOUND_SINCE: Final = 6
DESCRIBE_OPERATIONS_SINCE: Final = 3

MemberResponse = m.LeaveGroupResponse.MemberResponse

GROUP_OPERATIONS: Final = 1 << 3 | 1 << 6 | 1 << 8 | 1 << 10 | 1 << 11
"""The operations on a group that every client may perform if there is no authorizer: READ, DELETE,
DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS. Kafka: AclEntry.supportedOperations(GROUP), as a bit
field of AclOperation codes."""
OPERATIONS_NOT_ASKED: Final = -(1 << 31)


# ------------------------------------------------------------------------------------ members


@handles(ApiKey.JOIN_GROUP, versions=(0, 9))
def join_group(broker: Broker, request: Request, now_ms: int) -> m.JoinGroupResponse | Parked:
    body: m.JoinGroupRequest = request.body
    min_ms = broker.config.group_min_session_timeout_ms
    max_ms = broker.config.group_max_session_timeout_ms
    if body.group_id and not min_ms <= body.session_timeout_ms <= max_ms:
        refuse_join(broker, request, body.member_id, ErrorCode.INVALID_SESSION_TIMEOUT)
        return PARKED
    broker.coordinator.join(request, now_ms)
    return PARKED


@handles(ApiKey.SYNC_GROUP, versions=(0, 5))
def sync_group(broker: Broker, request: Request, now_ms: int) -> m.SyncGroupResponse | Parked:
    body: m.SyncGroupRequest = request.body
    if request.api_version >= SYNC_NAMES_PROTOCOL_SINCE and (
        body.protocol_type is None or body.protocol_name is None
    ):
        return m.SyncGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    broker.coordinator.sync(request, now_ms)
    return PARKED


@handles(ApiKey.HEARTBEAT, versions=(0, 4))
def heartbeat(broker: Broker, request: Request, now_ms: int) -> Parked:
    def answer(error: ErrorCode, _at_ms: int) -> None:
        broker.reply(request, m.HeartbeatResponse(error_code=error))

    broker.coordinator.heartbeat(request.body, answer, now_ms)
    return PARKED


@handles(ApiKey.LEAVE_GROUP, versions=(0, 5))
def leave_group(broker: Broker, request: Request, now_ms: int) -> Parked:
    body: m.LeaveGroupRequest = request.body
    many = request.api_version >= LEAVE_MANY_SINCE
    leavers = (
        body.members if many else [m.LeaveGroupRequest.MemberIdentity(member_id=body.member_id)]
    )

    def left(outcome: list[MemberResponse] | RequestRefused, _at_ms: int) -> None:
        if isinstance(outcome, RequestRefused):
            answer = m.LeaveGroupResponse(error_code=outcome.error)
        elif many:
            answer = m.LeaveGroupResponse(members=outcome)
        else:
            answer = m.LeaveGroupResponse(error_code=outcome[0].error_code)
        broker.reply(request, answer)

    broker.coordinator.leave(body.group_id, leavers, left, now_ms)
    return PARKED


# --------------------------------------------------------------------------------- inspection


@handles(ApiKey.DESCRIBE_GROUPS, versions=(0, 6))
def describe_groups(broker: Broker, request: Request, now_ms: int) -> m.DescribeGroupsResponse:
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
    broker: Broker, group_id: str, version: int
) -> m.DescribeGroupsResponse.DescribedGroup:
    group = broker.coordinator.group(group_id)
    described = None if isinstance(group, ErrorCode) else group.described()
    if described is None:
        described = m.DescribeGroupsResponse.DescribedGroup(group_id=group_id)
        if group is ErrorCode.NOT_COORDINATOR:
            described.error_code = group
        else:
            described.group_state = ClassicGroupState.DEAD.value
            if version >= DESCRIBE_NOT_FOUND_SINCE:
                described.error_code = ErrorCode.GROUP_ID_NOT_FOUND
                described.error_message = f"there is no group {group_id}"
    described.authorized_operations = OPERATIONS_NOT_ASKED
    return described


@handles(ApiKey.LIST_GROUPS, versions=(0, 5))
def list_groups(broker: Broker, request: Request, now_ms: int) -> m.ListGroupsResponse:
    body: m.ListGroupsRequest = request.body
    states = [state.lower() for state in body.states_filter]
    types = [kind.lower() for kind in body.types_filter]
    return m.ListGroupsResponse(
        groups=[
            group.listed()
            for group in broker.coordinator.groups
            if (not states or group.state_name.lower() in states)
            and (not types or group.kind in types)
        ]
    )


# ----------------------------------------------------------------------------------- deletion


@handles(ApiKey.DELETE_GROUPS, versions=(0, 3))
def delete_groups(broker: Broker, request: Request, now_ms: int) -> Parked:
    """Delete each group by itself; the answer is sent when the last tombstone is committed."""

    def delete(group_id: str, on_deleted: Settled) -> None:
        broker.coordinator.delete_group(group_id, on_deleted, now_ms)

    def deleted(errors: dict[str, ErrorCode], _at_ms: int) -> None:
        row_of = m.DeleteGroupsResponse.DeletableGroupResult
        rows = [row_of(group_id=one, error_code=error) for one, error in errors.items()]
        broker.reply(request, m.DeleteGroupsResponse(results=rows))

    gather(dict.fromkeys(request.body.groups_names), delete, deleted, now_ms)
    return PARKED
