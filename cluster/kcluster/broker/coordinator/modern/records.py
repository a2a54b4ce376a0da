"""The form of the records of groups with epochs: the key names a group, or a part of one.

Owns: writing and reading such records.  Never: knows one (<kind>/records.py).  Kafka:
GroupCoordinatorRecordHelpers, GroupCoordinatorRecordSerde.

    class ConsumerGroupMemberMetadata(MemberMetadata, frozen=True):
        kind = 5

is the record with ConsumerGroupMemberMetadataKey and ConsumerGroupMemberMetadataValue: the class
has Kafka's name of the record.  Its fields are the key's, in order, then `value`: the message, or
None for a tombstone.

All kinds of groups have five of these records: GroupMetadata, MemberMetadata, TargetMetadata,
TargetMember, CurrentMember.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Final

from msgspec import Struct
from msgspec.structs import astuple

from kcluster.broker.coordinator.group_log import GroupRecord, Reader
from kcluster.broker.coordinator.records import Encoded
from kcluster.protocol import messages as m
from kcluster.protocol.apis import record_codec

_VERSION: Final = 0
"""The version of all keys, and of all values so far."""


class MessageRecord(GroupRecord, frozen=True):
    """The base: `GroupValue`, `MemberValue`, or a record with another key."""

    kind: ClassVar[int]
    """Kafka: CoordinatorRecordType."""

    def encode(self) -> Encoded:
        name = type(self).__name__
        *key_fields, value = astuple(self)
        key = getattr(m, f"{name}Key")(*key_fields)
        encoded_key = record_codec(f"{name}Key", _VERSION).encode_prefixed(key)
        if value is None:
            return encoded_key, None
        return encoded_key, record_codec(f"{name}Value", _VERSION).encode_prefixed(value)

    @classmethod
    def read(cls, key: bytes, value: bytes | None) -> MessageRecord:
        make: Any = cls
        name = cls.__name__
        key_fields = astuple(record_codec(f"{name}Key", _VERSION).decode_prefixed(key))
        if value is not None:
            value = record_codec(f"{name}Value", _VERSION).decode_prefixed(value)
        record: MessageRecord = make(*key_fields, value)
        return record

    @classmethod
    def value_type(cls) -> Any:
        """The message class of the record's value."""
        return getattr(m, f"{cls.__name__}Value")


class GroupValue(MessageRecord, frozen=True):
    """A record whose key is the group's id."""

    value: Any


class MemberValue(MessageRecord, frozen=True):
    """A record whose key is the group's id and a member's."""

    member_id: str
    value: Any


class GroupMetadata(GroupValue, frozen=True):
    """The group epoch and the hash of the topics' metadata; its tombstone deletes the group."""


class MemberMetadata(MemberValue, frozen=True):
    """A member, without its epoch and assignment; its tombstone removes the member."""


class TargetMetadata(GroupValue, frozen=True):
    """The epoch of the target assignment, and the time at which it was computed."""


class TargetMember(MemberValue, frozen=True):
    """A member's part of the target assignment."""


class CurrentMember(MemberValue, frozen=True):
    """A member's epoch, and its partitions or tasks."""


class RecordTypes(Struct, frozen=True):
    """The classes of one kind of group."""

    group: type[GroupMetadata]
    member: type[MemberMetadata]
    target: type[TargetMetadata]
    target_member: type[TargetMember]
    current: type[CurrentMember]


def readers_of(records: Iterable[type[MessageRecord]]) -> Mapping[int, Reader]:
    """Kind of key -> the reader of such records."""
    return {record.kind: record.read for record in records}
