"""What the coordinator writes to __consumer_offsets, and how it reads it back.

Owns: the two kinds of records (a committed offset, a group's metadata) and their bytes, as Kafka
writes them.  Never: decides what is written, keeps state.
Kafka: GroupCoordinatorRecordHelpers, GroupCoordinatorRecordSerde; OffsetCommitKey/Value,
GroupMetadataKey/Value.

A key starts with its kind (int16), a value with its version (int16).  Kinds of other coordinators
(KIP-848, share and streams groups) are skipped on reading, never lost: the log keeps them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from struct import Struct as Layout
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from kcluster.broker.coordinator.group_state import Group, GroupState, Member
from kcluster.protocol import messages as m
from kcluster.protocol.apis import record_codec
from kcluster.protocol.records.records import Batch, Record, build_batch, read_records

if TYPE_CHECKING:
    from kcluster.protocol.messages import GroupMetadataValue

NO_TOPIC_ID: Final = bytes(16)
NO_EXPIRY: Final = -1

_KEY_VERSION: Final = 0
_OFFSET_VALUE_VERSION: Final = 4
_OFFSET_VALUE_VERSION_WITH_EXPIRY: Final = 1
"""Only version 1 has a time at which an offset expires."""
_GROUP_VALUE_VERSION: Final = 3

_INT16: Final = Layout(">h")
_INT32: Final = Layout(">i")


class CommittedOffset(Struct, frozen=True):
    """Where a group's consumption of one partition stands.  Kafka: OffsetAndMetadata."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int = NO_EXPIRY
    """Set only when an old client asked for a retention of its own."""
    topic_id: bytes = NO_TOPIC_ID


class OffsetRecord(Struct, frozen=True):
    """`committed` None: a tombstone."""

    group_id: str
    topic: str
    partition: int
    committed: CommittedOffset | None


class GroupRecord(Struct, frozen=True):
    """`value` None: a tombstone."""

    group_id: str
    value: GroupMetadataValue | None


LogRecord = OffsetRecord | GroupRecord


# ------------------------------------------------------------------------------------- groups


def group_record(group: Group, assignment: dict[str, bytes]) -> GroupRecord:
    """The group as of now, each member with its part of `assignment`."""
    name = group.protocol_name
    members = [
        m.GroupMetadataValue.MemberMetadata(
            member_id=member.member_id,
            group_instance_id=member.instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            rebalance_timeout=member.rebalance_timeout_ms,
            session_timeout=member.session_timeout_ms,
            subscription=member.protocols.get(name, b"") if name is not None else b"",
            assignment=assignment.get(member.member_id, b""),
        )
        for member in group.members.values()
    ]
    return GroupRecord(
        group.group_id,
        m.GroupMetadataValue(
            protocol_type=group.protocol_type or "",
            generation=group.generation,
            protocol=name,
            leader=group.leader,
            current_state_timestamp=group.state_since_ms,
            members=members,
        ),
    )


def empty_group_record(group: Group) -> GroupRecord:
    """For a group that has only been talked about: nobody is in it yet."""
    value = m.GroupMetadataValue(
        protocol_type="",
        generation=0,
        protocol=None,
        leader=None,
        current_state_timestamp=group.state_since_ms,
        members=[],
    )
    return GroupRecord(group.group_id, value)


def restore_group(group_id: str, value: GroupMetadataValue) -> Group:
    """The group that `value` was written from: stable, or empty."""
    group = Group(
        group_id,
        state=GroupState.STABLE if value.members else GroupState.EMPTY,
        state_since_ms=value.current_state_timestamp,
        generation=value.generation,
        protocol_type=value.protocol_type or None,
        protocol_name=value.protocol,
        leader=value.leader,
    )
    for saved in value.members:
        timeout_ms = saved.rebalance_timeout
        protocol = value.protocol or ""
        group.add(
            Member(
                member_id=saved.member_id,
                instance_id=saved.group_instance_id,
                client_id=saved.client_id,
                client_host=saved.client_host,
                rebalance_timeout_ms=saved.session_timeout if timeout_ms == -1 else timeout_ms,
                session_timeout_ms=saved.session_timeout,
                protocol_type=value.protocol_type,
                protocols={protocol: bytes(saved.subscription)},
                assignment=bytes(saved.assignment),
            )
        )
    group.subscribed_topics = subscribed_topics(group)
    return group


def subscribed_topics(group: Group) -> frozenset[str] | None:
    """Topics that the members of a consumer group say they read; None when it cannot be told.

    Read from version 0 of Kafka's ConsumerProtocolSubscription, with which all versions begin.
    """
    if not group.is_consumer_group:
        return None
    topics: set[str] = set()
    for member in group.members.values():
        if group.protocol_name is None:
            return None
        found = _topics_of_subscription(member.protocols.get(group.protocol_name, b""))
        if found is None:
            return None
        topics.update(found)
    return frozenset(topics)


def _topics_of_subscription(metadata: bytes) -> list[str] | None:
    if len(metadata) < _INT16.size + _INT32.size:
        return None
    (count,) = _INT32.unpack_from(metadata, _INT16.size)
    position = _INT16.size + _INT32.size
    topics: list[str] = []
    for _ in range(count):
        if position + _INT16.size > len(metadata):
            return None
        (size,) = _INT16.unpack_from(metadata, position)
        position += _INT16.size
        if size < 0 or position + size > len(metadata):
            return None
        topics.append(metadata[position : position + size].decode("utf-8", "replace"))
        position += size
    return topics


# -------------------------------------------------------------------------------------- bytes


def encode_records(records: Iterable[LogRecord], now_ms: int) -> bytearray:
    """One batch with `records`, ready to be appended."""
    return build_batch(
        [Record(0, now_ms, _encode_key(r), _encode_value(r)) for r in records]
    )  # fmt: skip


def decode_batches(batches: Sequence[Batch]) -> Iterator[LogRecord]:
    """The records of kinds that we know, in the order in which they were written."""
    for batch in batches:
        if batch.is_control:
            continue
        for record in read_records(batch):
            decoded = None if record.key is None else _decode(record.key, record.value)
            if decoded is not None:
                yield decoded


def _encode_key(record: LogRecord) -> bytes:
    if isinstance(record, OffsetRecord):
        key = m.OffsetCommitKey(
            group=record.group_id, topic=record.topic, partition=record.partition
        )
        return record_codec("OffsetCommitKey", _KEY_VERSION).encode_prefixed(key)
    return record_codec("GroupMetadataKey", _KEY_VERSION).encode_prefixed(
        m.GroupMetadataKey(group=record.group_id)
    )


def _encode_value(record: LogRecord) -> bytes | None:
    if isinstance(record, GroupRecord):
        if record.value is None:
            return None
        codec = record_codec("GroupMetadataValue", _GROUP_VALUE_VERSION)
        return codec.encode_prefixed(record.value)
    committed = record.committed
    if committed is None:
        return None
    expires = committed.expire_timestamp_ms != NO_EXPIRY
    version = _OFFSET_VALUE_VERSION_WITH_EXPIRY if expires else _OFFSET_VALUE_VERSION
    return record_codec("OffsetCommitValue", version).encode_prefixed(
        m.OffsetCommitValue(
            offset=committed.offset,
            leader_epoch=committed.leader_epoch,
            metadata=committed.metadata,
            commit_timestamp=committed.commit_timestamp_ms,
            expire_timestamp=committed.expire_timestamp_ms,
            topic_id=committed.topic_id,
        )
    )


def _decode(key: bytes, value: bytes | None) -> LogRecord | None:
    (kind,) = _INT16.unpack_from(key)
    offsets = record_codec("OffsetCommitKey", _KEY_VERSION)
    if kind == offsets.prefix:
        found = offsets.decode_prefixed(key)
        committed = None if value is None else _decode_offset(value)
        return OffsetRecord(found.group, found.topic, found.partition, committed)
    groups = record_codec("GroupMetadataKey", _KEY_VERSION)
    if kind == groups.prefix:
        group_id = groups.decode_prefixed(key).group
        if value is None:
            return GroupRecord(group_id, None)
        (version,) = _INT16.unpack_from(value)
        codec = record_codec("GroupMetadataValue", version)
        return GroupRecord(group_id, codec.decode_prefixed(value))
    return None


def _decode_offset(value: bytes) -> CommittedOffset:
    (version,) = _INT16.unpack_from(value)
    found = record_codec("OffsetCommitValue", version).decode_prefixed(value)
    return CommittedOffset(
        offset=found.offset,
        leader_epoch=found.leader_epoch,
        metadata=found.metadata,
        commit_timestamp_ms=found.commit_timestamp,
        expire_timestamp_ms=found.expire_timestamp,
        topic_id=found.topic_id,
    )
