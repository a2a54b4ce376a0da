"""The arguments and results of assignors.

Owns: these values.  Never: assigns, knows a group.  Kafka: PartitionAssignor, GroupSpec,
MemberSubscription, SubscribedTopicDescriber.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct

from kcluster.broker.coordinator.modern.topics import NO_PARTITIONS, Assignment


class MemberSpec(Struct, frozen=True):
    """A member of a group with epochs, in the form that assignors need."""

    topic_ids: tuple[bytes, ...]
    """The existing topics to which the member subscribes, in order of their names."""
    assigned: Assignment = NO_PARTITIONS
    """Its part of the last target assignment."""
    instance_id: str | None = None
    rack_id: str | None = None


class GroupSpec(Struct, frozen=True):
    """A group to assign."""

    members: Mapping[str, MemberSpec]
    partition_counts: Mapping[bytes, int]
    """The numbers of partitions of all topics that a member subscribes to."""

    @property
    def is_homogeneous(self) -> bool:
        """Whether all members subscribe to the same topics."""
        specs = iter(self.members.values())
        first = next(specs, None)
        return first is None or all(one.topic_ids == first.topic_ids for one in specs)


Assignor = Callable[[GroupSpec], dict[str, Assignment]]
"""An assignor: a group -> the partitions of each member."""
