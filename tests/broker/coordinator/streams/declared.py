"""Topologies as a Kafka Streams application declares them.

    word_count = declared(
        part("0", ["lines"], sinks=["g-words"]),
        part("1", repartition=[topic("g-words")], changelogs=[topic("g-counts")]),
    )

Owns: short forms of a heartbeat's topology.  Never: sends anything.
"""

from __future__ import annotations

from kcluster.protocol import messages as m

Heartbeat = m.StreamsGroupHeartbeatRequest


def topic(
    name: str, partitions: int = 0, replication_factor: int = 0, **configs: str
) -> m.StreamsGroupHeartbeatRequest.TopicInfo:
    """An internal topic; configs with _ for a full stop."""
    pairs = [Heartbeat.KeyValue(key.replace("_", "."), value) for key, value in configs.items()]
    return Heartbeat.TopicInfo(name, partitions, replication_factor, pairs)


def part(
    subtopology_id: str,
    sources: list[str] | None = None,
    *,
    changelogs: list[m.StreamsGroupHeartbeatRequest.TopicInfo] | None = None,
    sinks: list[str] | None = None,
    repartition: list[m.StreamsGroupHeartbeatRequest.TopicInfo] | None = None,
    together: tuple[list[int], list[int]] | None = None,
) -> m.StreamsGroupHeartbeatRequest.Subtopology:
    """A subtopology.  `together`: sources and repartition topics of a copartition group."""
    groups = [] if together is None else [Heartbeat.CopartitionGroup(together[0], [], together[1])]
    return Heartbeat.Subtopology(
        subtopology_id=subtopology_id,
        source_topics=sources or [],
        state_changelog_topics=changelogs or [],
        repartition_sink_topics=sinks or [],
        repartition_source_topics=repartition or [],
        copartition_groups=groups,
    )


def declared(
    *parts: m.StreamsGroupHeartbeatRequest.Subtopology, epoch: int = 0
) -> m.StreamsGroupHeartbeatRequest.Topology:
    return Heartbeat.Topology(epoch, list(parts))
