"""The uniform assignor: all partitions spread evenly, and as few of them moved as that allows.

Owns: that rule.  Never: keeps anything between calls.
Kafka: assignor.UniformAssignor, UniformHomogeneousAssignmentBuilder,
UniformHeterogeneousAssignmentBuilder; KIP-848.
"""

from __future__ import annotations

from itertools import islice
from typing import Final

from kcluster.broker.coordinator.modern.assignors.assignor import GroupSpec
from kcluster.broker.coordinator.modern.topics import Assignment

MAX_ROUNDS: Final = 16
"""The most rounds of balancing members with different subscriptions.  Kafka:
MAX_ITERATION_COUNT."""

Partition = tuple[bytes, int]
"""Topic id, partition."""


def assign_uniformly(group: GroupSpec) -> dict[str, Assignment]:
    """The partitions of each member."""
    if not group.members:
        return {}
    if group.is_homogeneous:
        return _frozen(_assign_same(group))
    return _frozen(_Heterogeneous(group).assign())


def _frozen(assignment: dict[str, list[Partition]]) -> dict[str, Assignment]:
    frozen: dict[str, Assignment] = {}
    for member_id, partitions in assignment.items():
        by_topic: dict[bytes, list[int]] = {}
        for topic_id, partition in partitions:
            by_topic.setdefault(topic_id, []).append(partition)
        frozen[member_id] = {topic_id: frozenset(some) for topic_id, some in by_topic.items()}
    return frozen


def _assigned(group: GroupSpec, member_id: str) -> list[Partition]:
    """The partitions that a member has of its subscribed topics, in order."""
    spec = group.members[member_id]
    return [
        (topic_id, partition)
        for topic_id in spec.topic_ids
        for partition in sorted(spec.assigned.get(topic_id, ()))
        if partition < group.partition_counts[topic_id]
    ]


# ------------------------------------------------------------------------------ same subscriptions


def _assign_same(group: GroupSpec) -> dict[str, list[Partition]]:
    """Each member keeps its partitions, up to its quota; then members below theirs get the rest."""
    count = sum(group.partition_counts.values())
    quota, extra = divmod(count, len(group.members))
    owned: set[Partition] = set()
    kept: dict[str, list[Partition]] = {}
    unfilled: list[tuple[str, int]] = []
    left = len(group.members)
    for member_id in group.members:
        limit = quota + (extra > 0)
        keeps = [one for one in _assigned(group, member_id) if one not in owned][:limit]
        kept[member_id] = keeps
        owned.update(keeps)
        if len(keeps) < limit and extra > 0 and left > extra:
            limit -= 1  # the extra partition is for a later member that has one, or takes it
        if len(keeps) < limit:
            unfilled.append((member_id, limit - len(keeps)))
        if limit > quota:
            extra -= 1
        left -= 1
    unassigned = iter(_unowned(group, owned))
    for member_id, missing in unfilled:
        kept[member_id].extend(islice(unassigned, missing))
    return kept


def _unowned(group: GroupSpec, owned: set[Partition]) -> list[Partition]:
    return [
        (topic_id, partition)
        for topic_id, count in group.partition_counts.items()
        for partition in range(count)
        if (topic_id, partition) not in owned
    ]


# ------------------------------------------------------------------------- different subscriptions


class _Heterogeneous:
    """Members keep their partitions; the rest goes to the least loaded subscriber; then partitions
    move from members with more to members with fewer, while this makes the spread smaller."""

    def __init__(self, group: GroupSpec) -> None:
        self.group = group
        self.owners: dict[Partition, str] = {}
        self.sizes = dict.fromkeys(group.members, 0)
        self.subscribers: dict[bytes, list[str]] = {}
        for member_id, spec in group.members.items():
            for topic_id in spec.topic_ids:
                self.subscribers.setdefault(topic_id, []).append(member_id)
        self.topics = sorted(self.subscribers, key=self._topic_order)

    def _topic_order(self, topic_id: bytes) -> tuple[float, int, bytes]:
        """Topics with most partitions per subscriber first: they leave the least choice."""
        subscribers = len(self.subscribers[topic_id])
        return -self.group.partition_counts[topic_id] / subscribers, subscribers, topic_id

    def assign(self) -> dict[str, list[Partition]]:
        for member_id in self.group.members:
            for partition in _assigned(self.group, member_id):
                if partition not in self.owners:
                    self._give(partition, member_id)
        for topic_id in self.topics:
            for index in range(self.group.partition_counts[topic_id]):
                if (topic_id, index) not in self.owners:
                    self._give((topic_id, index), self._least_loaded(topic_id))
        for _ in range(MAX_ROUNDS):
            if not self._balance():
                break
        assignment: dict[str, list[Partition]] = {member_id: [] for member_id in self.group.members}
        for partition, owner in self.owners.items():
            assignment[owner].append(partition)
        return assignment

    def _give(self, partition: Partition, member_id: str) -> None:
        previous = self.owners.get(partition)
        if previous is not None:
            self.sizes[previous] -= 1
        self.owners[partition] = member_id
        self.sizes[member_id] += 1

    def _least_loaded(self, topic_id: bytes) -> str:
        return min(self.subscribers[topic_id], key=self.sizes.__getitem__)

    def _balance(self) -> bool:
        """Do one round over all partitions; returns whether any moved."""
        moved = False
        for topic_id in self.topics:
            for index in range(self.group.partition_counts[topic_id]):
                owner = self.owners[topic_id, index]
                least = self._least_loaded(topic_id)
                if self.sizes[owner] > self.sizes[least] + 1:
                    self._give((topic_id, index), least)
                    moved = True
        return moved
