"""The endpoints at which an application answers interactive queries, with their partitions.

Owns: the list in a heartbeat's answer.  Never: decides when to send it (heartbeat.py).  Kafka:
EndpointToPartitionsManager.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from kcluster.broker.coordinator.streams.configured import ConfiguredSubtopology, ConfiguredTopology
from kcluster.broker.coordinator.streams.member import StreamsMember
from kcluster.broker.coordinator.streams.tasks import Task, by_subtopology
from kcluster.metadata.image import MetadataImage
from kcluster.protocol import messages as m

if TYPE_CHECKING:
    from kcluster.protocol.messages import StreamsGroupHeartbeatResponse

    EndpointRow = StreamsGroupHeartbeatResponse.EndpointToPartitions
    TopicRow = StreamsGroupHeartbeatResponse.TopicPartition


def endpoints(
    members: Mapping[str, StreamsMember],
    updated: StreamsMember,
    configured: ConfiguredTopology,
    image: MetadataImage,
    replaced: str | None,
    is_of_4_4: bool,
) -> list[EndpointRow] | None:
    """The endpoints of all members that have one, with their partitions.  `updated`: the member of
    this heartbeat, which comes last.

    `replaced`: the id of the static member whose place that member takes.  Returns None if a member
    has an endpoint, but the topology has no tasks or a topic is gone.  Kafka fails then
    (UNKNOWN_SERVER_ERROR).
    """
    rows: list[EndpointRow] = []
    gone = (updated.member_id, replaced)
    others = (members[id_] for id_ in sorted(members) if id_ not in gone)
    for member in (*others, updated):
        endpoint = member.user_endpoint
        if endpoint is None:
            continue
        if configured.subtopologies is None:
            return None
        assigned = member.progress.assigned
        active = _partitions(assigned.active, configured.subtopologies, image, is_of_4_4)
        standby = _partitions(assigned.standby, configured.subtopologies, image, is_of_4_4)
        if active is None or standby is None:
            return None
        row = m.StreamsGroupHeartbeatResponse
        address = row.Endpoint(*endpoint)
        rows.append(row.EndpointToPartitions(address, active, standby))
    return rows


def _partitions(
    tasks: Iterable[Task],
    subtopologies: Mapping[str, ConfiguredSubtopology],
    image: MetadataImage,
    is_of_4_4: bool,
) -> list[TopicRow] | None:
    """The partitions that the tasks read; of a topic with fewer partitions than its subtopology has
    tasks, only the partitions that exist. Before 4.4 the last tasks were left out for such a topic,
    whatever their numbers."""
    row = m.StreamsGroupHeartbeatResponse.TopicPartition
    rows: list[TopicRow] = []
    for subtopology_id, partitions in by_subtopology(tasks).items():
        configured = subtopologies.get(subtopology_id)
        if configured is None:
            return None
        for name in dict.fromkeys(configured.subtopology.read_topics):
            topic = image.topics.get(name)
            if topic is None:
                return None
            count = len(topic.partitions)
            if not is_of_4_4:
                rows.append(row(name, partitions[:count]))
            elif existing := [one for one in partitions if one < count]:
                rows.append(row(name, existing))
    return rows
