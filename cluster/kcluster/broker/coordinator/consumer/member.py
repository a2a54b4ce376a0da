"""A member of a consumer group: a value, made from its two records.

Owns: a member's fields, and its records.  Never: decides its assignment (reconcile.py).  Kafka:
ConsumerGroupMember, ConsumerMemberState; KIP-848.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from kcluster.broker.coordinator.modern.group import LEAVE_EPOCH, LEAVE_STATIC_EPOCH
from kcluster.broker.coordinator.modern.topics import Assignment
from kcluster.protocol import messages as m

if TYPE_CHECKING:
    from kcluster.protocol.messages import (
        ConsumerGroupCurrentMemberAssignmentValue,
        ConsumerGroupMemberMetadataValue,
    )

    StoredPartitions = ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions

ClassicMetadata = m.ConsumerGroupMemberMetadataValue.ClassicMemberMetadata
ClassicProtocol = m.ConsumerGroupMemberMetadataValue.ClassicProtocol

AssignedPartitions = Mapping[bytes, Mapping[int, int]]
"""Topic id -> partition -> assignment epoch: the member's epoch when it got the partition."""

NONE_ASSIGNED: Final[AssignedPartitions] = {}


class ConsumerMemberState(IntEnum):
    """The states of a member in its record.  A state of a later release is UNKNOWN."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    """It must still revoke partitions, and keeps its epoch until then."""
    UNRELEASED_PARTITIONS = 2
    """It waits for partitions that others must still revoke."""
    UNKNOWN = 127

    @classmethod
    def _missing_(cls, value: object) -> ConsumerMemberState:
        return cls.UNKNOWN


class ConsumerMember(Struct, frozen=True):
    """One member."""

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topics: tuple[str, ...] = ()
    """The names of the topics to which the member subscribes, sorted."""
    regex: str | None = ""
    """The regular expression to which the member also subscribes; "" (and None, in records) for
    none."""
    assignor: str | None = None
    classic: ClassicMetadata | None = None
    """The classic protocol's fields, while the member speaks that."""

    epoch: int = 0
    previous_epoch: int = -1
    state: ConsumerMemberState = ConsumerMemberState.STABLE
    assigned: AssignedPartitions = NONE_ASSIGNED
    revoking: AssignedPartitions = NONE_ASSIGNED

    @property
    def is_classic(self) -> bool:
        return self.classic is not None

    def has_reached(self, target_epoch: int) -> bool:
        """Whether the member has exactly the partitions of the target assignment."""
        return self.state is ConsumerMemberState.STABLE and self.epoch == target_epoch

    def assignment_epoch(self, topic_id: bytes, partition: int) -> int | None:
        """The epoch since which the member has a partition; None if it does not have the
        partition."""
        epoch = self.assigned.get(topic_id, {}).get(partition)
        return self.revoking.get(topic_id, {}).get(partition) if epoch is None else epoch

    @property
    def revocation_timeout_ms(self) -> int | None:
        must_revoke = self.state is ConsumerMemberState.UNREVOKED_PARTITIONS
        return self.rebalance_timeout_ms if must_revoke and not self.is_classic else None

    # ------------------------------------------------------------------------- its records

    def has_metadata_of(self, other: ConsumerMember) -> bool:
        """Whether the metadata record of another member would be equal to this one's."""
        return self.metadata() == other.metadata()

    def metadata(self) -> ConsumerGroupMemberMetadataValue:
        return m.ConsumerGroupMemberMetadataValue(
            instance_id=self.instance_id,
            rack_id=self.rack_id,
            client_id=self.client_id,
            client_host=self.client_host,
            subscribed_topic_names=list(self.topics),
            subscribed_topic_regex=self.regex,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            server_assignor=self.assignor,
            classic_member_metadata=self.classic,
        )

    def with_metadata(self, value: ConsumerGroupMemberMetadataValue) -> ConsumerMember:
        return replace(
            self,
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            topics=tuple(value.subscribed_topic_names),
            regex=value.subscribed_topic_regex,
            assignor=value.server_assignor,
            classic=value.classic_member_metadata,
        )

    def current(self) -> ConsumerGroupCurrentMemberAssignmentValue:
        return m.ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=self.epoch,
            previous_member_epoch=self.previous_epoch,
            state=self.state,
            assigned_partitions=_stored(self.assigned),
            partitions_pending_revocation=_stored(self.revoking),
        )

    def with_current(
        self, value: ConsumerGroupCurrentMemberAssignmentValue | None
    ) -> ConsumerMember:
        if value is None:
            return replace(
                self,
                epoch=LEAVE_EPOCH,
                previous_epoch=LEAVE_EPOCH,
                assigned=NONE_ASSIGNED,
                revoking=NONE_ASSIGNED,
            )
        return replace(
            self,
            epoch=value.member_epoch,
            previous_epoch=value.previous_member_epoch,
            state=ConsumerMemberState(value.state),
            assigned=_restored(value.assigned_partitions, value.member_epoch),
            revoking=_restored(value.partitions_pending_revocation, value.member_epoch),
        )

    # ----------------------------------------------------------------- as a static member

    @property
    def may_be_replaced(self) -> bool:
        return self.is_classic or self.epoch == LEAVE_STATIC_EPOCH

    def away(self) -> ConsumerMember:
        kept = {topic_id: dict.fromkeys(some, 0) for topic_id, some in self.assigned.items()}
        return replace(self, epoch=LEAVE_STATIC_EPOCH, assigned=kept, revoking=NONE_ASSIGNED)

    def back_as(self, member_id: str) -> ConsumerMember:
        return replace(self, member_id=member_id, epoch=0, previous_epoch=0)


def partitions_of(assigned: AssignedPartitions) -> Assignment:
    """The partitions without their epochs."""
    return {topic_id: frozenset(partitions) for topic_id, partitions in assigned.items()}


def _stored(assigned: AssignedPartitions) -> list[StoredPartitions]:
    entry = m.ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions
    return [
        entry(
            topic_id=topic_id,
            partitions=sorted(partitions),
            assignment_epochs=[partitions[one] for one in sorted(partitions)],
        )
        for topic_id, partitions in assigned.items()
    ]


def _restored(stored: Iterable[StoredPartitions], member_epoch: int) -> AssignedPartitions:
    """Partitions from a record; before 4.3 records had no assignment epochs, so the member's own
    epoch is used."""
    default = max(member_epoch, 0)
    restored: dict[bytes, dict[int, int]] = {}
    for entry in stored:
        epochs = entry.assignment_epochs
        if epochs is None or len(epochs) != len(entry.partitions):
            epochs = [default] * len(entry.partitions)
        restored[entry.topic_id] = dict(zip(entry.partitions, epochs, strict=True))
    return restored
