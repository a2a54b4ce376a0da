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
from kcluster.broker.coordinator.interface import RequestRefused, invalid
from kcluster.broker.coordinator.modern.group import JOIN_EPOCH, LEAVE_EPOCH
from kcluster.broker.coordinator.modern.refusals import empty_field
from kcluster.broker.coordinator.share.group import ShareGroup
from kcluster.broker.coordinator.share.heartbeat import decide_share_heartbeat
from kcluster.broker.handlers.groups.modern_groups import (
    describe_groups,
    refusal_of,
    serve_heartbeat,
)
from kcluster.broker.registry import Parked, handles
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
    refusal = _check(body)
    if refusal is not None:
        return refusal_of(m.ShareGroupHeartbeatResponse, refusal)
    return serve_heartbeat(
        broker, request, ShareGroup, decide_share_heartbeat, m.ShareGroupHeartbeatResponse, now_ms
    )


def _check(body: m.ShareGroupHeartbeatRequest) -> RequestRefused | None:
    """The error of the request itself.  Kafka: throwIfShareGroupHeartbeatRequestIsInvalid."""
    empty = empty_field(MemberId=body.member_id, GroupId=body.group_id, RackId=body.rack_id)
    if empty is not None:
        return empty
    if body.member_epoch == JOIN_EPOCH and not body.subscribed_topic_names:
        return invalid("SubscribedTopicNames: a member that joins names at least one")
    if body.member_epoch < LEAVE_EPOCH:
        return invalid(f"MemberEpoch {body.member_epoch}: the lowest is {LEAVE_EPOCH}")
    return None


@handles(ApiKey.SHARE_GROUP_DESCRIBE, versions=(1, 1))
def share_group_describe(
    broker: Broker, request: Request, now_ms: int
) -> m.ShareGroupDescribeResponse:
    row = m.ShareGroupDescribeResponse.DescribedGroup
    served = broker.image.supports(SHARE_VERSION)
    groups = describe_groups(
        broker, request, ShareGroup, served, row, ShareGroup.described_as_share_group
    )
    for group in groups:
        if group.error_code == ErrorCode.NOT_COORDINATOR:
            group.error_message = ErrorCode.NOT_COORDINATOR.text
    return m.ShareGroupDescribeResponse(groups=groups)
