"""The group coordinator of one broker: which groups it answers for, and since when.

Owns: the shards, one for each partition of __consumer_offsets that this broker leads; creating
that topic when first needed.  Never: knows what a request asks (handlers do).
Kafka: GroupCoordinatorService, CoordinatorRuntime, AutoTopicCreationManager (for internal topics).

The broker calls `on_elected` and `on_resigned` as it becomes leader of a partition and ceases to
be.  Loading takes no time here; COORDINATOR_LOAD_IN_PROGRESS is seen only by who reads offsets
before the new leader knows that all it has is committed.
"""

from __future__ import annotations

from typing import Any

from kcluster.broker.coordinator import rebalance
from kcluster.broker.coordinator.interface import CoordinatorBroker
from kcluster.broker.coordinator.placement import coordinator_partition
from kcluster.broker.coordinator.shard import GroupShard, ignore_outcome
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

    def create_topic(self, now_ms: int) -> None:
        """Ask the controller for __consumer_offsets, unless that question is on its way."""
        if self._creating_topic:
            return
        self._creating_topic = True
        config = self.broker.config
        topic = m.CreateTopicsRequest.CreatableTopic(
            name=GROUP_METADATA_TOPIC,
            num_partitions=config.offsets_topic_num_partitions,
            replication_factor=config.offsets_topic_replication_factor,
            configs=[
                m.CreateTopicsRequest.CreatableTopicConfig(name=name, value=value)
                for name, value in (
                    ("cleanup.policy", "compact"),
                    ("compression.type", "producer"),
                    ("segment.bytes", str(config.offsets_topic_segment_bytes)),
                )
            ],
        )
        timeout_ms = config.request_timeout_ms
        request = m.CreateTopicsRequest(topics=[topic], timeout_ms=timeout_ms)
        self.broker.ask_controller(request, self._on_topic_answer, timeout_ms, now_ms)

    def _on_topic_answer(self, _body: Any, _now_ms: int) -> None:
        # Whatever came of it: the client asks again, and finds the topic or makes us ask again.
        self._creating_topic = False

    # ---------------------------------------------------------------- the broker's calls

    def on_elected(self, partition: int, now_ms: int) -> None:
        """This broker leads `partition` of __consumer_offsets: load what the log says."""
        if partition in self.shards:
            return
        shard = self.shards[partition] = GroupShard(self.broker, partition)
        shard.load()
        for group in list(shard.groups.values()):
            rebalance.resume(shard, group, now_ms)
        self._expire_later(shard, now_ms)

    def on_resigned(self, partition: int, now_ms: int) -> None:
        """Another broker leads `partition`, or nobody: forget its groups, send members on."""
        shard = self.shards.pop(partition, None)
        if shard is None:
            return
        self.broker.timers.cancel(("group-expiry", partition))
        shard.close(now_ms)
        for group in shard.groups.values():
            rebalance.abandon(shard, group, now_ms)

    def on_topic_deleted(self, name: str, now_ms: int) -> None:
        """Offsets of a topic that is gone are of no use to a new one of that name."""
        for shard in list(self.shards.values()):
            tombstones = list(shard.offsets.tombstones_of_topic(name))
            if tombstones:
                shard.write(tombstones, ignore_outcome, now_ms)

    def _expire_later(self, shard: GroupShard, now_ms: int) -> None:
        def expire(at_ms: int) -> None:
            shard.expire(at_ms)
            self._expire_later(shard, at_ms)

        self.broker.timers.set(
            ("group-expiry", shard.partition),
            now_ms + self.broker.config.offsets_retention_check_interval_ms,
            expire,
        )
