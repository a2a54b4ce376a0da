"""The description of a consumer group for ConsumerGroupDescribe.

Owns: the shape of that answer.  Never: changes a group.
Kafka: ConsumerGroup.asDescribedGroup, ConsumerGroupMember.asConsumerGroupDescribeMember.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from kcluster.broker.coordinator.consumer.group import ConsumerGroup
from kcluster.broker.coordinator.consumer.member import ConsumerMember
from kcluster.broker.coordinator.modern.topics import NO_PARTITIONS
from kcluster.protocol import messages as m

DescribedGroup = m.ConsumerGroupDescribeResponse.DescribedGroup
_Partitions = m.ConsumerGroupDescribeResponse.TopicPartitions
_Assignment = m.ConsumerGroupDescribeResponse.Assignment

CLASSIC_MEMBER: Final = 0
CONSUMER_MEMBER: Final = 1
"""Types of members of the protocol (v1)."""


def described_group(group: ConsumerGroup) -> DescribedGroup:
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name,
        group_epoch=group.epoch,
        assignment_epoch=group.target_epoch,
        assignor_name=group.assignor_name(),
        members=[_member(group, member) for member in group.members.values()],
    )


def _member(group: ConsumerGroup, member: ConsumerMember) -> m.ConsumerGroupDescribeResponse.Member:
    """A member's row; the partitions that it must still revoke are part of it."""
    target = group.targets.get(member.member_id, NO_PARTITIONS)
    return m.ConsumerGroupDescribeResponse.Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.topics),
        subscribed_topic_regex=member.regex,
        assignment=_assignment(group, member.assigned, member.revoking),
        target_assignment=_assignment(group, target),
        member_type=CLASSIC_MEMBER if member.is_classic else CONSUMER_MEMBER,
    )


def _assignment(group: ConsumerGroup, *parts: Mapping[bytes, Iterable[int]]) -> _Assignment:
    """The partitions that belong to existing topics, by topic."""
    names = group.broker.image.topic_names
    partitions: dict[bytes, list[int]] = {}
    for part in parts:
        for topic_id, some in part.items():
            if topic_id in names:
                partitions.setdefault(topic_id, []).extend(sorted(some))
    return _Assignment(
        topic_partitions=[
            _Partitions(topic_id=topic_id, topic_name=names[topic_id], partitions=some)
            for topic_id, some in partitions.items()
        ]
    )
