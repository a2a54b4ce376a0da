"""The target assignments of share groups, against what their assignor promises.

Owns: the members that an assignment leaves without a partition.  Never: assigns
(broker/coordinator/share/assignor.py does), looks at a group that waits for its next assignment.
Kafka: SimpleAssignor; KIP-932.

Each member has at least one partition of the topics that it subscribes to, once others have some:
members share partitions if there are more members than partitions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kcluster.broker.coordinator.shard import GroupShard
from kcluster.broker.coordinator.share.group import ShareGroup
from kcluster.invariants.group_facts import Idle
from kcluster.invariants.promises import BrokenPromise
from kcluster.runtime.process import Process


class IdleMembers:
    """The members without partitions of all share groups of one run.  `look` is called from time to
    time."""

    def __init__(self, processes: Mapping[int, Process]) -> None:
        self._processes = processes
        self._found: dict[Idle, None] = {}

    def look(self) -> Iterator[tuple[int, BrokenPromise]]:
        """The idle members, each once, with the broker that coordinates their group."""
        for broker, process in self._processes.items():
            node = process.broker
            shards = {} if node is None else node.coordinator.shards
            for shard in shards.values():
                for group, idle in idle_members(shard):
                    if idle not in self._found:
                        self._found[idle] = None
                        yield broker, ("share-idle", f"group {group}", idle)


def idle_members(shard: GroupShard) -> Iterator[tuple[str, Idle]]:
    """The members without partitions of the share groups in a shard, each with its group."""
    for group in shard.groups.values():
        if not isinstance(group, ShareGroup) or group.target_epoch < group.epoch:
            continue
        topics = {topic_id for target in group.targets.values() for topic_id in target}
        for member_id, member in group.members.items():
            wanted = topics.intersection(group.subscribed_ids(member))
            if wanted and not group.targets.get(member_id):
                yield group.group_id, Idle(member_id, group.target_epoch)
