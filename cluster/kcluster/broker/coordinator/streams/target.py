"""The target assignment of a streams group: who should have what, and the records that say so.

Owns: `NewTarget`, a function of the group's values, and the partitions that it stands for.  Never:
decides when a target is due (heartbeat.py, group.py).  Kafka: TargetAssignmentBuilder.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct

from kcluster.broker.coordinator.group_log import LogRecord
from kcluster.broker.coordinator.streams.assignor import AssignedMember, TaskGroup, assign_tasks
from kcluster.broker.coordinator.streams.configured import ConfiguredTopology
from kcluster.broker.coordinator.streams.member import StreamsMember, TaskOffsets
from kcluster.broker.coordinator.streams.records import (
    StreamsMemberTargetRecord,
    StreamsTargetRecord,
    TargetMetadata,
)
from kcluster.broker.coordinator.streams.tasks import NOTHING, Tasks, by_subtopology
from kcluster.events.clients import AssignedPartitions
from kcluster.metadata.image import MetadataImage

STANDBYS: Final = "num.standby.replicas"
RACK_AWARE_TAGS: Final = "rack.aware.assignment.tags"
"""The configs of the assignment.  The second has no effect on it, as in 4.4.0."""


class NewTarget(Struct, frozen=True):
    """A target assignment that has been computed."""

    targets: dict[str, Tasks]
    """By member."""
    records: list[LogRecord]
    """Those that change the last target into this one."""


def new_target(
    group_id: str,
    members: Mapping[str, StreamsMember],
    last: Mapping[str, Tasks],
    configured: ConfiguredTopology,
    configs: Iterable[tuple[str, str]],
    metadata: TargetMetadata,
    offsets: Mapping[str, TaskOffsets] | None,
) -> NewTarget:
    """`last`: the targets so far.  `offsets`: by member, as reported; None: the assignor is of a
    release before 4.4.  While the topology is not ready nobody has a task."""
    targets = dict.fromkeys(members, NOTHING)
    if configured.is_ready and configured.subtopologies is not None:
        groups = [
            TaskGroup(id_, each.task_count, each.is_stateful)
            for id_, each in configured.subtopologies.items()
        ]
        assigned = {
            id_: AssignedMember(
                member.details.process_id,
                last.get(id_, NOTHING),
                None if offsets is None else offsets.get(id_, {}),
            )
            for id_, member in members.items()
        }
        targets = assign_tasks(assigned, groups, int(dict(configs).get(STANDBYS, "0")))
    records: list[LogRecord] = [
        StreamsMemberTargetRecord(group_id, id_, target)
        for id_, target in targets.items()
        if last.get(id_) != target
    ]
    records.append(StreamsTargetRecord(group_id, metadata))
    return NewTarget(targets, records)


def read_partitions(
    targets: Mapping[str, Tasks], configured: ConfiguredTopology, image: MetadataImage
) -> tuple[AssignedPartitions, ...]:
    """What the members read as active tasks, topic by topic."""
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
