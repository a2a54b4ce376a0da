"""Share groups: ShareGroupHeartbeat 76 (v1), ShareGroupDescribe 77 (v1).

Owns: the checks that need no group, and the shape of the answers.  Never: changes a group
(coordinator/share does).
Kafka: KafkaApis.handleShareGroupHeartbeat, GroupCoordinatorService.shareGroupHeartbeat,
shareGroupDescribe; KIP-932.
Behaviour:
- UNSUPPORTED_VERSION while the feature share.version is off;
- one heartbeat joins, reports, and leaves; a member may use its partitions at once, and nothing has
  to be revoked before others may have them;
- partitions of new topics are assigned once share coordinators have initialized their state.
"""

from __future__ import annotations

from typing import Final

from kcluster.broker.broker import Broker
from kcluster.broker.coordinator.modern.group import JOIN_EPOCH, LEAVE_EPOCH, GroupRefusal
from kcluster.broker.coordinator.modern.refusals import empty_field, invalid
from kcluster.broker.coordinator.share.group import ShareGroup
from kcluster.broker.coordinator.share.heartbeat import (
    ShareDecision,
    ShareHeartbeat,
    decide_share_leave,
)
from kcluster.broker.handlers.groups.groups import GROUP_OPERATIONS
from kcluster.broker.registry import PARKED, Parked, handles
from kcluster.contract import Request
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.features import SHARE_VERSION

MAX_MEMBER_ID_LENGTH: Final = 36


@handles(ApiKey.SHARE_GROUP_HEARTBEAT, versions=(1, 1))
def share_group_heartbeat(
    broker: Broker, request: Request, now_ms: int
) -> m.ShareGroupHeartbeatResponse | Parked:
    body: m.ShareGroupHeartbeatRequest = request.body
    if not broker.image.supports(SHARE_VERSION):
        return m.ShareGroupHeartbeatResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    if not 0 < len(body.member_id) <= MAX_MEMBER_ID_LENGTH:
        return m.ShareGroupHeartbeatResponse(error_code=ErrorCode.INVALID_REQUEST)
    refused = _check(body)
    if refused is not None:
        return _refusal(refused)
    if body.member_epoch == LEAVE_EPOCH:
        group = find_share_group(broker, body.group_id)
        if isinstance(group, GroupRefusal):
            return _refusal(group)
        decided = decide_share_leave(group, body)
    else:
        found = broker.coordinator.heartbeat_group(
            body.group_id, ShareGroup, body.member_epoch, now_ms
        )
        if isinstance(found, GroupRefusal):
            return _refusal(found)
        group = found.group
        decided = ShareHeartbeat(group, request, now_ms).decide()
    if isinstance(decided, GroupRefusal):
        return _refusal(decided)
    _write(broker, request, group, decided, now_ms)
    return PARKED


def _check(body: m.ShareGroupHeartbeatRequest) -> GroupRefusal | None:
    """What is wrong with the request itself.  Kafka: throwIfShareGroupHeartbeatRequestIsInvalid."""
    empty = empty_field(MemberId=body.member_id, GroupId=body.group_id, RackId=body.rack_id)
    if empty is not None:
        return empty
    if body.member_epoch == JOIN_EPOCH and not body.subscribed_topic_names:
        return invalid("SubscribedTopicNames: a member that joins names at least one")
    if body.member_epoch < LEAVE_EPOCH:
        return invalid(f"MemberEpoch {body.member_epoch}: the lowest is {LEAVE_EPOCH}")
    return None


def _refusal(refused: GroupRefusal) -> m.ShareGroupHeartbeatResponse:
    return m.ShareGroupHeartbeatResponse(error_code=refused.error, error_message=refused.message)


def find_share_group(broker: Broker, group_id: str) -> ShareGroup | GroupRefusal:
    """A share group that is there, for requests that are not of its members."""
    return broker.coordinator.modern_group(group_id, ShareGroup, "group")


def _write(
    broker: Broker, request: Request, group: ShareGroup, decided: ShareDecision, now_ms: int
) -> None:
    def settled(error: ErrorCode, at_ms: int) -> None:
        failed = error is not ErrorCode.NONE
        broker.reply(request, _refusal(GroupRefusal(error)) if failed else decided.answer)
        stored = group.stored
        if not failed and decided.initialize and stored.is_current:
            stored.initialize_states(decided.initialize, decided.epoch, at_ms)

    if not group.write(decided.records, settled, now_ms):
        return
    stored, member = group.stored, decided.member
    if member is None:
        stored.note_left(decided.answer.member_id or "")
        return
    stored.start_session(member.member_id, now_ms)
    if decided.initialize:
        stored.note_states_written(now_ms)
    if decided.is_new:
        stored.note_joined(member)
    if decided.target is not None:
        stored.note_assigned(decided.epoch, decided.target)


@handles(ApiKey.SHARE_GROUP_DESCRIBE, versions=(1, 1))
def share_group_describe(
    broker: Broker, request: Request, now_ms: int
) -> m.ShareGroupDescribeResponse:
    body: m.ShareGroupDescribeRequest = request.body
    rows = []
    for group_id in body.group_ids:
        row = _described(broker, group_id)
        if body.include_authorized_operations and row.error_code == ErrorCode.NONE:
            row.authorized_operations = GROUP_OPERATIONS
        rows.append(row)
    return m.ShareGroupDescribeResponse(groups=rows)


def _described(broker: Broker, group_id: str) -> m.ShareGroupDescribeResponse.DescribedGroup:
    row_of = m.ShareGroupDescribeResponse.DescribedGroup
    if not broker.image.supports(SHARE_VERSION):
        return row_of(group_id=group_id, error_code=ErrorCode.UNSUPPORTED_VERSION)
    if not group_id:
        return row_of(group_id="", error_code=ErrorCode.INVALID_GROUP_ID)
    group = find_share_group(broker, group_id)
    if isinstance(group, GroupRefusal):
        message = group.error.text if group.message is None else group.message
        return row_of(group_id=group_id, error_code=group.error, error_message=message)
    return group.described_as_share_group()
