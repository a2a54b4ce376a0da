"""Members that their coordinator removes before a timeout has passed.

Owns: the last time at which each member was on time, according to its answers, and each removal too
soon after that.  Never: looks into a coordinator or its timers.  Kafka:
ClassicGroup.hasReceivedHeartbeat, GroupMetadataManager.{scheduleConsumerGroupSessionTimeout,
scheduleConsumerGroupRebalanceTimeout, expireClassicGroupMemberHeartbeat}; KIP-62, KIP-848.

    removed-early    a member's session was ended, or the member was removed because it had not
                     joined, synced or given up its partitions, before its timeout had passed
    removed-waiting  a member was removed, or its session was ended, while it waited for the answer
                     to its JoinGroup or SyncGroup

The timeout is the member's own, although its group may wait longer for other members.  It counts
from the arrival of a request that was served:

    session       a heartbeat, a commit of a classic member, a JoinGroup that began a generation
    join          anything that is served outside of a rebalance: the rebalance began after that;
                  not in a group with epochs, where a member may have to join for another reason
    sync          the answer to the JoinGroup that began the generation
    give up       a heartbeat that reports only partitions which its answer leaves to the member

A member of a classic group that waits for an answer cannot send a heartbeat: it has no session
until then, as soon as it has been in a generation.

A new coordinator restarts every timeout, so a request that one broker has served says nothing about
removals by another broker.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from kcluster.contract import Request
from kcluster.events.clients import Departure, GroupMemberExpired, GroupMemberLeft
from kcluster.events.topics import ConfigChanged
from kcluster.invariants.group_facts import RemovedEarly, RemovedWaiting
from kcluster.invariants.promises import BrokenPromise, forget_oldest
from kcluster.invariants.tenures import partitions_of
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from kcluster.timers import NEVER_MS

_OF_EPOCHS: Final = (
    m.ConsumerGroupHeartbeatResponse,
    m.ShareGroupHeartbeatResponse,
    m.StreamsGroupHeartbeatResponse,
)
_OF_COMMITS: Final = (m.OffsetCommitResponse, m.TxnOffsetCommitResponse)
"""The answers of both kinds, as tuples that are made once."""
_WAITED_FOR: Final = {int(ApiKey.JOIN_GROUP): "JoinGroup", int(ApiKey.SYNC_GROUP): "SyncGroup"}
_DUTIES: Final = {Departure.NOT_JOINED: "JoinGroup", Departure.NOT_SYNCED: "SyncGroup"}
"""The request that a member which is removed for this reason has not sent."""
_NEVER: Final = -1
_SESSION_TIMEOUT: Final = "session.timeout.ms"
_Partitions = frozenset[tuple[bytes, int]]


class _OnTime(Struct):
    """A member, as one broker has served it, with the last time at which it was in contact
    (`in_session_ms`), outside of a rebalance (`settled_ms`), told of a new generation (`joined_ms`)
    and without partitions to give up (`revoked_ms`); _NEVER: not known.  `assigned`: the partitions
    in its last answer; None: not known."""

    broker: int
    session_ms: int = NEVER_MS
    rebalance_ms: int = NEVER_MS
    in_session_ms: int = _NEVER
    settled_ms: int = _NEVER
    generation: int = _NEVER
    joined_ms: int = _NEVER
    revoked_ms: int = _NEVER
    has_epochs: bool = False
    assigned: _Partitions | None = None


class Removals:
    """The members of all groups of one cluster, by group and id."""

    def __init__(self) -> None:
        self._members: dict[tuple[str, str], _OnTime] = {}
        self._waiting: dict[tuple[int, str, str], tuple[Request, int]] = {}
        """The JoinGroup or SyncGroup of each member that has no answer yet, with the time of its
        arrival, by (broker, group, member); only of groups without epochs."""
        self._has_new_sessions = False
        """Whether a config with a session timeout has changed: each coordinator learns of that at a
        different time."""

    def on_configured(self, event: ConfigChanged) -> None:
        """Record that configs have changed, session timeouts perhaps."""
        if any(_SESSION_TIMEOUT in name for name in event.configs):
            self._has_new_sessions = True

    def on_request(self, broker: int, request: Request, at_ms: int) -> None:
        """Record a member's request that arrives at the coordinator of a group without epochs."""
        if request.api_key in _WAITED_FOR and request.body.member_id:
            key = (broker, request.body.group_id, request.body.member_id)
            self._waiting[key] = (request, at_ms)
            forget_oldest(self._waiting)

    def on_decided(self, request: Request) -> None:
        """Record that a request waits no longer at its coordinator, or does not wait there yet."""
        if request.api_key in _WAITED_FOR:
            for key in [key for key, (one, _) in self._waiting.items() if one is request]:
                del self._waiting[key]

    def on_death(self, broker: int) -> None:
        """Record the death of a broker's process: it answers no request any more."""
        for key in [key for key in self._waiting if key[0] == broker]:
            del self._waiting[key]

    def on_answered(
        self,
        request: Request,
        body: object,
        broker: int,
        arrived_ms: int,
        now_ms: int,
        has_epochs: bool,
    ) -> None:
        """Record an answer to a member when it is decided.  `has_epochs`: whether its group has
        epochs."""
        asked = request.body
        group: str = asked.group_id
        if isinstance(body, _OF_EPOCHS):
            known = self._member(group, body.member_id or asked.member_id, broker)
            if body.error_code:
                known.assigned = None
            elif asked.member_epoch >= 0:
                known.in_session_ms = arrived_ms
                if isinstance(body, m.ConsumerGroupHeartbeatResponse):
                    _note_assignment(known, asked, body, arrived_ms)
        elif isinstance(body, m.JoinGroupResponse):
            if not body.error_code:
                known = self._member(group, body.member_id, broker)
                _note_generation(known, asked, body.generation_id, arrived_ms, now_ms, has_epochs)
        elif isinstance(body, _OF_COMMITS):
            is_taken = any(not one.error_code for topic in body.topics for one in topic.partitions)
            if is_taken and asked.generation_id_or_member_epoch >= 0 and not has_epochs:
                self._member(group, asked.member_id, broker).in_session_ms = arrived_ms
        elif isinstance(body, m.HeartbeatResponse):
            if body.error_code in (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS):
                known = self._member(group, asked.member_id, broker)
                known.in_session_ms = arrived_ms
                if not body.error_code and not has_epochs:
                    known.settled_ms = arrived_ms
        elif isinstance(body, m.SyncGroupResponse) and not body.error_code and not has_epochs:
            self._member(group, asked.member_id, broker).settled_ms = arrived_ms

    def _member(self, group: str, member_id: str, broker: int) -> _OnTime:
        known = self._members.get((group, member_id))
        if known is None or known.broker != broker:
            session_ms = rebalance_ms = NEVER_MS
            if known is not None:
                session_ms, rebalance_ms = known.session_ms, known.rebalance_ms
            known = self._members[group, member_id] = _OnTime(broker, session_ms, rebalance_ms)
            forget_oldest(self._members)
        return known

    def on_removed(
        self, event: GroupMemberExpired | GroupMemberLeft, broker: int, at_ms: int
    ) -> BrokenPromise | None:
        """What is broken if a broker has removed a member too early; None if it has not."""
        request, since_ms = self._waiting.pop((broker, event.group, event.member), (None, 0))
        known = self._members.pop((event.group, event.member), None)
        if known is None or known.broker != broker:
            return None
        if request is not None and known.generation != _NEVER and not known.has_epochs:
            waited_for = _WAITED_FOR[request.api_key]
            if isinstance(event, GroupMemberExpired):
                waiting = RemovedWaiting(event.member, "session", waited_for, since_ms, at_ms)
                return "removed-waiting", event.subject, waiting
            if _DUTIES.get(event.departure) == waited_for:
                reason = event.departure.value
                waiting = RemovedWaiting(event.member, reason, waited_for, since_ms, at_ms)
                return "removed-waiting", event.subject, waiting
        if isinstance(event, GroupMemberExpired):
            since_ms, time_ms = known.in_session_ms, known.session_ms
            if time_ms == NEVER_MS and not self._has_new_sessions:
                time_ms = event.session_timeout_ms
            reason = "session"
        else:
            times_ms = {
                Departure.NOT_JOINED: known.settled_ms,
                Departure.NOT_SYNCED: known.joined_ms,
                Departure.NOT_REVOKED: known.revoked_ms,
            }
            since_ms, time_ms = times_ms.get(event.departure, _NEVER), known.rebalance_ms
            reason = event.departure.value
        if since_ms == _NEVER or time_ms == NEVER_MS or at_ms >= since_ms + time_ms:
            return None
        early = RemovedEarly(event.member, reason, since_ms + time_ms, at_ms)
        return "removed-early", event.subject, early


def _note_generation(
    known: _OnTime,
    asked: m.JoinGroupRequest,
    generation: int,
    arrived_ms: int,
    now_ms: int,
    has_epochs: bool,
) -> None:
    """Record the answer to a member's JoinGroup.  A repeated answer for the same generation
    restarts neither the session nor the time to sync."""
    has_own = asked.rebalance_timeout_ms >= 0
    timeout_ms = asked.rebalance_timeout_ms if has_own else asked.session_timeout_ms
    known.rebalance_ms = min(known.rebalance_ms, timeout_ms)
    known.session_ms = min(known.session_ms, asked.session_timeout_ms)
    known.has_epochs = has_epochs
    if not has_epochs:
        known.settled_ms = arrived_ms
    if generation > known.generation:
        known.generation = generation
        known.in_session_ms = arrived_ms
        known.joined_ms = arrived_ms if has_epochs else now_ms


def _note_assignment(
    known: _OnTime,
    asked: m.ConsumerGroupHeartbeatRequest,
    answer: m.ConsumerGroupHeartbeatResponse,
    arrived_ms: int,
) -> None:
    """Record a member's assignment after its heartbeat, and whether it no longer owns other
    partitions."""
    if asked.rebalance_timeout_ms > 0:
        known.rebalance_ms = min(known.rebalance_ms, asked.rebalance_timeout_ms)
    if answer.assignment is not None:
        known.assigned = partitions_of(answer.assignment.topic_partitions)
    if asked.topic_partitions is None or known.assigned is None:
        return
    if partitions_of(asked.topic_partitions) <= known.assigned:
        known.revoked_ms = arrived_ms
