"""The range assignor: each topic's partitions in order, as even ranges over its sorted members.

Owns: that rule.  Never: keeps anything between calls.  Kafka: assignor.RangeAssignor; KIP-848.

Members that subscribe to the same topics get equal ranges of topics that have equal numbers of
partitions, so that these topics can be joined.  Static members come first, in the order of their
instance ids: the ranges stay in place when a static member is replaced.
"""

from __future__ import annotations

from kcluster.broker.coordinator.modern.assignors.assignor import GroupSpec
from kcluster.broker.coordinator.modern.topics import Assignment


def assign_ranges(group: GroupSpec) -> dict[str, Assignment]:
    """The partitions of each member."""
    members = sorted(group.members, key=lambda one: _order(group, one))
    assignment: dict[str, dict[bytes, frozenset[int]]] = {member: {} for member in members}
    for topic_id, count in group.partition_counts.items():
        subscribers = [one for one in members if topic_id in group.members[one].topic_ids]
        if not subscribers:
            continue
        quota, extra = divmod(count, len(subscribers))
        start = 0
        for index, member in enumerate(subscribers):
            end = start + quota + (index < extra)
            if start < end:
                assignment[member][topic_id] = frozenset(range(start, end))
            start = end
    return dict(assignment)


def _order(group: GroupSpec, member_id: str) -> tuple[bool, str]:
    instance_id = group.members[member_id].instance_id
    return instance_id is None, member_id if instance_id is None else instance_id
