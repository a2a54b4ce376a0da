"""Which member had a partition last, by the answers of coordinators to groups with epochs.

Owns: the last member that was told to have each partition, and the member before it.  Never: looks
into a coordinator, judges a whole request (memberships.py does).  Kafka: KIP-848, KIP-1071,
KIP-1251.

A member of a streams group has a partition by its task: task N of a subtopology has partition N of
each topic that the subtopology reads.  Requests name topics, or their ids; so partitions are kept
by the topic's name, as far as that is known.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from kcluster.invariants.group_facts import GivenAway
from kcluster.invariants.promises import forget_oldest
from kcluster.protocol import messages as m

if TYPE_CHECKING:
    from kcluster.protocol.messages import StreamsGroupHeartbeatRequest

    TaskIds = m.StreamsGroupHeartbeatResponse.TaskIds
    Topology = StreamsGroupHeartbeatRequest.Topology

TopicsOfMember = Sequence[
    m.ConsumerGroupHeartbeatRequest.TopicPartitions
    | m.ConsumerGroupHeartbeatResponse.TopicPartitions
]
_Place = tuple[str, str | bytes, int]
"""(group, topic, partition)."""
_Holder = tuple[int, str]
"""(the epoch in which it was told last to have a partition, member)."""


class Tenures:
    """The holders of partitions.  `name_of`: the name of the topic with an id, "" if there is none;
    the watch of a cluster sets it."""

    def __init__(self) -> None:
        self.name_of: Callable[[bytes], str] = lambda _: ""
        self._holders: dict[_Place, _Holder] = {}
        self._before: dict[_Place, _Holder] = {}
        """The last holder but one, which is another member."""
        self._topics_read: dict[tuple[str, str], tuple[str, ...]] = {}
        """The topics that a subtopology reads, by group and subtopology."""

    def forget(self) -> None:
        """Discard the holders: the coordinators' logs may have lost records."""
        self._holders = {}
        self._before = {}

    def forget_groups(self, groups: Collection[str]) -> None:
        """Forget the holders in groups that are deleted."""
        for holders in (self._holders, self._before):
            for place in [place for place in holders if place[0] in groups]:
                del holders[place]

    def on_topology(self, group: str, topology: Topology | None) -> None:
        """Record the topology that a member of a streams group declares."""
        for each in () if topology is None else topology.subtopologies:
            repartitioned = (one.name for one in each.repartition_source_topics)
            topics = (*each.source_topics, *repartitioned)
            self._topics_read[group, each.subtopology_id] = topics
            forget_oldest(self._topics_read)

    def on_tasks(self, group: str, member: str, epoch: int, tasks: Iterable[TaskIds]) -> None:
        """Record that a member was told its active tasks."""
        for each in tasks:
            for topic in self._topics_read.get((group, each.subtopology_id), ()):
                for partition in each.partitions:
                    self._put((group, topic, partition), (epoch, member))

    def on_partition(
        self, group: str, member: str, epoch: int, topic_id: bytes, partition: int
    ) -> None:
        """Record that a member was told to have a partition."""
        self._put((group, self.topic("", topic_id), partition), (epoch, member))

    def _put(self, place: _Place, holder: _Holder) -> None:
        known = self._holders.get(place)
        if known is not None and known[1] != holder[1]:
            self._before[place] = known
            forget_oldest(self._before)
        self._holders[place] = holder
        forget_oldest(self._holders)

    def on_replaced(self, group: str, old: str, new: str) -> None:
        """Record that a static member is back under another id: it keeps its partitions."""
        for holders in (self._holders, self._before):
            for place, (epoch, member) in holders.items():
                if member == old and place[0] == group:
                    holders[place] = (epoch, new)

    def topic(self, name: str, topic_id: bytes) -> str | bytes:
        """The key of a topic in these records; a message names the topic by its name, its id, or
        both."""
        return name or self.name_of(topic_id) or topic_id

    def owner_of(self, group: str, name: str, topic_id: bytes, partition: int) -> str | None:
        """The member that was told last to have a partition; None if it is not known."""
        holder = self._holders.get((group, self.topic(name, topic_id), partition))
        return None if holder is None else holder[1]

    def given_away(
        self, group: str, name: str, topic_id: bytes, partition: int, own: _Holder
    ) -> GivenAway | None:
        """What is broken if a commit of `own` (older epoch, member) is accepted: another member has
        the partition, or has had it since that epoch."""
        place = (group, self.topic(name, topic_id), partition)
        epoch, member = own
        holder = self._holders.get(place)
        if holder is not None and holder[1] == member:
            holder = self._before.get(place)
            if holder is not None and (holder[1] == member or holder[0] < epoch):
                holder = None
        if holder is None:
            return None
        return GivenAway(member, epoch, partition, holder[1], holder[0])


def partitions_of(topics: TopicsOfMember) -> frozenset[tuple[bytes, int]]:
    """The partitions that a heartbeat or its answer names, by the ids of their topics."""
    return frozenset((topic.topic_id, one) for topic in topics for one in topic.partitions)
