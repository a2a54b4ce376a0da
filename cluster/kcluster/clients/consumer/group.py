"""A consumer's membership in its group: joining, receiving and revoking partitions, rejoining,
leaving.

Owns: JoinGroup, SyncGroup, LeaveGroup, the transitions of a member through a rebalance, the
group's assignment if this member is the leader.
Never: sends heartbeats (heartbeats.py) or commits (commits.py).
Kafka: AbstractCoordinator and the rebalance half of ConsumerCoordinator, classic protocol; KIP-394
(member id first), KIP-345 (static members), KIP-429 (cooperative), KIP-814 (a static leader that
rejoins does not assign).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from kcluster.clients.connections import ClientRequest
from kcluster.clients.consumer.assignors import NO_GENERATION, MemberSubscription, assign
from kcluster.clients.consumer.coordinator import MembershipState, MemberState
from kcluster.clients.consumer.group_protocol import (
    PROTOCOL_TYPE,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from kcluster.clients.consumer.heartbeats import Heartbeats
from kcluster.clients.consumer.membership import ClientMembership, MembershipParts
from kcluster.clients.ledger import Partition
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode, error_of
from kcluster.timers import NEVER_MS

if TYPE_CHECKING:
    _Member = m.JoinGroupResponse.JoinGroupResponseMember
    _Assignment = m.SyncGroupRequest.SyncGroupRequestAssignment

JOIN_GROUP_TIMEOUT_LAPSE_MS: Final = 5_000
"""The time after the rebalance timeout within which the response to JoinGroup may arrive.  Kafka:
AbstractCoordinator.JOIN_GROUP_TIMEOUT_LAPSE."""

_JOIN: Final = int(ApiKey.JOIN_GROUP)
_SYNC: Final = int(ApiKey.SYNC_GROUP)
_LEAVE: Final = int(ApiKey.LEAVE_GROUP)
_JOIN_AT_ONCE: Final = (
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.MEMBER_ID_REQUIRED,
)


class GroupMembership(ClientMembership):
    """The membership of one consumer with group.protocol=classic."""

    def __init__(self, parts: MembershipParts, member: MembershipState) -> None:
        super().__init__(parts, member)
        self.heartbeats = Heartbeats(
            self._settings, self._network, self._coordinator, member, self.leave
        )
        self._is_joining = False
        """Whether a join has started and is not complete: JoinGroup, SyncGroup, and applying the
        result."""
        self._received_assignment: bytes | None = None
        """The assignment in the response to SyncGroup, for the next poll()."""
        self._join_after_ms = 0
        self._last_refused_ms = -1
        self._prepare_deadline_ms = -1
        self._is_committing = False
        self._last_assignment: list[Partition] = []
        self._last_generation = NO_GENERATION
        self._assign_later: Callable[[int], None] | None = None
        """The leader's assignment, while it waits for metadata of the group's topics."""
        self._partition_counts: dict[str, int] | None = None
        """The partition count of each of the group's topics when the leader assigned them; None:
        this member is not the leader."""
        self._partition_counts_version = -1

    @property
    def is_settled(self) -> bool:
        return not (self.member.rejoin_needed or self._is_joining)

    @property
    def heartbeat_ms(self) -> int:
        return self.heartbeats.due_ms

    @property
    def heartbeat_error(self) -> str:
        return self.heartbeats.fatal

    def run_heartbeats(self, now_ms: int) -> None:
        self.heartbeats.run(now_ms)

    def reset_poll_timer(self, now_ms: int) -> None:
        self.heartbeats.reset_poll_timer(now_ms)

    # ------------------------------------------------------------------------- in poll()

    def poll(self, now_ms: int) -> bool:
        self.retry_ms = NEVER_MS
        self.heartbeats.reset_poll_timer(now_ms)
        if not self._coordinator.is_ready(now_ms):
            return False
        if (
            self._partition_counts is not None
            and self._metadata.version != self._partition_counts_version
        ):
            self._check_partition_counts()
        if self._assign_later is not None and self._knows_topics():
            assign_partitions, self._assign_later = self._assign_later, None
            assign_partitions(now_ms)
        if self._received_assignment is not None:
            self._complete_join(self._received_assignment, now_ms)
        if self.member.rejoin_needed and not self._is_joining:
            self._rejoin(now_ms)
        return True

    def _check_partition_counts(self) -> None:
        self._partition_counts_version = self._metadata.version
        assert self._partition_counts is not None
        now = {topic: self._metadata.partition_count(topic) for topic in self._partition_counts}
        if now != self._partition_counts and not self.member.rejoin_needed:
            self.member.request_rejoin("cached metadata has changed")

    def _rejoin(self, now_ms: int) -> None:
        if now_ms < self._join_after_ms:
            self.retry_ms = self._join_after_ms
            return
        if self.member.needs_join_prepare and not self._prepare_to_join(now_ms):
            return
        if self._coordinator.is_ready(now_ms):
            self._join(now_ms)

    def _prepare_to_join(self, now_ms: int) -> bool:
        """Commit the offsets of this member's partitions and revoke them.  Returns whether both are
        done.  Kafka: onJoinPrepare."""
        member, settings = self.member, self._settings
        if self._prepare_deadline_ms < 0:
            self._prepare_deadline_ms = now_ms + settings.max_poll_interval_ms
        if now_ms < self._prepare_deadline_ms:
            if self._is_committing:
                self.retry_ms = self._prepare_deadline_ms
                return False
            offsets = self._positions.consumed() if self._commits.is_auto else {}
            if offsets and member.state is MemberState.STABLE:
                if not settings.is_cooperative:
                    self._positions.mark_pending_revocation()
                self._is_committing = True
                self._commits.send(offsets, now_ms, self._committed)
                return False
        self._revoke()
        return True

    def _committed(self, is_done: bool, can_retry: bool, now_ms: int) -> None:
        """Continue after the commit before a rebalance: revoke, or retry the commit."""
        if self._is_committing:
            self._is_committing = False
            if can_retry:
                self._join_after_ms = now_ms + self._settings.retry_backoff_ms
            else:
                self._revoke()

    def _revoke(self) -> None:
        member = self.member
        self._is_committing = False
        self._prepare_deadline_ms = -1
        self._partition_counts = None
        is_lost = not member.member_id or member.generation_id < 0
        if is_lost or not self._settings.is_cooperative:
            self._positions.assign([])
        member.needs_join_prepare = False

    # ------------------------------------------------------------------------------ join

    def _join(self, now_ms: int) -> None:
        settings, member = self._settings, self.member
        member.state = MemberState.PREPARING_REBALANCE
        self._is_joining = True
        entry = m.JoinGroupRequest.JoinGroupRequestProtocol
        protocols = [
            entry(
                assignor,
                encode_subscription(
                    assignor,
                    self._topics,
                    owned=self._positions,
                    last=self._last_assignment,
                    last_generation=self._last_generation,
                    generation=member.generation_id,
                    rack=settings.client_rack,
                ),
            )
            for assignor in settings.assignors
        ]
        body = m.JoinGroupRequest(
            group_id=settings.group_id,
            session_timeout_ms=settings.session_timeout_ms,
            rebalance_timeout_ms=settings.max_poll_interval_ms,
            member_id=member.member_id,
            group_instance_id=settings.group_instance_id or None,
            protocol_type=PROTOCOL_TYPE,
            protocols=protocols,
            reason=member.rejoin_reason,
        )
        timeout_ms = max(
            settings.request_timeout_ms, settings.max_poll_interval_ms + JOIN_GROUP_TIMEOUT_LAPSE_MS
        )
        self._coordinator.send(
            _JOIN, body, now_ms, self._on_joined, context=member.generation, timeout_ms=timeout_ms
        )

    def _on_joined(self, request: ClientRequest, now_ms: int) -> None:
        member = self.member
        response: m.JoinGroupResponse = request.response
        if not request.failure and response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            member.generation_id, member.member_id = NO_GENERATION, response.member_id
            member.request_rejoin(f"need to re-join with the given member-id: {response.member_id}")
            self._is_joining = False
            self._join_again(now_ms)
            return
        error = self._coordinator.refusal(request, now_ms)
        if error:
            if error is ErrorCode.UNKNOWN_MEMBER_ID and member.generation == request.context:
                member.reset_on_error("JOIN_GROUP", error)
            self._join_failed(error, now_ms)
            return
        if member.state is not MemberState.PREPARING_REBALANCE:
            self._join_failed(ErrorCode.UNKNOWN_MEMBER_ID, now_ms)  # the member has left
            return
        member.state = MemberState.COMPLETING_REBALANCE
        member.generation_id, member.member_id = response.generation_id, response.member_id
        member.protocol_name = response.protocol_name or ""
        self.heartbeats.start(now_ms)
        if response.leader != response.member_id:
            self._sync([], now_ms)
            return

        def assign_partitions(then_ms: int) -> None:
            if member.state is not MemberState.COMPLETING_REBALANCE:
                self._join_failed(ErrorCode.ILLEGAL_GENERATION, then_ms)
                return
            self._sync([] if response.skip_assignment else self._assign(response.members), then_ms)

        for topic in self._group_topics(response):
            self._metadata.add_topic(topic)
        self._partition_counts = dict.fromkeys(self._group_topics(response), -1)
        if self._knows_topics():
            assign_partitions(now_ms)
        else:
            self._assign_later = assign_partitions

    def _group_topics(self, response: m.JoinGroupResponse) -> list[str]:
        members = self._decode_members(response.members)
        return sorted({topic for member in members for topic in member.topics} | {*self._topics})

    def _decode_members(self, entries: Sequence[_Member]) -> list[MemberSubscription]:
        read = [
            decode_subscription(
                self.member.protocol_name, entry.member_id, entry.group_instance_id, entry.metadata
            )
            for entry in entries
        ]
        return [member for member in read if member is not None]

    def _knows_topics(self) -> bool:
        metadata = self._metadata
        return all(
            topic in metadata.topics or topic in metadata.topic_errors
            for topic in self._partition_counts or ()
        )

    def _assign(self, entries: Sequence[_Member]) -> list[_Assignment]:
        members = self._decode_members(entries)
        counts = {
            topic: self._metadata.partition_count(topic) for topic in self._partition_counts or ()
        }
        assignment = assign(self.member.protocol_name, members, counts)
        entry = m.SyncGroupRequest.SyncGroupRequestAssignment
        return [
            entry(member_id, encode_assignment(partitions))
            for member_id, partitions in assignment.items()
        ]

    def _join_failed(self, error: ErrorCode, now_ms: int) -> None:
        """Handle a failed JoinGroup or SyncGroup."""
        self._is_joining = False
        self._assign_later = None
        self._received_assignment = None
        is_lost = error is ErrorCode.NETWORK_EXCEPTION
        reason = "DisconnectException" if is_lost else error.name
        self.member.request_rejoin(f"rebalance failed due to {reason}")
        if error in _JOIN_AT_ONCE:
            self._join_again(now_ms)
            return
        if not error.retriable:
            self.fatal = error.name
        self._join_after_ms = now_ms + self._settings.retry_backoff_ms

    def _join_again(self, now_ms: int) -> None:
        """Rejoin without a backoff, but at most twice per millisecond, because virtual links may
        have no latency."""
        if self._last_refused_ms == now_ms:
            self._join_after_ms = now_ms + 1
        self._last_refused_ms = now_ms

    # ------------------------------------------------------------------------------ sync

    def _sync(self, assignments: list[_Assignment], now_ms: int) -> None:
        """Send SyncGroup.  Kafka: onLeaderElected and onJoinFollower."""
        if self._partition_counts is not None:
            self._partition_counts = {
                topic: self._metadata.partition_count(topic) for topic in self._partition_counts
            }
            self._partition_counts_version = self._metadata.version
        if not self._coordinator.is_ready(now_ms):
            self._join_failed(ErrorCode.COORDINATOR_NOT_AVAILABLE, now_ms)
            return
        member = self.member
        body = m.SyncGroupRequest(
            group_id=self._settings.group_id,
            generation_id=member.generation_id,
            member_id=member.member_id,
            group_instance_id=self._settings.group_instance_id or None,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=member.protocol_name,
            assignments=assignments,
        )
        self._coordinator.send(_SYNC, body, now_ms, self._on_synced, context=member.generation)

    def _on_synced(self, request: ClientRequest, now_ms: int) -> None:
        member = self.member
        response: m.SyncGroupResponse = request.response
        error = self._coordinator.refusal(request, now_ms)
        if error:
            is_named = error in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION)
            if is_named and member.generation == request.context:
                member.reset_on_error("SYNC_GROUP", error)
            self._join_failed(error, now_ms)
        elif member.state is not MemberState.COMPLETING_REBALANCE:
            # A heartbeat failed since SyncGroup was sent, or the member has left.
            self._join_failed(ErrorCode.ILLEGAL_GENERATION, now_ms)
        elif response.protocol_name not in (None, member.protocol_name):
            self._network.record_error(now_ms, _SYNC, ErrorCode.INCONSISTENT_GROUP_PROTOCOL.name)
            self._join_failed(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, now_ms)
        else:
            member.state = MemberState.STABLE
            member.rejoin_reason, member.rejoin_needed = "", False
            self._received_assignment = bytes(response.assignment)

    def _complete_join(self, data: bytes, now_ms: int) -> None:
        """Apply the assignment.  Kafka: onJoinComplete."""
        self._received_assignment = None
        self._is_joining = False
        member, positions = self.member, self._positions
        if member.state is not MemberState.STABLE or member.generation_id < 0:
            member.reset(
                "rebalance failed since the generation/state was modified by heartbeat thread",
                forget_member_id=True,
            )
            return
        member.needs_join_prepare = True
        assignment = decode_assignment(data) or []
        self._last_generation = member.generation_id
        if any(topic not in self._topics for topic, _ in assignment):
            member.request_rejoin("received assignment does not match the current subscription")
            return
        self._last_assignment = assignment
        assigned = dict.fromkeys(assignment)
        if self._settings.is_cooperative and any(key not in assigned for key in positions):
            member.request_rejoin("need to revoke partitions and re-join")
        self._commits.restart_timer(now_ms)
        self._commits.fetch_committed_ms = 0
        positions.assign(sorted(assignment))

    # ----------------------------------------------------------------------------- leave

    def leave(self, reason: str, now_ms: int) -> bool:
        """Leave the group; a static member sends no LeaveGroup.  Returns whether one was sent."""
        member, settings = self.member, self._settings
        is_sent = False
        if (
            not settings.group_instance_id
            and member.member_id
            and member.state is not MemberState.UNJOINED
            and self._coordinator.is_ready(now_ms)
        ):
            entry = m.LeaveGroupRequest.MemberIdentity(member.member_id, None, reason)
            body = m.LeaveGroupRequest(settings.group_id, member.member_id, [entry])
            is_sent = True
            self.is_leaving = True
            self._coordinator.send(_LEAVE, body, now_ms, self._on_left)
        member.reset("consumer pro-actively leaving the group", forget_member_id=True)
        return is_sent

    def _on_left(self, request: ClientRequest, now_ms: int) -> None:
        self.is_leaving = False
        response: m.LeaveGroupResponse = request.response
        if request.failure:
            return
        members = response.members or ()
        code = response.error_code or next((x.error_code for x in members if x.error_code), 0)
        if code:
            self._network.record_error(now_ms, _LEAVE, error_of(code).name)
