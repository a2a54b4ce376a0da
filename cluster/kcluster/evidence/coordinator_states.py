"""The states of groups and transactions at their coordinators: a row for each change.

Owns: the choice between two brokers that both claim to coordinate, and the detection of changes.
Never: reads a log, sends a request: it reads the fields that handlers read.  Kafka: no counterpart;
kafka-consumer-groups and kafka-transactions show the latest state only.

A look costs a comparison per group and per transaction, however many members a consumer group has.
It happens from time to time, and when an event or an answer of a coordinator reports a change.  A
row has all members of its group, so changes of single members of a large group wait for the next
periodic look (sampling.py): a row for each would cost the square of the size.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import Struct

from kcluster.broker.coordinator.classic_group import ClassicGroup
from kcluster.broker.coordinator.consumer.group import ConsumerGroup
from kcluster.broker.coordinator.consumer.member import ConsumerMember
from kcluster.broker.coordinator.group import Group
from kcluster.broker.coordinator.log_shard import LogShard
from kcluster.broker.coordinator.shard import GroupShard
from kcluster.broker.coordinator.share.group import ShareGroup
from kcluster.broker.coordinator.streams.group import StreamsGroup
from kcluster.broker.coordinator.transactions.transaction_shard import TransactionShard
from kcluster.broker.node_view import BrokerNodeView
from kcluster.evidence.client_names import client_name
from kcluster.evidence.kept_rows import StateRows
from kcluster.evidence.rows import GroupMemberValue, GroupRow, TransactionStateRow
from kcluster.protocol.apis import ApiKey

MAX_GROUP_WEIGHT: Final = 100_000
"""The limit on kept rows of groups and the members in them, together."""
MAX_TRANSACTION_ROWS: Final = 30_000
LARGE_GROUP: Final = 100
"""The least size of a group in which a single member that comes or goes makes no row."""
DEAD: Final = "Dead"

CHANGING_APIS: Final = frozenset(
    map(
        int,
        (
            ApiKey.JOIN_GROUP,
            ApiKey.SYNC_GROUP,
            ApiKey.LEAVE_GROUP,
            ApiKey.CONSUMER_GROUP_HEARTBEAT,
            ApiKey.SHARE_GROUP_HEARTBEAT,
            ApiKey.STREAMS_GROUP_HEARTBEAT,
            ApiKey.DELETE_GROUPS,
            ApiKey.INIT_PRODUCER_ID,
            ApiKey.ADD_PARTITIONS_TO_TXN,
            ApiKey.ADD_OFFSETS_TO_TXN,
            ApiKey.TXN_OFFSET_COMMIT,
            ApiKey.END_TXN,
        ),
    )
)
"""APIs after whose answers a group or a transaction may have changed."""

Fingerprint = tuple[Any, ...]
Pair = tuple[str, int]


class _Known(Struct):
    """The last reading of a group or transaction.  `leader_epoch`: the epoch of the coordinator's
    partition."""

    broker: int
    partition: int
    leader_epoch: int
    state: Fingerprint


class _MembersRead(Struct):
    """The values made from members at one metadata offset; partitions of deleted topics are not
    shown."""

    metadata_offset: int
    values: dict[str, tuple[ConsumerMember, GroupMemberValue]]


class CoordinatorStates:
    """All groups and transactional ids of a cluster.  `simulated`: names of simulated clients."""

    def __init__(self, simulated: Mapping[int, str]) -> None:
        self.groups: StateRows[str, GroupRow] = StateRows(
            lambda row: row.group, MAX_GROUP_WEIGHT, lambda row: 1 + len(row.members)
        )
        self.transactions: StateRows[str, TransactionStateRow] = StateRows(
            lambda row: row.transactional_id, MAX_TRANSACTION_ROWS
        )
        self._groups: dict[str, _Known] = {}
        self._transactions: dict[str, _Known] = {}
        self._members_read: dict[str, _MembersRead] = {}
        """The members read so far, by consumer group."""
        self._simulated = simulated

    def look(self, now_ms: int, node: BrokerNodeView) -> None:
        """Read the groups and transactions that this broker coordinates."""
        if node.coordinator.shards:
            for shard in node.coordinator.shards.values():
                self._look_at_groups(now_ms, node, shard)
            self._bury_groups(now_ms, node)
        if node.transactions.shards:
            for transactional in node.transactions.shards.values():
                self._look_at_transactions(now_ms, node, transactional)
            self._bury_transactions(now_ms, node)

    def is_large(self, group: str) -> bool:
        """Whether this group had many members when it was last read."""
        newest = self.groups.newest.get(group)
        return newest is not None and len(newest.members) >= LARGE_GROUP

    def trim(self) -> None:
        """Drop rows beyond the bounds."""
        self.groups.trim()
        self.transactions.trim()

    # ---------------------------------------------------------------------------- groups

    def _look_at_groups(self, now_ms: int, node: BrokerNodeView, shard: GroupShard) -> None:
        for group in shard.groups.values():
            state = _fingerprint(group)
            name = group.group_id
            if self._is_news(self._groups, name, node, shard, state):
                row = GroupRow(
                    group=name,
                    kind=group.kind,
                    state=group.state_name,
                    epoch=state[0],
                    coordinator=node.node_id,
                    members=tuple(self._members(group)),
                    at_ms=now_ms,
                )
                self.groups.add(row)

    def _members(self, group: Group) -> Iterable[GroupMemberValue]:
        if isinstance(group, ClassicGroup):
            assigned: dict[str, list[Pair]] = {}
            for part in group.roster.assigned_partitions():
                pairs = assigned.setdefault(part.member, [])
                pairs += [(part.topic, number) for number in part.partitions]
            for one in group.roster.members.values():
                yield self._member(one.member_id, one.client_id, assigned.get(one.member_id, ()))
        elif isinstance(group, ConsumerGroup):
            yield from self._consumers(group)
        elif isinstance(group, ShareGroup):
            for sharer in group.members.values():
                held = _pairs(group, sharer.assigned)
                yield self._member(sharer.member_id, sharer.client_id, held)
        elif isinstance(group, StreamsGroup):
            for worker in group.members.values():
                tasks = sorted(worker.progress.assigned.active)
                held = [(task.subtopology_id, task.partition) for task in tasks]
                yield self._member(worker.member_id, worker.client_id, held)

    def _consumers(self, group: ConsumerGroup) -> Iterable[GroupMemberValue]:
        """The members.  Only changed members are read again: of two thousand, usually one has
        changed."""
        metadata_offset = group.broker.image.offset
        read = self._members_read.get(group.group_id)
        if read is None or read.metadata_offset != metadata_offset:
            read = self._members_read[group.group_id] = _MembersRead(metadata_offset, {})
        known, values = read.values, {}
        for member_id, member in group.members.items():
            value = known.get(member_id)
            if value is None or value[0] is not member:
                held = _pairs(group, member.assigned, member.revoking)
                value = member, self._member(member_id, member.client_id, held)
            values[member_id] = value
        read.values = values
        return [value for _, value in values.values()]

    def _member(self, member_id: str, client_id: str, held: Iterable[Pair]) -> GroupMemberValue:
        return GroupMemberValue(member_id, client_name(client_id, self._simulated), tuple(held))

    def _bury_groups(self, now_ms: int, node: BrokerNodeView) -> None:
        shards = node.coordinator.shards
        for name, known in list(self._groups.items()):
            shard = shards.get(known.partition)
            if shard is None or name in shard.groups:
                continue
            if _leader_epoch(shard) >= known.leader_epoch:
                del self._groups[name]
                self._members_read.pop(name, None)
                old = self.groups.newest.get(name)
                kind, epoch = ("classic", 0) if old is None else (old.kind, old.epoch)
                self.groups.add(GroupRow(name, kind, DEAD, epoch, node.node_id, (), now_ms))

    # ---------------------------------------------------------------------- transactions

    def _look_at_transactions(
        self, now_ms: int, node: BrokerNodeView, shard: TransactionShard
    ) -> None:
        for name, one in shard.transactions.items():
            state = (one.producer_id, one.producer_epoch, one.state, one.partitions)
            if self._is_news(self._transactions, name, node, shard, state):
                row = TransactionStateRow(
                    transactional_id=name,
                    producer_id=one.producer_id,
                    producer_epoch=one.producer_epoch,
                    state=one.state.label,
                    partitions=tuple(one.in_order),
                    coordinator=node.node_id,
                    at_ms=now_ms,
                )
                self.transactions.add(row)

    def _bury_transactions(self, now_ms: int, node: BrokerNodeView) -> None:
        shards = node.transactions.shards
        for name, known in list(self._transactions.items()):
            shard = shards.get(known.partition)
            if shard is None or name in shard.transactions:
                continue
            if _leader_epoch(shard) >= known.leader_epoch:
                del self._transactions[name]
                row = TransactionStateRow(
                    transactional_id=name,
                    producer_id=known.state[0],
                    producer_epoch=known.state[1],
                    state=DEAD,
                    partitions=(),
                    coordinator=node.node_id,
                    at_ms=now_ms,
                )
                self.transactions.add(row)

    # ------------------------------------------------------------------------------ both

    def _is_news(
        self,
        table: dict[str, _Known],
        name: str,
        node: BrokerNodeView,
        shard: LogShard[Any],
        state: Fingerprint,
    ) -> bool:
        """Whether this reading differs from the last one, and is from the newest coordinator."""
        known = table.get(name)
        if known is not None and known.broker == node.node_id and known.state == state:
            return False
        leader_epoch = _leader_epoch(shard)
        if known is not None and leader_epoch < known.leader_epoch:
            return False
        table[name] = _Known(node.node_id, shard.partition, leader_epoch, state)
        return True


def _leader_epoch(shard: LogShard[Any]) -> int:
    """The leader epoch of the coordinator's partition; of two brokers that claim to coordinate, the
    broker with the later epoch counts."""
    replica = shard.replica
    return -1 if replica is None else replica.leader_epoch


def _fingerprint(group: Group) -> Fingerprint:
    """The content of a row, without copying it: (epoch, state, kind, members).  Members of groups
    with epochs are values, which compare by identity first."""
    if isinstance(group, ClassicGroup):
        roster = group.roster
        members = tuple((one.member_id, one.assignment) for one in roster.members.values())
        return (roster.generation, group.state_name, group.kind, members)
    if isinstance(group, ConsumerGroup):
        return (group.epoch, group.revision, group)
    assert isinstance(group, ShareGroup | StreamsGroup), group
    return (group.epoch, group.state_name, group.kind, tuple(group.members.values()))


def _pairs(group: ConsumerGroup | ShareGroup, *parts: Mapping[bytes, Iterable[int]]) -> list[Pair]:
    """The partitions that belong to existing topics, sorted."""
    names = group.broker.image.topic_names
    return sorted(
        (names[topic_id], number)
        for part in parts
        for topic_id, some in part.items()
        if topic_id in names
        for number in some
    )
