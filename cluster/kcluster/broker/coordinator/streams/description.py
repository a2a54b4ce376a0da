"""The description of a streams group for StreamsGroupDescribe.

Owns: the shape of that answer.  Never: changes the group.
Kafka: StreamsGroup.asDescribedGroup, StreamsGroupMember.asStreamsGroupDescribeMember.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kcluster.broker.coordinator.streams.configured import ConfiguredSubtopology
from kcluster.broker.coordinator.streams.group import StreamsGroup
from kcluster.broker.coordinator.streams.member import StreamsMember
from kcluster.broker.coordinator.streams.tasks import NOTHING, Task, Tasks, by_subtopology
from kcluster.broker.coordinator.streams.topology import InternalTopic, Subtopology
from kcluster.protocol import messages as m

if TYPE_CHECKING:
    from kcluster.protocol.messages import StreamsGroupDescribeResponse

    Description = StreamsGroupDescribeResponse


def described_group(group: StreamsGroup) -> Description.DescribedGroup:
    """The whole group, and the topology with its numbers of partitions, once the topology is
    ready."""
    return m.StreamsGroupDescribeResponse.DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name,
        group_epoch=group.epoch,
        assignment_epoch=group.target_epoch,
        assignor_name=group.assignor_name,
        topology=_topology(group),
        members=[
            _member(member, group.targets.get(member_id, NOTHING))
            for member_id, member in group.members.items()
        ],
    )


def _topology(group: StreamsGroup) -> Description.Topology | None:
    configured = group.configured
    described = m.StreamsGroupDescribeResponse.Topology
    if configured is not None and configured.is_ready and configured.subtopologies is not None:
        rows = [_configured(each) for each in configured.subtopologies.values()]
        return described(configured.epoch, rows)
    if group.topology is None:
        return None
    by_id = sorted(group.topology.subtopologies, key=lambda each: each.subtopology_id)
    return described(group.topology.epoch, [_subtopology(each, {}) for each in by_id])


def _configured(configured: ConfiguredSubtopology) -> Description.Subtopology:
    return _subtopology(configured.subtopology, configured.partitions)


def _subtopology(each: Subtopology, partitions: dict[str, int]) -> Description.Subtopology:
    return m.StreamsGroupDescribeResponse.Subtopology(
        subtopology_id=each.subtopology_id,
        source_topics=sorted(each.source_topics),
        repartition_sink_topics=sorted(each.repartition_sink_topics),
        state_changelog_topics=_topics(each.state_changelog_topics, partitions),
        repartition_source_topics=_topics(each.repartition_source_topics, partitions),
    )


def _topics(
    topics: Iterable[InternalTopic], partitions: dict[str, int]
) -> list[Description.TopicInfo]:
    described = m.StreamsGroupDescribeResponse
    return [
        described.TopicInfo(
            name=topic.name,
            partitions=partitions.get(topic.name, topic.partitions),
            replication_factor=topic.replication_factor,
            topic_configs=[described.KeyValue(*config) for config in topic.configs],
        )
        for topic in sorted(topics, key=lambda topic: topic.name)
    ]


def _member(member: StreamsMember, target: Tasks) -> Description.Member:
    described = m.StreamsGroupDescribeResponse
    assigned, endpoint = member.progress.assigned, member.user_endpoint
    return described.Member(
        member_id=member.member_id,
        member_epoch=member.epoch,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=None if endpoint is None else described.Endpoint(*endpoint),
        client_tags=[described.KeyValue(*tag) for tag in member.client_tags],
        assignment=_assignment(assigned.active, assigned.standby, assigned.warmup),
        target_assignment=_assignment(target.active, target.standby, target.warmup),
    )


def _assignment(
    active: Iterable[Task], standby: Iterable[Task], warmup: Iterable[Task]
) -> Description.Assignment:
    described = m.StreamsGroupDescribeResponse
    rows = [
        [described.TaskIds(*each) for each in by_subtopology(role).items()]
        for role in (active, standby, warmup)
    ]
    return described.Assignment(*rows)
