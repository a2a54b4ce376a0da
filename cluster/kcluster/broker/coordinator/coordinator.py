"""The group coordinator of one broker: what it does on each request about a group.

Owns: finding the shard and the group of a request, creating a group, and the order: the group
decides, its shard writes, the sender is answered.  Handlers have no other access to groups.  Never:
changes a group (the group's own class does), has its own way to the log (shards.py, log_shard.py),
knows a version of a request.
Kafka: GroupCoordinator, GroupCoordinatorService.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

from kcluster.broker.coordinator.classic_calls import leave_answer, refuse_join
from kcluster.broker.coordinator.classic_group import ClassicGroup
from kcluster.broker.coordinator.group import ClassicSide, Committer, Group, GroupView
from kcluster.broker.coordinator.group_kinds import CLASSIC_SIDE
from kcluster.broker.coordinator.group_log import OffsetRecord
from kcluster.broker.coordinator.interface import (
    A,
    CoordinatorBroker,
    CoordinatorResult,
    OnAnswer,
    RequestRefused,
    Settled,
)
from kcluster.broker.coordinator.modern.group import AnyModernGroup, ToJoin
from kcluster.broker.coordinator.offsets import GroupOffsets
from kcluster.broker.coordinator.shard import GroupShard
from kcluster.broker.coordinator.shards import ShardedCoordinator
from kcluster.broker.coordinator.share.group import ShareGroup
from kcluster.broker.coordinator.share.offsets import (
    OnAltered,
    OnDeleted,
    alter_failed,
    alter_offsets,
    delete_failed,
    delete_offsets,
)
from kcluster.broker.coordinator.share_state.state import SharePartition
from kcluster.broker.coordinator.streams.internal_topics import InternalTopics
from kcluster.broker.coordinator.transactions.transaction import ProducerIdentity
from kcluster.contract import Request
from kcluster.partition.producers import ProducerStates, Verification
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.names import GROUP_METADATA_TOPIC
from kcluster.protocol.records.markers import Marker

if TYPE_CHECKING:
    from kcluster.broker.coordinator.group import MemberIdentity, MemberResponse

G = TypeVar("G", bound=AnyModernGroup)


_OF_HEARTBEATS: Final = (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS)
"""The outcomes of a member's heartbeat that are no refusal."""


class GroupCoordinator(ShardedCoordinator[GroupShard]):
    """The group coordinator of a broker.  `shards`: the shards by partition of
    __consumer_offsets."""

    topic = GROUP_METADATA_TOPIC

    def __init__(self, broker: CoordinatorBroker) -> None:
        super().__init__(broker)
        self.internal_topics = InternalTopics(broker)
        """Creates the internal topics of streams groups."""

    @property
    def default_partitions(self) -> int:
        return self.broker.config.offsets_topic_num_partitions

    def new_shard(self, partition: int) -> GroupShard:
        return GroupShard(self.broker, partition)

    # --------------------------------------------------------------------- classic members

    def join(self, request: Request, now_ms: int) -> None:
        """JoinGroup: answer now, or when the group has a new generation."""
        body: m.JoinGroupRequest = request.body
        group = self._joined_group(body.group_id, body.member_id, now_ms)
        if isinstance(group, ErrorCode):
            unnamed = (ErrorCode.NOT_COORDINATOR, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
            member_id = "" if group in unnamed else body.member_id
            refuse_join(self.broker, request, member_id, group)
        else:
            group.join(request, now_ms)

    def sync(self, request: Request, now_ms: int) -> None:
        """SyncGroup: answer now, or when the leader's assignment is stored."""
        group = self._classic_group(request.body.group_id)
        if isinstance(group, ErrorCode):
            self.broker.reply(request, m.SyncGroupResponse(error_code=group))
        else:
            group.sync(request, now_ms)

    def heartbeat(self, body: m.HeartbeatRequest, on_answer: Settled, now_ms: int) -> None:
        """Heartbeat of a classic member: the outcome, once all that was written before is
        committed; a refusal at once."""
        group, shard = self._classic_group(body.group_id), self._named_shard(body.group_id)
        error = group if isinstance(group, ErrorCode) else group.heartbeat(body, now_ms)
        if error in _OF_HEARTBEATS and not isinstance(shard, ErrorCode):
            shard.after_writes(lambda lost, at_ms: on_answer(lost or error, at_ms), now_ms)
        else:
            on_answer(error, now_ms)

    def leave(
        self,
        group_id: str,
        leavers: list[MemberIdentity],
        on_answer: OnAnswer[list[MemberResponse]],
        now_ms: int,
    ) -> None:
        """LeaveGroup: the outcome of each member, once the last of them has left the log, too."""
        shard = self._named_shard(group_id)
        if isinstance(shard, ErrorCode):
            on_answer(RequestRefused(shard), now_ms)
            return
        group = self._classic_group(group_id)
        if isinstance(group, ErrorCode):
            left = [leave_answer(one, group) for one in leavers]
        else:
            outcome = group.leave(leavers, now_ms)
            if isinstance(outcome, ErrorCode):
                on_answer(RequestRefused(outcome), now_ms)
                return
            left = outcome
        shard.write(CoordinatorResult((), left), on_answer, now_ms)

    def _classic_group(self, group_id: str) -> ClassicSide | ErrorCode:
        """The group of a classic member; UNKNOWN_MEMBER_ID if there is none for classic members."""
        if not group_id:
            return ErrorCode.INVALID_GROUP_ID
        group = self._group(group_id)
        if isinstance(group, ErrorCode):
            missing = group is ErrorCode.GROUP_ID_NOT_FOUND
            return ErrorCode.UNKNOWN_MEMBER_ID if missing else group
        side_of = CLASSIC_SIDE.get(type(group))
        return ErrorCode.UNKNOWN_MEMBER_ID if side_of is None else side_of(group)

    def _joined_group(self, group_id: str, member_id: str, now_ms: int) -> ClassicSide | ErrorCode:
        """The group of a JoinGroup: without a member id it is created if necessary, even in the
        place of an empty group of another kind."""
        if not group_id:
            return ErrorCode.INVALID_GROUP_ID
        shard = self.shard_for(group_id)
        if isinstance(shard, ErrorCode):
            return shard
        current = shard.groups.get(group_id)
        if current is not None and (current.kind == ClassicGroup.kind or not current.is_unused):
            side = self._classic_group(group_id)
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

    # ------------------------------------------------------------------- groups with epochs

    def modern_heartbeat(
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

    def describe(
        self, group_id: str, kind: type[G], describe: Callable[[G], A]
    ) -> A | RequestRefused:
        """The result of `describe` for a group that exists; an error for any other."""
        group = self._modern_group(group_id, kind)
        return group if isinstance(group, RequestRefused) else describe(group)

    def _modern_group(self, group_id: str, kind: type[G]) -> G | RequestRefused:
        """The group of a request that does not come from its members."""
        shard = self.shard_for(group_id)
        if isinstance(shard, ErrorCode):
            return RequestRefused(shard)
        return kind.find(shard.groups.get(group_id), group_id, "group")

    def share_partitions(self, group_id: str) -> list[SharePartition] | ErrorCode:
        """A group's initialized share partitions, if their topics exist; none if there is no such
        group."""
        group = self._group(group_id)
        if group is ErrorCode.NOT_COORDINATOR:
            return group
        if not isinstance(group, ShareGroup) or group.states is None:
            return []
        names = self.broker.image.topic_names
        initialized = group.states.initialized.items()
        return group.share_partitions({id_: one for id_, one in initialized if id_ in names})

    def alter_share_offsets(
        self, body: m.AlterShareGroupOffsetsRequest, on_done: OnAltered, now_ms: int
    ) -> None:
        """Initialize share partitions again; a missing group is created."""
        shard = self.shard_for(body.group_id)
        if isinstance(shard, ErrorCode):
            on_done(alter_failed(shard), now_ms)
            return
        current = shard.groups.get(body.group_id)
        found = ShareGroup.find_to_join(current, body.group_id, shard, now_ms)
        if isinstance(found, RequestRefused):
            on_done(alter_failed(found.error, found.message), now_ms)
        else:
            alter_offsets(found.group, body, on_done, now_ms)

    def delete_share_offsets(
        self, body: m.DeleteShareGroupOffsetsRequest, on_done: OnDeleted, now_ms: int
    ) -> None:
        """Delete the states of topics."""
        group = self._modern_group(body.group_id, ShareGroup)
        if isinstance(group, RequestRefused):
            on_done(delete_failed(group.error, group.message), now_ms)
        else:
            delete_offsets(group, body, on_done, now_ms)

    # -------------------------------------------------------------------------- offsets

    def commit_offsets(
        self,
        group_id: str,
        committer: Committer | None,
        records: Sequence[OffsetRecord],
        on_settled: Settled,
        now_ms: int,
    ) -> None:
        """Store these offsets, of topics that exist.  `committer` None: unknown (version 0)."""
        shard = self.shard_for(group_id)
        if isinstance(shard, ErrorCode):
            on_settled(shard, now_ms)
            return
        error = ErrorCode.NONE
        if committer is not None:
            error = shard.admit_commit(group_id, committer, records, now_ms)
        if error is not ErrorCode.NONE or not records:
            on_settled(error, now_ms)
        else:
            shard.append(records, on_settled, now_ms)

    def commit_in_transaction(
        self,
        group_id: str,
        committer: Committer,
        records: Sequence[OffsetRecord],
        producer: ProducerIdentity,
        guard: Verification | None,
        on_settled: Settled,
        now_ms: int,
    ) -> None:
        """Store these offsets when the producer's transaction commits.  `guard`: the transaction is
        open as long as this holds; None: no verification was needed."""
        shard = self.shard_for(group_id)
        if isinstance(shard, ErrorCode):
            on_settled(shard, now_ms)
            return
        replica = shard.replica
        if guard is not None and (
            replica is None or not _may_append(replica.log.producers, producer, guard)
        ):
            # A marker came after the coordinator had confirmed the transaction.
            on_settled(ErrorCode.INVALID_TXN_STATE, now_ms)
            return
        error = shard.admit_commit(group_id, committer, records, now_ms)
        if error is not ErrorCode.NONE or not records:
            on_settled(error, now_ms)
        else:
            shard.append_in_transaction(records, producer, on_settled, now_ms)

    def complete_transaction(
        self,
        partition: int,
        producer: ProducerIdentity,
        marker: Marker,
        transaction_version: int,
        on_settled: Settled,
        now_ms: int,
    ) -> None:
        """End a transaction in a partition that this broker leads; NONE when its offsets are in
        effect."""
        shard = self.shards[partition]
        shard.append_marker(producer, marker, transaction_version, on_settled, now_ms)

    def fetch_offsets(
        self,
        group_id: str,
        member: tuple[str | None, int] | None,
        is_stable: bool,
        on_answer: OnAnswer[GroupOffsets],
        now_ms: int,
    ) -> None:
        """The committed offsets of a group.  `member`: id and epoch of the sender, for versions
        that require them.  `is_stable`: wait until all present writes are committed."""
        shard = self.shard_for(group_id)
        unready = shard if isinstance(shard, ErrorCode) else shard.check_loaded()
        if isinstance(shard, ErrorCode) or unready is not ErrorCode.NONE:
            on_answer(RequestRefused(unready), now_ms)
            return
        group = shard.groups.get(group_id)
        if group is not None and member is not None:
            error = group.check_fetch(*member)
            if error is not ErrorCode.NONE:
                on_answer(RequestRefused(error), now_ms)
                return
        offsets = shard.offsets

        def read(error: ErrorCode, at_ms: int) -> None:
            if error is not ErrorCode.NONE:
                on_answer(RequestRefused(error), at_ms)
                return
            unstable = offsets.unstable(group_id) if is_stable else frozenset()
            on_answer(GroupOffsets(offsets.topics_of(group_id), unstable), at_ms)

        if is_stable:
            shard.after_writes(read, now_ms)
        else:
            shard.catch_up(now_ms)
            read(ErrorCode.NONE, now_ms)

    def delete_offsets(
        self,
        group_id: str,
        partitions: Iterable[tuple[str, int]],
        on_answer: OnAnswer[frozenset[str]],
        now_ms: int,
    ) -> None:
        """Delete offsets; the answer names the topics that the group's members still read."""
        shard = self._named_shard(group_id)
        if isinstance(shard, ErrorCode):
            on_answer(RequestRefused(shard), now_ms)
        else:
            shard.write(shard.decide_deletion(group_id, partitions), on_answer, now_ms)

    def _named_shard(self, group_id: str) -> GroupShard | ErrorCode:
        """The shard of a request that must name a group."""
        return self.shard_for(group_id) if group_id else ErrorCode.INVALID_GROUP_ID

    # --------------------------------------------------------------------------- groups

    @property
    def groups(self) -> Iterator[GroupView]:
        """All groups that this broker coordinates."""
        return (group for shard in self.shards.values() for group in shard.groups.values())

    def group(self, group_id: str) -> GroupView | ErrorCode:
        """The group with this id, of any kind; NOT_COORDINATOR or GROUP_ID_NOT_FOUND."""
        return self._group(group_id)

    def _group(self, group_id: str) -> Group | ErrorCode:
        shard = self.shard_for(group_id)
        if isinstance(shard, ErrorCode):
            return shard
        return shard.groups.get(group_id, ErrorCode.GROUP_ID_NOT_FOUND)

    def delete_group(self, group_id: str, on_settled: Settled, now_ms: int) -> None:
        """Delete a group.  `on_settled` is called when the last tombstone is committed, or with the
        reason for a refusal."""
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
        group = self._group(group_id)
        error = group if isinstance(group, ErrorCode) else group.check_deletion()
        return group if error is ErrorCode.NONE else error

    def _delete_prepared(self, group_id: str, on_settled: Settled, now_ms: int) -> None:
        """Delete the group, which may have changed since its preparation."""
        group = self._deletable_group(group_id)
        if isinstance(group, ErrorCode):
            on_settled(group, now_ms)
        else:
            self.shards[self.partition_for(group_id)].delete_group(group, on_settled, now_ms)

    def on_topic_deleted(self, name: str, now_ms: int) -> None:
        for shard in list(self.shards.values()):
            shard.forget_topic(name, now_ms)


def _may_append(producers: ProducerStates, producer: ProducerIdentity, guard: Verification) -> bool:
    """Whether offsets may join the transaction that was verified: no marker has come since, or
    other offsets have opened it in this log."""
    producer_id = producer.producer_id
    return producers.is_verified(producer_id, guard) or producers.has_ongoing(
        producer_id, producer.producer_epoch
    )
