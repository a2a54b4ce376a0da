"""Consumer groups: ConsumerGroupHeartbeat 68 (v0-1), ConsumerGroupDescribe 69 (v0-1).

Owns: the checks that need no group, and the shape of the answers.  Never: changes a group
(coordinator/consumer/ does).
Kafka: KafkaApis.handleConsumerGroupHeartbeat, GroupCoordinatorService.consumerGroupHeartbeat,
consumerGroupDescribe; KIP-848.
Behaviour:
- heartbeats join, report, acknowledge revoked partitions, and leave;
- a heartbeat is answered when its changes are on all in-sync replicas.
Versions:
- ConsumerGroupHeartbeat v1: regular expressions; the client makes its member id (KIP-848)
- ConsumerGroupDescribe v1: the protocol that a member speaks
"""

from __future__ import annotations

from typing import Final

from kcluster.broker.broker import Broker
from kcluster.broker.coordinator.consumer.described import DescribedGroup, described_group
from kcluster.broker.coordinator.consumer.group import ConsumerGroup
from kcluster.broker.coordinator.consumer.heartbeat import decide_heartbeat
from kcluster.broker.coordinator.interface import RequestRefused, invalid
from kcluster.broker.coordinator.modern.group import JOIN_EPOCH, LEAVE_EPOCH, LEAVE_STATIC_EPOCH
from kcluster.broker.coordinator.modern.refusals import empty_field
from kcluster.broker.handlers.groups.modern_groups import (
    describe_groups,
    is_served,
    refusal_of,
    serve_heartbeat,
)
from kcluster.broker.registry import Parked, handles
from kcluster.contract import Request
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.features import GROUP_VERSION

CLIENT_MAKES_ID_SINCE: Final = 1


@handles(ApiKey.CONSUMER_GROUP_HEARTBEAT, versions=(0, 1))
def consumer_group_heartbeat(
    broker: Broker, request: Request, now_ms: int
) -> m.ConsumerGroupHeartbeatResponse | Parked:
    body: m.ConsumerGroupHeartbeatRequest = request.body
    if not is_served(broker, ConsumerGroup, GROUP_VERSION):
        return m.ConsumerGroupHeartbeatResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    refusal = _check(broker, body, request.api_version)
    if refusal is not None:
        return refusal_of(m.ConsumerGroupHeartbeatResponse, refusal)
    return serve_heartbeat(
        broker, request, ConsumerGroup, decide_heartbeat, m.ConsumerGroupHeartbeatResponse, now_ms
    )


def _check(
    broker: Broker, body: m.ConsumerGroupHeartbeatRequest, version: int
) -> RequestRefused | None:
    """The error of the request itself.  Kafka: throwIfConsumerGroupHeartbeatRequestIsInvalid."""
    epoch = body.member_epoch
    needs_id = version >= CLIENT_MAKES_ID_SINCE or epoch > JOIN_EPOCH or epoch == LEAVE_EPOCH
    if needs_id and not body.member_id.strip():
        return invalid("MemberId is empty")
    empty = empty_field(GroupId=body.group_id, InstanceId=body.instance_id, RackId=body.rack_id)
    if empty is not None:
        return empty
    if epoch == JOIN_EPOCH:
        if body.rebalance_timeout_ms == -1:
            return invalid("RebalanceTimeoutMs: a member that joins sets it")
        if body.topic_partitions is None or body.topic_partitions:
            return invalid("TopicPartitions: a member that joins sends an empty list")
        if body.subscribed_topic_names is None and body.subscribed_topic_regex is None:
            names = "SubscribedTopicNames, SubscribedTopicRegex"
            return invalid(f"{names}: a member that joins sets one of them")
    elif epoch == LEAVE_STATIC_EPOCH:
        if body.instance_id is None:
            return invalid(f"InstanceId: member epoch {epoch} needs one")
    elif epoch < LEAVE_STATIC_EPOCH:
        return invalid(f"MemberEpoch {epoch}: the lowest is {LEAVE_STATIC_EPOCH}")
    assignors = broker.config.group_consumer_assignors
    if body.server_assignor is not None and body.server_assignor not in assignors:
        message = f"ServerAssignor {body.server_assignor}: there are {', '.join(assignors)}"
        return RequestRefused(ErrorCode.UNSUPPORTED_ASSIGNOR, message)
    return None


# -------------------------------------------------------------------------------------- describe


@handles(ApiKey.CONSUMER_GROUP_DESCRIBE, versions=(0, 1))
def consumer_group_describe(
    broker: Broker, request: Request, now_ms: int
) -> m.ConsumerGroupDescribeResponse:
    served = is_served(broker, ConsumerGroup, GROUP_VERSION)
    groups = describe_groups(
        broker, request, ConsumerGroup, served, DescribedGroup, described_group
    )
    return m.ConsumerGroupDescribeResponse(groups=groups)
