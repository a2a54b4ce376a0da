"""The members of a classic group: their values, and the agreements of a generation.

Owns: a member's report about itself, its parked requests, ids and instance ids, the leader, the
vote for a protocol, the topics that the members read, their rows in messages and records.  Never:
knows the group's state or sets a timer (classic_group.py does).  Kafka: ClassicGroupMember, the
members of ClassicGroup, ConsumerProtocol; KIP-345 (static members).

Members keep the order in which they joined, so leaders, votes and answers do not differ from run to
run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from kcluster.broker.coordinator.classic_calls import JoinCall, join_error, reply_join
from kcluster.broker.coordinator.interface import CoordinatorBroker
from kcluster.contract import Request
from kcluster.events.clients import AssignedPartitions
from kcluster.protocol import messages as m
from kcluster.protocol.consumer_protocol import (
    ASSIGNMENT,
    CONSUMER_PROTOCOL_TYPE,
    SUBSCRIPTION,
    decode_consumer_message,
)
from kcluster.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from kcluster.protocol.messages import (
        ConsumerProtocolAssignment,
        DescribeGroupsResponse,
        GroupMetadataValue,
        LeaveGroupRequest,
    )

    MemberMetadata = GroupMetadataValue.MemberMetadata
    DescribedMember = DescribeGroupsResponse.DescribedGroupMember
    MemberIdentity = LeaveGroupRequest.MemberIdentity
    AssignedTopic = ConsumerProtocolAssignment.TopicPartition


class ClassicMember(Struct):
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
    """Whether the member's first JoinGroup is not answered yet, so that the member may expire while
    waiting."""

    @staticmethod
    def joining(member_id: str, call: JoinCall) -> ClassicMember:
        return ClassicMember(
            member_id=member_id,
            instance_id=call.instance_id,
            client_id=call.request.client_id or "",
            client_host=f"/{call.request.client_host}",
            rebalance_timeout_ms=call.rebalance_timeout_ms,
            session_timeout_ms=call.session_timeout_ms,
            protocol_type=call.protocol_type,
            protocols=call.protocols,
            join=call.request,
            is_new=True,
        )

    @staticmethod
    def restored(saved: MemberMetadata, protocol_type: str, protocol_name: str) -> ClassicMember:
        """The member as it was when `saved` was written, with only the chosen protocol."""
        timeout_ms = saved.rebalance_timeout
        return ClassicMember(
            member_id=saved.member_id,
            instance_id=saved.group_instance_id,
            client_id=saved.client_id,
            client_host=saved.client_host,
            rebalance_timeout_ms=saved.session_timeout if timeout_ms == -1 else timeout_ms,
            session_timeout_ms=saved.session_timeout,
            protocol_type=protocol_type,
            protocols={protocol_name: bytes(saved.subscription)},
            assignment=bytes(saved.assignment),
        )

    def saved(self, protocol_name: str | None, assignment: bytes) -> MemberMetadata:
        """The member's part of the group's record."""
        subscription = b"" if protocol_name is None else self.protocols.get(protocol_name, b"")
        return m.GroupMetadataValue.MemberMetadata(
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            rebalance_timeout=self.rebalance_timeout_ms,
            session_timeout=self.session_timeout_ms,
            subscription=subscription,
            assignment=assignment,
        )

    def described(self, protocol_name: str | None) -> DescribedMember:
        """The member's part of DescribeGroups; `protocol_name` is None while the group is not
        stable."""
        metadata = b"" if protocol_name is None else self.protocols.get(protocol_name, b"")
        return m.DescribeGroupsResponse.DescribedGroupMember(
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            member_metadata=metadata,
            member_assignment=self.assignment,
        )

    # -------------------------------------------------------------------- questions

    @property
    def is_static(self) -> bool:
        return self.instance_id is not None

    @property
    def excused_from_heartbeat(self) -> bool:
        """Whether the member waits for our answer, and so cannot heartbeat."""
        return not self.is_new and (self.join is not None or self.sync is not None)

    def matches(self, protocols: dict[str, bytes]) -> bool:
        """Whether the member's protocols are equal to these, in order and metadata."""
        return list(self.protocols.items()) == list(protocols.items())

    # ---------------------------------------------------------------------- answers

    def answer_sync(self, broker: CoordinatorBroker, body: m.SyncGroupResponse) -> bool:
        """Answer the member's parked SyncGroup; False if there is none."""
        request, self.sync = self.sync, None
        if request is None:
            return False
        broker.reply(request, body)
        return True


class Roster(Struct):
    """The members and pending members of a group, and their agreements."""

    generation: int = 0
    protocol_type: str | None = None
    """The first member's protocol type, kept when all members have left.  None if there were no
    members yet."""
    protocol_name: str | None = None
    """The protocol of this generation."""
    leader: str | None = None
    members: dict[str, ClassicMember] = {}
    static_members: dict[str, str] = {}
    """Instance id -> member id."""
    pending: dict[str, None] = {}
    """Ids that were assigned with MEMBER_ID_REQUIRED and that no member has used yet (KIP-394)."""
    pending_sync: dict[str, None] = {}
    """Members of this generation without a SyncGroup so far."""
    subscribed_topics: frozenset[str] | None = None
    """The topics of this generation.  None if unknown (the members are no consumers, or their
    metadata cannot be read)."""
    joined_count: int = 0
    """The number of members whose JoinGroup is parked.  Kafka: numMembersAwaitingJoinResponse."""
    supporters: dict[str, int] = {}
    """The number of members that know each protocol.  Kafka: supportedProtocols."""

    # ---------------------------------------------------------------------- changes

    def add(self, member: ClassicMember) -> None:
        if member.instance_id is not None:
            assert member.instance_id not in self.static_members, member.instance_id
            self.static_members[member.instance_id] = member.member_id
        if not self.members:
            self.protocol_type = member.protocol_type
        if self.leader is None:
            self.leader = member.member_id
        self.members[member.member_id] = member
        self.pending.pop(member.member_id, None)
        self.joined_count += member.join is not None
        self._count_supporter(member, 1)

    def remove(self, member_id: str) -> None:
        """Forget a member or a pending id; the longest standing member becomes leader."""
        member = self.members.pop(member_id, None)
        if member is not None:
            self.joined_count -= member.join is not None
            self._count_supporter(member, -1)
            if member.instance_id is not None:
                self.static_members.pop(member.instance_id, None)
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        self.pending.pop(member_id, None)
        self.pending_sync.pop(member_id, None)

    def rename_static(self, instance_id: str, new_member_id: str) -> ClassicMember:
        """Give a static member that returned under a new id the place and assignment of its old id
        (KIP-345)."""
        old_member_id = self.static_members[instance_id]
        member = self.members.pop(old_member_id)
        assert member.join is None, "answered before"
        assert member.sync is None, "answered before"
        member.member_id = new_member_id
        member.is_new = False
        self.members[new_member_id] = member
        self.static_members[instance_id] = new_member_id
        if self.leader == old_member_id:
            self.leader = new_member_id
        return member

    def join_again(self, broker: CoordinatorBroker, member: ClassicMember, call: JoinCall) -> None:
        """Update a member from its new JoinGroup, and park that request."""
        # DIFFERS: Kafka never answers a JoinGroup that the same member has repeated elsewhere.
        retry = join_error(member.member_id, ErrorCode.REBALANCE_IN_PROGRESS)
        self.answer_join(broker, member, retry)
        self.set_protocols(member, call.protocols)
        member.rebalance_timeout_ms = call.rebalance_timeout_ms
        member.session_timeout_ms = call.session_timeout_ms
        member.join = call.request
        self.joined_count += 1

    def set_protocols(self, member: ClassicMember, protocols: dict[str, bytes]) -> None:
        """Set the protocols that the member knows from now on."""
        self._count_supporter(member, -1)
        member.protocols = protocols
        self._count_supporter(member, 1)

    def _count_supporter(self, member: ClassicMember, sign: int) -> None:
        supporters = self.supporters
        for name in member.protocols:
            count = supporters[name] = supporters.get(name, 0) + sign
            if not count:
                del supporters[name]

    def answer_join(
        self, broker: CoordinatorBroker, member: ClassicMember, body: m.JoinGroupResponse
    ) -> None:
        """Answer a member's parked JoinGroup, if any."""
        request, member.join = member.join, None
        if request is not None:
            self.joined_count -= 1
            reply_join(broker, request, body)

    def answer_both(
        self, broker: CoordinatorBroker, member: ClassicMember, member_id: str, error: ErrorCode
    ) -> None:
        """Answer a member's two parked requests with `error`; `member_id` is the id in JoinGroup's
        answer."""
        self.answer_join(broker, member, join_error(member_id, error))
        member.answer_sync(broker, m.SyncGroupResponse(error_code=error))

    def next_generation(self) -> None:
        """Begin the next generation: the current members agree on a protocol; without members there
        is none."""
        self.protocol_name = self.elect_protocol() if self.members else None
        self.generation += 1
        self.pending_sync = dict.fromkeys(self.members)
        self.subscribed_topics = self._read_subscriptions()

    def keep_or_replace_leader(self) -> bool:
        """Keep the leader if it has joined, else make the first member that has joined the leader.
        False if no member has joined."""
        if self.leader is None:
            return False
        if self.members[self.leader].join is not None:
            return True
        joined = next((one for one in self.members.values() if one.join is not None), None)
        if joined is None:
            return False
        self.leader = joined.member_id
        return True

    # -------------------------------------------------------------------- questions

    def check_identity(self, member_id: str, instance_id: str | None) -> ErrorCode:
        """Check that a request comes from the member that it names."""
        if instance_id is not None:
            owner = self.static_members.get(instance_id)
            if owner is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if owner != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        return ErrorCode.NONE if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    def check_sender(self, body: m.SyncGroupRequest | m.HeartbeatRequest) -> ErrorCode:
        return self.check_member(body.member_id, body.group_instance_id, body.generation_id)

    def check_member(self, member_id: str, instance_id: str | None, generation: int) -> ErrorCode:
        """Check that a request comes from a member of this generation."""
        error = self.check_identity(member_id, instance_id)
        if error is ErrorCode.NONE and generation != self.generation:
            return ErrorCode.ILLEGAL_GENERATION
        return error

    def id_of(self, leaver: MemberIdentity) -> str | ErrorCode:
        """The member, or pending id, that an identity in LeaveGroup refers to.

        An admin removes a static member, knowing only its instance id (KIP-345).
        """
        instance_id = leaver.group_instance_id
        if not leaver.member_id:
            return self.static_members.get(instance_id or "", ErrorCode.UNKNOWN_MEMBER_ID)
        if leaver.member_id in self.pending:
            return leaver.member_id
        error = self.check_identity(leaver.member_id, instance_id)
        return leaver.member_id if error is ErrorCode.NONE else error

    @property
    def all_have_joined(self) -> bool:
        return not self.pending and self.joined_count == len(self.members)

    def late(self) -> list[str]:
        """Members that lose their place because they did not join; static members keep theirs
        (KIP-345)."""
        members = self.members.values()
        return [one.member_id for one in members if one.join is None and not one.is_static]

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest rebalance timeout of any member."""
        return max((one.rebalance_timeout_ms for one in self.members.values()), default=0)

    # -------------------------------------------------------------------- protocols

    @property
    def are_consumers(self) -> bool:
        return self.protocol_type == CONSUMER_PROTOCOL_TYPE

    def common_protocols(self) -> dict[str, None]:
        """Protocols that every member knows, in the first member's order of preference."""
        first, size = next(iter(self.members.values()), None), len(self.members)
        if first is None:
            return {}
        return {name: None for name in first.protocols if self.supporters[name] == size}

    def elect_protocol(self) -> str:
        """The protocol with the most votes; each member votes for the first of its protocols that
        all members know."""
        candidates = self.common_protocols()
        votes: dict[str, int] = {}
        for member in self.members.values():
            choice = next(name for name in member.protocols if name in candidates)
            votes[choice] = votes.get(choice, 0) + 1
        return max(votes, key=votes.__getitem__)

    def supports(self, protocol_type: str, protocols: Mapping[str, bytes]) -> bool:
        """Whether a member with these protocols has one in common with all members."""
        if self.protocol_type != protocol_type:
            return False
        if not self.members:
            return bool(protocols)
        return any(name in protocols for name in self.common_protocols())

    def agreed_on(self, protocol_type: str | None, protocol_name: str | None) -> bool:
        """Whether the members of this generation agreed on this protocol type and name.  SyncGroup
        before version 5 has neither, and agrees with any."""
        pairs = ((protocol_type, self.protocol_type), (protocol_name, self.protocol_name))
        return all(None in pair or pair[0] == pair[1] for pair in pairs)

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member subscribes to a topic; members of a consumer group whose topics cannot
        be read count as subscribed."""
        if self.subscribed_topics is not None:
            return topic in self.subscribed_topics
        return self.are_consumers

    def _read_subscriptions(self) -> frozenset[str] | None:
        """The topics that the members of a consumer group subscribe to; None if unknown."""
        if not self.are_consumers:
            return None
        topics: set[str] = set()
        for member in self.members.values():
            if self.protocol_name is None:
                return None
            topics_read = topics_of_subscription(member.protocols.get(self.protocol_name, b""))
            if topics_read is None:
                return None
            topics.update(topics_read)
        return frozenset(topics)

    def assigned_partitions(self) -> tuple[AssignedPartitions, ...]:
        """The partitions of each member; none for a member that is not a consumer."""
        if not self.are_consumers:
            return ()
        return tuple(
            AssignedPartitions(one.member_id, entry.topic, tuple(entry.partitions))
            for one in self.members.values()
            for entry in partitions_of_assignment(one.assignment)
        )

    # ------------------------------------------------------------------ in messages

    def join_answer(self, member: ClassicMember, to_leader: bool = True) -> m.JoinGroupResponse:
        """The answer to a member's JoinGroup, with its generation; the leader also gets the
        members, because it assigns the partitions."""
        rows = []
        if to_leader and self.leader == member.member_id:
            protocol = self.protocol_name or ""
            rows = [
                m.JoinGroupResponse.JoinGroupResponseMember(
                    member_id=one.member_id,
                    group_instance_id=one.instance_id,
                    metadata=one.protocols.get(protocol, b""),
                )
                for one in self.members.values()
            ]
        return m.JoinGroupResponse(
            generation_id=self.generation,
            protocol_type=self.protocol_type,
            protocol_name=self.protocol_name,
            leader=self.leader or "",
            member_id=member.member_id,
            members=rows,
        )

    def answer_to_returned(
        self, member: ClassicMember, call: JoinCall, old_leader: str
    ) -> m.JoinGroupResponse:
        """The answer to a static member that took its old place in a stable group, without a
        rebalance."""
        answer = self.join_answer(member, to_leader=call.can_skip_assignment)
        if call.can_skip_assignment:
            answer.skip_assignment = self.leader == member.member_id
        else:
            # The member must not take itself for the leader: it would then assign without a
            # rebalance.
            answer.leader = old_leader
        return answer

    def sync_answer(
        self, member: ClassicMember, error: ErrorCode = ErrorCode.NONE
    ) -> m.SyncGroupResponse:
        if error is not ErrorCode.NONE:
            return m.SyncGroupResponse(error_code=error)
        return m.SyncGroupResponse(
            protocol_type=self.protocol_type,
            protocol_name=self.protocol_name,
            assignment=member.assignment,
        )

    def saved(self, assignment: Mapping[str, bytes], since_ms: int) -> GroupMetadataValue:
        """The value of the group's record, each member with its part of `assignment`."""
        members = [
            one.saved(self.protocol_name, assignment.get(one.member_id, b""))
            for one in self.members.values()
        ]
        return m.GroupMetadataValue(
            protocol_type=self.protocol_type or "",
            generation=self.generation,
            protocol=self.protocol_name,
            leader=self.leader,
            current_state_timestamp=since_ms,
            members=members,
        )

    @staticmethod
    def restored(value: GroupMetadataValue) -> Roster:
        """The members from which `value` was written."""
        roster = Roster(
            generation=value.generation,
            protocol_type=value.protocol_type or None,
            protocol_name=value.protocol,
            leader=value.leader,
        )
        for saved in value.members:
            roster.add(ClassicMember.restored(saved, value.protocol_type, value.protocol or ""))
        roster.subscribed_topics = roster._read_subscriptions()
        return roster


# ------------------------------------------------------------------------------------ subscriptions


def topics_of_subscription(metadata: bytes) -> list[str] | None:
    """The topics of a ConsumerProtocolSubscription; None for any other bytes.

    Only the fields of version 0 are read, with which all later versions begin.
    """
    subscription = decode_consumer_message(SUBSCRIPTION, metadata, highest=0)
    return None if subscription is None else subscription.topics


def partitions_of_assignment(assignment: bytes) -> list[AssignedTopic]:
    """The topics and partitions of a ConsumerProtocolAssignment; none for any other bytes."""
    body = decode_consumer_message(ASSIGNMENT, assignment)
    return [] if body is None else list(body.assigned_partitions)
