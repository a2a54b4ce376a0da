"""Offsets that a group coordinator has kept although their topic was deleted.

Owns: the offsets that each group coordinator held for a topic when it learned of the topic's
deletion, and the rule that it deletes them.  Never: changes anything, looks into a group.  Kafka:
GroupCoordinatorService.onMetadataUpdate, OffsetMetadataManager.onPartitionsDeleted.

A coordinator writes the tombstones in the step in which it learns of the deletion, both for
committed offsets and for offsets in open transactions.  It tries only once: if too few replicas are
in sync for its log to take records, the offsets stay.  A later coordinator does not try again.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from kcluster.broker.coordinator.group_log import CommittedOffset
from kcluster.broker.coordinator.offsets import OffsetKey, OffsetStore
from kcluster.broker.coordinator.shard import GroupShard
from kcluster.invariants.group_facts import OffsetLeft
from kcluster.invariants.observed import ObservedPartition, PartitionKey
from kcluster.invariants.rules import Problem
from kcluster.partition.replica import Replica


class _Seen(Struct):
    """A coordinator at the last look.  `absent`: the topics whose deletion it has learned of;
    `left`: the offsets that it must delete, each with the log end offset after its tombstone."""

    held: GroupShard
    absent: dict[bytes, None]
    left: dict[OffsetKey, tuple[CommittedOffset, int]] = {}


class LeftOffsets:
    """The offsets of deleted topics in one cluster."""

    def __init__(self) -> None:
        self._deleted: dict[bytes, None] = {}
        self._seen: dict[PartitionKey, _Seen] = {}
        """The newest coordinator of each partition of __consumer_offsets."""

    def on_deleted(self, topic_id: bytes) -> None:
        """Record that the controller has deleted a topic; brokers learn of it later."""
        self._deleted[topic_id] = None

    def has_news(self, key: PartitionKey, held: GroupShard) -> bool:
        """Whether there may be something to check: the coordinator is new, or topics were
        deleted."""
        if self._deleted:
            return True
        seen = self._seen.get(key)
        return seen is None or seen.held is not held

    def look(
        self, observed: ObservedPartition, replica: Replica, held: GroupShard
    ) -> Iterator[Problem]:
        """Yields the offsets that a coordinator should have deleted.  Called after each step that
        may have changed its log or its metadata."""
        names = held.broker.image.topic_names
        absent = {one: None for one in self._deleted if one not in names}
        seen = self._seen.get(observed.key)
        if seen is None or seen.held is not held:
            self._seen[observed.key] = _Seen(held, absent)
            return
        gone = absent.keys() - seen.absent.keys()
        seen.absent = absent
        if gone and _could_write(observed, replica):
            end = replica.log.log_end_offset
            seen.left.update((key, (one, end)) for key, one in _of_topics(held.offsets, gone))
        if seen.left and held.has_applied_all:
            yield from _kept(seen, replica.high_watermark)


def _could_write(observed: ObservedPartition, replica: Replica) -> bool:
    """Whether enough replicas have been in sync for writes ever since the coordinator was
    elected."""
    epoch = replica.leader_epoch
    mine = [one for _, one in observed.registrations if one.leader_epoch == epoch]
    return bool(mine) and all(len(one.isr) >= replica.min_isr for one in mine)


def _of_topics(
    offsets: OffsetStore, topic_ids: frozenset[bytes] | set[bytes]
) -> Iterator[tuple[OffsetKey, CommittedOffset]]:
    """The offsets of these topics, both committed and in open transactions."""
    for group_id, topics in offsets.by_group.items():
        for topic, partitions in topics.items():
            for partition, committed in partitions.items():
                if committed.topic_id in topic_ids:
                    yield (group_id, topic, partition), committed
    for pending in offsets.pending.values():
        for key, record in pending.items():
            committed_later = None if record is None else record.committed
            if committed_later is not None and committed_later.topic_id in topic_ids:
                yield key, committed_later


def _kept(seen: _Seen, watermark: int) -> Iterator[Problem]:
    """The offsets that are still there although their tombstones are committed; each is reported
    once."""
    for key, (committed, end) in tuple(seen.left.items()):
        if end <= watermark and seen.held.offsets.get(*key) == committed:
            del seen.left[key]
            yield "offset-left", OffsetLeft(*key, committed.offset)
