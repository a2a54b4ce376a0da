"""The share coordinator of one broker: finds the shard of a share partition.

Owns: the shards of __share_group_state, and the timers of their periodic work.  Never: decides
about a state (share_states.py does).
Kafka: ShareCoordinatorService.
"""

from __future__ import annotations

from collections.abc import Callable

from kcluster.broker.coordinator.interface import OnAnswer
from kcluster.broker.coordinator.shards import ShardedCoordinator
from kcluster.broker.coordinator.share_state.share_state_shard import ShareStateShard
from kcluster.broker.coordinator.share_state.share_states import Decided, ShareStates
from kcluster.broker.coordinator.share_state.state import SharePartition, ShareState
from kcluster.protocol.names import SHARE_GROUP_STATE_TOPIC


class ShareCoordinator(ShardedCoordinator[ShareStateShard]):
    """The share coordinator.  `shards`: the shards by partition of __share_group_state."""

    topic = SHARE_GROUP_STATE_TOPIC
    _has_timers = False

    @property
    def default_partitions(self) -> int:
        return self.broker.config.share_coordinator_state_topic_num_partitions

    def new_shard(self, partition: int) -> ShareStateShard:
        return ShareStateShard(self.broker, partition)

    def serve(
        self,
        partition: SharePartition,
        decide: Callable[[ShareStates], Decided],
        on_answer: OnAnswer[ShareState | None],
        now_ms: int,
    ) -> None:
        """Have the coordinator of a share partition decide, and answer with the state, if any."""
        key = partition.coordinator_key
        self.write(key, lambda shard: decide(shard.states), on_answer, now_ms)

    def on_elected(self, partition: int, now_ms: int) -> None:
        super().on_elected(partition, now_ms)
        if not self._has_timers:
            self._has_timers = True
            self._prune_later(now_ms)
            self._snapshot_later(now_ms)

    def on_topic_deleted(self, name: str, now_ms: int) -> None:
        for shard in list(self.shards.values()):
            shard.forget_deleted_topics(now_ms)

    def _prune_later(self, now_ms: int) -> None:
        def prune(at_ms: int) -> None:
            for shard in list(self.shards.values()):
                shard.prune(at_ms)
            self._prune_later(at_ms)

        interval_ms = self.broker.config.share_coordinator_state_topic_prune_interval_ms
        self.broker.timers.set(("share-state", "prune"), now_ms + interval_ms, prune)

    def _snapshot_later(self, now_ms: int) -> None:
        def snapshot(at_ms: int) -> None:
            for shard in list(self.shards.values()):
                shard.snapshot_cold(at_ms)
            self._snapshot_later(at_ms)

        interval_ms = self.broker.config.share_coordinator_cold_partition_snapshot_interval_ms
        self.broker.timers.set(("share-state", "snapshot"), now_ms + interval_ms, snapshot)
