"""The states of share partitions, and every decision about them.

Owns: the states as the log has them, the effect of each request and of each record. Never: writes
(share_state_shard.py does), knows a request's format (handlers/share/share_state.py) or a record's
(share_state_log.py).
Kafka: ShareCoordinatorShard.

Two epochs fence.  A leader that reads the state has its leader epoch recorded, and from then on
older leaders cannot write.  An initialization has a new state epoch, and leaders that read before
it cannot write.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kcluster.broker.coordinator.interface import (
    CoordinatorBroker,
    CoordinatorResult,
    RequestRefused,
    invalid,
)
from kcluster.broker.coordinator.share_state.share_state_log import (
    SnapshotRecord,
    StateRecord,
    UpdateRecord,
)
from kcluster.broker.coordinator.share_state.state import (
    NO_COUNT,
    NO_EPOCH,
    UNINITIALIZED,
    SharePartition,
    ShareState,
    StateBatch,
    combine,
)
from kcluster.protocol.errors import ErrorCode

NEGATIVE_PARTITION: Final = "the partition is negative"
NEGATIVE_LEADER_EPOCH: Final = "the leader epoch is negative"
NEGATIVE_STATE_EPOCH: Final = "the state epoch is negative"
FIRST_WITHOUT_MISSING_EPOCHS: Final = (4, 4)
"""The first Kafka release that refuses epoch -1.  Before it epoch -1 matches any epoch, and a write
may move the start offset to any offset."""
WRITE_OF_UNINITIALIZED: Final = "written before it was initialized"
READ_OF_UNINITIALIZED: Final = "read before it was initialized"


Decided = CoordinatorResult[ShareState | None] | RequestRefused
"""A decision whose response is a state, or None for an answer without a state."""


class _Entry(Struct):
    """A share partition's state, and the counts on which its next record depends."""

    state: ShareState
    leader_epoch: int
    """The highest leader epoch seen; an initialization does not reset it."""
    state_epoch: int
    updates: int = 0
    """The number of updates since the last snapshot that was written because of that number."""


class ShareStates:
    """The states of a shard.  `entries`: by share partition."""

    def __init__(self, broker: CoordinatorBroker) -> None:
        self._broker = broker
        self.entries: dict[SharePartition, _Entry] = {}

    # ----------------------------------------------------------------------- requests

    def state(self, partition: SharePartition) -> ShareState | None:
        """The state in the log; None if it was never initialized, or was deleted."""
        entry = self.entries.get(partition)
        return None if entry is None else entry.state

    def initialize(
        self, partition: SharePartition, state_epoch: int, start_offset: int, now_ms: int
    ) -> Decided:
        """Start a new state."""
        entry = self.entries.get(partition)
        if partition.partition < 0:
            return invalid(NEGATIVE_PARTITION)
        if self._is_strict and state_epoch < 0:
            return invalid(NEGATIVE_STATE_EPOCH)
        if entry is not None and NO_EPOCH != state_epoch < entry.state_epoch:
            return _refusal(ErrorCode.FENCED_STATE_EPOCH)
        if not self._exists(partition):
            return _refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        state = ShareState(
            snapshot_epoch=0 if entry is None else entry.state.snapshot_epoch + 1,
            state_epoch=state_epoch,
            leader_epoch=0,
            start_offset=start_offset,
            delivery_complete_count=NO_COUNT if start_offset == UNINITIALIZED else 0,
            batches=(),
            create_timestamp_ms=now_ms,
            write_timestamp_ms=now_ms,
        )
        return CoordinatorResult([SnapshotRecord(partition, state)], None)

    def read(self, partition: SharePartition, leader_epoch: int, now_ms: int) -> Decided:
        """Read the state.  A new leader epoch is recorded, and fences the writes of older
        leaders."""
        entry = self.entries.get(partition)
        if partition.partition < 0:
            return invalid(NEGATIVE_PARTITION)
        if self._is_strict and leader_epoch < 0:
            return invalid(NEGATIVE_LEADER_EPOCH)
        if entry is None:
            return invalid(READ_OF_UNINITIALIZED)
        if NO_EPOCH != leader_epoch < entry.leader_epoch:
            return _refusal(ErrorCode.FENCED_LEADER_EPOCH)
        if not self._exists(partition):
            return _refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        state = entry.state
        if leader_epoch in (NO_EPOCH, entry.leader_epoch):
            return CoordinatorResult([], state)
        count = state.delivery_complete_count
        record = self._changed(
            partition, entry, leader_epoch, state.start_offset, count, (), now_ms
        )
        return CoordinatorResult([record], state)

    def update(
        self,
        partition: SharePartition,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        delivery_complete_count: int,
        batches: tuple[StateBatch, ...],
        now_ms: int,
    ) -> Decided:
        """Store the changes that a share-partition leader reports."""
        entry = self.entries.get(partition)
        if partition.partition < 0:
            return invalid(NEGATIVE_PARTITION)
        if self._is_strict and leader_epoch < 0:
            return invalid(NEGATIVE_LEADER_EPOCH)
        if self._is_strict and state_epoch < 0:
            return invalid(NEGATIVE_STATE_EPOCH)
        if entry is None:
            return invalid(WRITE_OF_UNINITIALIZED)
        if NO_EPOCH != leader_epoch < entry.leader_epoch:
            return _refusal(ErrorCode.FENCED_LEADER_EPOCH)
        if NO_EPOCH != state_epoch < entry.state_epoch:
            return _refusal(ErrorCode.FENCED_STATE_EPOCH)
        if not self._exists(partition):
            return _refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        record = self._changed(
            partition,
            entry,
            entry.state.leader_epoch,
            start_offset,
            delivery_complete_count,
            batches,
            now_ms,
        )
        return CoordinatorResult([record], None)

    def delete(self, partition: SharePartition) -> Decided:
        """Delete the state; no error if there is none."""
        refused = self._refuse_unknown(partition)
        if refused is not None:
            return refused
        is_there = partition in self.entries
        return CoordinatorResult([SnapshotRecord(partition, None)] if is_there else [], None)

    def summarize(self, partition: SharePartition) -> Decided:
        """The state, or None if there is none."""
        return self._refuse_unknown(partition) or CoordinatorResult([], self.state(partition))

    def _refuse_unknown(self, partition: SharePartition) -> RequestRefused | None:
        if partition.partition < 0:
            return invalid(NEGATIVE_PARTITION)
        if not self._exists(partition):
            return _refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return None

    @property
    def _is_strict(self) -> bool:
        return self._broker.release.number >= FIRST_WITHOUT_MISSING_EPOCHS

    def _exists(self, partition: SharePartition) -> bool:
        topic = self._broker.image.topic_by_id(partition.topic_id)
        return topic is not None and partition.partition < len(topic.partitions)

    def _changed(
        self,
        partition: SharePartition,
        entry: _Entry,
        leader_epoch: int,
        start_offset: int,
        delivery_complete_count: int,
        batches: tuple[StateBatch, ...],
        now_ms: int,
    ) -> StateRecord:
        """The record of a change: an update, or a snapshot after a number of updates."""
        known = entry.state
        if self._is_strict:
            # Writes may arrive out of order; progress never goes back.
            if start_offset < known.start_offset:
                delivery_complete_count = known.delivery_complete_count
            elif start_offset == known.start_offset:
                delivery_complete_count = max(
                    delivery_complete_count, known.delivery_complete_count
                )
            start_offset = max(start_offset, known.start_offset)
        limit = self._broker.config.share_coordinator_snapshot_update_records_per_snapshot
        if entry.updates < limit:
            return UpdateRecord(
                partition=partition,
                snapshot_epoch=known.snapshot_epoch,
                leader_epoch=leader_epoch,
                start_offset=start_offset,
                delivery_complete_count=delivery_complete_count,
                batches=combine((), batches, start_offset),
            )
        new_start = known.start_offset if start_offset == UNINITIALIZED else start_offset
        snapshot = replace(
            known,
            snapshot_epoch=known.snapshot_epoch + 1,
            leader_epoch=leader_epoch,
            start_offset=new_start,
            delivery_complete_count=delivery_complete_count,
            batches=combine(known.batches, batches, new_start),
            create_timestamp_ms=now_ms,
            write_timestamp_ms=now_ms,
        )
        return SnapshotRecord(partition, snapshot)

    # -------------------------------------------------------------------------- records

    def put(self, record: StateRecord) -> None:
        """Apply a record that is in the log."""
        if isinstance(record, SnapshotRecord):
            self._put_snapshot(record.partition, record.state)
        else:
            self._put_update(record)

    def _put_snapshot(self, partition: SharePartition, state: ShareState | None) -> None:
        if state is None:
            self.entries.pop(partition, None)
            return
        entry = self.entries.get(partition)
        if entry is None:
            self.entries[partition] = _Entry(state, state.leader_epoch, state.state_epoch)
            return
        entry.state = state
        entry.leader_epoch = max(entry.leader_epoch, state.leader_epoch)
        entry.state_epoch = max(entry.state_epoch, state.state_epoch)
        limit = self._broker.config.share_coordinator_snapshot_update_records_per_snapshot
        if entry.updates >= limit:
            entry.updates = 0

    def _put_update(self, update: UpdateRecord) -> None:
        entry = self.entries.get(update.partition)
        if entry is None:
            return  # its snapshot was deleted, because the log began after it
        known = entry.state
        start = known.start_offset if update.start_offset == UNINITIALIZED else update.start_offset
        epoch = known.leader_epoch if update.leader_epoch == NO_EPOCH else update.leader_epoch
        entry.state = replace(
            known,
            leader_epoch=epoch,
            start_offset=start,
            delivery_complete_count=update.delivery_complete_count,
            batches=combine(known.batches, update.batches, start),
        )
        entry.leader_epoch = max(entry.leader_epoch, update.leader_epoch)
        entry.updates += 1


def _refusal(error: ErrorCode) -> RequestRefused:
    return RequestRefused(error, error.text)
