"""One partition of __share_group_state that this broker leads, with its share partitions.

Owns: the log of their states, and the deletion of its unneeded records.  Never: decides about a
state (share_states.py does), knows a record's format (share_state_log.py).
Kafka: ShareCoordinatorShard, ShareCoordinatorOffsetsManager.

A state is the sum of its records in the log, committed or not: a record takes effect as soon as it
is in the log. Each request is answered when all that was written before its answer is committed, so
no client sees a state that a failover could take back.
"""

from __future__ import annotations

from msgspec.structs import replace

from kcluster.broker.coordinator.interface import CoordinatorBroker, ignore_outcome
from kcluster.broker.coordinator.log_shard import LogShard
from kcluster.broker.coordinator.share_state.share_state_log import (
    SnapshotRecord,
    StateRecord,
    decode_states,
)
from kcluster.broker.coordinator.share_state.share_states import ShareStates
from kcluster.broker.coordinator.share_state.state import SharePartition
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.names import SHARE_GROUP_STATE_TOPIC
from kcluster.protocol.records.records import Batch


class ShareStateShard(LogShard[StateRecord]):
    """One partition of __share_group_state.  `states`: the states in its log, committed or
    not."""

    topic = SHARE_GROUP_STATE_TOPIC

    def __init__(self, broker: CoordinatorBroker, partition: int) -> None:
        super().__init__(broker, partition)
        self.states = ShareStates(broker)
        self._snapshots: dict[SharePartition, int] = {}
        """Offset of the last snapshot of each share partition."""
        self._redundant_before = 0
        """No record before this offset is needed."""
        self._pruned_before = 0

    @property
    def write_timeout_ms(self) -> int:
        return self.broker.config.share_coordinator_write_timeout_ms

    @property
    def load_bytes(self) -> int:
        return self.broker.config.share_coordinator_load_buffer_size

    @property
    def compression(self) -> int:
        return self.broker.config.share_coordinator_state_topic_compression_codec

    # ------------------------------------------------------------------------- state

    def replay(self, batch: Batch) -> None:
        for offset, record in decode_states(batch):
            self.put(record, offset)

    def put(self, record: StateRecord, offset: int) -> None:
        self.states.put(record)
        if isinstance(record, SnapshotRecord):
            self._note_snapshot(record.partition, offset, record.state is None)

    # ----------------------------------------------------------------------- pruning

    def _note_snapshot(self, partition: SharePartition, offset: int, is_deleted: bool) -> None:
        self._snapshots[partition] = offset
        self._redundant_before = min(self._snapshots.values())
        if is_deleted:
            del self._snapshots[partition]

    def prune(self, now_ms: int) -> None:
        """Delete the records before the oldest snapshot that is still needed, once all written so
        far is committed: a snapshot that is lost leaves the one before it needed."""
        offset = self._redundant_before
        if offset <= self._pruned_before or self.check_loaded() is not ErrorCode.NONE:
            return

        def committed(error: ErrorCode, _at_ms: int) -> None:
            replica = self.replica
            if error is ErrorCode.NONE and replica is not None and offset > self._pruned_before:
                self._pruned_before = offset
                self.broker.delete_internal_records(replica, offset)

        self.after_writes(committed, now_ms)

    def snapshot_cold(self, now_ms: int) -> None:
        """Write snapshots of share partitions whose last snapshot is old, so that an unused one
        does not hold back pruning."""
        if self.check_loaded() is not ErrorCode.NONE:
            return
        interval_ms = self.broker.config.share_coordinator_cold_partition_snapshot_interval_ms
        states = {partition: entry.state for partition, entry in self.states.entries.items()}
        if all(one.create_timestamp_ms != one.write_timestamp_ms for one in states.values()):
            return
        records: list[StateRecord] = [
            SnapshotRecord(
                partition,
                replace(state, snapshot_epoch=state.snapshot_epoch + 1, write_timestamp_ms=now_ms),
            )
            for partition, state in states.items()
            if now_ms - state.write_timestamp_ms >= interval_ms
        ]
        if records:
            self.append(records, ignore_outcome, now_ms, at_once=True)

    def forget_deleted_topics(self, now_ms: int) -> None:
        """Delete the states of share partitions whose topic no longer exists."""
        image = self.broker.image
        records: list[StateRecord] = [
            SnapshotRecord(partition, None)
            for partition in self.states.entries
            if partition.topic_id not in image.topic_names
        ]
        if records:
            self.append(records, ignore_outcome, now_ms, at_once=True)

    # --------------------------------------------------------------------- lifecycle

    def resume(self, now_ms: int) -> None:
        """Do nothing: the share coordinator has the timers."""

    def forget(self, now_ms: int) -> None:
        """Do nothing: only writes are parked here, and the log shard answers them."""
