"""Groups that become groups of the other protocol, and what their members have then.

Owns: the partitions that the members of each consumer group, and of each stable classic group,
had at the last look.  Never: converts a group (broker/coordinator/consumer/migration.py does),
judges a group that rebalances, or that waits for its next assignment.  Kafka:
GroupMetadataManager.{convertToClassicGroup, convertToConsumerGroup}; KIP-848.

    partition-dropped    a group has become classic, or a group with epochs, and its first
                         assignment after that gives no member a partition that one had before

A group that becomes classic since its last member with epochs is gone rebalances, unless a classic
member has taken the place of that member with all its partitions.  Until then its generation is the
epoch of the group before.  A group with epochs has a new target assignment for every new epoch.
Only what one coordinator does in one term is compared, as the next coordinator does not begin the
rebalance that its predecessor had begun.
"""

from __future__ import annotations

from collections.abc import Iterator

from kcluster.broker.coordinator.classic_group import ClassicGroup, ClassicGroupState
from kcluster.broker.coordinator.consumer.group import ConsumerGroup
from kcluster.broker.coordinator.group import Group
from kcluster.broker.coordinator.shard import GroupShard
from kcluster.broker.node_view import BrokerNodeView
from kcluster.invariants.group_facts import Dropped
from kcluster.invariants.promises import BrokenPromise
from kcluster.metadata.image import MetadataImage
from kcluster.structs import Frozen

_Partitions = frozenset[tuple[bytes, int]]


class _SeenGroup(Frozen, frozen=True):
    """A group at a look.  `shard`: its coordinator in one term; `number`: its epoch or generation;
    `members`: the ids of its members; `had`: their partitions."""

    shard: GroupShard
    is_classic: bool
    number: int
    members: frozenset[str]
    had: _Partitions


class GroupKinds:
    """The groups of one run that may be of either protocol.  `look` is called from time to time for
    each running broker."""

    def __init__(self) -> None:
        self._seen: dict[int, dict[str, _SeenGroup]] = {}
        """By broker and group."""

    def look(self, node: BrokerNodeView) -> Iterator[BrokenPromise]:
        """The groups of one broker that have lost partitions since the last look, each with its
        first lost partition."""
        before = self._seen.get(node.node_id, {})
        now = self._seen[node.node_id] = {}
        for shard in node.coordinator.shards.values():
            for group_id, group in shard.groups.items():
                known = before.get(group_id)
                if known is not None and _is_unchanged(known, shard, group):
                    now[group_id] = known
                    continue
                seen = _seen(shard, group, node.image)
                if seen is None:
                    if known is not None and known.shard is shard:
                        now[group_id] = known
                    continue
                now[group_id] = seen
                if known is not None and _is_converted(known, seen):
                    lost = min(_wanted(group, known.had, node.image) - seen.had, default=None)
                    if lost is not None:
                        fact = Dropped(lost[1], seen.number, seen.is_classic)
                        yield "partition-dropped", f"group {group_id}", fact

    def forget(self, broker: int) -> None:
        """Discard the groups of a broker that is not running."""
        self._seen.pop(broker, None)


def _is_unchanged(known: _SeenGroup, shard: GroupShard, group: Group) -> bool:
    """Whether a group is as it was seen: its members get other partitions in a new epoch, or
    generation, only."""
    if known.shard is not shard:
        return False
    if isinstance(group, ClassicGroup):
        return known.is_classic and known.number == group.roster.generation
    return isinstance(group, ConsumerGroup) and not known.is_classic and known.number == group.epoch


def _seen(shard: GroupShard, group: Group, image: MetadataImage) -> _SeenGroup | None:
    """A group whose members have what they should have; None for any other group."""
    if isinstance(group, ClassicGroup):
        if group.state is not ClassicGroupState.STABLE or not group.roster.are_consumers:
            return None
        assigned = group.roster.assigned_partitions()
        had = frozenset(
            (image.topics[one.topic].topic_id, number)
            for one in assigned
            if one.topic in image.topics
            for number in one.partitions
        )
        members = frozenset(group.roster.members)
        return _SeenGroup(shard, True, group.roster.generation, members, had)
    if not isinstance(group, ConsumerGroup) or group.target_epoch < group.epoch:
        return None
    had = frozenset(
        (topic_id, number)
        for target in group.targets.values()
        for topic_id, numbers in target.items()
        for number in numbers
    )
    return _SeenGroup(shard, False, group.epoch, frozenset(group.members), had)


def _is_converted(before: _SeenGroup, now: _SeenGroup) -> bool:
    """Whether a group has become one of the other protocol since the last look, and nothing else
    has happened to it that may take partitions from its members."""
    if before.shard is not now.shard or before.is_classic is now.is_classic:
        return False
    if not before.members & now.members:
        return False  # a new group with the name of one that was deleted
    return before.is_classic or now.number == before.number


def _wanted(group: Group, had: _Partitions, image: MetadataImage) -> _Partitions:
    """Of these partitions, those of topics that still exist and that the group reads."""
    names = image.topic_names
    return frozenset(
        (topic_id, number)
        for topic_id, number in had
        if topic_id in names and group.is_subscribed_to(names[topic_id])
    )
