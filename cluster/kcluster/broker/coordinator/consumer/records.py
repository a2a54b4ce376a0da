"""The records of consumer groups on __consumer_offsets, in Kafka's formats.

Owns: those records, and how values of the group become their messages.  Never: decides what is
written.  Kafka: CoordinatorRecordType 3-8 and 16, GroupCoordinatorRecordHelpers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kcluster.broker.coordinator.group_log import Reader
from kcluster.broker.coordinator.modern.records import (
    GroupValue,
    MemberValue,
    MessageRecord,
    readers_of,
)


class ConsumerGroupMetadata(GroupValue, frozen=True):
    """The group epoch and the hash of the topics' metadata; its tombstone deletes the group."""

    kind = 3


class ConsumerGroupPartitionMetadata(GroupValue, frozen=True):
    """The topics' metadata, before 4.1; only its tombstone is written."""

    kind = 4


class ConsumerGroupMemberMetadata(MemberValue, frozen=True):
    """A member, without its epoch and assignment."""

    kind = 5


class ConsumerGroupTargetAssignmentMetadata(GroupValue, frozen=True):
    """The epoch of the target assignment, and when it was computed."""

    kind = 6


class ConsumerGroupTargetAssignmentMember(MemberValue, frozen=True):
    """A member's part of the target assignment."""

    kind = 7


class ConsumerGroupCurrentMemberAssignment(MemberValue, frozen=True):
    """A member's epoch, state and partitions."""

    kind = 8


class ConsumerGroupRegularExpression(MessageRecord, frozen=True):
    """The topics that match a regular expression."""

    kind = 16

    regular_expression: str
    value: Any


RECORDS: Final[tuple[type[MessageRecord], ...]] = (
    ConsumerGroupMetadata,
    ConsumerGroupPartitionMetadata,
    ConsumerGroupMemberMetadata,
    ConsumerGroupTargetAssignmentMetadata,
    ConsumerGroupTargetAssignmentMember,
    ConsumerGroupCurrentMemberAssignment,
    ConsumerGroupRegularExpression,
)

READERS: Final[Mapping[int, Reader]] = readers_of(RECORDS)
