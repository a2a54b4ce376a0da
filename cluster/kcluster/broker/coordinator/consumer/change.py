"""What a member's request changes in its consumer group, whatever protocol the member speaks.

Owns: the steps that a heartbeat (heartbeat.py) and a classic JoinGroup (classic_side.py) have in
common, and the records of each.  Never: answers, changes the group.
Kafka: GroupMetadataManager.consumerGroupHeartbeat, classicGroupJoinToConsumerGroup,
updateSubscriptionMetadata, maybeUpdateTargetAssignment, maybeReconcile.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from kcluster.broker.coordinator.consumer.group import ConsumerGroup
from kcluster.broker.coordinator.consumer.member import (
    ConsumerMember,
    member_tombstones,
    target_record,
)
from kcluster.broker.coordinator.consumer.reconcile import Destination, Owned, reconcile
from kcluster.broker.coordinator.consumer.records import (
    ConsumerGroupPartitionMetadata,
    ConsumerGroupTargetAssignmentMetadata,
)
from kcluster.broker.coordinator.group_log import LogRecord
from kcluster.broker.coordinator.modern.group import GroupRefusal
from kcluster.broker.coordinator.modern.refusals import full_group
from kcluster.broker.coordinator.modern.topics import NO_PARTITIONS, Assignment
from kcluster.protocol import messages as m


def refuse_if_full(
    group: ConsumerGroup, member_id: str, instance_id: str | None
) -> GroupRefusal | None:
    """`member_id`: of the request, "" if it has none.  From 4.4 on a static member that comes back
    takes no place of its own."""
    limit = group.broker.config.group_consumer_max_size
    if len(group.members) < limit or member_id in group.members:
        return None
    if group.is_of_4_4 and group.static_member(instance_id) is not None:
        return None
    return full_group(limit, "group.consumer.max.size")


class MemberChange:
    """One request of a member; `records` grows with each step."""

    def __init__(
        self, group: ConsumerGroup, first: Sequence[LogRecord], owned: Owned | None, now_ms: int
    ) -> None:
        """`first`: records that turn another group into this one.  `owned`: the partitions that
        the member reports as its own; None: it reports nothing."""
        self.group = group
        self.owned = owned
        self.now_ms = now_ms
        self.records = list(first)
        self.epoch = group.epoch
        self.is_new = False
        """Whether the group did not have the member."""
        self.replaced: str | None = None
        """The id of the static member whose place it takes."""
        self.target: dict[str, Assignment] | None = None
        """The new target assignment, if it was computed."""

    def note(self, member: ConsumerMember) -> None:
        """The records are in the log."""
        if self.is_new:
            self.group.note_joined(member, self.replaced)
        if self.target is not None:
            self.group.note_assigned(self.epoch, self.target)

    # --------------------------------------------------------------------- 1: the member

    def take_place_of(self, previous: ConsumerMember, member_id: str) -> ConsumerMember:
        """A static member is back: it takes its old place under a new id."""
        group_id = self.group.group_id
        self.replaced = previous.member_id
        member = replace(previous, member_id=member_id, epoch=0, previous_epoch=0)
        target = self.group.targets.get(previous.member_id, NO_PARTITIONS)
        self.records += member_tombstones(group_id, previous.member_id)
        self.records.append(member.metadata_record(group_id))
        self.records.append(target_record(group_id, member_id, target))
        self.records.append(member.current_record(group_id))
        return member

    def update_member(self, member: ConsumerMember, updated: ConsumerMember) -> bool:
        """Write the member if it has changed; whether the names it subscribes to have."""
        self.is_new = updated.member_id not in self.group.members
        if not updated.has_metadata_of(member):
            self.records.append(updated.metadata_record(self.group.group_id))
        return updated.topics != member.topics

    # ---------------------------------------------------------------- 2: the group epoch

    def members_with(self, updated: ConsumerMember) -> dict[str, ConsumerMember]:
        """The members after this heartbeat."""
        members = dict(self.group.members)
        previous = self.group.static_member(updated.instance_id)
        if previous is not None:
            members.pop(previous.member_id, None)
        members[updated.member_id] = updated
        return members

    def update_epoch(self, member: ConsumerMember, updated: ConsumerMember, bump: bool) -> None:
        """Increase the group epoch if `bump`, or if the topics' metadata has changed."""
        group = self.group
        if not bump and group.has_checked_metadata():
            return
        hashed = group.hash_of(group.subscribed_topics((member, -1), (updated, 1)))
        if bump or hashed != group.metadata_hash:
            self.epoch += 1
            self.records.append(group.epoch_record(self.epoch, hashed))
        group.note_checked_metadata(self.epoch)
        if group.has_old_metadata:
            self.records.append(ConsumerGroupPartitionMetadata(group.group_id, None))

    # ---------------------------------------------------------------------- 3: the target

    def update_target(
        self, member: ConsumerMember, updated: ConsumerMember
    ) -> tuple[int, Assignment]:
        """Epoch of the target assignment, and this member's part."""
        group = self.group
        static = group.static_member(updated.instance_id)
        old_id = updated.member_id if static is None else static.member_id
        own = group.targets.get(old_id, NO_PARTITIONS)
        if group.target_epoch >= self.epoch or not group.can_assign(self.now_ms):
            return group.target_epoch, own
        previous = {**group.targets, updated.member_id: own}
        assignor = group.assignor_name((member, -1), (updated, 1))
        target = group.target_of(self.members_with(updated), previous, assignor)
        self.target = target
        for member_id, partitions in target.items():
            if partitions != group.targets.get(member_id):
                self.records.append(target_record(group.group_id, member_id, partitions))
        value = m.ConsumerGroupTargetAssignmentMetadataValue(
            assignment_epoch=self.epoch, assignment_timestamp=self.now_ms
        )
        self.records.append(ConsumerGroupTargetAssignmentMetadata(group.group_id, value))
        return self.epoch, target[updated.member_id]

    # ------------------------------------------------------------------ 4: the assignment

    def reconcile(
        self, updated: ConsumerMember, target_epoch: int, target: Assignment, changed: bool
    ) -> ConsumerMember | GroupRefusal:
        group = self.group
        if not changed and updated.has_reached(target_epoch):
            return updated
        to = Destination(
            target_epoch=target_epoch,
            target=target,
            subscribed_ids=frozenset(group.subscribed_ids(updated)),
            is_taken=group.is_taken,
            owned=self.owned,
            subscription_changed=changed,
        )
        reconciled = reconcile(updated, to)
        if isinstance(reconciled, ConsumerMember) and reconciled != updated:
            self.records.append(reconciled.current_record(group.group_id))
        return reconciled
