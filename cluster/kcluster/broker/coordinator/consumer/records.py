"""The records of consumer groups on __consumer_offsets, in Kafka's formats.

Owns: these records, and the conversion of the group's values to their messages.  Never: decides on
a write.  Kafka: CoordinatorRecordType 3-8 and 16, GroupCoordinatorRecordHelpers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import astuple

from kcluster.broker.coordinator.group_log import Reader
from kcluster.broker.coordinator.modern.records import (
    CurrentMember,
    GroupMetadata,
    GroupValue,
    MemberMetadata,
    MessageRecord,
    RecordTypes,
    TargetMember,
    TargetMetadata,
    readers_of,
)


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


TYPES: Final = RecordTypes(
    ConsumerGroupMetadata,
    ConsumerGroupMemberMetadata,
    ConsumerGroupTargetAssignmentMetadata,
    ConsumerGroupTargetAssignmentMember,
    ConsumerGroupCurrentMemberAssignment,
)

RECORDS: Final[tuple[type[MessageRecord], ...]] = (
    *astuple(TYPES),
    ConsumerGroupPartitionMetadata,
    ConsumerGroupRegularExpression,
)

READERS: Final[Mapping[int, Reader]] = readers_of(RECORDS)
