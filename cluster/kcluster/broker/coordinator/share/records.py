"""The records of share groups on __consumer_offsets, in Kafka's formats.

Owns: those records.  Never: decides what is written.
Kafka: CoordinatorRecordType 10-15, GroupCoordinatorRecordHelpers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kcluster.broker.coordinator.group_log import Reader
from kcluster.broker.coordinator.modern.records import (
    GroupValue,
    MemberValue,
    MessageRecord,
    readers_of,
)


class ShareGroupMemberMetadata(MemberValue, frozen=True):
    """A member, without its epoch and assignment."""

    kind = 10


class ShareGroupMetadata(GroupValue, frozen=True):
    """The group epoch and the hash of the topics' metadata; its tombstone deletes the group."""

    kind = 11


class ShareGroupTargetAssignmentMetadata(GroupValue, frozen=True):
    """The epoch of the target assignment, and when it was computed."""

    kind = 12


class ShareGroupTargetAssignmentMember(MemberValue, frozen=True):
    """A member's part of the target assignment."""

    kind = 13


class ShareGroupCurrentMemberAssignment(MemberValue, frozen=True):
    """A member's epoch and partitions."""

    kind = 14


class ShareGroupStatePartitionMetadata(GroupValue, frozen=True):
    """Which share partitions are being initialized, are initialized, or deleted."""

    kind = 15


RECORDS: Final[tuple[type[MessageRecord], ...]] = (
    ShareGroupMemberMetadata,
    ShareGroupMetadata,
    ShareGroupTargetAssignmentMetadata,
    ShareGroupTargetAssignmentMember,
    ShareGroupCurrentMemberAssignment,
    ShareGroupStatePartitionMetadata,
)

READERS: Final[Mapping[int, Reader]] = readers_of(RECORDS)
