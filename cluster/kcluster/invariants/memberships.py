"""What coordinators have answered to group members, and the requests that they must then refuse.

Owns: the latest answers to the members of each group, and which requests must be refused when they
arrive.  Never: looks into a coordinator.  Kafka: GroupMetadataManager; KIP-345, KIP-848, KIP-1251,
KAFKA-10284, KAFKA-12984.

    stale-member   a request is served although its member has left, or its generation or epoch is
                   outdated
    stale-commit   a commit of an older generation is accepted, or a commit of an older epoch for a
                   partition that another member was given
    commit-refused a commit of an older epoch is refused, although its member has kept the
                   partition since that epoch
    lost-member    a member is unknown, or another member has its group.instance.id, although it
                   has neither left nor been removed for a reason
    late-member    a request is served after the rebalance timeout although a member of the
                   generation has not synced, or its own member has not given up its partitions

A request may arrive late, after its client has given up the connection.  An answer counts as soon
as it is decided, even if its client never gets it.

A classic coordinator stores a generation only together with its assignment, so its answers bind it
only until its leadership ends.  Members of groups with epochs are answered after the write is
committed.  A coordinator that does not yet know of its successor may answer anything.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final, TypeVar

from msgspec import Struct

from kcluster.contract import Note, Reply, Request
from kcluster.events.clients import (
    Departure,
    GroupAssigned,
    GroupMemberExpired,
    GroupMemberLeft,
    GroupRebalanced,
)
from kcluster.invariants.facts import Measure
from kcluster.invariants.group_facts import CommitRefused, Duty, Overdue, PlaceLost, StaleRequest
from kcluster.invariants.promises import BrokenPromise, LeaderEpoch, forget_oldest
from kcluster.invariants.rejoins import Rejoin, Rejoins
from kcluster.invariants.removals import Removals
from kcluster.invariants.tenures import Tenures, partitions_of
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode

SLACK_MS: Final = 500
"""How long a member may stay beyond its rebalance timeout in virtual time: a write may be
retried."""
LIVE_SLACK_MS: Final = 30_000
"""The same for a live cluster, where a busy machine may serve a request before an overdue timer."""
_DELETE_GROUPS: Final = int(ApiKey.DELETE_GROUPS)
_JOIN: Final = int(ApiKey.JOIN_GROUP)
_SYNC: Final = int(ApiKey.SYNC_GROUP)
_LEAVE: Final = int(ApiKey.LEAVE_GROUP)
_HEARTBEAT: Final = int(ApiKey.HEARTBEAT)
_COMMITS: Final = (int(ApiKey.OFFSET_COMMIT), int(ApiKey.TXN_OFFSET_COMMIT))
_FETCH: Final = int(ApiKey.OFFSET_FETCH)
_CONSUMER: Final = int(ApiKey.CONSUMER_GROUP_HEARTBEAT)
_STREAMS: Final = int(ApiKey.STREAMS_GROUP_HEARTBEAT)
_SHARE: Final = int(ApiKey.SHARE_GROUP_HEARTBEAT)
_OF_EPOCHS: Final = (_CONSUMER, _STREAMS, _SHARE)
_OF_GROUPS: Final = frozenset((_JOIN, _SYNC, _LEAVE, _HEARTBEAT, *_COMMITS, _FETCH, *_OF_EPOCHS))
_WITHOUT_TIME: Final = (_FETCH, _LEAVE)
"""The requests that restart none of a member's timeouts."""
_FETCH_WITH_EPOCHS: Final = 9
"""OffsetFetch from this version on names the member and its epoch."""
_OF_FAILOVERS: Final = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
_JOINS: Final = 0
_LEAVES: Final = -1
_NO_TIMEOUT: Final = -1
_Told = (
    m.ConsumerGroupHeartbeatResponse
    | m.ShareGroupHeartbeatResponse
    | m.StreamsGroupHeartbeatResponse
)
_MemberKey = tuple[str, str]
"""(group, member)."""
_Assigned = frozenset[tuple[bytes, int]]
_NONE_ASSIGNED: Final[_Assigned] = frozenset()

K = TypeVar("K", tuple[str, str], tuple[str, int])
V = TypeVar("V")


def _without(kept: dict[K, V], groups: Collection[str]) -> dict[K, V]:
    """The entries whose key does not begin with any of these groups."""
    return {key: value for key, value in kept.items() if key[0] not in groups}


class _Arrival(Struct):
    """A request that arrived at the coordinator of its group in this leader epoch.  `broken`: what
    is broken if it is served; `given_away`, `kept`: what is broken if a partition of a commit is
    accepted, or refused; `rejoin`: the generation in which a JoinGroup must not be answered."""

    broker: int
    leader_epoch: int
    at_ms: int
    broken: BrokenPromise | None = None
    rejoin: Rejoin | None = None
    given_away: dict[tuple[str | bytes, int], BrokenPromise] = {}
    kept: dict[tuple[str | bytes, int], BrokenPromise] = {}


class _Generation(Struct):
    """The newest generation that a classic coordinator has begun in this leader epoch.  `joined`:
    its dynamic members at the beginning; `unsynced`: of these, the members that have not synced;
    `served`, `left`: the members that were served, and that have left, in this leader epoch."""

    leader_epoch: int
    number: int
    since_ms: int
    joined: dict[str, None]
    unsynced: dict[str, None]
    served: dict[str, None]
    left: dict[str, None]


class _ToldMember(Struct):
    """A member of a group with epochs, by its latest answer.  `previous`: its epoch before; -1 if
    it has just joined.  `kept_since`: the epoch since which it has each partition.  `lost`: the
    partitions that it must give up; the coordinator `leader` (broker, leader epoch) has waited for
    that since `since_ms` at the latest."""

    epoch: int
    previous: int = -1
    has_left: bool = False
    is_leaving: bool = False
    timeout_ms: int = _NO_TIMEOUT
    assigned: _Assigned = _NONE_ASSIGNED
    kept_since: dict[tuple[bytes, int], int] = {}
    lost: _Assigned = _NONE_ASSIGNED
    since_ms: int = 0
    leader: tuple[int, int] = (-1, -1)

    def must_give_up(self, assigned: _Assigned, owned: _Assigned | None) -> bool:
        """Record the partitions that a new assignment takes away within the same epoch, unless the
        member has reported that it no longer owns them.  Returns whether there are any."""
        lost = self.assigned - assigned
        if not lost or not (owned is None or owned & lost):
            return False
        self.lost |= lost
        return True


class Memberships:
    """What the coordinators of one cluster have answered to members.  `slack_ms`: how long a member
    may stay beyond its rebalance timeout."""

    def __init__(self) -> None:
        self.slack_ms = LIVE_SLACK_MS
        self._arrivals: dict[Request, _Arrival] = {}
        self._leader_epochs: dict[str, int] = {}
        """The newest leader epoch of any coordinator, by group."""
        self._generations: dict[tuple[str, int], _Generation] = {}
        """By group and broker."""
        self._timeouts_ms: dict[str, int] = {}
        """The longest rebalance timeout of any classic member, by group."""
        self._members: dict[_MemberKey, _ToldMember] = {}
        self._with_epochs: dict[str, None] = {}
        """The groups that had members with epochs: in these groups, classic members have epochs,
        too.  A group stays here after its deletion, which may have been refused."""
        self._instances: dict[tuple[str, str], str] = {}
        """The member id of the static member that joined last, by group and instance id."""
        self._returned: dict[tuple[str, str], str] = {}
        """The same for classic groups, until another member asks for the instance id."""
        self._placed: dict[tuple[str, str], str] = {}
        """The members in `_returned` that have synced since: every later coordinator knows them
        from its log."""
        self.tenures = Tenures()
        self._rejoins = Rejoins()
        self.removals = Removals()

    def forget(self) -> None:
        """Discard what members were answered: the coordinators' logs may have lost records."""
        self._leader_epochs = {}
        self._generations = {}
        self._members = {}
        self._instances = {}
        self._returned = {}
        self._placed = {}
        self.tenures.forget()
        self._rejoins.forget()

    def on_note(self, note: Note) -> None:
        """Record what a coordinator has noted about its members."""
        event = note.event
        if isinstance(event, GroupRebalanced | GroupAssigned):
            self._rejoins.on_note(note.note_id[0], event)
        elif isinstance(event, GroupMemberExpired):
            self.on_removed(event.group, event.member)
        elif isinstance(event, GroupMemberLeft) and event.departure is not Departure.REPLACED:
            # A static member is replaced only after it has left.
            self.on_removed(event.group, event.member)

    def _forget_groups(self, groups: Iterable[str]) -> None:
        """Discard what is known of groups that are deleted: their epochs begin again.  A request
        for the deletion is enough, since its answer may be lost."""
        names = set(groups)
        self._generations = _without(self._generations, names)
        self._members = _without(self._members, names)
        self._instances = _without(self._instances, names)
        self._returned = _without(self._returned, names)
        self._placed = _without(self._placed, names)
        self.tenures.forget_groups(names)

    def epoch_of(self, group: str, member_id: str) -> int | None:
        """The epoch that a member of a group with epochs was told last; None if it is no member."""
        known = self._members.get((group, member_id))
        return None if known is None or known.has_left else known.epoch

    def on_pause(self) -> None:
        """Discard what members still have to do in time: a paused broker does not notice
        timeouts."""
        for generation in self._generations.values():
            generation.unsynced = {}
        for member in self._members.values():
            member.lost = _NONE_ASSIGNED

    def on_removed(self, group: str, member_id: str) -> None:
        """Record that a member has left, or was removed for a reason.  Nothing is expected of its
        earlier requests, whose answers may still wait for a commit."""
        known = self._members.get((group, member_id))
        if known is not None and not known.has_left:
            del self._members[group, member_id]
        for request in [*self._arrivals]:
            body = request.body
            is_its = _group_of(request) == group and _sender_of(request) == member_id
            if is_its and getattr(body, "member_epoch", _JOINS) >= _JOINS:
                del self._arrivals[request]
        for (of, _), generation in self._generations.items():
            if of == group:
                generation.served.pop(member_id, None)
                generation.unsynced.pop(member_id, None)
        for key in [key for key, member in self._placed.items() if member == member_id]:
            del self._placed[key]

    def on_request(
        self, broker: int, request: Request, leader_epoch: LeaderEpoch, now_ms: int
    ) -> None:
        """Record the arrival of a request at a broker, and whether it must be refused."""
        if request.api_key == _DELETE_GROUPS:
            self._forget_groups(request.body.groups_names)
        group = _group_of(request)
        if group is None:
            return
        epoch = leader_epoch(broker, group)
        if epoch is None or epoch < self._leader_epochs.get(group, epoch):
            return
        self._leader_epochs[group] = epoch
        forget_oldest(self._leader_epochs)
        arrival = self._arrivals[request] = _Arrival(broker, epoch, now_ms)
        forget_oldest(self._arrivals)
        if group not in self._with_epochs:
            self.removals.on_request(broker, request, now_ms)
        if request.api_key in _OF_EPOCHS:
            self._epoch_arrives(request, arrival, now_ms)
        elif request.api_key in _COMMITS:
            self._commit_arrives(request, arrival)
        elif request.api_key == _FETCH:
            self._fetch_arrives(request, arrival)
        elif request.api_key in (_HEARTBEAT, _SYNC):
            self._classic_arrives(request, arrival, now_ms)
        elif request.api_key == _JOIN:
            self._join_arrives(request.body, arrival)
        elif request.api_key == _LEAVE:
            for member in request.body.members:
                self.on_removed(group, member.member_id)

    def on_decided(self, reply: Reply, now_ms: int) -> Iterator[tuple[int, BrokenPromise]]:
        """What an answer breaks, with its broker.  Called once the answer is decided, and perhaps
        again when it is sent."""
        request, body = reply.request, reply.body
        if request.api_key == _DELETE_GROUPS and body is not None:
            self._forget_groups(one.group_id for one in body.results if not one.error_code)
        self.removals.on_decided(request)
        arrival = self._arrivals.pop(request, None)
        if arrival is None or body is None:
            return
        if arrival.leader_epoch < self._leader_epochs.get(_group_of(request) or "", -1):
            self._forget_kept(request)
            return
        if request.api_key not in _WITHOUT_TIME:
            has_epochs = request.body.group_id in self._with_epochs
            times = (arrival.broker, arrival.at_ms, now_ms)
            self.removals.on_answered(request, body, *times, has_epochs)
        if request.api_key == _FETCH:
            if arrival.broken is not None and not body.groups[0].error_code:
                yield arrival.broker, arrival.broken
            return
        if request.api_key in _COMMITS:
            broken_by = self._broken_by_commit(arrival, body)
            if broken_by is not None:
                yield arrival.broker, broken_by
            return
        broken: BrokenPromise | None = arrival.broken
        if body.error_code:
            broken = self._refused(request, body.error_code, arrival)
        elif request.api_key in _OF_EPOCHS:
            broken = self._epoch_told(request, body, arrival, now_ms) or broken
        elif request.api_key == _JOIN:
            broken = self._generation_told(request, body, arrival, now_ms)
        elif request.api_key == _LEAVE:
            self._left(request, body, arrival)
        elif (known := self._generation_of(request.body.group_id, arrival)) is not None:
            known.served[request.body.member_id] = None
            forget_oldest(known.served)
            if request.api_key == _SYNC:
                self._assignment_told(request.body)
        if broken is not None:
            yield arrival.broker, broken

    def _refused(self, request: Request, error: int, arrival: _Arrival) -> BrokenPromise | None:
        """Expect nothing more of a refused member: it may have to join again.  Returns what is
        broken if the member has lost its place without a reason."""
        group, member_id = request.body.group_id, getattr(request.body, "member_id", "")
        generation, known = (
            self._generation_of(group, arrival),
            self._members.get((group, member_id)),
        )
        if known is not None and error not in _OF_FAILOVERS:
            known.lost = _NONE_ASSIGNED
        if error == ErrorCode.FENCED_INSTANCE_ID and group not in self._with_epochs:
            place = (group, getattr(request.body, "group_instance_id", None) or "")
            is_placed = self._placed.get(place) == member_id
            return _lost(group, member_id) if is_placed else None
        if error != ErrorCode.UNKNOWN_MEMBER_ID:
            return None
        is_served = generation is not None and member_id in generation.served
        is_member = known is not None and not known.has_left and not known.is_leaving
        self.on_removed(group, member_id)
        return _lost(group, member_id) if is_served or is_member else None

    # -------------------------------------------------------------------- classic groups

    def _generation_of(self, group: str, arrival: _Arrival) -> _Generation | None:
        """The newest generation that this coordinator has begun in the request's leader epoch; None
        for a group with epochs."""
        known = self._generations.get((group, arrival.broker))
        is_its = known is not None and known.leader_epoch == arrival.leader_epoch
        return known if is_its and group not in self._with_epochs else None

    def _classic_arrives(self, request: Request, arrival: _Arrival, now_ms: int) -> None:
        body: m.HeartbeatRequest | m.SyncGroupRequest = request.body
        known = self._generation_of(body.group_id, arrival)
        if known is None:
            return
        arrival.broken = _stale(request, body.generation_id, known, "stale-member")
        if body.generation_id != known.number:
            return
        ends_ms = known.since_ms + self._timeouts_ms[body.group_id] + self.slack_ms
        for late in known.unsynced if now_ms > ends_ms else ():
            arrival.broken = _late(request, late, Duty.SYNC, known.since_ms, now_ms)
        if request.api_key == _SYNC:
            known.unsynced.pop(body.member_id, None)

    def _join_arrives(self, body: m.JoinGroupRequest, arrival: _Arrival) -> None:
        """Record the arrival of a JoinGroup.  Once another member asks for a static member's place,
        expect nothing more for the static member, whatever the answer is."""
        arrival.rejoin = self._rejoins.arrives(arrival.broker, arrival.leader_epoch, body)
        place = (body.group_id, body.group_instance_id or "")
        if self._returned.get(place, body.member_id) != body.member_id:
            del self._returned[place]
            self._placed.pop(place, None)

    def _assignment_told(self, body: m.SyncGroupRequest) -> None:
        """Record that a static member got its assignment, which is then in the coordinator's
        log."""
        place = (body.group_id, body.group_instance_id or "")
        if self._returned.get(place) == body.member_id:
            self._placed[place] = body.member_id
            forget_oldest(self._placed)

    def _generation_told(
        self, request: Request, answer: m.JoinGroupResponse, arrival: _Arrival, now_ms: int
    ) -> BrokenPromise | None:
        """Record the generation in the answer to a JoinGroup; returns what the answer breaks."""
        body: m.JoinGroupRequest = request.body
        group, number, key = body.group_id, answer.generation_id, (body.group_id, arrival.broker)
        has_own = body.rebalance_timeout_ms >= 0
        timeout_ms = body.rebalance_timeout_ms if has_own else body.session_timeout_ms
        self._timeouts_ms[group] = max(self._timeouts_ms.get(group, 0), timeout_ms)
        known = self._generations.get(key)
        if known is None or (known.leader_epoch, known.number) != (arrival.leader_epoch, number):
            goes_on = known is not None and known.leader_epoch == arrival.leader_epoch
            served, left = (known.served, known.left) if known and goes_on else ({}, {})
            known = _Generation(arrival.leader_epoch, number, now_ms, {}, {}, served, left)
            self._generations[key] = known
            forget_oldest(self._generations)
        # A static member may come back in the middle of a generation, and need not sync.
        is_first = known.since_ms == now_ms and answer.member_id not in known.joined
        if is_first and body.group_instance_id is None:
            known.joined[answer.member_id] = known.unsynced[answer.member_id] = None
        is_new = known.since_ms == now_ms or not body.member_id
        if is_new and body.group_instance_id is not None:
            self._returned[group, body.group_instance_id] = answer.member_id
            forget_oldest(self._returned)
        before = self._replaced(group, body.group_instance_id, answer.member_id)
        if before is not None:
            known.served.pop(before, None)
            known.left[before] = None
            forget_oldest(known.left)
        if group in self._with_epochs:
            return None
        place = (arrival.broker, arrival.leader_epoch)
        return self._rejoins.told(*place, body, answer, arrival.rejoin)

    def _replaced(self, group: str, instance_id: str | None, member_id: str) -> str | None:
        """Record that a static member has joined; returns the different member that had its place
        before, if any (KIP-345)."""
        if instance_id is None:
            return None
        before = self._instances.get((group, instance_id))
        self._instances[group, instance_id] = member_id
        forget_oldest(self._instances)
        return None if before == member_id else before

    def _left(self, request: Request, answer: m.LeaveGroupResponse, arrival: _Arrival) -> None:
        known = self._generation_of(request.body.group_id, arrival)
        for member in answer.members if known is not None else ():
            if not member.error_code and not member.group_instance_id:
                assert known is not None
                known.left[member.member_id] = None
                forget_oldest(known.left)

    # ---------------------------------------------------------------- groups with epochs

    def _epoch_arrives(self, request: Request, arrival: _Arrival, now_ms: int) -> None:
        body = request.body
        self._with_epochs[body.group_id] = None
        known = self._members.get((body.group_id, body.member_id))
        asked = body.member_epoch
        if request.api_key == _STREAMS:
            self.tenures.on_topology(body.group_id, body.topology)
        if known is not None and asked < _JOINS:
            known.is_leaving = True
        if known is None or asked <= _JOINS:
            return
        is_silent = request.api_key != _SHARE and _owned(request) is None
        if known.has_left or asked < (known.epoch if is_silent else known.previous):
            newest = _LEAVES if known.has_left else known.epoch
            fact = StaleRequest(_name(request), body.member_id, Measure.MEMBER_EPOCH, asked, newest)
            arrival.broken = ("stale-member", f"group {body.group_id}", fact)
        owned = _owned(request)
        if owned is not None and not owned & known.lost:
            known.lost = _NONE_ASSIGNED
        leader = arrival.broker, arrival.leader_epoch
        if known.leader != leader:  # a new coordinator restarts the timeout
            known.leader, known.since_ms = leader, now_ms
        is_late = now_ms > known.since_ms + known.timeout_ms + self.slack_ms
        if known.lost and is_late:
            late = body.member_id
            arrival.broken = _late(request, late, Duty.REVOCATION, known.since_ms, now_ms)

    def _epoch_told(
        self, request: Request, answer: _Told, arrival: _Arrival, now_ms: int
    ) -> BrokenPromise | None:
        """Record the answer to the heartbeat of a member with an epoch; returns what the answer
        breaks."""
        body = request.body
        asked, epoch = body.member_epoch, answer.member_epoch
        key = (body.group_id, answer.member_id or body.member_id)
        known = self._members.get(key)
        if asked < _JOINS:
            self._members.pop(key, None)
            if asked == _LEAVES and getattr(body, "instance_id", None) is None:
                self._members[key] = _ToldMember(epoch, has_left=True)
            return None
        if known is None and asked != _JOINS:
            return None  # removed by a successor that this coordinator does not know of
        broken, goes_on = None, known is not None and epoch == known.epoch
        if known is None or asked == _JOINS:
            known = self._members[key] = _ToldMember(epoch)
            before = self._replaced(key[0], getattr(body, "instance_id", None), key[1])
            if before is not None:
                old = self._members.get((key[0], before))
                if old is not None and not old.has_left and not old.is_leaving:
                    broken = _lost(key[0], before)
                self._members[key[0], before] = _ToldMember(epoch, has_left=True)
                self.tenures.on_replaced(key[0], before, key[1])
            forget_oldest(self._members)
        elif epoch > known.epoch:
            known.previous, known.epoch, known.lost = known.epoch, epoch, _NONE_ASSIGNED
        known.timeout_ms = max(known.timeout_ms, getattr(body, "rebalance_timeout_ms", 0))
        if isinstance(answer, m.ConsumerGroupHeartbeatResponse) and answer.assignment is not None:
            assigned = partitions_of(answer.assignment.topic_partitions)
            if goes_on and known.must_give_up(assigned, _owned(request)):
                known.since_ms, known.leader = now_ms, (arrival.broker, arrival.leader_epoch)
            known.assigned = assigned
            known.kept_since = {one: known.kept_since.get(one, epoch) for one in assigned}
            for topic_id, partition in assigned:
                self.tenures.on_partition(*key, epoch, topic_id, partition)
        elif isinstance(answer, m.StreamsGroupHeartbeatResponse):
            self.tenures.on_tasks(*key, epoch, answer.active_tasks or ())
        return broken

    # --------------------------------------------------------------------------- offsets

    def _fetch_arrives(self, request: Request, arrival: _Arrival) -> None:
        """Record that an OffsetFetch must be refused if its member has a later epoch than it names.
        A member that has left does not count: its group may be gone, and an OffsetFetch for an
        unknown group is not refused."""
        (asked,) = request.body.groups
        known = self._members.get((asked.group_id, asked.member_id))
        if known is not None and not known.has_left and 0 <= asked.member_epoch < known.epoch:
            fact = StaleRequest(
                _name(request),
                asked.member_id,
                Measure.MEMBER_EPOCH,
                asked.member_epoch,
                known.epoch,
            )
            arrival.broken = ("stale-member", f"group {asked.group_id}", fact)

    def _commit_arrives(self, request: Request, arrival: _Arrival) -> None:
        body: m.OffsetCommitRequest | m.TxnOffsetCommitRequest = request.body
        group, member_id = body.group_id, body.member_id
        own = body.generation_id_or_member_epoch
        if own < 0:
            return
        generation = self._generation_of(group, arrival)
        if generation is not None:
            arrival.broken = _stale(request, own, generation, "stale-commit")
        member = self._members.get((group, member_id))
        if member is None or own >= member.epoch:
            return
        # With an older epoch a member may commit what it has kept since then (KIP-1251).
        is_asking = self._is_asking(group, member_id)
        for topic in body.topics:
            name, topic_id = topic.name, topic.topic_id
            for one in topic.partitions:
                index = one.partition_index
                fact = self.tenures.given_away(group, name, topic_id, index, (own, member_id))
                place = (self.tenures.topic(name, topic_id), index)
                since = self._kept_since(member, name, topic_id, index)
                if fact is not None:
                    arrival.given_away[place] = ("stale-commit", f"group {group}", fact)
                elif since is not None and since <= own and not is_asking:
                    kept = CommitRefused(member_id, own, index, since, member.epoch)
                    arrival.kept[place] = ("commit-refused", f"group {group}", kept)
        if len(arrival.kept) < sum(len(topic.partitions) for topic in body.topics):
            arrival.kept = {}  # a commit is refused as a whole

    def _kept_since(
        self, member: _ToldMember, name: str, topic_id: bytes, index: int
    ) -> int | None:
        """The epoch since which a member has a partition; None if it does not have it.  A topic
        that was created again has the same name but is a different topic."""
        for (kept_id, number), since in member.kept_since.items():
            is_named = self.tenures.name_of(kept_id) == name if name else kept_id == topic_id
            if number == index and is_named:
                return since
        return None

    def _is_asking(self, group: str, member_id: str) -> bool:
        """Whether a heartbeat of a member has no answer yet: it may have changed the member's
        partitions."""
        return any(
            one.api_key in _OF_EPOCHS
            and one.body.group_id == group
            and one.body.member_id == member_id
            for one in self._arrivals
        )

    def _forget_kept(self, request: Request) -> None:
        """Discard since when a member has its partitions: a deposed coordinator has answered it,
        perhaps with a different assignment."""
        if request.api_key in _OF_EPOCHS:
            known = self._members.get((request.body.group_id, request.body.member_id))
            if known is not None:
                known.kept_since = {}

    def _broken_by_commit(
        self, arrival: _Arrival, answer: m.OffsetCommitResponse | m.TxnOffsetCommitResponse
    ) -> BrokenPromise | None:
        """The first promise that an answer to a commit breaks, if any."""
        for topic in answer.topics:
            for one in topic.partitions:
                place = (self.tenures.topic(topic.name, topic.topic_id), one.partition_index)
                broken = arrival.broken or arrival.given_away.get(place)
                if broken is not None and not one.error_code:
                    return broken
                if one.error_code == ErrorCode.STALE_MEMBER_EPOCH and place in arrival.kept:
                    return arrival.kept[place]
        return None


def _group_of(request: Request) -> str | None:
    """The group of a request that depends on the group's members; None for other requests."""
    if request.api_key not in _OF_GROUPS:
        return None
    if request.api_key != _FETCH:
        group: str = request.body.group_id
        return group
    asked: m.OffsetFetchRequest = request.body
    if request.api_version < _FETCH_WITH_EPOCHS or len(asked.groups) != 1:
        return None
    return asked.groups[0].group_id if asked.groups[0].member_id else None


def _sender_of(request: Request) -> str:
    """The member that sent a request; "" if the request names no member, or several."""
    named = request.body.groups[0] if request.api_key == _FETCH else request.body
    return getattr(named, "member_id", None) or ""


def _name(request: Request) -> str:
    return type(request.body).__name__.removesuffix("Request")


def _stale(request: Request, own: int, newest: _Generation, name: str) -> BrokenPromise | None:
    """What is broken if a request of generation `own` is served; None if nothing is."""
    member_id: str = request.body.member_id
    has_left = member_id in newest.left
    if own >= newest.number and not has_left:
        return None
    number = _LEAVES if has_left else newest.number
    fact = StaleRequest(_name(request), member_id, Measure.GENERATION, own, number)
    return name, f"group {request.body.group_id}", fact


def _lost(group: str, member_id: str) -> BrokenPromise:
    return "lost-member", f"group {group}", PlaceLost(member_id)


def _late(request: Request, late: str, duty: Duty, since_ms: int, now_ms: int) -> BrokenPromise:
    fact = Overdue(_name(request), request.body.member_id, late, duty, since_ms, now_ms)
    return "late-member", f"group {request.body.group_id}", fact


def _owned(request: Request) -> _Assigned | None:
    """The partitions that a heartbeat reports as owned; None if it reports nothing.  A report of a
    streams member counts as empty."""
    body = request.body
    if request.api_key == _CONSUMER:
        return None if body.topic_partitions is None else partitions_of(body.topic_partitions)
    if request.api_key == _STREAMS:
        tasks = (body.active_tasks, body.standby_tasks, body.warmup_tasks)
        return None if None in tasks else _NONE_ASSIGNED
    return None
