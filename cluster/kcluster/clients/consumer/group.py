"""A consumer in its group: it joins, is given partitions, heartbeats, lets go, joins again, leaves.

Owns: JoinGroup, SyncGroup, LeaveGroup, what is read by whom of the group when this member leads it.
Never: heartbeats by itself (heartbeats.py), commits (commits.py), keeps the member's state
(coordinator.py's Membership).
Kafka: AbstractCoordinator and ConsumerCoordinator's half about rebalances, classic protocol;
KIP-394 (member id first), KIP-345 (static members), KIP-429 (cooperative), KIP-814 (a leader that
returns does not assign).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from kcluster.clients.connections import InFlightRequest, NetworkClient
from kcluster.clients.consumer.assignors import NO_GENERATION, Member, assign
from kcluster.clients.consumer.commits import Commits
from kcluster.clients.consumer.coordinator import (
    COORDINATOR_GONE,
    Coordinator,
    Membership,
    MemberState,
)
from kcluster.clients.consumer.group_protocol import (
    PROTOCOL_TYPE,
    decode_assignment,
    decode_member,
    encode_assignment,
    encode_subscription,
)
from kcluster.clients.consumer.heartbeats import Heartbeats
from kcluster.clients.consumer.positions import Positions
from kcluster.clients.consumer.settings import ConsumerSettings
from kcluster.clients.ledger import Partition
from kcluster.clients.metadata import Metadata
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode, error_of
from kcluster.timers import NEVER_MS

JOIN_GROUP_TIMEOUT_LAPSE_MS: Final = 5_000
"""AbstractCoordinator's: so much longer than a rebalance may take, the answer may be on its way."""

_JOIN: Final = int(ApiKey.JOIN_GROUP)
_SYNC: Final = int(ApiKey.SYNC_GROUP)
_LEAVE: Final = int(ApiKey.LEAVE_GROUP)
_JOIN_AT_ONCE: Final = (
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.MEMBER_ID_REQUIRED,
)


class Group:
    """One member.  `fatal`: the error that its application gets, "" for none."""

    def __init__(
        self,
        settings: ConsumerSettings,
        topics: tuple[str, ...],
        metadata: Metadata,
        network: NetworkClient,
        positions: Positions,
        coordinator: Coordinator,
        commits: Commits,
        member: Membership,
    ) -> None:
        self.fatal = ""
        self.retry_ms = NEVER_MS
        """When `poll` has something to do that no answer will bring about."""
        self.member = member
        self.heartbeats = Heartbeats(settings, network, coordinator, member, self.leave)
        self._settings = settings
        self._topics = topics
        self._metadata = metadata
        self._network = network
        self._positions = positions
        self._coordinator = coordinator
        self._commits = commits
        self.is_leaving = False
        """The answer to LeaveGroup is to come."""
        self._is_joining = False
        """A join, or the sync after it, is under way or not completed."""
        self._given: bytes | None = None
        """The assignment that SyncGroup answered, for the next poll."""
        self._join_at_ms = 0
        self._refused_ms = -1
        self._prepare_ends_ms = -1
        self._is_committing = False
        self._last_given: list[Partition] = []
        self._last_generation = NO_GENERATION
        self._to_assign: Callable[[int], None] | None = None
        """The leader waits for metadata of the group's topics."""
        self._counts: dict[str, int] | None = None
        """Partitions of the group's topics as the leader assigned them; None: it does not lead."""
        self._counts_version = -1

    @property
    def is_settled(self) -> bool:
        """Whether `poll` has nothing to do until something comes."""
        return not (self.member.rejoin_needed or self._is_joining)

    # ------------------------------------------------------------------------- in poll()

    def poll(self, now_ms: int) -> bool:
        """A poll's part about the group: whether the coordinator is known, so that poll goes on."""
        self.retry_ms = NEVER_MS
        self.heartbeats.polled(now_ms)
        if not self._coordinator.is_ready(now_ms):
            return False
        if self._counts is not None and self._metadata.version != self._counts_version:
            self._look_at_counts()
        if self._to_assign is not None and self._knows_topics():
            to_assign, self._to_assign = self._to_assign, None
            to_assign(now_ms)
        if self._given is not None:
            self._complete(self._given, now_ms)
        if self.member.rejoin_needed and not self._is_joining:
            self._rejoin(now_ms)
        return True

    def _look_at_counts(self) -> None:
        self._counts_version = self._metadata.version
        assert self._counts is not None
        now = {topic: self._metadata.partition_count(topic) for topic in self._counts}
        if now != self._counts and not self.member.rejoin_needed:
            self.member.request_rejoin("cached metadata has changed")

    def _rejoin(self, now_ms: int) -> None:
        if now_ms < self._join_at_ms:
            self.retry_ms = self._join_at_ms
            return
        if self.member.needs_prepare and not self._prepare(now_ms):
            return
        if self._coordinator.is_ready(now_ms):
            self._join(now_ms)

    def _prepare(self, now_ms: int) -> bool:
        """Let go of what this member has, its offsets committed; whether that is done.
        Kafka: onJoinPrepare."""
        member, settings = self.member, self._settings
        if self._prepare_ends_ms < 0:
            self._prepare_ends_ms = now_ms + settings.max_poll_interval_ms
        if now_ms < self._prepare_ends_ms:
            if self._is_committing:
                self.retry_ms = self._prepare_ends_ms
                return False
            offsets = self._positions.consumed() if self._commits.is_auto else {}
            if offsets and member.state is MemberState.STABLE:
                if not settings.is_cooperative:
                    self._positions.mark_revoked_soon()
                self._is_committing = True
                self._commits.send(offsets, now_ms, self._committed)
                return False
        self._let_go()
        return True

    def _committed(self, is_done: bool, again: bool, now_ms: int) -> None:
        """The commit before a rebalance has ended; if it may be tried again, it is."""
        if self._is_committing:
            self._is_committing = False
            if again:
                self._join_at_ms = now_ms + self._settings.retry_backoff_ms
            else:
                self._let_go()

    def _let_go(self) -> None:
        member = self.member
        self._is_committing = False
        self._prepare_ends_ms = -1
        self._counts = None
        is_lost = not member.member_id or member.generation_id < 0
        if is_lost or not self._settings.is_cooperative:
            self._positions.assign([])
        member.needs_prepare = False

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
                    self._positions,
                    self._last_given,
                    self._last_generation,
                    settings.client_rack,
                ),
            )
            for assignor in settings.assignors
        ]
        body = m.JoinGroupRequest(
            settings.group_id,
            settings.session_timeout_ms,
            settings.max_poll_interval_ms,
            member.member_id,
            settings.group_instance_id or None,
            PROTOCOL_TYPE,
            protocols,
            member.rejoin_reason,
        )
        timeout_ms = max(
            settings.request_timeout_ms, settings.max_poll_interval_ms + JOIN_GROUP_TIMEOUT_LAPSE_MS
        )
        self._coordinator.ask(
            _JOIN, body, now_ms, self._on_joined, context=member.generation, timeout_ms=timeout_ms
        )

    def _on_joined(self, asked: InFlightRequest, body: Any, failure: str, now_ms: int) -> None:
        member = self.member
        if failure:
            self._join_failed(None, now_ms)
            return
        error = error_of(body.error_code)
        if error:
            self._join_refused(error, body, asked.context, now_ms)
            return
        if member.state is not MemberState.PREPARING_REBALANCE:
            self._join_failed(ErrorCode.UNKNOWN_MEMBER_ID, now_ms)  # it has left meanwhile
            return
        member.state = MemberState.COMPLETING_REBALANCE
        member.generation_id, member.member_id = body.generation_id, body.member_id
        member.protocol_name = body.protocol_name or ""
        self.heartbeats.begin(now_ms)
        if body.leader != body.member_id:
            self._sync([], now_ms)
            return

        def to_assign(then_ms: int) -> None:
            if member.state is not MemberState.COMPLETING_REBALANCE:
                self._join_failed(ErrorCode.ILLEGAL_GENERATION, then_ms)
                return
            self._sync([] if body.skip_assignment else self._assign(body.members), then_ms)

        for topic in self._group_topics(body):
            self._metadata.want(topic)
        self._counts = dict.fromkeys(self._group_topics(body), -1)
        if self._knows_topics():
            to_assign(now_ms)
        else:
            self._to_assign = to_assign

    def _group_topics(self, body: Any) -> list[str]:
        members = self._read_members(body.members)
        return sorted({topic for member in members for topic in member.topics} | {*self._topics})

    def _read_members(self, entries: Any) -> list[Member]:
        read = [
            decode_member(
                self.member.protocol_name, entry.member_id, entry.group_instance_id, entry.metadata
            )
            for entry in entries
        ]
        return [member for member in read if member is not None]

    def _knows_topics(self) -> bool:
        metadata = self._metadata
        return all(
            topic in metadata.topics or topic in metadata.topic_errors
            for topic in self._counts or ()
        )

    def _assign(self, entries: Any) -> list[Any]:
        members = self._read_members(entries)
        counts = {topic: self._metadata.partition_count(topic) for topic in self._counts or ()}
        given = assign(self.member.protocol_name, members, counts)
        entry = m.SyncGroupRequest.SyncGroupRequestAssignment
        return [entry(name, encode_assignment(partitions)) for name, partitions in given.items()]

    def _join_refused(
        self, error: ErrorCode, body: Any, sent: tuple[int, str], now_ms: int
    ) -> None:
        member = self.member
        if error is ErrorCode.MEMBER_ID_REQUIRED:
            member.generation_id, member.member_id = NO_GENERATION, body.member_id
            member.request_rejoin(f"need to re-join with the given member-id: {body.member_id}")
            self._is_joining = False
            self._join_again(now_ms)
            return
        self._network.tell(now_ms, _JOIN, error.name)
        if error is ErrorCode.UNKNOWN_MEMBER_ID:
            if member.generation == sent:
                member.refused("JOIN_GROUP", error)
        elif error in COORDINATOR_GONE:
            self._coordinator.mark_unknown(now_ms)
        self._join_failed(error, now_ms)

    def _join_failed(self, error: ErrorCode | None, now_ms: int) -> None:
        """A join or a sync came to nothing.  `error` None: there was no answer."""
        self._is_joining = False
        self._to_assign = None
        self._given = None
        reason = "DisconnectException" if error is None else error.name
        self.member.request_rejoin(f"rebalance failed due to {reason}")
        if error in _JOIN_AT_ONCE:
            self._join_again(now_ms)
            return
        if error is not None and not error.retriable:
            self.fatal = error.name
        self._join_at_ms = now_ms + self._settings.retry_backoff_ms

    def _join_again(self, now_ms: int) -> None:
        """At once; but where nothing takes any time, no more than twice in a millisecond."""
        if self._refused_ms == now_ms:
            self._join_at_ms = now_ms + 1
        self._refused_ms = now_ms

    # ------------------------------------------------------------------------------ sync

    def _sync(self, assignments: list[Any], now_ms: int) -> None:
        """Kafka: onLeaderElected and onJoinFollower."""
        if self._counts is not None:
            self._counts = {topic: self._metadata.partition_count(topic) for topic in self._counts}
            self._counts_version = self._metadata.version
        if not self._coordinator.is_ready(now_ms):
            self._join_failed(ErrorCode.COORDINATOR_NOT_AVAILABLE, now_ms)
            return
        member = self.member
        body = m.SyncGroupRequest(
            self._settings.group_id,
            member.generation_id,
            member.member_id,
            self._settings.group_instance_id or None,
            PROTOCOL_TYPE,
            member.protocol_name,
            assignments,
        )
        self._coordinator.ask(_SYNC, body, now_ms, self._on_synced, context=member.generation)

    def _on_synced(self, asked: InFlightRequest, body: Any, failure: str, now_ms: int) -> None:
        member = self.member
        if failure:
            self._join_failed(None, now_ms)
            return
        error = error_of(body.error_code)
        if error:
            self._network.tell(now_ms, _SYNC, error.name)
            if error in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION):
                if member.generation == asked.context:
                    member.refused("SYNC_GROUP", error)
            elif error in COORDINATOR_GONE:
                self._coordinator.mark_unknown(now_ms)
            self._join_failed(error, now_ms)
        elif member.state is not MemberState.COMPLETING_REBALANCE:
            # A heartbeat was refused meanwhile, or it has left.
            self._join_failed(ErrorCode.ILLEGAL_GENERATION, now_ms)
        elif body.protocol_name not in (None, member.protocol_name):
            self._network.tell(now_ms, _SYNC, ErrorCode.INCONSISTENT_GROUP_PROTOCOL.name)
            self._join_failed(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, now_ms)
        else:
            member.state = MemberState.STABLE
            member.rejoin_reason, member.rejoin_needed = "", False
            self._given = bytes(body.assignment)

    def _complete(self, data: bytes, now_ms: int) -> None:
        """Take what this member is given.  Kafka: onJoinComplete."""
        self._given = None
        self._is_joining = False
        member, positions = self.member, self._positions
        if member.state is not MemberState.STABLE or member.generation_id < 0:
            member.reset(
                "rebalance failed since the generation/state was modified by heartbeat thread",
                forget_member_id=True,
            )
            return
        member.needs_prepare = True
        given = decode_assignment(data) or []
        self._last_generation = member.generation_id
        if any(topic not in self._topics for topic, _ in given):
            member.request_rejoin("received assignment does not match the current subscription")
            return
        self._last_given = given
        wanted = dict.fromkeys(given)
        if self._settings.is_cooperative and any(key not in wanted for key in positions):
            member.request_rejoin("need to revoke partitions and re-join")
        self._commits.restart_timer(now_ms)
        self._commits.look_ms = 0
        positions.assign(sorted(given))

    # ----------------------------------------------------------------------------- leave

    def leave(self, reason: str, now_ms: int) -> bool:
        """Tell the coordinator, unless this is a static member; whether an answer is to come."""
        member, settings = self.member, self._settings
        asks = False
        if (
            not settings.group_instance_id
            and member.member_id
            and member.state is not MemberState.UNJOINED
            and self._coordinator.is_ready(now_ms)
        ):
            entry = m.LeaveGroupRequest.MemberIdentity(member.member_id, None, reason)
            body = m.LeaveGroupRequest(settings.group_id, member.member_id, [entry])
            asks = True
            self.is_leaving = True
            self._coordinator.ask(_LEAVE, body, now_ms, self._on_left)
        member.reset("consumer pro-actively leaving the group", forget_member_id=True)
        return asks

    def _on_left(self, asked: InFlightRequest, body: Any, failure: str, now_ms: int) -> None:
        self.is_leaving = False
        if failure:
            return
        members = body.members or ()
        code = body.error_code or next((x.error_code for x in members if x.error_code), 0)
        if code:
            self._network.tell(now_ms, _LEAVE, error_of(code).name)
