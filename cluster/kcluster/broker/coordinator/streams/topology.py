"""The topology that a Kafka Streams application declares when it joins its group.

Owns: these values, made from a request or a record, and their own errors. Never: knows a topic of
the cluster (configured.py does).  Kafka: StreamsTopology, StreamsGroupTopologyValue; KIP-1071.

A subtopology is a connected part of the application.  It reads source topics and repartition
topics, writes to repartition topics of other subtopologies, and backs its state by changelogs.
Topics of a copartition group have equal numbers of partitions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec import Struct

from kcluster.protocol import messages as m

if TYPE_CHECKING:
    from kcluster.protocol.messages import StreamsGroupHeartbeatRequest, StreamsGroupTopologyValue

    HeartbeatTopology = StreamsGroupHeartbeatRequest.Topology
    AnyTopology = HeartbeatTopology | StreamsGroupTopologyValue
    AnySubtopology = (
        StreamsGroupHeartbeatRequest.Subtopology | StreamsGroupTopologyValue.Subtopology
    )
    AnyTopicInfo = StreamsGroupHeartbeatRequest.TopicInfo | StreamsGroupTopologyValue.TopicInfo


class InternalTopic(Struct, frozen=True):
    """A repartition or changelog topic, in the form that the application wants."""

    name: str
    partitions: int
    """The number of partitions; 0: the coordinator decides."""
    replication_factor: int
    """The replication factor; 0: the broker's default."""
    configs: tuple[tuple[str, str], ...]


class CopartitionGroup(Struct, frozen=True):
    """A copartition group: positions in the lists of the subtopology."""

    source_topics: tuple[int, ...]
    source_topic_regex: tuple[int, ...]
    repartition_source_topics: tuple[int, ...]


class Subtopology(Struct, frozen=True):
    """One connected part of the application."""

    subtopology_id: str
    source_topics: tuple[str, ...]
    source_topic_regex: tuple[str, ...]
    state_changelog_topics: tuple[InternalTopic, ...]
    repartition_sink_topics: tuple[str, ...]
    repartition_source_topics: tuple[InternalTopic, ...]
    copartition_groups: tuple[CopartitionGroup, ...]

    @property
    def read_topics(self) -> Iterator[str]:
        """Topics whose partitions become tasks."""
        yield from self.source_topics
        for topic in self.repartition_source_topics:
            yield topic.name

    @property
    def required_topics(self) -> Iterator[str]:
        """The topics whose partitions become tasks."""
        yield from self.read_topics
        for log in self.state_changelog_topics:
            yield log.name


class StreamsTopology(Struct, frozen=True):
    """All subtopologies, in the order of the request; each has its own id."""

    epoch: int
    subtopologies: tuple[Subtopology, ...]

    @classmethod
    def of(cls, declared: AnyTopology) -> StreamsTopology:
        """The topology of a well-formed heartbeat, or of a record."""
        return cls(declared.epoch, tuple(map(_subtopology, declared.subtopologies)))

    def same_as(self, other: StreamsTopology) -> bool:
        """Whether both declare equal topologies, in any order of subtopologies."""
        return self.epoch == other.epoch and self._by_id == other._by_id

    @property
    def _by_id(self) -> dict[str, Subtopology]:
        return {each.subtopology_id: each for each in self.subtopologies}

    @property
    def required_topics(self) -> set[str]:
        """The required topics of all subtopologies."""
        return {topic for each in self.subtopologies for topic in each.required_topics}

    @property
    def subtopology_of_topic(self) -> dict[str, str]:
        """The id of the subtopology that reads each topic."""
        return {
            topic: each.subtopology_id for each in self.subtopologies for topic in each.read_topics
        }

    def encoded(self) -> StreamsGroupTopologyValue:
        """The value of the topology's record."""
        value = m.StreamsGroupTopologyValue
        return value(
            epoch=self.epoch,
            subtopologies=[
                value.Subtopology(
                    subtopology_id=each.subtopology_id,
                    source_topics=list(each.source_topics),
                    source_topic_regex=list(each.source_topic_regex),
                    state_changelog_topics=[_encoded(t) for t in each.state_changelog_topics],
                    repartition_sink_topics=list(each.repartition_sink_topics),
                    repartition_source_topics=[_encoded(t) for t in each.repartition_source_topics],
                    copartition_groups=[
                        value.CopartitionGroup(
                            list(group.source_topics),
                            list(group.source_topic_regex),
                            list(group.repartition_source_topics),
                        )
                        for group in each.copartition_groups
                    ],
                )
                for each in self.subtopologies
            ],
        )


def _subtopology(declared: AnySubtopology) -> Subtopology:
    return Subtopology(
        subtopology_id=declared.subtopology_id,
        source_topics=tuple(declared.source_topics),
        source_topic_regex=tuple(declared.source_topic_regex),
        state_changelog_topics=tuple(map(_internal_topic, declared.state_changelog_topics)),
        repartition_sink_topics=tuple(declared.repartition_sink_topics),
        repartition_source_topics=tuple(map(_internal_topic, declared.repartition_source_topics)),
        copartition_groups=tuple(
            CopartitionGroup(
                tuple(group.source_topics),
                tuple(group.source_topic_regex),
                tuple(group.repartition_source_topics),
            )
            for group in declared.copartition_groups
        ),
    )


def _internal_topic(declared: AnyTopicInfo) -> InternalTopic:
    configs = tuple((config.key, config.value) for config in declared.topic_configs)
    return InternalTopic(declared.name, declared.partitions, declared.replication_factor, configs)


def _encoded(topic: InternalTopic) -> StreamsGroupTopologyValue.TopicInfo:
    value = m.StreamsGroupTopologyValue
    return value.TopicInfo(
        name=topic.name,
        partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        topic_configs=[value.TopicConfig(*config) for config in topic.configs],
    )


# ------------------------------------------------------------------- what needs no cluster


def named_topics(topology: HeartbeatTopology) -> list[str]:
    """Every topic of the topology once, in order of first mention."""
    names: dict[str, None] = {}
    for each in topology.subtopologies:
        names.update(dict.fromkeys(each.source_topics))
        names.update(dict.fromkeys(each.repartition_sink_topics))
        names.update(dict.fromkeys(topic.name for topic in each.repartition_source_topics))
        names.update(dict.fromkeys(topic.name for topic in each.state_changelog_topics))
    return list(names)


def is_well_formed(topology: HeartbeatTopology) -> bool:
    """Whether the epoch is not negative and each subtopology has its own id."""
    ids = {each.subtopology_id for each in topology.subtopologies}
    return topology.epoch >= 0 and len(ids) == len(topology.subtopologies)


def fixed_changelog(topology: HeartbeatTopology) -> str | None:
    """The error of a changelog whose number of partitions is set; None if there is none."""
    for each in topology.subtopologies:
        for topic in each.state_changelog_topics:
            if topic.partitions:
                return (
                    f"changelog topic {topic.name} asks for {topic.partitions} partitions; "
                    "their number must not be set"
                )
    return None
