"""ConsumerGroupHeartbeat: the changes by one heartbeat.

Owns: the steps of modern/heartbeat.py for a consumer group, and the answer.  A classic JoinGroup
(classic_side.py) takes these steps too.  Never: changes the group (the records do, when they are
replayed).  Kafka: GroupMetadataManager.consumerGroupHeartbeat, classicGroupJoinToConsumerGroup,
updateSubscriptionMetadata, maybeUpdateTargetAssignment, maybeReconcile; KIP-848.
"""

from __future__ import annotations

from typing import Final
from uuid import UUID

from msgspec.structs import replace

from kcluster.broker.coordinator.consumer.group import ConsumerGroup
from kcluster.broker.coordinator.consumer.member import AssignedPartitions, ConsumerMember
from kcluster.broker.coordinator.consumer.reconcile import Destination, Owned, reconcile
from kcluster.broker.coordinator.consumer.regexes import RegexChange, change_regex, resolve_if_due
from kcluster.broker.coordinator.interface import CoordinatorResult, RequestRefused
from kcluster.broker.coordinator.modern.group import JOIN_EPOCH, ToJoin
from kcluster.broker.coordinator.modern.heartbeat import (
    Heartbeat,
    MemberChange,
    decide_leave,
    refuse_if_full,
)
from kcluster.broker.coordinator.modern.records import ConsumerGroupPartitionMetadata
from kcluster.broker.coordinator.modern.topics import NO_PARTITIONS, Assignment
from kcluster.contract import Request
from kcluster.protocol import messages as m

NO_TIMEOUT: Final = -1


class ConsumerChange(MemberChange[ConsumerGroup, ConsumerMember, Assignment]):
    """The steps of a member's request, in either protocol."""

    owned: Owned | None = None
    """The partitions that the member reports as its own; None if it does not report them."""

    def update_member(self, member: ConsumerMember, updated: ConsumerMember) -> bool:
        """Write the member if it has changed; returns whether the names of its topics have
        changed."""
        if not updated.has_metadata_of(member):
            self.records.append(self.group.member_record(updated))
        return updated.topics != member.topics

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

    def update_target(
        self, member: ConsumerMember, updated: ConsumerMember
    ) -> tuple[int, Assignment]:
        """The epoch of the target assignment, and this member's part."""
        group = self.group
        own = group.targets.get(self.replaced or updated.member_id, NO_PARTITIONS)
        if group.target_epoch >= self.epoch or not group.can_assign(self.now_ms):
            return group.target_epoch, own
        previous = {**group.targets, updated.member_id: own}
        assignor = group.assignor_name((member, -1), (updated, 1))
        targets = group.target_of(self.members_with(updated), previous, assignor)
        self.records += group.target_records(targets, group.targets, self.epoch, self.now_ms)
        self.new_targets = targets
        return self.epoch, targets[updated.member_id]

    def reconcile(
        self, updated: ConsumerMember, target_epoch: int, target: Assignment, changed: bool
    ) -> ConsumerMember | RequestRefused:
        """The member after a step towards its target; itself if there is none."""
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
            self.records.append(group.current_record(reconciled))
        return reconciled


def decide_heartbeat(
    found: ToJoin[ConsumerGroup], request: Request, now_ms: int
) -> CoordinatorResult[m.ConsumerGroupHeartbeatResponse] | RequestRefused:
    """Decide on a heartbeat.  Kafka: consumerGroupHeartbeat."""
    body: m.ConsumerGroupHeartbeatRequest = request.body
    if body.member_epoch < JOIN_EPOCH:
        answer = m.ConsumerGroupHeartbeatResponse(
            member_id=body.member_id, member_epoch=body.member_epoch
        )
        return decide_leave(found.group, body, answer, now_ms)
    return ConsumerHeartbeat(found, request, now_ms).decide()


class ConsumerHeartbeat(Heartbeat[ConsumerGroup, ConsumerMember, Assignment], ConsumerChange):
    """One heartbeat of a member that stays, or joins."""

    body: m.ConsumerGroupHeartbeatRequest

    def decide(self) -> CoordinatorResult[m.ConsumerGroupHeartbeatResponse] | RequestRefused:
        group, body = self.group, self.body
        if body.topic_partitions is not None:
            owned: dict[bytes, list[int]] = {}
            for one in body.topic_partitions:
                owned.setdefault(one.topic_id, []).extend(one.partitions)
            self.owned = owned
        member_id = body.member_id or str(UUID(bytes=group.broker.rng.randbytes(16), version=4))
        full = refuse_if_full(group, body.member_id, body.instance_id)
        if full is not None:
            return full
        member = self.find(member_id)
        if isinstance(member, RequestRefused):
            return member
        updated = self._updated(member)
        names_changed = self.update_member(member, updated)
        regex_change = change_regex(group, member, updated, self.records)
        if isinstance(regex_change, RequestRefused):
            return regex_change
        resolve_if_due(group, member, updated, self.request, self.now_ms)
        bump = names_changed or regex_change is RegexChange.CHANGED_AND_RESOLVED
        if group.is_of_4_4 and not bump:
            bump = group.assignor_name() != group.assignor_name((member, -1), (updated, 1))
        self.update_epoch(member, updated, bump)
        target_epoch, target = self.update_target(member, updated)
        changed = names_changed or regex_change is not RegexChange.NONE
        reconciled = self.reconcile(updated, target_epoch, target, changed)
        if isinstance(reconciled, RequestRefused):
            return reconciled

        def written(_now_ms: int) -> None:
            self.note_written(reconciled)
            self.start_timers(reconciled, has_moved=reconciled is not updated)

        return CoordinatorResult(self.records, self._answer(member, reconciled), written)

    def repeats(self, member: ConsumerMember) -> bool:
        """Whether every partition that the client reports as its own is assigned to it."""
        return self.owned is not None and all(
            partition in member.assigned.get(topic_id, {})
            for topic_id, partitions in self.owned.items()
            for partition in partitions
        )

    def _updated(self, member: ConsumerMember) -> ConsumerMember:
        """The member with the fields that this heartbeat reports."""
        body = self.body
        names, timeout_ms = body.subscribed_topic_names, body.rebalance_timeout_ms
        regex = body.subscribed_topic_regex
        return replace(
            member,
            instance_id=member.instance_id if body.instance_id is None else body.instance_id,
            rack_id=member.rack_id if body.rack_id is None else body.rack_id,
            rebalance_timeout_ms=(
                member.rebalance_timeout_ms if timeout_ms == NO_TIMEOUT else timeout_ms
            ),
            assignor=member.assignor if body.server_assignor is None else body.server_assignor,
            topics=member.topics if names is None else tuple(sorted(set(names))),
            regex=member.regex if regex is None else regex,
            client_id=self.request.client_id or "",
            client_host=f"/{self.request.client_host}",
            classic=None,
        )

    def _answer(
        self, before: ConsumerMember, after: ConsumerMember
    ) -> m.ConsumerGroupHeartbeatResponse:
        """The answer; it has the assignment if the member joins, reports all fields, or has
        changed."""
        body = self.body
        is_full = (
            body.rebalance_timeout_ms != NO_TIMEOUT
            and (body.subscribed_topic_names is not None or body.subscribed_topic_regex is not None)
            and body.topic_partitions is not None
        )
        answer = m.ConsumerGroupHeartbeatResponse(
            member_id=after.member_id,
            member_epoch=after.epoch,
            heartbeat_interval_ms=self.group.config_ms(self.group.heartbeat_config),
        )
        if self.joins or is_full or before.assigned != after.assigned:
            answer.assignment = _assignment(after.assigned)
        return answer


def _assignment(assigned: AssignedPartitions) -> m.ConsumerGroupHeartbeatResponse.Assignment:
    entry = m.ConsumerGroupHeartbeatResponse.TopicPartitions
    return m.ConsumerGroupHeartbeatResponse.Assignment(
        topic_partitions=[
            entry(topic_id=topic_id, partitions=sorted(partitions))
            for topic_id, partitions in assigned.items()
        ]
    )
