"""Consumer groups: ConsumerGroupHeartbeat 68 (v0-1), ConsumerGroupDescribe 69 (v0-1).

Owns: the checks that need no group, and the shape of the answers.  Never: changes a group
(coordinator/consumer/ does).
Kafka: KafkaApis.handleConsumerGroupHeartbeat, GroupCoordinatorService.consumerGroupHeartbeat,
consumerGroupDescribe; KIP-848.
Behaviour:
- one heartbeat joins, reports, acknowledges what was revoked, and leaves;
- it is answered when what it changed is on all in-sync replicas.
Versions:
- ConsumerGroupHeartbeat v1: regular expressions; the client makes its member id (KIP-848)
- ConsumerGroupDescribe v1: the protocol that a member speaks
"""

from __future__ import annotations

from typing import Final

from kcluster.broker.broker import Broker
from kcluster.broker.coordinator.consumer.described import DescribedGroup, described_group
from kcluster.broker.coordinator.consumer.group import ConsumerGroup
from kcluster.broker.coordinator.consumer.heartbeat import Decided, Heartbeat, decide_leave
from kcluster.broker.coordinator.modern.group import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    LEAVE_STATIC_EPOCH,
    GroupRefusal,
)
from kcluster.broker.coordinator.modern.refusals import empty_field, invalid
from kcluster.broker.handlers.groups.groups import GROUP_OPERATIONS, is_served
from kcluster.broker.registry import PARKED, Parked, handles
from kcluster.contract import Request
from kcluster.events.clients import Departure
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
    refused = _check(broker, body, request.api_version)
    if refused is not None:
        return _refusal(refused)
    if body.member_epoch < JOIN_EPOCH:
        return _leave(broker, request, now_ms)
    return _heartbeat(broker, request, now_ms)


def _check(
    broker: Broker, body: m.ConsumerGroupHeartbeatRequest, version: int
) -> GroupRefusal | None:
    """What is wrong with the request itself.  Kafka:
    throwIfConsumerGroupHeartbeatRequestIsInvalid."""
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
        return GroupRefusal(ErrorCode.UNSUPPORTED_ASSIGNOR, message)
    return None


def _refusal(refused: GroupRefusal) -> m.ConsumerGroupHeartbeatResponse:
    return m.ConsumerGroupHeartbeatResponse(error_code=refused.error, error_message=refused.message)


def _leave(
    broker: Broker, request: Request, now_ms: int
) -> m.ConsumerGroupHeartbeatResponse | Parked:
    group = broker.coordinator.modern_group(request.body.group_id, ConsumerGroup, "group")
    if isinstance(group, GroupRefusal):
        return _refusal(group)
    decided = decide_leave(group, request.body)
    if isinstance(decided, GroupRefusal):
        return _refusal(decided)
    _write(broker, request, group, decided, now_ms)
    return PARKED


def _heartbeat(
    broker: Broker, request: Request, now_ms: int
) -> m.ConsumerGroupHeartbeatResponse | Parked:
    body: m.ConsumerGroupHeartbeatRequest = request.body
    found = broker.coordinator.heartbeat_group(
        body.group_id, ConsumerGroup, body.member_epoch, now_ms
    )
    if isinstance(found, GroupRefusal):
        return _refusal(found)
    group, first = found.group, found.records
    heartbeat = Heartbeat(group, request, first, now_ms)
    decided = heartbeat.decide()
    if isinstance(decided, GroupRefusal):
        return _refusal(decided)
    if _write(broker, request, group, decided, now_ms) and decided.member is not None:
        heartbeat.note(decided.member)
        stored = group.stored
        if first:
            stored.resume(now_ms)
        stored.start_session(decided.member.member_id, now_ms)
        if decided.is_reconciled:
            stored.watch_rebalance(decided.member, now_ms)
    return PARKED


def _write(
    broker: Broker, request: Request, group: ConsumerGroup, decided: Decided, now_ms: int
) -> bool:
    def settled(error: ErrorCode, _at_ms: int) -> None:
        failed = error is not ErrorCode.NONE
        broker.reply(request, _refusal(GroupRefusal(error)) if failed else decided.answer)

    if decided.leaver is not None:
        return group.remove([decided.leaver], Departure.LEFT, settled, now_ms)
    return group.write(decided.records, settled, now_ms)


# -------------------------------------------------------------------------------------- describe


@handles(ApiKey.CONSUMER_GROUP_DESCRIBE, versions=(0, 1))
def consumer_group_describe(
    broker: Broker, request: Request, now_ms: int
) -> m.ConsumerGroupDescribeResponse:
    """DIFFERS: Kafka describes the group as of what is committed; this is as of what is written."""
    body: m.ConsumerGroupDescribeRequest = request.body
    groups = [_describe(broker, group_id) for group_id in body.group_ids]
    for group in groups:
        if body.include_authorized_operations and group.error_code == ErrorCode.NONE:
            group.authorized_operations = GROUP_OPERATIONS
    return m.ConsumerGroupDescribeResponse(groups=groups)


def _describe(broker: Broker, group_id: str) -> DescribedGroup:
    if not is_served(broker, ConsumerGroup, GROUP_VERSION):
        return DescribedGroup(group_id=group_id, error_code=ErrorCode.UNSUPPORTED_VERSION)
    if not group_id:
        return DescribedGroup(group_id=group_id, error_code=ErrorCode.INVALID_GROUP_ID)
    group = broker.coordinator.modern_group(group_id, ConsumerGroup, "group")
    if isinstance(group, GroupRefusal):
        return DescribedGroup(
            group_id=group_id, error_code=group.error, error_message=group.message
        )
    return described_group(group)
