"""The share partitions that this broker leads.

Owns: creating them at the first fetch, and dropping them with the leadership, after a failure, or
with the last session of the group.  Never: knows their records (share_partition.py).  Kafka:
SharePartitionManager, SharePartitionCache.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import final

from kcluster.broker.coordinator.share_state.persister import SharePersister
from kcluster.broker.coordinator.share_state.state import SharePartition
from kcluster.broker.ports import Outbox
from kcluster.broker.replication.replicas import Replicas
from kcluster.broker.share.configs import ShareConfigs
from kcluster.broker.share.dead_letters import DeadLetters
from kcluster.broker.share.share_partition import ShareLeader, ShareLeaderState
from kcluster.protocol.errors import ErrorCode
from kcluster.timers import Timers


@final
class SharePartitions:
    """Share partitions by group, topic id and partition."""

    def __init__(
        self,
        configs: ShareConfigs,
        timers: Timers,
        replicas: Replicas,
        persister: SharePersister,
        dead_letters: DeadLetters,
        outbox: Outbox,
    ) -> None:
        self.configs = configs
        self._timers = timers
        self._replicas = replicas
        self.persister = persister
        self._dead_letters = dead_letters
        self._outbox = outbox
        self._leaders: dict[SharePartition, ShareLeader] = {}

    def __len__(self) -> int:
        return len(self._leaders)

    def in_motion(self) -> Iterator[tuple[SharePartition, bool]]:
        """The share partitions that may deliver records later without any action of a member: (key,
        whether it is still loading).  A loaded one is listed while it has unsettled records, maybe
        locked for members that are gone."""
        for key, leader in self._leaders.items():
            if leader.state is ShareLeaderState.LOADING:
                yield key, True
            elif leader.is_active and leader.window.has_unsettled:
                yield key, False

    def get(self, key: SharePartition) -> ShareLeader | None:
        return self._leaders.get(key)

    def get_or_load(self, key: SharePartition, now_ms: int) -> ShareLeader | ErrorCode:
        """The share partition, maybe still loading; or the error if this broker does not lead
        it."""
        known = self._leaders.get(key)
        if known is not None:
            return known
        replica = self._replicas.find_by_id(key.topic_id, key.partition)
        if isinstance(replica, ErrorCode):
            return replica
        if not replica.is_leader:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        leader = self._leaders[key] = ShareLeader(
            key,
            replica,
            self.configs,
            self._timers,
            self._replicas,
            self.persister,
            self._dead_letters,
            self._outbox,
            self.remove,
        )
        leader.load(now_ms)
        return leader

    def remove(self, key: SharePartition) -> None:
        """Drop a share partition; the next fetch loads it again."""
        leader = self._leaders.pop(key, None)
        if leader is not None:
            leader.fence()

    def on_resigned(self, topic_id: bytes, partition: int) -> None:
        """Drop a share partition that this broker does not lead any more, or that was deleted."""
        self._remove_all(
            [key for key in self._leaders if key[1] == topic_id and key[2] == partition]
        )

    def remove_group(self, group_id: str) -> None:
        """Drop the share partitions of a group of which no member fetches from this broker any
        more."""
        self._remove_all([key for key in self._leaders if key.group_id == group_id])

    def _remove_all(self, keys: list[SharePartition]) -> None:
        for key in keys:
            self.remove(key)
