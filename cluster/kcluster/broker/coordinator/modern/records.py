"""The form of the records of groups with epochs: the key names a group, or a part of one.

Owns: how such a record is written and read.  Never: knows a record (<kind>/records.py).
Kafka: GroupCoordinatorRecordHelpers, GroupCoordinatorRecordSerde.

    class ConsumerGroupMemberMetadata(MemberValue, frozen=True):
        kind = 5

is the record with ConsumerGroupMemberMetadataKey and ConsumerGroupMemberMetadataValue: the class
has Kafka's name of the record.  Its fields are those of the key in their order, then `value`: the
message, or None for a tombstone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Final

from msgspec.structs import astuple

from kcluster.broker.coordinator.group_log import GroupRecord, Reader
from kcluster.broker.coordinator.records import Encoded
from kcluster.protocol import messages as m
from kcluster.protocol.apis import record_codec

_VERSION: Final = 0
"""Of all keys, and of all values so far."""


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


class GroupValue(MessageRecord, frozen=True):
    """Its key is the group's id."""

    value: Any


class MemberValue(MessageRecord, frozen=True):
    """Its key is the group's id and a member's."""

    member_id: str
    value: Any


def readers_of(records: Iterable[type[MessageRecord]]) -> Mapping[int, Reader]:
    """Kind of key -> the reader of such records."""
    return {record.kind: record.read for record in records}
