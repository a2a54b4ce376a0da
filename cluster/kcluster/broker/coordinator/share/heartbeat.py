"""ShareGroupHeartbeat: the changes by one heartbeat.

Owns: the steps of modern/heartbeat.py for a share group, and the answer.  Never: changes the group
(the records do, when they are replayed).
Kafka: GroupMetadataManager.shareGroupHeartbeat, shareGroupLeave; KIP-932.

    2 the group epoch   increases also when share partitions have been initialized
    4 the assignment    of this member is its part of the target, at once
    5 new partitions    of the group's topics are noted as initializing; the persister is asked when
                        that is committed
"""

from __future__ import annotations

from msgspec.structs import replace

from kcluster.broker.coordinator.interface import CoordinatorResult, RequestRefused
from kcluster.broker.coordinator.modern.group import JOIN_EPOCH, ToJoin
from kcluster.broker.coordinator.modern.heartbeat import Heartbeat, decide_leave, refuse_if_full
from kcluster.broker.coordinator.modern.topics import NO_PARTITIONS, Assignment
from kcluster.broker.coordinator.share.group import ShareGroup
from kcluster.broker.coordinator.share.member import ShareMember
from kcluster.broker.coordinator.share.state_partitions import StatePartitions, Topics
from kcluster.contract import Request
from kcluster.protocol import messages as m


def decide_share_heartbeat(
    found: ToJoin[ShareGroup], request: Request, now_ms: int
) -> CoordinatorResult[m.ShareGroupHeartbeatResponse] | RequestRefused:
    """Decide on a heartbeat.  Kafka: shareGroupHeartbeat."""
    body: m.ShareGroupHeartbeatRequest = request.body
    if body.member_epoch < JOIN_EPOCH:
        answer = m.ShareGroupHeartbeatResponse(
            member_id=body.member_id, member_epoch=body.member_epoch
        )
        return decide_leave(found.group, body, answer, now_ms)
    return ShareHeartbeat(found, request, now_ms).decide()


class ShareHeartbeat(Heartbeat[ShareGroup, ShareMember, Assignment]):
    """One heartbeat of a member that stays, or joins."""

    body: m.ShareGroupHeartbeatRequest

    def decide(self) -> CoordinatorResult[m.ShareGroupHeartbeatResponse] | RequestRefused:
        group, body = self.group, self.body
        full = refuse_if_full(group, body.member_id, None)
        if full is not None:
            return full
        member = self.find(body.member_id)
        if isinstance(member, RequestRefused):
            return member
        updated = self._updated(member)
        if updated != member:
            self.records.append(group.member_record(updated))
        bump = updated.topics != member.topics
        if group.target_epoch >= group.epoch and group.has_unassigned:
            bump = True
        names = group.subscribed_topics(group.members.values())
        if bump or not group.has_checked_metadata():
            names = group.subscribed_topics(self.members_with(updated).values())
            bump = self._update_epoch(names, bump)
        target_epoch, target = self._update_target(updated)
        subscribed_ids = group.subscribed_ids(updated)
        moved = updated.moved_to(target_epoch, target, subscribed_ids, bump)
        if moved != updated:
            self.records.append(group.current_record(moved))
        missing = self._initialize(names)

        def written(now_ms: int) -> None:
            self.note_written(moved)
            self.start_timers(moved, has_moved=False)
            if missing:
                group.stored.note_states_written(now_ms)

        def committed(now_ms: int) -> None:
            stored = group.stored
            if missing and stored.is_current:
                stored.initialize_states(missing, self.epoch, now_ms)

        return CoordinatorResult(self.records, self._answer(member, moved), written, committed)

    def _updated(self, member: ShareMember) -> ShareMember:
        """The member, changed by the report in this heartbeat."""
        body, names = self.body, self.body.subscribed_topic_names
        return replace(
            member,
            rack_id=member.rack_id if body.rack_id is None else body.rack_id,
            client_id=self.request.client_id or "",
            client_host=f"/{self.request.client_host}",
            topics=member.topics if names is None else tuple(sorted(set(names))),
        )

    def _update_epoch(self, names: set[str], bump: bool) -> bool:
        """Decide whether the group epoch increases."""
        group = self.group
        hashed = group.hash_of(names)
        if bump or hashed != group.metadata_hash:
            bump = True
            self.epoch += 1
            self.records.append(group.epoch_record(self.epoch, hashed))
        group.note_checked_metadata(self.epoch)
        return bump

    def _update_target(self, updated: ShareMember) -> tuple[int, Assignment]:
        """The epoch of the target assignment, and this member's part of it."""
        group, member_id = self.group, updated.member_id
        if group.target_epoch >= self.epoch or not group.can_assign(self.now_ms):
            return group.target_epoch, group.targets.get(member_id, NO_PARTITIONS)
        targets = group.target_of(self.members_with(updated), group.targets)
        self.records += group.target_records(targets, group.targets, self.epoch, self.now_ms)
        self.new_targets = targets
        return self.epoch, targets[member_id]

    def _initialize(self, names: set[str]) -> Topics:
        """The share partitions to request from the persister."""
        group = self.group
        missing = group.states_to_initialize(sorted(names), self.now_ms)
        if missing:
            states = StatePartitions() if group.states is None else group.states
            self.records.append(group.states_record(states.with_initializing(missing)))
        return missing

    def _answer(self, before: ShareMember, after: ShareMember) -> m.ShareGroupHeartbeatResponse:
        """The answer; it has the assignment if the member joins, reports all fields, or has
        changed."""
        answer = m.ShareGroupHeartbeatResponse(
            member_id=after.member_id,
            member_epoch=after.epoch,
            heartbeat_interval_ms=self.group.config_ms(self.group.heartbeat_config),
        )
        is_full = self.body.subscribed_topic_names is not None
        if self.joins or is_full or before.assigned != after.assigned:
            kind = m.ShareGroupHeartbeatResponse
            answer.assignment = kind.Assignment(
                [
                    kind.TopicPartitions(topic_id, sorted(partitions))
                    for topic_id, partitions in after.assigned.items()
                ]
            )
        return answer
