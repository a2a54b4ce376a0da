"""The records of groups with epochs on __consumer_offsets, in Kafka's formats: the key names a
group, or a part of one.

Owns: the records of all kinds of such groups, writing and reading them.  Never: decides what is
written.  Kafka: CoordinatorRecordType 3-8, 10-17 and 19-23, GroupCoordinatorRecordHelpers,
StreamsCoordinatorRecordHelpers, GroupCoordinatorRecordSerde.

    class ConsumerGroupMemberMetadata(MemberMetadata, frozen=True):
        kind = 5

is the record with ConsumerGroupMemberMetadataKey and ConsumerGroupMemberMetadataValue: the class
has Kafka's name of the record.  Its fields are the key's, in order, then `value`: the message, or
None for a tombstone.

All kinds of groups have five of these records: GroupMetadata, MemberMetadata, TargetMetadata,
TargetMember, CurrentMember.
"""

from __future__ import annotations

from collections.abc import Mapping
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
    others: tuple[type[MessageRecord], ...]
    """The records that only this kind of group has."""

    @property
    def all(self) -> tuple[type[MessageRecord], ...]:
        """All classes of the kind."""
        common = self.group, self.member, self.target, self.target_member, self.current
        return *common, *self.others


# ---------------------------------------------------------------------------------- consumer groups


class ConsumerGroupMetadata(GroupMetadata, frozen=True):
    kind = 3


class ConsumerGroupPartitionMetadata(GroupValue, frozen=True):
    """The topics' metadata, before 4.1; only its tombstone is written."""

    kind = 4


class ConsumerGroupMemberMetadata(MemberMetadata, frozen=True):
    kind = 5


class ConsumerGroupTargetAssignmentMetadata(TargetMetadata, frozen=True):
    kind = 6


class ConsumerGroupTargetAssignmentMember(TargetMember, frozen=True):
    kind = 7


class ConsumerGroupCurrentMemberAssignment(CurrentMember, frozen=True):
    kind = 8


class ConsumerGroupRegularExpression(MessageRecord, frozen=True):
    """The topics that match a regular expression."""

    kind = 16

    regular_expression: str
    value: Any


CONSUMER: Final = RecordTypes(
    ConsumerGroupMetadata,
    ConsumerGroupMemberMetadata,
    ConsumerGroupTargetAssignmentMetadata,
    ConsumerGroupTargetAssignmentMember,
    ConsumerGroupCurrentMemberAssignment,
    (ConsumerGroupPartitionMetadata, ConsumerGroupRegularExpression),
)


# ------------------------------------------------------------------------------------- share groups


class ShareGroupMemberMetadata(MemberMetadata, frozen=True):
    kind = 10


class ShareGroupMetadata(GroupMetadata, frozen=True):
    kind = 11


class ShareGroupTargetAssignmentMetadata(TargetMetadata, frozen=True):
    kind = 12


class ShareGroupTargetAssignmentMember(TargetMember, frozen=True):
    kind = 13


class ShareGroupCurrentMemberAssignment(CurrentMember, frozen=True):
    kind = 14


class ShareGroupStatePartitionMetadata(GroupValue, frozen=True):
    """The share partitions that are being initialized, are initialized, or deleted."""

    kind = 15


SHARE: Final = RecordTypes(
    ShareGroupMetadata,
    ShareGroupMemberMetadata,
    ShareGroupTargetAssignmentMetadata,
    ShareGroupTargetAssignmentMember,
    ShareGroupCurrentMemberAssignment,
    (ShareGroupStatePartitionMetadata,),
)


# ----------------------------------------------------------------------------------- streams groups


class StreamsGroupMetadata(GroupMetadata, frozen=True):
    """The group's own record, which also has the configs of the assignment, and the validated
    topology's epoch."""

    kind = 17


class StreamsGroupMemberMetadata(MemberMetadata, frozen=True):
    kind = 19


class StreamsGroupTargetAssignmentMetadata(TargetMetadata, frozen=True):
    kind = 20


class StreamsGroupTargetAssignmentMember(TargetMember, frozen=True):
    kind = 21


class StreamsGroupCurrentMemberAssignment(CurrentMember, frozen=True):
    kind = 22


class StreamsGroupTopology(GroupValue, frozen=True):
    """The topology of the group."""

    kind = 23


STREAMS: Final = RecordTypes(
    StreamsGroupMetadata,
    StreamsGroupMemberMetadata,
    StreamsGroupTargetAssignmentMetadata,
    StreamsGroupTargetAssignmentMember,
    StreamsGroupCurrentMemberAssignment,
    (StreamsGroupTopology,),
)


READERS: Final[Mapping[int, Reader]] = {
    record.kind: record.read for kind in (CONSUMER, SHARE, STREAMS) for record in kind.all
}
"""Kind of key -> the reader of such records."""
