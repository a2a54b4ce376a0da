"""The group coordinator of one broker: finds the shard and the group of a request.

Owns: which group a request is for, and making it.  Never: changes a group (the group's own class
does), has its own way to the log (shards.py, log_shard.py).
Kafka: GroupCoordinatorService.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from kcluster.broker.coordinator.classic_group import ClassicGroup
from kcluster.broker.coordinator.group import ClassicSide, Group
from kcluster.broker.coordinator.group_kinds import CLASSIC_SIDE
from kcluster.broker.coordinator.interface import (
    A,
    CoordinatorBroker,
    CoordinatorResult,
    OnAnswer,
    RequestRefused,
    Settled,
)
from kcluster.broker.coordinator.modern.group import ModernGroup, ToJoin
from kcluster.broker.coordinator.shard import GroupShard
from kcluster.broker.coordinator.shards import ShardedCoordinator
from kcluster.broker.coordinator.streams.internal_topics import InternalTopics
from kcluster.contract import Request
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.names import GROUP_METADATA_TOPIC

G = TypeVar("G", bound=ModernGroup[Any, Any])


class GroupCoordinator(ShardedCoordinator[GroupShard]):
    """`shards` by partition of __consumer_offsets."""

    topic = GROUP_METADATA_TOPIC

    def __init__(self, broker: CoordinatorBroker) -> None:
        super().__init__(broker)
        self.internal_topics = InternalTopics(broker)
        """Of streams groups."""

    @property
    def default_partitions(self) -> int:
        return self.broker.config.offsets_topic_num_partitions

    def new_shard(self, partition: int) -> GroupShard:
        return GroupShard(self.broker, partition)

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

    def classic_group(self, group_id: str) -> ClassicSide | ErrorCode:
        """The group of a classic member; UNKNOWN_MEMBER_ID if there is none that has such."""
        if not group_id:
            return ErrorCode.INVALID_GROUP_ID
        group = self.group(group_id)
        if isinstance(group, ErrorCode):
            missing = group is ErrorCode.GROUP_ID_NOT_FOUND
            return ErrorCode.UNKNOWN_MEMBER_ID if missing else group
        side_of = CLASSIC_SIDE.get(type(group))
        return ErrorCode.UNKNOWN_MEMBER_ID if side_of is None else side_of(group)

    def joined_group(self, group_id: str, member_id: str, now_ms: int) -> ClassicSide | ErrorCode:
        """As above, for JoinGroup: without a member id the group is created if need be, also in the
        place of an empty group of another kind."""
        if not group_id:
            return ErrorCode.INVALID_GROUP_ID
        shard = self.shard_for(group_id)
        if isinstance(shard, ErrorCode):
            return shard
        current = shard.groups.get(group_id)
        if current is not None and (current.kind == ClassicGroup.kind or not current.is_unused):
            side = self.classic_group(group_id)
            if side is ErrorCode.UNKNOWN_MEMBER_ID:
                return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
            return side
        if current is not None and not current.yields_to_classic:
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        if member_id:
            return ErrorCode.UNKNOWN_MEMBER_ID
        created = ClassicGroup(group_id, shard, now_ms, True, current)
        shard.groups[group_id] = created
        return created

    def modern_group(
        self, group_id: str, kind: type[G], noun: str | None = None
    ) -> G | RequestRefused:
        """The group of a member that has joined it; `noun`: what it is called if it is missing."""
        shard = self.shard_for(group_id)
        if isinstance(shard, ErrorCode):
            return RequestRefused(shard)
        return kind.find(shard.groups.get(group_id), group_id, noun)

    def modern_group_to_join(
        self, group_id: str, kind: type[G], now_ms: int
    ) -> ToJoin[G] | RequestRefused:
        """The group of a member that joins; made or converted when the records are written."""
        shard = self.shard_for(group_id)
        if isinstance(shard, ErrorCode):
            return RequestRefused(shard)
        return kind.find_to_join(shard.groups.get(group_id), group_id, shard, now_ms)

    def heartbeat(
        self,
        kind: type[G],
        decide: Callable[[ToJoin[G], Request, int], CoordinatorResult[A] | RequestRefused],
        request: Request,
        on_answer: OnAnswer[A],
        now_ms: int,
    ) -> None:
        """One heartbeat of a member that joins, stays, or leaves."""
        group_id, member_epoch = request.body.group_id, request.body.member_epoch
        shard = self.shard_for(group_id)
        if isinstance(shard, ErrorCode):
            on_answer(RequestRefused(shard), now_ms)
            return
        current = shard.groups.get(group_id)
        found = kind.find_for_heartbeat(current, group_id, shard, member_epoch, now_ms)
        decided = found if isinstance(found, RequestRefused) else decide(found, request, now_ms)
        shard.write(decided, on_answer, now_ms)

    def delete_group(self, group_id: str, on_settled: Settled, now_ms: int) -> None:
        """Call `on_settled` when the last tombstone is committed, or with the reason for a
        refusal."""
        group = self._deletable_group(group_id)
        if isinstance(group, ErrorCode):
            on_settled(group, now_ms)
            return

        def ready(error: ErrorCode, at_ms: int) -> None:
            if error is ErrorCode.NONE:
                self._delete_prepared(group_id, on_settled, at_ms)
            else:
                on_settled(error, at_ms)

        group.prepare_deletion(ready, now_ms)

    def _deletable_group(self, group_id: str) -> Group | ErrorCode:
        """The group, if it may be deleted now."""
        group = self.group(group_id)
        error = group if isinstance(group, ErrorCode) else group.check_deletion()
        return group if error is ErrorCode.NONE else error

    def _delete_prepared(self, group_id: str, on_settled: Settled, now_ms: int) -> None:
        """It may have changed since."""
        group = self._deletable_group(group_id)
        if isinstance(group, ErrorCode):
            on_settled(group, now_ms)
        else:
            self.shards[self.partition_for(group_id)].delete_group(group, on_settled, now_ms)

    def on_topic_deleted(self, name: str, now_ms: int) -> None:
        for shard in list(self.shards.values()):
            shard.forget_topic(name, now_ms)
