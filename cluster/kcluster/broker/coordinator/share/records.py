"""The records of share groups on __consumer_offsets, in Kafka's formats.

Owns: these records.  Never: decides what is written.
Kafka: CoordinatorRecordType 10-15, GroupCoordinatorRecordHelpers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

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


TYPES: Final = RecordTypes(
    ShareGroupMetadata,
    ShareGroupMemberMetadata,
    ShareGroupTargetAssignmentMetadata,
    ShareGroupTargetAssignmentMember,
    ShareGroupCurrentMemberAssignment,
)

RECORDS: Final[tuple[type[MessageRecord], ...]] = (
    *astuple(TYPES),
    ShareGroupStatePartitionMetadata,
)

READERS: Final[Mapping[int, Reader]] = readers_of(RECORDS)
