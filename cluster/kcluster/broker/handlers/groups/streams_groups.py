"""Streams groups: StreamsGroupHeartbeat 88 (v0-1), StreamsGroupDescribe 89 (v0-1),
StreamsGroupTopologyDescriptionUpdate 93 (v0).

Owns: the checks that need no group.  Never: changes a group (coordinator/streams/ does).
Kafka: KafkaApis.handleStreamsGroupHeartbeat, handleStreamsGroupDescribe,
GroupCoordinatorService.streamsGroupHeartbeat, streamsGroupDescribe; KIP-1071, KIP-1331, KIP-1357.
Behaviour:
- heartbeats join with the topology, report tasks, acknowledge revoked tasks, and leave;
- a heartbeat is answered when its changes are on all in-sync replicas;
- missing internal topics are created after the heartbeat; if that fails, the next answers give the
reason.  Versions:
- heartbeat v1: AcceptableRecoveryLag, MISSING_CLIENT_TAGS (KAFKA-20744)
- describe v1: the assignor (KIP-1357), the topology description's status (KIP-1331)
Before 4.4 a broker refuses static members and task offsets.
Not done, as in 4.4.0: regular expressions, warmup tasks, topology updates.  Like Kafka's by
default, no broker here has a plugin for topology descriptions.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from kcluster.broker.broker import Broker
from kcluster.broker.coordinator.interface import RequestRefused, invalid
from kcluster.broker.coordinator.modern.group import JOIN_EPOCH, LEAVE_STATIC_EPOCH
from kcluster.broker.coordinator.modern.refusals import empty_field
from kcluster.broker.coordinator.streams.description import described_group
from kcluster.broker.coordinator.streams.group import StreamsGroup
from kcluster.broker.coordinator.streams.heartbeat import decide_streams_heartbeat
from kcluster.broker.coordinator.streams.topology import fixed_changelog, named_topics
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
from kcluster.protocol.features import STREAMS_VERSION
from kcluster.protocol.names import is_internal, name_problem

FIRST_WITH_STATIC_MEMBERS: Final = (4, 4)
NOT_STORED: Final = 1
"""TopologyDescriptionStatus: the group has no topology description."""


# ---------------------------------------------------------------------------------- heartbeat


@handles(ApiKey.STREAMS_GROUP_HEARTBEAT, versions=(0, 1))
def streams_group_heartbeat(
    broker: Broker, request: Request, now_ms: int
) -> m.StreamsGroupHeartbeatResponse | Parked:
    body: m.StreamsGroupHeartbeatRequest = request.body
    if not is_served(broker, StreamsGroup, STREAMS_VERSION):
        error = ErrorCode.UNSUPPORTED_VERSION
        return m.StreamsGroupHeartbeatResponse(error_code=error, error_message=error.text)
    refusal = _check_topics(body.topology) or _check_supported(broker, body) or _check(body)
    if refusal is not None:
        return refusal_of(m.StreamsGroupHeartbeatResponse, refusal)
    decide = partial(decide_streams_heartbeat, broker.coordinator.internal_topics)
    return serve_heartbeat(
        broker, request, StreamsGroup, decide, m.StreamsGroupHeartbeatResponse, now_ms
    )


def _check_topics(
    topology: m.StreamsGroupHeartbeatRequest.Topology | None,
) -> RequestRefused | None:
    """The error for names of topics that an application may not use."""
    names = [] if topology is None else named_topics(topology)
    internal = ",".join(name for name in names if is_internal(name))
    if internal:
        message = f"the topology names internal topics: {internal}"
        return RequestRefused(ErrorCode.STREAMS_INVALID_TOPOLOGY, message)
    bad_names = [name for name in names if name_problem(name) is not None]
    if bad_names:
        message = f"the topology has invalid topic names: {','.join(bad_names)}"
        return RequestRefused(ErrorCode.STREAMS_INVALID_TOPOLOGY, message)
    return None


def _check_supported(broker: Broker, body: m.StreamsGroupHeartbeatRequest) -> RequestRefused | None:
    """The error for features that the broker's release does not serve yet.  Kafka:
    throwIfStreamsGroupHeartbeatRequestIsUsingUnsupportedFeatures."""
    if broker.release.number < FIRST_WITH_STATIC_MEMBERS:
        refusal = _check_supported_before_4_4(body)
        if refusal is not None:
            return refusal
    if body.topology is not None:
        for subtopology in body.topology.subtopologies:
            if subtopology.source_topic_regex:
                return invalid("SourceTopicRegex: not served yet")
    return None


def _check_supported_before_4_4(body: m.StreamsGroupHeartbeatRequest) -> RequestRefused | None:
    if body.instance_id is not None:
        return invalid("InstanceId: streams groups have no static members yet")
    if body.task_offsets is not None:
        return invalid("TaskOffsets: not served yet")
    if body.task_end_offsets is not None:
        return invalid("TaskEndOffsets: not served yet")
    if body.warmup_tasks:
        return invalid("WarmupTasks: not served yet")
    return None


def _check(body: m.StreamsGroupHeartbeatRequest) -> RequestRefused | None:
    """The error of the request itself.  Kafka: throwIfStreamsGroupHeartbeatRequestIsInvalid."""
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
            return RequestRefused(ErrorCode.STREAMS_INVALID_TOPOLOGY, fixed)
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


# ----------------------------------------------------------------------------------- describe


@handles(ApiKey.STREAMS_GROUP_DESCRIBE, versions=(0, 1))
def streams_group_describe(
    broker: Broker, request: Request, now_ms: int
) -> m.StreamsGroupDescribeResponse:
    row = m.StreamsGroupDescribeResponse.DescribedGroup
    served = is_served(broker, StreamsGroup, STREAMS_VERSION)
    groups = describe_groups(broker, request, StreamsGroup, served, row, described_group)
    for group in groups:
        if request.body.include_topology_description and group.error_code == ErrorCode.NONE:
            group.topology_description_status = NOT_STORED
    return m.StreamsGroupDescribeResponse(groups=groups)


# ------------------------------------------------------------------------ topology descriptions


@handles(ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE, versions=(0, 0))
def streams_group_topology_description_update(
    broker: Broker, _request: Request, _now_ms: int
) -> m.StreamsGroupTopologyDescriptionUpdateResponse:
    """Refuse a topology description (KIP-1331), because no broker here has a plugin that keeps
    it."""
    error = ErrorCode.UNSUPPORTED_VERSION
    message = "the broker has no plugin for topology descriptions"
    if not is_served(broker, StreamsGroup, STREAMS_VERSION):
        message = error.text
    return m.StreamsGroupTopologyDescriptionUpdateResponse(error_code=error, error_message=message)
