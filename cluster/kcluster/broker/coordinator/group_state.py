"""A classic consumer group: its fields, its members, every transition of its state.

Owns: what a group is and which changes are legal (`TRANSITIONS`).  Never: sends an answer, sets a
timer, writes a record; rebalance.py and membership.py do, calling in here for each change.
Kafka: ClassicGroup, ClassicGroupMember, ClassicGroupState; KIP-62 (rebalance timeout), KIP-345
(static members), KIP-394 (pending members).

    EMPTY ──▶ PREPARING_REBALANCE ◀──▶ COMPLETING_REBALANCE ──▶ STABLE ──▶ PREPARING_REBALANCE
      ▲               │                                       any state ──▶ DEAD
      └───────────────┘ (all members gone)

Members keep the order in which they came, so leaders, votes and answers are the same on every run.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from msgspec import Struct

from kcluster.contract import Request
from kcluster.protocol.errors import ErrorCode

CONSUMER_PROTOCOL_TYPE: Final = "consumer"
"""Protocol type of groups whose metadata the coordinator can read.  Kafka: ConsumerProtocol."""


class GroupState(StrEnum):
    """The values are the names that clients see."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


TRANSITIONS: Final[Mapping[GroupState, tuple[GroupState, ...]]] = {
    GroupState.EMPTY: (GroupState.PREPARING_REBALANCE, GroupState.DEAD),
    GroupState.PREPARING_REBALANCE: (
        GroupState.COMPLETING_REBALANCE,
        GroupState.EMPTY,
        GroupState.DEAD,
    ),
    GroupState.COMPLETING_REBALANCE: (
        GroupState.STABLE,
        GroupState.PREPARING_REBALANCE,
        GroupState.DEAD,
    ),
    GroupState.STABLE: (GroupState.PREPARING_REBALANCE, GroupState.DEAD),
    GroupState.DEAD: (GroupState.DEAD,),
}
"""From each state, where it may go."""


class Member(Struct):
    """One member of a group.  `join` and `sync` are its parked requests."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocol_type: str
    protocols: dict[str, bytes]
    """Name -> metadata, in the member's order of preference."""
    assignment: bytes = b""
    join: Request | None = None
    sync: Request | None = None
    is_new: bool = False
    """Its first JoinGroup has not been answered yet: it may expire while waiting."""

    @property
    def is_static(self) -> bool:
        return self.instance_id is not None

    @property
    def excused_from_heartbeat(self) -> bool:
        """A member that waits for our answer cannot heartbeat."""
        return not self.is_new and (self.join is not None or self.sync is not None)

    def matches(self, protocols: dict[str, bytes]) -> bool:
        """The same protocols with the same metadata in the same order."""
        return list(self.protocols.items()) == list(protocols.items())

    def vote(self, candidates: Mapping[str, None]) -> str:
        """The first of its protocols that all members know."""
        return next(name for name in self.protocols if name in candidates)


class Group(Struct):
    """A group.  Change it through its methods alone."""

    group_id: str
    state: GroupState = GroupState.EMPTY
    previous_state: GroupState = GroupState.DEAD
    state_since_ms: int = -1
    generation: int = 0
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str | None = None
    members: dict[str, Member] = {}
    static_members: dict[str, str] = {}
    """Instance id -> member id."""
    pending_members: dict[str, None] = {}
    """Ids handed out with MEMBER_ID_REQUIRED that have not come back yet (KIP-394)."""
    pending_sync: dict[str, None] = {}
    """Members of this generation whose SyncGroup has not come yet."""
    subscribed_topics: frozenset[str] | None = None
    """None: unknown (not a consumer group, or metadata that we cannot read)."""
    rebalance_reason: str = ""
    new_member_added: bool = False
    """Somebody joined since the initial delay was last extended."""

    # ------------------------------------------------------------------ transitions

    def transition_to(self, state: GroupState, now_ms: int) -> None:
        assert state in TRANSITIONS[self.state], (
            f"group {self.group_id}: no way from {self.state} to {state}"
        )
        self.previous_state = self.state
        self.state = state
        self.state_since_ms = now_ms

    @property
    def can_rebalance(self) -> bool:
        return GroupState.PREPARING_REBALANCE in TRANSITIONS[self.state]

    def next_generation(self, subscribed_topics: frozenset[str] | None, now_ms: int) -> None:
        """All who will join have joined: agree on a protocol, or be empty.

        `protocol_name` must have been chosen by `select_protocol` (None when nobody is left).
        """
        self.generation += 1
        self.subscribed_topics = subscribed_topics
        self.transition_to(
            GroupState.COMPLETING_REBALANCE if self.members else GroupState.EMPTY, now_ms
        )
        self.pending_sync.clear()

    # ---------------------------------------------------------------------- members

    def add(self, member: Member) -> None:
        if member.instance_id is not None:
            assert member.instance_id not in self.static_members, member.instance_id
            self.static_members[member.instance_id] = member.member_id
        if not self.members:
            self.protocol_type = member.protocol_type
        if self.leader is None:
            self.leader = member.member_id
        self.members[member.member_id] = member
        self.pending_members.pop(member.member_id, None)

    def remove(self, member_id: str) -> Member | None:
        """Forget a member or a pending member; the longest standing one becomes leader."""
        member = self.members.pop(member_id, None)
        if member is not None and member.instance_id is not None:
            self.static_members.pop(member.instance_id, None)
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        self.pending_members.pop(member_id, None)
        self.pending_sync.pop(member_id, None)
        return member

    def rename_static_member(self, instance_id: str, new_member_id: str) -> Member:
        """A static member came back under a new id: same place, same assignment (KIP-345)."""
        old_member_id = self.static_members[instance_id]
        member = self.members.pop(old_member_id)
        member.member_id = new_member_id
        member.join = member.sync = None
        member.is_new = False
        self.members[new_member_id] = member
        self.static_members[instance_id] = new_member_id
        if self.leader == old_member_id:
            self.leader = new_member_id
        return member

    def waiting_for_join(self) -> int:
        """How many members have a JoinGroup parked here."""
        return sum(member.join is not None for member in self.members.values())

    def has_all_members_joined(self) -> bool:
        return not self.pending_members and all(
            member.join is not None for member in self.members.values()
        )

    def keep_or_replace_leader(self) -> bool:
        """The leader if it has joined, else the first member that has.  False: nobody has."""
        if self.leader is None:
            return False
        if self.members[self.leader].join is not None:
            return True
        joined = next((m for m in self.members.values() if m.join is not None), None)
        if joined is None:
            return False
        self.leader = joined.member_id
        return True

    def rebalance_timeout_ms(self) -> int:
        """As long as the most patient member grants."""
        return max((m.rebalance_timeout_ms for m in self.members.values()), default=0)

    # -------------------------------------------------------------------- protocols

    def common_protocols(self) -> dict[str, None]:
        """Protocols that every member knows."""
        members = list(self.members.values())
        if not members:
            return {}
        return {
            name: None for name in members[0].protocols if all(name in m.protocols for m in members)
        }

    def supports_protocols(self, protocol_type: str, protocols: Mapping[str, bytes]) -> bool:
        """May a member with these protocols be in the group?"""
        if self.state is GroupState.EMPTY:
            return bool(protocol_type) and bool(protocols)
        if self.protocol_type != protocol_type:
            return False
        if not self.members:
            return bool(protocols)
        return any(name in protocols for name in self.common_protocols())

    def select_protocol(self) -> str:
        """The protocol with most votes; each member votes for its first that all know."""
        candidates = self.common_protocols()
        votes: dict[str, int] = {}
        for member in self.members.values():
            choice = member.vote(candidates)
            votes[choice] = votes.get(choice, 0) + 1
        return max(votes, key=votes.__getitem__)

    # --------------------------------------------------------------------- questions

    @property
    def is_unused(self) -> bool:
        """Nobody is in it, nobody is on the way in."""
        return self.state is GroupState.EMPTY and not self.pending_members

    @property
    def is_consumer_group(self) -> bool:
        return self.protocol_type == CONSUMER_PROTOCOL_TYPE

    def is_subscribed_to(self, topic: str) -> bool:
        """Careful answer: a consumer group whose topics we cannot read counts as subscribed."""
        if self.subscribed_topics is not None:
            return topic in self.subscribed_topics
        return self.is_consumer_group

    def check_member(self, member_id: str, instance_id: str | None) -> ErrorCode:
        """Is this the member that it says it is?"""
        if instance_id is not None:
            owner = self.static_members.get(instance_id)
            if owner is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if owner != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        return ErrorCode.NONE if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    def check_generation(
        self, member_id: str, instance_id: str | None, generation: int
    ) -> ErrorCode:
        error = self.check_member(member_id, instance_id)
        if error is ErrorCode.NONE and generation != self.generation:
            return ErrorCode.ILLEGAL_GENERATION
        return error

    def check_commit(self, member_id: str, instance_id: str | None, generation: int) -> ErrorCode:
        """May offsets be committed in the name of this member and generation?

        Without a generation (-1: an admin, or a consumer with partitions assigned by hand) only
        into a group without members.
        """
        if self.state is GroupState.DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        if generation < 0 and self.state is GroupState.EMPTY:
            return ErrorCode.NONE
        if generation >= 0 or member_id or instance_id is not None:
            error = self.check_generation(member_id, instance_id, generation)
            if error is not ErrorCode.NONE:
                return error
        else:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if self.state is GroupState.COMPLETING_REBALANCE:
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    def has_room(self, member_id: str, max_size: int) -> bool:
        """Does group.max.size let this member join (again)?"""
        if self.state in (GroupState.EMPTY, GroupState.DEAD):
            return True
        member = self.members.get(member_id)
        if self.state is GroupState.PREPARING_REBALANCE:
            joined = member is not None and member.join is not None
            return joined or self.waiting_for_join() < max_size
        return member is not None or len(self.members) < max_size
