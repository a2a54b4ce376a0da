"""The records of streams groups on __consumer_offsets, in Kafka's formats.

Owns: these records.  Never: decides what is written.
Kafka: StreamsCoordinatorRecordHelpers, StreamsGroup*Key/Value; CoordinatorRecordType 17 to 23.
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


TYPES: Final = RecordTypes(
    StreamsGroupMetadata,
    StreamsGroupMemberMetadata,
    StreamsGroupTargetAssignmentMetadata,
    StreamsGroupTargetAssignmentMember,
    StreamsGroupCurrentMemberAssignment,
)

RECORDS: Final[tuple[type[MessageRecord], ...]] = (*astuple(TYPES), StreamsGroupTopology)

READERS: Final[Mapping[int, Reader]] = readers_of(RECORDS)
