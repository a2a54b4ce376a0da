"""The group coordinator of one broker: finds the shard and the group of a request.

Owns: the shards, one for each partition of __consumer_offsets that this broker leads; creating
that topic when first needed.  Never: changes a group (the group's own class does).
Kafka: GroupCoordinatorService, CoordinatorRuntime, AutoTopicCreationManager (for internal topics).

The broker calls `on_elected` and `on_resigned` when it becomes leader of a partition and when it
ceases to be.  Loading takes no time here; COORDINATOR_LOAD_IN_PROGRESS is returned only to reads of
offsets before the new leader knows that everything it has is committed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kcluster.broker.auto_topics import auto_created_topic
from kcluster.broker.coordinator.classic_group import ClassicGroup
from kcluster.broker.coordinator.group import Group
from kcluster.broker.coordinator.interface import CoordinatorBroker, Settled
from kcluster.broker.coordinator.shard import GroupShard
from kcluster.metadata.placement import coordinator_partition
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.names import GROUP_METADATA_TOPIC


class GroupCoordinator:
    """`shards` by partition of __consumer_offsets: only those that this broker leads."""

    def __init__(self, broker: CoordinatorBroker) -> None:
        self.broker = broker
        self.shards: dict[int, GroupShard] = {}
        self._creating_topic = False

    # ------------------------------------------------------------------- who coordinates

    def partition_for(self, group_id: str) -> int:
        """Partition of __consumer_offsets whose leader coordinates `group_id`."""
        topic = self.broker.image.topics.get(GROUP_METADATA_TOPIC)
        count = (
            self.broker.config.offsets_topic_num_partitions
            if topic is None
            else len(topic.partitions)
        )
        return coordinator_partition(group_id, count)

    def shard_for(self, group_id: str) -> GroupShard | ErrorCode:
        """The shard that has `group_id`, or NOT_COORDINATOR."""
        shard = self.shards.get(self.partition_for(group_id))
        return ErrorCode.NOT_COORDINATOR if shard is None else shard

    def named_shard(self, group_id: str) -> GroupShard | ErrorCode:
        """As above, for requests that must name a group."""
        return self.shard_for(group_id) if group_id else ErrorCode.INVALID_GROUP_ID

    # ---------------------------------------------------------------------------- groups

    @property
    def groups(self) -> Iterator[Group]:
        """All groups that this broker coordinates."""
        return (group for shard in self.shards.values() for group in shard.groups.values())

    def group(self, group_id: str) -> Group | ErrorCode:
        """The group, of whatever kind; NOT_COORDINATOR or GROUP_ID_NOT_FOUND."""
        shard = self.shard_for(group_id)
        if isinstance(shard, ErrorCode):
            return shard
        return shard.groups.get(group_id, ErrorCode.GROUP_ID_NOT_FOUND)

    def classic_group(self, group_id: str) -> ClassicGroup | ErrorCode:
        """The group of a classic member; UNKNOWN_MEMBER_ID if there is no classic group."""
        if not group_id:
            return ErrorCode.INVALID_GROUP_ID
        group = self.group(group_id)
        if isinstance(group, ClassicGroup) or group is ErrorCode.NOT_COORDINATOR:
            return group
        return ErrorCode.UNKNOWN_MEMBER_ID

    def joined_group(self, group_id: str, member_id: str, now_ms: int) -> ClassicGroup | ErrorCode:
        """As above, for JoinGroup: without a member id the group is created if need be."""
        group = self.classic_group(group_id)
        if group is not ErrorCode.UNKNOWN_MEMBER_ID or member_id:
            return group
        shard = self.shards[self.partition_for(group_id)]
        if group_id in shard.groups:
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL  # a group of another kind
        created = ClassicGroup(group_id, shard, created_ms=now_ms, is_new=True)
        shard.groups[group_id] = created
        return created

    def delete_group(self, group_id: str, on_settled: Settled, now_ms: int) -> None:
        """Call `on_settled` when the last tombstone is committed, or with the reason for a
        refusal."""
        group = self.group(group_id)
        error = group if isinstance(group, ErrorCode) else group.check_deletion()
        if isinstance(group, ErrorCode) or error is not ErrorCode.NONE:
            on_settled(error, now_ms)
            return
        self.shards[self.partition_for(group_id)].delete_group(group, on_settled, now_ms)

    # ----------------------------------------------------------------------------- topic

    def create_topic(self, now_ms: int) -> None:
        """Ask the controller for __consumer_offsets, unless that request is in flight."""
        if self._creating_topic:
            return
        self._creating_topic = True
        config = self.broker.config
        topic = auto_created_topic(GROUP_METADATA_TOPIC, config)
        timeout_ms = config.request_timeout_ms
        request = m.CreateTopicsRequest(topics=[topic], timeout_ms=timeout_ms)
        self.broker.ask_controller(request, self._on_topic_answer, timeout_ms, now_ms)

    def _on_topic_answer(self, _body: Any, _now_ms: int) -> None:
        # Ignore the result: the client asks again, and either finds the topic or triggers a new
        # request.
        self._creating_topic = False

    # ---------------------------------------------------------------- the broker's calls

    def on_elected(self, partition: int, now_ms: int) -> None:
        """This broker leads `partition` of __consumer_offsets: load its log."""
        if partition in self.shards:
            return
        shard = self.shards[partition] = GroupShard(self.broker, partition)
        shard.load(now_ms)

    def on_resigned(self, partition: int, now_ms: int) -> None:
        """Another broker leads `partition`, or none does: forget its groups."""
        shard = self.shards.pop(partition, None)
        if shard is not None:
            shard.unload(now_ms)

    def on_topic_deleted(self, name: str, now_ms: int) -> None:
        for shard in list(self.shards.values()):
            shard.forget_topic(name, now_ms)
