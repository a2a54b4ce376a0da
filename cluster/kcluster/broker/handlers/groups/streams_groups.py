"""Streams groups: StreamsGroupHeartbeat 88 (v0-1), StreamsGroupDescribe 89 (v0-1),
StreamsGroupTopologyDescriptionUpdate 93 (v0).

Owns: the checks that need no group, asking for internal topics, and the shape of the answers.
Never: changes a group (coordinator/streams/ does).
Kafka: KafkaApis.handleStreamsGroupHeartbeat, handleStreamsGroupDescribe,
GroupCoordinatorService.streamsGroupHeartbeat, streamsGroupDescribe; KIP-1071, KIP-1331, KIP-1357.
Behaviour:
- one heartbeat joins with the topology, reports tasks, acknowledges what was revoked, and leaves;
- it is answered when what it changed is on all in-sync replicas;
- internal topics that are missing are created after it; if that fails, the next answers say why.
Versions:
- heartbeat v1: AcceptableRecoveryLag, MISSING_CLIENT_TAGS (KAFKA-20744)
- describe v1: the assignor (KIP-1357), the topology description's status (KIP-1331)
Before 4.4 a broker refuses static members and task offsets.
Not done, as in 4.4.0: regular expressions, warmup tasks, topology updates.  No broker here has a
plugin for topology descriptions, as Kafka's by default.
"""

from __future__ import annotations

from typing import Final

from kcluster.broker.broker import Broker
from kcluster.broker.coordinator.modern.configs import group_time_ms
from kcluster.broker.coordinator.modern.group import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    LEAVE_STATIC_EPOCH,
    GroupRefusal,
)
from kcluster.broker.coordinator.modern.refusals import empty_field, invalid
from kcluster.broker.coordinator.streams.configured import StreamsStatus
from kcluster.broker.coordinator.streams.description import described_group
from kcluster.broker.coordinator.streams.group import StreamsDecision, StreamsGroup
from kcluster.broker.coordinator.streams.heartbeat import decide_heartbeat, decide_leave
from kcluster.broker.coordinator.streams.topology import fixed_changelog, named_topics
from kcluster.broker.handlers.groups.groups import GROUP_OPERATIONS, is_served
from kcluster.broker.registry import PARKED, Parked, handles
from kcluster.contract import Request
from kcluster.events.clients import Departure
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.features import STREAMS_VERSION
from kcluster.protocol.names import is_internal, name_problem

FIRST_WITH_STATIC_MEMBERS: Final = (4, 4)
NOT_STORED: Final = 1
"""TopologyDescriptionStatus: the group has no topology description."""
_ERRORS_SHOWN: Final = 3
_HEARTBEATS_OF_AN_ERROR: Final = 2
"""For how many heartbeat intervals a topic that was not created is not tried again."""


# ---------------------------------------------------------------------------------- heartbeat


@handles(ApiKey.STREAMS_GROUP_HEARTBEAT, versions=(0, 1))
def streams_group_heartbeat(
    broker: Broker, request: Request, now_ms: int
) -> m.StreamsGroupHeartbeatResponse | Parked:
    body: m.StreamsGroupHeartbeatRequest = request.body
    if not is_served(broker, StreamsGroup, STREAMS_VERSION):
        return _refusal(
            GroupRefusal(ErrorCode.UNSUPPORTED_VERSION, ErrorCode.UNSUPPORTED_VERSION.text)
        )
    refused = _check_topics(body.topology) or _check_supported(broker, body) or _check(body)
    if refused is not None:
        return _refusal(refused)
    if body.member_epoch in (LEAVE_EPOCH, LEAVE_STATIC_EPOCH):
        return _leave(broker, request, now_ms)
    return _heartbeat(broker, request, now_ms)


def _refusal(refused: GroupRefusal) -> m.StreamsGroupHeartbeatResponse:
    return m.StreamsGroupHeartbeatResponse(error_code=refused.error, error_message=refused.message)


def _check_topics(topology: m.StreamsGroupHeartbeatRequest.Topology | None) -> GroupRefusal | None:
    """Which names of topics an application may not use."""
    names = [] if topology is None else named_topics(topology)
    internal = ",".join(name for name in names if is_internal(name))
    if internal:
        message = f"the topology names internal topics: {internal}"
        return GroupRefusal(ErrorCode.STREAMS_INVALID_TOPOLOGY, message)
    bad_names = [name for name in names if name_problem(name) is not None]
    if bad_names:
        message = f"the topology has invalid topic names: {','.join(bad_names)}"
        return GroupRefusal(ErrorCode.STREAMS_INVALID_TOPOLOGY, message)
    return None


def _check_supported(broker: Broker, body: m.StreamsGroupHeartbeatRequest) -> GroupRefusal | None:
    """What the broker's release does not serve yet.  Kafka:
    throwIfStreamsGroupHeartbeatRequestIsUsingUnsupportedFeatures."""
    if broker.release.number < FIRST_WITH_STATIC_MEMBERS:
        refused = _check_supported_before_4_4(body)
        if refused is not None:
            return refused
    if body.topology is not None:
        for subtopology in body.topology.subtopologies:
            if subtopology.source_topic_regex:
                return invalid("SourceTopicRegex: not served yet")
    return None


def _check_supported_before_4_4(body: m.StreamsGroupHeartbeatRequest) -> GroupRefusal | None:
    if body.instance_id is not None:
        return invalid("InstanceId: streams groups have no static members yet")
    if body.task_offsets is not None:
        return invalid("TaskOffsets: not served yet")
    if body.task_end_offsets is not None:
        return invalid("TaskEndOffsets: not served yet")
    if body.warmup_tasks:
        return invalid("WarmupTasks: not served yet")
    return None


def _check(body: m.StreamsGroupHeartbeatRequest) -> GroupRefusal | None:
    """What is wrong with the request itself.  Kafka:
    throwIfStreamsGroupHeartbeatRequestIsInvalid."""
    empty = empty_field(
        MemberId=body.member_id,
        GroupId=body.group_id,
        InstanceId=body.instance_id,
        RackId=body.rack_id,
    )
    if empty is not None:
        return empty
    roles = (
        (body.active_tasks, "ActiveTasks"),
        (body.standby_tasks, "StandbyTasks"),
        (body.warmup_tasks, "WarmupTasks"),
    )
    epoch = body.member_epoch
    if epoch == JOIN_EPOCH:
        if body.rebalance_timeout_ms == -1:
            return invalid("RebalanceTimeoutMs: a member that joins sets it")
        for tasks, name in roles:
            if tasks is None or tasks:
                return invalid(f"{name}: a member that joins sends an empty list")
        if body.topology is None:
            return invalid("Topology: a member that joins sends it")
        fixed = fixed_changelog(body.topology)
        if fixed is not None:
            return GroupRefusal(ErrorCode.STREAMS_INVALID_TOPOLOGY, fixed)
    elif epoch == LEAVE_STATIC_EPOCH and body.instance_id is None:
        return invalid(f"InstanceId: member epoch {epoch} needs one")
    elif epoch < LEAVE_STATIC_EPOCH:
        return invalid(f"MemberEpoch {epoch}: the lowest is {LEAVE_STATIC_EPOCH}")
    given = [tasks is not None for tasks, _ in roles]
    if any(given) and not all(given):
        return invalid("ActiveTasks, StandbyTasks, WarmupTasks: set all of them or none")
    if epoch != JOIN_EPOCH and body.topology is not None:
        return invalid("Topology: only a member that joins sends it")
    return None


def _leave(
    broker: Broker, request: Request, now_ms: int
) -> m.StreamsGroupHeartbeatResponse | Parked:
    body: m.StreamsGroupHeartbeatRequest = request.body
    group = broker.coordinator.modern_group(body.group_id, StreamsGroup, "group")
    if isinstance(group, GroupRefusal):
        return _refusal(group)
    if body.shutdown_application:
        group.request_shutdown(body.member_id)
    decision = decide_leave(group, body.member_id, body.instance_id, body.member_epoch)
    if isinstance(decision, GroupRefusal):
        return _refusal(decision)
    written = _write(broker, request, group, decision, now_ms)
    if written and body.member_epoch == LEAVE_EPOCH:
        group.note_left(body.member_id, Departure.LEFT)
    return PARKED


def _heartbeat(
    broker: Broker, request: Request, now_ms: int
) -> m.StreamsGroupHeartbeatResponse | Parked:
    body: m.StreamsGroupHeartbeatRequest = request.body
    found = broker.coordinator.heartbeat_group(
        body.group_id, StreamsGroup, body.member_epoch, now_ms
    )
    if isinstance(found, GroupRefusal):
        return _refusal(found)
    group, first = found.group, found.records
    client = request.client_id or "", f"/{request.client_host}"
    decision = decide_heartbeat(group, body, client, request.api_version, first, now_ms)
    if isinstance(decision, GroupRefusal):
        return _refusal(decision)
    if _write(broker, request, group, decision, now_ms):
        group.stored.note_heartbeat(
            decision, body.member_id, is_known=group is group.stored, now_ms=now_ms
        )
        if body.shutdown_application:
            group.request_shutdown(body.member_id)
    return PARKED


def _write(
    broker: Broker, request: Request, group: StreamsGroup, decision: StreamsDecision, now_ms: int
) -> bool:
    def settled(error: ErrorCode, at_ms: int) -> None:
        if error is not ErrorCode.NONE:
            broker.reply(request, _refusal(GroupRefusal(error)))
            return
        if decision.missing_topics:
            _create_topics(broker, group.group_id, decision, at_ms)
        broker.reply(request, decision.response)

    return group.write(decision.records, settled, now_ms)


def _create_topics(broker: Broker, group_id: str, decision: StreamsDecision, now_ms: int) -> None:
    """Ask for the missing topics, and add to the answer why earlier requests failed."""
    interval_ms = group_time_ms(broker, group_id, "streams.heartbeat.interval.ms")
    errors_ms = interval_ms * _HEARTBEATS_OF_AN_ERROR
    topics = broker.coordinator.internal_topics
    topics.create(decision.missing_topics, errors_ms, now_ms)
    errors = topics.errors_of(decision.missing_topics, now_ms)
    if not errors:
        return
    shown = ", ".join(f"{name} ({why})" for name, why in errors[:_ERRORS_SHOWN])
    if len(errors) > _ERRORS_SHOWN:
        shown += f" and {len(errors) - _ERRORS_SHOWN} more"
    for status in decision.response.status or ():
        if status.status_code == StreamsStatus.MISSING_INTERNAL_TOPICS:
            status.status_detail += f"; could not create {shown}"


# ----------------------------------------------------------------------------------- describe


@handles(ApiKey.STREAMS_GROUP_DESCRIBE, versions=(0, 1))
def streams_group_describe(
    broker: Broker, request: Request, now_ms: int
) -> m.StreamsGroupDescribeResponse:
    body: m.StreamsGroupDescribeRequest = request.body
    if not is_served(broker, StreamsGroup, STREAMS_VERSION):
        error = ErrorCode.UNSUPPORTED_VERSION
        return m.StreamsGroupDescribeResponse(
            groups=[_undescribed(group_id, error) for group_id in body.group_ids]
        )
    groups = []
    for group_id in body.group_ids:
        described = _described(broker, group_id)
        if body.include_authorized_operations and described.error_code == ErrorCode.NONE:
            described.authorized_operations = GROUP_OPERATIONS
        if body.include_topology_description and described.error_code == ErrorCode.NONE:
            described.topology_description_status = NOT_STORED
        groups.append(described)
    return m.StreamsGroupDescribeResponse(groups=groups)


def _described(broker: Broker, group_id: str) -> m.StreamsGroupDescribeResponse.DescribedGroup:
    if not group_id:
        return _undescribed("", ErrorCode.INVALID_GROUP_ID)
    group = broker.coordinator.modern_group(group_id, StreamsGroup, "group")
    if isinstance(group, GroupRefusal):
        return _undescribed(group_id, group.error, group.message)
    return described_group(group)


def _undescribed(
    group_id: str, error: ErrorCode, message: str | None = None
) -> m.StreamsGroupDescribeResponse.DescribedGroup:
    return m.StreamsGroupDescribeResponse.DescribedGroup(
        group_id=group_id, error_code=error, error_message=message
    )


# ------------------------------------------------------------------------ topology descriptions


@handles(ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE, versions=(0, 0))
def streams_group_topology_description_update(
    broker: Broker, _request: Request, _now_ms: int
) -> m.StreamsGroupTopologyDescriptionUpdateResponse:
    """KIP-1331: where a plugin of the broker would keep the description, there is none."""
    error = ErrorCode.UNSUPPORTED_VERSION
    message = "the broker has no plugin for topology descriptions"
    if not is_served(broker, StreamsGroup, STREAMS_VERSION):
        message = error.text
    return m.StreamsGroupTopologyDescriptionUpdateResponse(error_code=error, error_message=message)
