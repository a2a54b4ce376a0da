"""A member of a share group: a value, made from its two records.

Owns: a member's fields, and its records.  Never: decides its assignment (heartbeat.py).  Kafka:
ShareGroupMember, ShareGroupAssignmentBuilder; KIP-932.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from kcluster.broker.coordinator.modern.group import LEAVE_EPOCH
from kcluster.broker.coordinator.modern.topics import NO_PARTITIONS, Assignment
from kcluster.protocol import messages as m

if TYPE_CHECKING:
    from kcluster.protocol.messages import (
        ShareGroupCurrentMemberAssignmentValue,
        ShareGroupMemberMetadataValue,
    )

_STABLE: Final = 0
"""The only state of a member: nothing must be revoked before others may have it."""


class ShareMember(Struct, frozen=True):
    """A member of a share group."""

    member_id: str
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: tuple[str, ...] = ()
    """The names that the member subscribes to, sorted."""

    epoch: int = 0
    previous_epoch: int = -1
    assigned: Assignment = NO_PARTITIONS

    def moved_to(
        self, target_epoch: int, target: Assignment, subscribed_ids: Iterable[bytes], changed: bool
    ) -> ShareMember:
        """The member with its part of the target, at once.  `changed`: whether the group epoch has
        increased."""
        if self.epoch == target_epoch and not changed:
            return self
        subscribed = frozenset(subscribed_ids)
        assigned = {topic_id: some for topic_id, some in target.items() if topic_id in subscribed}
        if self.epoch == target_epoch:
            return replace(self, assigned=assigned)
        return replace(self, epoch=target_epoch, previous_epoch=self.epoch, assigned=assigned)

    # ------------------------------------------------------------------------- its records

    def metadata(self) -> ShareGroupMemberMetadataValue:
        return m.ShareGroupMemberMetadataValue(
            rack_id=self.rack_id,
            client_id=self.client_id,
            client_host=self.client_host,
            subscribed_topic_names=list(self.topics),
        )

    def with_metadata(self, value: ShareGroupMemberMetadataValue) -> ShareMember:
        return replace(
            self,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            topics=tuple(value.subscribed_topic_names),
        )

    def current(self) -> ShareGroupCurrentMemberAssignmentValue:
        entry = m.ShareGroupCurrentMemberAssignmentValue.TopicPartitions
        return m.ShareGroupCurrentMemberAssignmentValue(
            member_epoch=self.epoch,
            previous_member_epoch=self.previous_epoch,
            state=_STABLE,
            assigned_partitions=[
                entry(topic_id, sorted(partitions))
                for topic_id, partitions in self.assigned.items()
            ],
        )

    def with_current(self, value: ShareGroupCurrentMemberAssignmentValue | None) -> ShareMember:
        if value is None:
            return replace(
                self, epoch=LEAVE_EPOCH, previous_epoch=LEAVE_EPOCH, assigned=NO_PARTITIONS
            )
        return replace(
            self,
            epoch=value.member_epoch,
            previous_epoch=value.previous_member_epoch,
            assigned={
                entry.topic_id: frozenset(entry.partitions) for entry in value.assigned_partitions
            },
        )

    # -------------------------------------------------------------- what other members have

    @property
    def instance_id(self) -> None:
        """None: there are no static members."""

    @property
    def may_be_replaced(self) -> bool:
        return False

    @property
    def revocation_timeout_ms(self) -> None:
        """None: nothing must be revoked."""

    def away(self) -> ShareMember:
        raise AssertionError("only a static member will be back")

    def back_as(self, member_id: str) -> ShareMember:
        raise AssertionError("only a static member can be back")
