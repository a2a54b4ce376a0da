"""The target assignment of a streams group.

Owns: `new_targets`, a function of the group's values, and the partitions of the targets.  Never:
decides when a target is due (heartbeat.py, group.py).  Kafka: TargetAssignmentBuilder.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from kcluster.broker.coordinator.streams.assignor import AssignedMember, TaskGroup, assign_tasks
from kcluster.broker.coordinator.streams.configured import ConfiguredTopology
from kcluster.broker.coordinator.streams.member import StreamsMember, TaskOffsets
from kcluster.broker.coordinator.streams.tasks import NOTHING, Tasks, by_subtopology
from kcluster.events.clients import AssignedPartitions
from kcluster.metadata.image import MetadataImage

STANDBYS: Final = "num.standby.replicas"
RACK_AWARE_TAGS: Final = "rack.aware.assignment.tags"
"""The configs of the assignment.  The second config has no effect on the assignment, as in
4.4.0."""


def new_targets(
    members: Mapping[str, StreamsMember],
    last: Mapping[str, Tasks],
    configured: ConfiguredTopology,
    configs: Iterable[tuple[str, str]],
    offsets: Mapping[str, TaskOffsets] | None,
) -> dict[str, Tasks]:
    """The targets by member.  `last`: the targets so far.  `offsets`: each member's report; None:
    the assignor of a release before 4.4.  While the topology is not ready, no member has a task."""
    if not configured.is_ready or configured.subtopologies is None:
        return dict.fromkeys(members, NOTHING)
    groups = [
        TaskGroup(id_, each.task_count, each.is_stateful)
        for id_, each in configured.subtopologies.items()
    ]
    assigned = {
        id_: AssignedMember(
            member.process_id,
            last.get(id_, NOTHING),
            None if offsets is None else offsets.get(id_, {}),
        )
        for id_, member in members.items()
    }
    return assign_tasks(assigned, groups, int(dict(configs).get(STANDBYS, "0")))


def read_partitions(
    targets: Mapping[str, Tasks], configured: ConfiguredTopology, image: MetadataImage
) -> tuple[AssignedPartitions, ...]:
    """The partitions that the members read as active tasks, topic by topic."""
    rows: list[AssignedPartitions] = []
    for member_id, target in targets.items():
        for subtopology_id, tasks in by_subtopology(target.active).items():
            assert configured.subtopologies is not None
            for name in configured.subtopologies[subtopology_id].subtopology.read_topics:
                topic = image.topics.get(name)
                count = 0 if topic is None else len(topic.partitions)
                partitions = tuple(one for one in tasks if one < count)
                rows.append(AssignedPartitions(member_id, name, partitions))
    return tuple(rows)
