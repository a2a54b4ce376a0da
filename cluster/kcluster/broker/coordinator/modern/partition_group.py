"""A group with epochs whose members are assigned partitions: a consumer group, or a share group.

Owns: the form of a target of partitions in records and events, the ids of subscribed topics.
Never: assigns them (a kind's group does).
Kafka: ModernGroup, Assignment.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kcluster.broker.coordinator.modern.group import M, ModernGroup
from kcluster.broker.coordinator.modern.topics import NO_PARTITIONS, Assignment, topic_ids
from kcluster.events.clients import AssignedPartitions


class PartitionGroup(ModernGroup[M, Assignment]):
    """A group with epochs that assigns partitions; M: its class of members."""

    nothing = NO_PARTITIONS

    @abstractmethod
    def names_of(self, member: M) -> Iterable[str]:
        """The topics that a member subscribes to."""

    def subscribed_ids(self, member: M) -> tuple[bytes, ...]:
        """The ids of these topics, if they exist, in order of their names."""
        return tuple(topic_ids(self.broker.image, self.names_of(member)))

    def read_target(self, value: Any) -> Assignment:
        return {entry.topic_id: frozenset(entry.partitions) for entry in value.topic_partitions}

    def written_target(self, target: Assignment) -> Any:
        message = self.record_types.target_member.value_type()
        return message(
            topic_partitions=[
                message.TopicPartition(topic_id, sorted(partitions))
                for topic_id, partitions in target.items()
            ]
        )

    def assigned_partitions(
        self, targets: Mapping[str, Assignment]
    ) -> Iterator[AssignedPartitions]:
        names = self.broker.image.topic_names
        for member_id, target in targets.items():
            for topic_id, partitions in target.items():
                if topic_id in names:
                    rows = tuple(sorted(partitions))
                    yield AssignedPartitions(member_id, names[topic_id], rows)
