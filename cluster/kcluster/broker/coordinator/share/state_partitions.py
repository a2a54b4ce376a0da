"""The share partitions of a group that have a state, or are about to get one.

Owns: `StatePartitions`, its changes and its record.  Never: has a state initialized
(group.py does), keeps one (share_state/ does).
Kafka: ShareGroup.ShareGroupStatePartitionMetadataInfo, GroupMetadataManager.combineInitMaps.

    initializing   the persister is asked, and asked again after
                   group.share.initialize.retry.interval.ms
    initialized    may be assigned to members
    deleting       the persister has been asked to delete the states of a topic
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from kcluster.broker.coordinator.modern.records import ShareGroupStatePartitionMetadata
from kcluster.broker.coordinator.modern.topics import Assignment
from kcluster.metadata.image import MetadataImage
from kcluster.protocol import messages as m

if TYPE_CHECKING:
    from kcluster.protocol.messages import ShareGroupStatePartitionMetadataValue

    TopicPartitionsInfo = ShareGroupStatePartitionMetadataValue.TopicPartitionsInfo

UNKNOWN_NAME = "<UNKNOWN>"
"""The name of a topic that no longer exists."""


class TopicStates(Struct, frozen=True):
    """Partitions of one topic."""

    name: str
    partitions: frozenset[int]


Topics = Mapping[bytes, TopicStates]
"""Topic states by topic id."""


class StatePartitions(Struct, frozen=True):
    """The share partitions of a group."""

    initializing: Topics = {}
    initialized: Topics = {}
    deleting: frozenset[bytes] = frozenset()
    """The ids of the topics whose states are being deleted."""

    @property
    def assignable(self) -> Assignment:
        return {topic_id: one.partitions for topic_id, one in self.initialized.items()}

    def missing(self, image: MetadataImage, names: Iterable[str], retries: bool) -> Topics:
        """The partitions of these topics that are not initialized.  `retries`: including partitions
        that are initializing."""
        known = self.initialized if retries else _united(self.initialized, self.initializing)
        found: dict[bytes, TopicStates] = {}
        for name in names:
            topic = image.topics.get(name)
            if topic is None:
                continue
            of_topic = known.get(topic.topic_id)
            every = frozenset(range(len(topic.partitions)))
            left = every if of_topic is None else every - of_topic.partitions
            if left:
                found[topic.topic_id] = TopicStates(name, left)
        return found

    # --------------------------------------------------------------------------- changes

    def with_initializing(self, topics: Topics) -> StatePartitions:
        """The value with these share partitions initializing, before a request to the persister."""
        initializing = _united(self.initializing, topics)
        return replace(
            self, initializing=initializing, deleting=self.deleting.difference(initializing)
        )

    def with_initialized(self, topics: Topics) -> StatePartitions:
        """The value with these share partitions initialized by the persister."""
        return StatePartitions(
            initializing=_without(self.initializing, topics),
            initialized=_united(self.initialized, topics),
            deleting=self.deleting,
        )

    def without_initializing(self, topics: Topics) -> StatePartitions:
        """The value without these share partitions, which the persister could not initialize."""
        return replace(self, initializing=_without(self.initializing, topics))

    def all_deleting(self, image: MetadataImage) -> tuple[StatePartitions, Assignment]:
        """(the value with all topics as deleting, the share partitions to delete), for the deletion
        of the group; includes topics of an earlier attempt."""
        topics = dict(_united(self.initialized, self.initializing))
        for topic_id in sorted(self.deleting):
            topic = image.topic_by_id(topic_id)
            if topic is not None:
                every = TopicStates(topic.name, frozenset(range(len(topic.partitions))))
                topics = dict(_united(topics, {topic_id: every}))
        changed = StatePartitions(deleting=frozenset(topics))
        return changed, {topic_id: one.partitions for topic_id, one in topics.items()}

    def without_topics(self, topic_ids: Iterable[bytes]) -> StatePartitions:
        """The value without these topics, which no longer exist."""
        gone = frozenset(topic_ids)
        return StatePartitions(
            initializing={key: one for key, one in self.initializing.items() if key not in gone},
            initialized={key: one for key, one in self.initialized.items() if key not in gone},
            deleting=self.deleting - gone,
        )

    @property
    def topic_ids(self) -> frozenset[bytes]:
        return self.deleting.union(self.initializing, self.initialized)

    # ------------------------------------------------------------------------ its record

    def record(self, group_id: str, image: MetadataImage) -> ShareGroupStatePartitionMetadata:
        kind = m.ShareGroupStatePartitionMetadataValue

        def infos(topics: Topics) -> list[TopicPartitionsInfo]:
            return [
                kind.TopicPartitionsInfo(topic_id, one.name, sorted(one.partitions))
                for topic_id, one in topics.items()
            ]

        value = kind(
            initializing_topics=infos(self.initializing),
            initialized_topics=infos(self.initialized),
            deleting_topics=[
                kind.TopicInfo(topic_id, image.topic_names.get(topic_id, UNKNOWN_NAME))
                for topic_id in sorted(self.deleting)
            ],
        )
        return ShareGroupStatePartitionMetadata(group_id, value)


def state_partitions_of(value: m.ShareGroupStatePartitionMetadataValue) -> StatePartitions:
    """The share partitions in a record."""

    def topics(infos: Iterable[TopicPartitionsInfo]) -> Topics:
        return {
            info.topic_id: TopicStates(info.topic_name, frozenset(info.partitions))
            for info in infos
        }

    return StatePartitions(
        initializing=topics(value.initializing_topics),
        initialized=topics(value.initialized_topics),
        deleting=frozenset(info.topic_id for info in value.deleting_topics),
    )


def _united(first: Topics, second: Topics) -> Topics:
    """The partitions of both arguments, by topic id."""
    united = dict(first)
    for topic_id, one in second.items():
        before = united.get(topic_id)
        partitions = one.partitions if before is None else before.partitions | one.partitions
        united[topic_id] = replace(one, partitions=partitions)
    return united


def _without(topics: Topics, removed: Topics) -> Topics:
    left: dict[bytes, TopicStates] = {}
    for topic_id, one in topics.items():
        gone = removed.get(topic_id)
        partitions = one.partitions if gone is None else one.partitions - gone.partitions
        if partitions:
            left[topic_id] = replace(one, partitions=partitions)
    return left
