"""Committed offsets of the groups of one __consumer_offsets partition, of any kind.

Owns: the offsets, the record of a commit, the expiry of offsets.  Never: appends to the log
(shard.py does, and calls `apply` when a record is committed), knows members.  Kafka:
OffsetMetadataManager, OffsetExpirationCondition; KIP-211 (when offsets expire).

Offsets that are written but not yet on all in-sync replicas are not included, so a reader never
sees an offset that a failover could take back.  Offsets of a transaction are pending until its
marker comes to this partition (KIP-447).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from kcluster.broker.coordinator.group import Group
from kcluster.broker.coordinator.group_log import NO_EXPIRY, CommittedOffset, OffsetRecord
from kcluster.structs import Frozen

if TYPE_CHECKING:
    from kcluster.protocol.messages import OffsetCommitRequest, TxnOffsetCommitRequest

    CommitPartition = OffsetCommitRequest.OffsetCommitRequestPartition
    TxnCommitPartition = TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition

MINUTE_MS: Final = 60_000

TopicOffsets = dict[int, CommittedOffset]
OffsetKey = tuple[str, str, int]
"""(group, topic, partition)."""


class OffsetStore(Struct):
    """The offsets by group, topic and partition, in the order of their first commit."""

    by_group: dict[str, dict[str, TopicOffsets]] = {}
    pending: dict[int, dict[OffsetKey, OffsetRecord | None]] = {}
    """The offsets of each producer's open transaction, by producer id.  None: a later commit
    outside of the transaction has replaced the offset."""

    # ------------------------------------------------------------------ in a transaction

    def put_pending(self, producer_id: int, record: OffsetRecord) -> None:
        """Add `record`, which is written in a transaction."""
        self.pending.setdefault(producer_id, {})[record.key] = record

    def end_transaction(self, producer_id: int, is_commit: bool) -> list[OffsetRecord]:
        """End a transaction; returns the offsets to apply."""
        ended = self.pending.pop(producer_id, {})
        return [record for record in ended.values() if record is not None and is_commit]

    def is_pending(self, group_id: str, topic: str, partition: int) -> bool:
        """Whether an open transaction may change this offset."""
        key = (group_id, topic, partition)
        return any(key in offsets for offsets in self.pending.values())

    def has_pending(self, group_id: str) -> bool:
        """Whether an open transaction has offsets of this group."""
        return any(key[0] == group_id for offsets in self.pending.values() for key in offsets)

    # ------------------------------------------------------------------------- committed

    def apply(self, record: OffsetRecord) -> None:
        """Remember or forget the offset of `record`, which is committed."""
        for offsets in self.pending.values():
            if record.key in offsets:
                offsets[record.key] = None
        topics = self.by_group.setdefault(record.group_id, {})
        partitions = topics.setdefault(record.topic, {})
        if record.committed is None:
            partitions.pop(record.partition, None)
        else:
            partitions[record.partition] = record.committed
        if not partitions:
            del topics[record.topic]
        if not topics:
            del self.by_group[record.group_id]

    def get(self, group_id: str, topic: str, partition: int) -> CommittedOffset | None:
        return self.by_group.get(group_id, {}).get(topic, {}).get(partition)

    def topics_of(self, group_id: str) -> dict[str, TopicOffsets]:
        return self.by_group.get(group_id, {})

    def unstable(self, group_id: str) -> frozenset[tuple[str, int]]:
        """Topic and partition of the offsets that an open transaction may change."""
        keys = (key for offsets in self.pending.values() for key in offsets)
        return frozenset((topic, index) for group, topic, index in keys if group == group_id)

    def keys(self) -> Iterator[OffsetKey]:
        """The offsets that are committed, or that open transactions will commit."""
        for group_id, topics in self.by_group.items():
            for topic, partitions in topics.items():
                yield from ((group_id, topic, partition) for partition in partitions)
        for offsets in self.pending.values():
            yield from (key for key, record in offsets.items() if record is not None)

    def tombstone(self, group_id: str, topic: str, partition: int) -> OffsetRecord | None:
        """The tombstone of one offset; None if there is none."""
        is_there = self.get(group_id, topic, partition) is not None
        return OffsetRecord(group_id, topic, partition, None) if is_there else None

    def expired(
        self, group: Group, now_ms: int, retention_ms: int
    ) -> tuple[list[OffsetRecord], bool]:
        """(tombstones of the group's expired offsets, whether no offset is left after them).

        The group decides on the start of retention, and on the topics that its members still read.
        """
        topics = self.topics_of(group.group_id)
        if not topics:
            return [], not self.has_pending(group.group_id)
        tombstones: list[OffsetRecord] = []
        all_expired = True
        for topic, partitions in topics.items():
            for partition, committed in partitions.items():
                since_ms = group.retention_starts_ms(committed.commit_timestamp_ms)
                if (
                    since_ms is None
                    or self.is_pending(group.group_id, topic, partition)
                    or group.is_subscribed_to(topic)
                    or not _is_expired(committed, since_ms, now_ms, retention_ms)
                ):
                    all_expired = False
                else:
                    tombstones.append(OffsetRecord(group.group_id, topic, partition, None))
        return tombstones, all_expired


class GroupOffsets(Frozen, frozen=True):
    """The offsets of one group, for readers."""

    topics: Mapping[str, TopicOffsets]
    unstable: Collection[tuple[str, int]]
    """Topic and partition of the offsets that an open transaction may change; none if they were not
    requested."""


def committed_offset(
    commit: CommitPartition | TxnCommitPartition,
    topic_id: bytes,
    commit_timestamp_ms: int,
    expire_timestamp_ms: int = NO_EXPIRY,
) -> CommittedOffset:
    """The stored form of a commit of one partition.  Kafka: OffsetAndMetadata.fromRequest."""
    return CommittedOffset(
        offset=commit.committed_offset,
        leader_epoch=commit.committed_leader_epoch,
        metadata=commit.committed_metadata or "",
        commit_timestamp_ms=commit_timestamp_ms,
        expire_timestamp_ms=expire_timestamp_ms,
        topic_id=topic_id,
    )


def _is_expired(committed: CommittedOffset, since_ms: int, now_ms: int, retention_ms: int) -> bool:
    if committed.expire_timestamp_ms != NO_EXPIRY:
        return now_ms >= committed.expire_timestamp_ms
    return now_ms - since_ms >= retention_ms
