"""ShareGroupHeartbeat: what one heartbeat changes.

Owns: the order of checks, and the decision: the records to write and the answer.  Never: changes
the group (the records do, when they are replayed).
Kafka: GroupMetadataManager.shareGroupHeartbeat, shareGroupLeave; KIP-932.

    1 the member        it joins, changes, or is refused
    2 the group epoch   increases with a change of subscription or of the topics' metadata, and when
                        share partitions have been initialized
    3 the target        is computed for a new group epoch, once per assignment interval
    4 the assignment    of this member is its part of the target, at once
    5 new partitions    of the group's topics are noted as initializing; the persister is asked when
                        that is committed
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from kcluster.broker.coordinator.group_log import LogRecord
from kcluster.broker.coordinator.modern.group import JOIN_EPOCH, GroupRefusal
from kcluster.broker.coordinator.modern.refusals import fenced_epoch, full_group, unknown_member
from kcluster.broker.coordinator.modern.topics import NO_PARTITIONS, Assignment
from kcluster.broker.coordinator.share.group import ShareGroup
from kcluster.broker.coordinator.share.member import ShareMember, share_target_record
from kcluster.broker.coordinator.share.records import ShareGroupTargetAssignmentMetadata
from kcluster.broker.coordinator.share.state_partitions import StatePartitions, Topics
from kcluster.contract import Request
from kcluster.protocol import messages as m


class ShareDecision(Struct):
    """What to write, the answer when it is committed, and what is to be done then."""

    records: list[LogRecord]
    answer: m.ShareGroupHeartbeatResponse
    member: ShareMember | None = None
    """The member afterwards; None: it left, so no session is to be started."""
    initialize: Topics = {}
    epoch: int = 0
    """Group epoch afterwards: the state epoch of what is to be initialized."""
    is_new: bool = False
    """Whether the member has just joined."""
    target: dict[str, Assignment] | None = None
    """The new target assignment, if there is one."""


def decide_share_leave(
    group: ShareGroup, body: m.ShareGroupHeartbeatRequest
) -> ShareDecision | GroupRefusal:
    """A member leaves."""
    found = _known_member(group, body.member_id)
    if isinstance(found, GroupRefusal):
        return found
    answer = m.ShareGroupHeartbeatResponse(member_id=body.member_id, member_epoch=body.member_epoch)
    return ShareDecision(group.removal_records(found), answer)


def _known_member(group: ShareGroup, member_id: str) -> ShareMember | GroupRefusal:
    member = group.members.get(member_id)
    if member is None:
        return unknown_member(group.group_id, member_id)
    return member


class ShareHeartbeat:
    """One heartbeat of a member that stays, or joins."""

    def __init__(self, group: ShareGroup, request: Request, now_ms: int) -> None:
        self.group = group
        self.request = request
        self.body: m.ShareGroupHeartbeatRequest = request.body
        self.now_ms = now_ms
        self.records: list[LogRecord] = []
        self.epoch = group.epoch
        self.new_target: dict[str, Assignment] | None = None

    def decide(self) -> ShareDecision | GroupRefusal:
        group, body = self.group, self.body
        limit = group.broker.config.group_share_max_size
        if len(group.members) >= limit and body.member_id not in group.members:
            return full_group(limit, "group.share.max.size")
        member = self._find()
        if isinstance(member, GroupRefusal):
            return member
        updated = self._updated(member)
        if updated != member:
            self.records.append(updated.metadata_record(group.group_id))
        bump = updated.topics != member.topics
        if group.target_epoch >= group.epoch and group.has_unassigned:
            bump = True
        names = group.subscribed_topics(group.members.values())
        if bump or not group.has_checked_metadata():
            names = group.subscribed_topics(self._members_with(updated).values())
            bump = self._update_epoch(names, bump)
        target_epoch, target = self._update_target(updated)
        subscribed_ids = group.subscribed_ids(updated)
        moved = updated.moved_to(target_epoch, target, subscribed_ids, bump)
        if moved != updated:
            self.records.append(moved.current_record(group.group_id))
        missing = self._initialize(names)
        return ShareDecision(
            records=self.records,
            answer=self._answer(member, moved),
            member=moved,
            initialize=missing,
            epoch=self.epoch,
            is_new=body.member_id not in group.members,
            target=self.new_target,
        )

    # --------------------------------------------------------------------- 1: the member

    def _find(self) -> ShareMember | GroupRefusal:
        """The member as it was; a new one if it joins."""
        epoch, member_id = self.body.member_epoch, self.body.member_id
        if epoch == JOIN_EPOCH:
            return self.group.members.get(member_id) or ShareMember(member_id)
        member = _known_member(self.group, member_id)
        if isinstance(member, GroupRefusal) or epoch == member.epoch:
            return member
        if epoch < member.epoch and epoch == member.previous_epoch:
            return member  # the answer with the new epoch may have been lost
        return fenced_epoch(epoch, member.epoch, member.previous_epoch)

    def _updated(self, member: ShareMember) -> ShareMember:
        """With what this heartbeat says about itself."""
        body, names = self.body, self.body.subscribed_topic_names
        return replace(
            member,
            rack_id=member.rack_id if body.rack_id is None else body.rack_id,
            client_id=self.request.client_id or "",
            client_host=f"/{self.request.client_host}",
            topics=member.topics if names is None else tuple(sorted(set(names))),
        )

    # ---------------------------------------------------------------- 2: the group epoch

    def _members_with(self, updated: ShareMember) -> dict[str, ShareMember]:
        """The members after this heartbeat."""
        return {**self.group.members, updated.member_id: updated}

    def _update_epoch(self, names: set[str], bump: bool) -> bool:
        """Whether the group epoch increases."""
        group = self.group
        hashed = group.hash_of(names)
        if bump or hashed != group.metadata_hash:
            bump = True
            self.epoch += 1
            self.records.append(group.epoch_record(self.epoch, hashed))
        group.note_checked_metadata(self.epoch)
        return bump

    # ---------------------------------------------------------------------- 3: the target

    def _update_target(self, updated: ShareMember) -> tuple[int, Assignment]:
        """Epoch of the target assignment, and this member's part."""
        group, member_id = self.group, updated.member_id
        if group.target_epoch >= self.epoch or not group.can_assign(self.now_ms):
            return group.target_epoch, group.targets.get(member_id, NO_PARTITIONS)
        target = group.target_of(self._members_with(updated), group.targets)
        self.new_target = target
        for each, partitions in target.items():
            if partitions != group.targets.get(each):
                self.records.append(share_target_record(group.group_id, each, partitions))
        value = m.ShareGroupTargetAssignmentMetadataValue(
            assignment_epoch=self.epoch, assignment_timestamp=self.now_ms
        )
        self.records.append(ShareGroupTargetAssignmentMetadata(group.group_id, value))
        return self.epoch, target[member_id]

    # -------------------------------------------------------------- 5: share partitions

    def _initialize(self, names: set[str]) -> Topics:
        """The share partitions that the persister is to be asked for."""
        group = self.group
        missing = group.states_to_initialize(sorted(names), self.now_ms)
        if missing:
            states = StatePartitions() if group.states is None else group.states
            self.records.append(group.states_record(states.with_initializing(missing)))
        return missing

    def _answer(self, before: ShareMember, after: ShareMember) -> m.ShareGroupHeartbeatResponse:
        """The assignment is sent to who joins, who says everything, and when it has changed."""
        body = self.body
        answer = m.ShareGroupHeartbeatResponse(
            member_id=after.member_id,
            member_epoch=after.epoch,
            heartbeat_interval_ms=self.group.config_ms("share.heartbeat.interval.ms"),
        )
        is_full = body.subscribed_topic_names is not None
        if body.member_epoch == JOIN_EPOCH or is_full or before.assigned != after.assigned:
            kind = m.ShareGroupHeartbeatResponse
            answer.assignment = kind.Assignment(
                [
                    kind.TopicPartitions(topic_id, sorted(partitions))
                    for topic_id, partitions in after.assigned.items()
                ]
            )
        return answer
