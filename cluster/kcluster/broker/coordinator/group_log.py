"""Formats of the coordinator's records on __consumer_offsets: offsets, and classic groups.

Owns: these records, the common part of records of all kinds, and their bytes, equal to Kafka's.
Never: decides on a write, keeps state, knows the records of another kind of group
(<kind>/records.py).  Kafka: CoordinatorRecordType, GroupCoordinatorRecordHelpers,
GroupCoordinatorRecordSerde; OffsetCommitKey/Value, GroupMetadataKey/Value.

A key starts with its kind (int16), a value with its version (int16).  A record class can encode
itself; READERS has a reader per kind of key (group_records.py has the readers of all kinds).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from struct import Struct as Layout
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from kcluster.broker.coordinator.records import Encoded
from kcluster.protocol import messages as m
from kcluster.protocol.apis import record_codec

if TYPE_CHECKING:
    from kcluster.protocol.messages import GroupMetadataValue

NO_TOPIC_ID: Final = bytes(16)
NO_EXPIRY: Final = -1

_OFFSET_COMMIT: Final = 1
_GROUP_METADATA: Final = 2
"""Kinds of keys.  Kafka: CoordinatorRecordType."""

_KEY_VERSION: Final = 0
_OFFSET_VALUE_VERSION: Final = 4
_OFFSET_VALUE_VERSION_WITH_EXPIRY: Final = 1
"""Only version 1 has a time at which an offset expires."""
_GROUP_VALUE_VERSION: Final = 3

_INT16: Final = Layout(">h")


Reader = Callable[[bytes, bytes | None], "LogRecord"]
"""Key and value -> the record."""


class GroupRecord(Struct, frozen=True):
    """A record of a group itself, of any kind."""

    group_id: str

    def encode(self) -> Encoded:
        raise AssertionError("a subclass encodes")


# -------------------------------------------------------------------------------------- offsets


class CommittedOffset(Struct, frozen=True):
    """A group's committed position in one partition.  Kafka: OffsetAndMetadata."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int = NO_EXPIRY
    """Set only if an old client requested its own retention time."""
    topic_id: bytes = NO_TOPIC_ID


class OffsetRecord(Struct, frozen=True):
    """A record of a committed offset.  `committed` None: a tombstone."""

    group_id: str
    topic: str
    partition: int
    committed: CommittedOffset | None

    @property
    def key(self) -> tuple[str, str, int]:
        """(group, topic, partition)."""
        return self.group_id, self.topic, self.partition

    def encode(self) -> Encoded:
        key = m.OffsetCommitKey(group=self.group_id, topic=self.topic, partition=self.partition)
        encoded_key = record_codec("OffsetCommitKey", _KEY_VERSION).encode_prefixed(key)
        committed = self.committed
        if committed is None:
            return encoded_key, None
        expires = committed.expire_timestamp_ms != NO_EXPIRY
        version = _OFFSET_VALUE_VERSION_WITH_EXPIRY if expires else _OFFSET_VALUE_VERSION
        value = m.OffsetCommitValue(
            offset=committed.offset,
            leader_epoch=committed.leader_epoch,
            metadata=committed.metadata,
            commit_timestamp=committed.commit_timestamp_ms,
            expire_timestamp=committed.expire_timestamp_ms,
            topic_id=committed.topic_id,
        )
        return encoded_key, record_codec("OffsetCommitValue", version).encode_prefixed(value)


def _read_offset(key: bytes, value: bytes | None) -> OffsetRecord:
    decoded = record_codec("OffsetCommitKey", _KEY_VERSION).decode_prefixed(key)
    committed = None if value is None else _read_committed(value)
    return OffsetRecord(decoded.group, decoded.topic, decoded.partition, committed)


def _read_committed(value: bytes) -> CommittedOffset:
    (version,) = _INT16.unpack_from(value)
    decoded = record_codec("OffsetCommitValue", version).decode_prefixed(value)
    return CommittedOffset(
        offset=decoded.offset,
        leader_epoch=decoded.leader_epoch,
        metadata=decoded.metadata,
        commit_timestamp_ms=decoded.commit_timestamp,
        expire_timestamp_ms=decoded.expire_timestamp,
        topic_id=decoded.topic_id,
    )


# ------------------------------------------------------------------------------- classic groups


class ClassicGroupRecord(GroupRecord, frozen=True):
    """A classic group as a whole.  `value` None: a tombstone."""

    value: GroupMetadataValue | None

    def encode(self) -> Encoded:
        key = m.GroupMetadataKey(group=self.group_id)
        encoded_key = record_codec("GroupMetadataKey", _KEY_VERSION).encode_prefixed(key)
        if self.value is None:
            return encoded_key, None
        codec = record_codec("GroupMetadataValue", _GROUP_VALUE_VERSION)
        return encoded_key, codec.encode_prefixed(self.value)


def new_classic_group(group_id: str, created_ms: int) -> ClassicGroupRecord:
    """A group without members yet.  Kafka: newEmptyGroupMetadataRecord."""
    value = m.GroupMetadataValue(
        protocol_type="",
        generation=0,
        protocol=None,
        leader=None,
        current_state_timestamp=created_ms,
        members=[],
    )
    return ClassicGroupRecord(group_id, value)


def _read_classic_group(key: bytes, value: bytes | None) -> ClassicGroupRecord:
    group_id = record_codec("GroupMetadataKey", _KEY_VERSION).decode_prefixed(key).group
    if value is None:
        return ClassicGroupRecord(group_id, None)
    (version,) = _INT16.unpack_from(value)
    return ClassicGroupRecord(
        group_id, record_codec("GroupMetadataValue", version).decode_prefixed(value)
    )


LogRecord = OffsetRecord | GroupRecord

READERS: Final[Mapping[int, Reader]] = {
    _OFFSET_COMMIT: _read_offset,
    _GROUP_METADATA: _read_classic_group,
}
