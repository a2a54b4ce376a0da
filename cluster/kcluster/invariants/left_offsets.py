"""Offsets of deleted topics that their coordinator has kept.

Owns: what each group coordinator held of a topic when it learned that the topic is deleted, and the
rule that this ends.  Never: changes anything, knows a group.  Kafka:
GroupCoordinatorService.onMetadataUpdate, OffsetMetadataManager.onPartitionsDeleted.

A coordinator writes tombstones in the step in which it learns of the deletion, whether an offset is
committed or in an open transaction.  It tries once: where the log takes no record, because too few
replicas are in sync, the offsets stay.  Whoever becomes the coordinator later does nothing.
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
    """What was seen of a coordinator.  `absent`: the deleted topics that it knows no more; `left`:
    the offsets that it must delete, each with the end of the log in which its tombstone is."""

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
        """Whether a coordinator is a new one, or topics were deleted."""
        if self._deleted:
            return True
        seen = self._seen.get(key)
        return seen is None or seen.held is not held

    def look(
        self, observed: ObservedPartition, replica: Replica, held: GroupShard
    ) -> Iterator[Problem]:
        """The offsets that a coordinator has kept; called after each step that may have moved its
        log, or its metadata."""
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
    """Whether enough replicas were in sync all the time since a coordinator was elected."""
    epoch = replica.leader_epoch
    mine = [one for _, one in observed.registrations if one.leader_epoch == epoch]
    return bool(mine) and all(len(one.isr) >= replica.min_isr for one in mine)


def _of_topics(
    offsets: OffsetStore, topic_ids: frozenset[bytes] | set[bytes]
) -> Iterator[tuple[OffsetKey, CommittedOffset]]:
    """The offsets of these topics, committed or in an open transaction."""
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
    """The offsets that are there still, though everything is committed up to their tombstones; each
    is found once."""
    for key, (committed, end) in tuple(seen.left.items()):
        if end <= watermark and seen.held.offsets.get(*key) == committed:
            del seen.left[key]
            yield "offset-left", OffsetLeft(*key, committed.offset)
