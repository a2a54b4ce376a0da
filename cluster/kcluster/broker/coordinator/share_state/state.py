"""The durable state of one share partition: which records the group has processed, batch by batch.

Owns: `ShareState`, `StateBatch`, and how batches that overlap become one list.  Never: knows what
is in flight (the share-partition leader does), or where the state is stored (share_state_log.py).
Kafka: ShareGroupOffset, PersisterStateBatch, PersisterStateBatchCombiner; KIP-932.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable
from typing import Final, NamedTuple

from msgspec import Struct

from kcluster.protocol.uuids import read_uuid, uuid_text

UNINITIALIZED: Final = -1
"""The start offset of a share partition whose leader has yet to choose one, by
share.auto.offset.reset."""
NO_COUNT: Final = -1
NO_EPOCH: Final = -1
_INT: Final = re.compile(r"[+-]?[0-9]{1,10}")


class SharePartition(NamedTuple):
    """A partition, as one group reads it.  Kafka: SharePartitionKey."""

    group_id: str
    topic_id: bytes
    partition: int

    @property
    def coordinator_key(self) -> str:
        """The key that decides which partition of __share_group_state has the state."""
        return f"{self.group_id}:{uuid_text(self.topic_id)}:{self.partition}"


def is_share_key(key: str) -> bool:
    """Whether `key` is `group:topic id:partition`.  Kafka: SharePartitionKey.validate."""
    parts = key.rsplit(":", 2)
    if len(parts) != 3:
        return False
    group_id, topic_id, partition = parts
    is_partition = _INT.fullmatch(partition) is not None
    return bool(group_id.strip()) and read_uuid(topic_id) is not None and is_partition


class StateBatch(NamedTuple):
    """The delivery state of the records from `first_offset` to `last_offset` (inclusive).

    `delivery_state`: 0 available, 2 acknowledged, 4 archived.
    """

    first_offset: int
    last_offset: int
    delivery_state: int
    delivery_count: int

    @property
    def progress(self) -> tuple[int, int]:
        """The progress of a batch.  If two batches contain one record, the batch with more progress
        is right."""
        return self.delivery_count, self.delivery_state

    def part(self, first_offset: int, last_offset: int) -> StateBatch:
        """The batch restricted to these offsets, in the same state."""
        return StateBatch(first_offset, last_offset, self.delivery_state, self.delivery_count)


class ShareState(Struct, frozen=True):
    """The stored state of one share partition.

    `state_epoch`: the epoch of its initialization.  `leader_epoch`: the epoch of the
    share-partition leader that wrote last.  `delivery_complete_count`: the number of records from
    `start_offset` on that need no further delivery; -1 if unknown.
    """

    snapshot_epoch: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: tuple[StateBatch, ...]
    """The batches, in order of offset, without overlaps."""
    create_timestamp_ms: int
    write_timestamp_ms: int


class ShareSummary(Struct, frozen=True):
    """A share partition's state without its batches.  `start_offset` -1: not initialized."""

    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int


class ReadState(Struct, frozen=True):
    """The state with which a share-partition leader starts."""

    state_epoch: int
    start_offset: int
    """The start offset; -1 if share.auto.offset.reset decides it."""
    batches: tuple[StateBatch, ...]


def combine(
    known: Iterable[StateBatch], new: Iterable[StateBatch], start_offset: int
) -> tuple[StateBatch, ...]:
    """Put the batches of `new` over the batches of `known` (which have no overlaps), and drop
    offsets before `start_offset`.

    Where two batches overlap, the batch with more progress wins.  Neighbours in the same state
    become one.  `start_offset` -1: nothing is dropped.
    """
    batches = _from(known, start_offset)
    for batch in _from(new, start_offset):
        _put(batches, batch)
    return tuple(batches)


def _from(batches: Iterable[StateBatch], start_offset: int) -> list[StateBatch]:
    return [
        batch if batch.first_offset >= start_offset else batch.part(start_offset, batch.last_offset)
        for batch in batches
        if batch.last_offset >= max(start_offset, batch.first_offset)
    ]


def _put(batches: list[StateBatch], new: StateBatch) -> None:
    """Put one batch into a list that has no overlaps."""
    low = bisect_left(batches, new.first_offset, key=lambda batch: batch.last_offset)
    high = low
    pieces: list[StateBatch] = []
    at = new.first_offset
    """The first offset of `new` that is not placed yet."""
    while high < len(batches) and batches[high].first_offset <= new.last_offset:
        old = batches[high]
        high += 1
        if old.progress > new.progress:
            if at < old.first_offset:
                pieces.append(new.part(at, old.first_offset - 1))
            pieces.append(old)
            at = old.last_offset + 1
            continue
        if old.first_offset < at:
            pieces.append(old.part(old.first_offset, at - 1))
        if old.last_offset > new.last_offset:
            if at <= new.last_offset:
                pieces.append(new.part(at, new.last_offset))
            pieces.append(old.part(new.last_offset + 1, old.last_offset))
            at = old.last_offset + 1
    if at <= new.last_offset:
        pieces.append(new.part(at, new.last_offset))
    # The neighbours on both sides may be in the same state.
    if low and batches[low - 1].last_offset + 1 == pieces[0].first_offset:
        low -= 1
        pieces.insert(0, batches[low])
    if high < len(batches) and pieces[-1].last_offset + 1 == batches[high].first_offset:
        pieces.append(batches[high])
        high += 1
    batches[low:high] = _joined(pieces)


def _joined(pieces: list[StateBatch]) -> list[StateBatch]:
    joined = pieces[:1]
    for piece in pieces[1:]:
        last = joined[-1]
        if last.last_offset + 1 == piece.first_offset and last.progress == piece.progress:
            joined[-1] = last.part(last.first_offset, piece.last_offset)
        else:
            joined.append(piece)
    return joined
