"""Formats of the coordinator's records on __share_group_state.

Owns: their bytes, equal to Kafka's.  Never: decides what is written, keeps state.
Kafka: ShareCoordinatorRecordHelpers, ShareCoordinatorRecordSerde; ShareSnapshotKey/Value,
ShareUpdateKey/Value.

A snapshot has the whole state of a share partition, an update the changes of one write.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from struct import Struct as Layout
from typing import Any, Final

from msgspec import Struct

from kcluster.broker.coordinator.records import Encoded, decode_records
from kcluster.broker.coordinator.share_state.state import SharePartition, ShareState, StateBatch
from kcluster.protocol import messages as m
from kcluster.protocol.apis import record_codec
from kcluster.protocol.records.records import Batch

_SNAPSHOT: Final = 0
_UPDATE: Final = 1
"""Kinds of keys.  Kafka: CoordinatorRecordType."""
_VERSION: Final = 0
"""The version of all keys and values so far."""
_INT16: Final = Layout(">h")


class SnapshotRecord(Struct, frozen=True):
    """The whole state of a share partition.  `state` None: a tombstone."""

    partition: SharePartition
    state: ShareState | None

    @property
    def stored_batches(self) -> tuple[StateBatch, ...]:
        return self.state.batches if self.state is not None else ()

    def encode(self) -> Encoded:
        key = record_codec("ShareSnapshotKey", _VERSION).encode_prefixed(
            m.ShareSnapshotKey(*self.partition)
        )
        state = self.state
        if state is None:
            return key, None
        value = m.ShareSnapshotValue(
            snapshot_epoch=state.snapshot_epoch,
            state_epoch=state.state_epoch,
            leader_epoch=state.leader_epoch,
            start_offset=state.start_offset,
            delivery_complete_count=state.delivery_complete_count,
            create_timestamp=state.create_timestamp_ms,
            write_timestamp=state.write_timestamp_ms,
            state_batches=[m.ShareSnapshotValue.StateBatch(*batch) for batch in state.batches],
        )
        return key, record_codec("ShareSnapshotValue", _VERSION).encode_prefixed(value)


class UpdateRecord(Struct, frozen=True):
    """The changes of one write.  `start_offset` -1: unchanged."""

    partition: SharePartition
    snapshot_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: tuple[StateBatch, ...]

    @property
    def stored_batches(self) -> tuple[StateBatch, ...]:
        return self.batches

    def encode(self) -> Encoded:
        key = record_codec("ShareUpdateKey", _VERSION).encode_prefixed(
            m.ShareUpdateKey(*self.partition)
        )
        value = m.ShareUpdateValue(
            snapshot_epoch=self.snapshot_epoch,
            leader_epoch=self.leader_epoch,
            start_offset=self.start_offset,
            delivery_complete_count=self.delivery_complete_count,
            state_batches=[m.ShareUpdateValue.StateBatch(*batch) for batch in self.batches],
        )
        return key, record_codec("ShareUpdateValue", _VERSION).encode_prefixed(value)


StateRecord = SnapshotRecord | UpdateRecord


def decode_states(batch: Batch) -> Iterator[tuple[int, StateRecord]]:
    """(offset, record) of a batch, in the order in which they were written."""
    return decode_records(batch, _decode)


def _decode(key: bytes, value: bytes | None) -> StateRecord | None:
    (kind,) = _INT16.unpack_from(key)
    if kind == _SNAPSHOT:
        return _read_snapshot(key, value)
    if kind == _UPDATE and value is not None:
        return _read_update(key, value)
    return None


def _read_snapshot(key: bytes, value: bytes | None) -> SnapshotRecord:
    decoded = record_codec("ShareSnapshotKey", _VERSION).decode_prefixed(key)
    partition = SharePartition(decoded.group_id, decoded.topic_id, decoded.partition)
    if value is None:
        return SnapshotRecord(partition, None)
    state = record_codec("ShareSnapshotValue", _VERSION).decode_prefixed(value)
    return SnapshotRecord(
        partition,
        ShareState(
            snapshot_epoch=state.snapshot_epoch,
            state_epoch=state.state_epoch,
            leader_epoch=state.leader_epoch,
            start_offset=state.start_offset,
            delivery_complete_count=state.delivery_complete_count,
            batches=batches_of(state.state_batches),
            create_timestamp_ms=state.create_timestamp,
            write_timestamp_ms=state.write_timestamp,
        ),
    )


def _read_update(key: bytes, value: bytes) -> UpdateRecord:
    decoded = record_codec("ShareUpdateKey", _VERSION).decode_prefixed(key)
    update = record_codec("ShareUpdateValue", _VERSION).decode_prefixed(value)
    return UpdateRecord(
        partition=SharePartition(decoded.group_id, decoded.topic_id, decoded.partition),
        snapshot_epoch=update.snapshot_epoch,
        leader_epoch=update.leader_epoch,
        start_offset=update.start_offset,
        delivery_complete_count=update.delivery_complete_count,
        batches=batches_of(update.state_batches),
    )


def batches_of(messages: Iterable[Any]) -> tuple[StateBatch, ...]:
    """The batches in a message of any class that has batches."""
    return tuple(
        StateBatch(one.first_offset, one.last_offset, one.delivery_state, one.delivery_count)
        for one in messages
    )
