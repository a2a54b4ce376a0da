"""The requests that change a group, as any client may send them: members are removed, a rebalance
begins, offsets are reset, the group is deleted.

Owns: the sequences of requests, for groups of every protocol; members by the names that users know.
Never: sends a request, knows which broker coordinates the group.
Kafka: Admin.removeMembersFromConsumerGroup; KIP-848, KIP-932 and KIP-1071 for members that leave;
kafka-consumer-groups and kafka-share-groups with --reset-offsets and --delete.

A sequence is a generator: it yields GroupCalls for the group's coordinator and is sent the answers.
So whoever can reach a coordinator, simulated or real, can run it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any, Final, TypeVar

from msgspec import Struct

from kcluster.config.files.problems import nearest, unknown
from kcluster.events.clients import MembersEvicted, OffsetSpec, OffsetsReset, PartitionOffset
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode, error_of
from kcluster.protocol.messages import Message

ALL: Final = "all"
CLASSIC, CONSUMER, SHARE, STREAMS = "classic", "consumer", "share", "streams"
"""Kinds of groups, as ListGroups names them.  Kafka: Group.GroupType."""
REASON: Final = "requested by the operator"
LEAVE_EPOCH: Final = -1
JOIN_EPOCH: Final = 0
MAX_LOOKS: Final = 100
"""The most looks at a group that is to begin a rebalance."""
NO_MEMBER: Final = -1
"""The generation or epoch in a commit from outside of the group."""
CONSUMER_ID: Final = -1
"""The replica_id of a client that asks for the end of a log."""
_TIMESTAMPS: Final = {OffsetSpec.EARLIEST: -2, OffsetSpec.LATEST: -1}
"""The timestamps in ListOffsets of the ends of a log."""
_SESSION_TIMEOUT_MS: Final = 10_000
_REBALANCE_TIMEOUT_MS: Final = 1_000
_STABLE: Final = "Stable"


class GroupCall(Struct, frozen=True):
    """A request for a group's coordinator, or for `broker`.  `is_awaited` False: the answer comes
    only after later requests, which therefore use another connection, and the generator is sent
    None."""

    request: Message
    is_awaited: bool = True
    broker: int | None = None


class GroupMember(Struct, frozen=True):
    """A member of a group."""

    member_id: str
    client_id: str
    instance_id: str | None = None

    def is_called(self, name: str) -> bool:
        """Whether a name is the member's id, its client's id, or its static id."""
        return name in (ALL, self.member_id, self.client_id, self.instance_id)


class GroupCallRefused(Exception):
    """The error when a group or a member does not exist, or the coordinator refuses a request."""


R = TypeVar("R")
_Asking = Generator[GroupCall, Any, R]
Calls = _Asking[None]
"""Yields calls; is sent the answers."""
_Described = _Asking[tuple[str, Any]]


def evict(group: str, name: str, on_chosen: Callable[[Sequence[GroupMember]], None]) -> Calls:
    """Make members leave a group, in their name: each learns of it by UNKNOWN_MEMBER_ID, and joins
    again.  `name`: see GroupMember.is_called; `on_chosen`: called before they leave."""
    kind, described = yield from _described(group)
    members = [_member(one) for one in described.members]
    chosen = [member for member in members if member.is_called(name)]
    if not chosen and not members:
        raise GroupCallRefused(f"group {group} has no members")
    if not chosen:
        names = [known for member in members for known in (member.client_id, member.member_id)]
        raise GroupCallRefused(f"{name} in group {group}: {unknown('member', name, names)}")
    on_chosen(chosen)
    if kind in (CLASSIC, CONSUMER):
        identity = m.LeaveGroupRequest.MemberIdentity
        leavers = [identity(one.member_id, one.instance_id, REASON) for one in chosen]
        answer = yield GroupCall(m.LeaveGroupRequest(group_id=group, members=leavers))
        _check(answer.error_code)
        for left in answer.members:
            _check(left.error_code)
        return
    for member in chosen:
        yield from _leave(kind, group, member.member_id)


def evicted(group: str, name: str, chosen: Sequence[GroupMember]) -> MembersEvicted:
    """The event of an eviction.  Member ids are drawn: a repeated run knows a member by its
    client."""
    is_id = name in [member.member_id for member in chosen]
    known = chosen[0].client_id if is_id else name
    return MembersEvicted(group, known, tuple(member.member_id for member in chosen))


def rebalance(group: str, phantom_id: str) -> Calls:
    """Have a member that nobody runs join a group and leave it again.  All members of a classic
    group must then join again.  In a group with epochs the coordinator computes the assignment
    anew.  `phantom_id`: a member id that no group knows, for groups with epochs."""
    kind, described = yield from _described(group)
    if not described.members:
        raise GroupCallRefused(f"group {group} has no members")
    if kind == CLASSIC:
        yield from _rebalance_classic(group, described)
        return
    if kind == STREAMS:
        joining: Any = _streams_heartbeat(group, described)
        joining.member_id = joining.process_id = phantom_id
    else:
        joining = _heartbeat_of(kind)(group_id=group, member_id=phantom_id, member_epoch=JOIN_EPOCH)
        topics = {topic for one in described.members for topic in one.subscribed_topic_names}
        joining.subscribed_topic_names = sorted(topics)
        if kind == CONSUMER:
            joining.rebalance_timeout_ms = _REBALANCE_TIMEOUT_MS
            joining.topic_partitions = []
            patterns = [one.subscribed_topic_regex for one in described.members]
            joining.subscribed_topic_regex = next(filter(None, patterns), None)
    answer = yield GroupCall(joining)
    _check(answer.error_code, answer.error_message)
    yield from _leave(kind, group, phantom_id)


def delete(group: str, on_deleting: Callable[[], None]) -> Calls:
    """Delete a group, with its offsets.  The coordinator refuses it while the group has members.
    `on_deleting`: called before it can be deleted."""
    _, described = yield from _described(group)
    if not described.members:
        on_deleting()
    answer = yield GroupCall(m.DeleteGroupsRequest(groups_names=[group]))
    (result,) = answer.results
    _check(result.error_code, result.error_message)
    if described.members:
        on_deleting()  # they have left since


def reset(
    group: str,
    topic: str,
    partition: int | None,
    to: OffsetSpec | int,
    on_resetting: Callable[[tuple[PartitionOffset, ...]], None],
) -> Calls:
    """Give a group without members other offsets of a topic.  `partition` None: of all partitions.
    `to`: an end of the log, or an offset, which stays within the log, as with Kafka's tools.
    `on_resetting`: called with the new offsets before the group can have them."""
    kind, described = yield from _described(group)
    if described.members:
        state = described.group_state
        raise GroupCallRefused(f"group {group} has members: it must be inactive, and is {state}")
    wanted = m.MetadataRequest.MetadataRequestTopic(name=topic)
    answer = yield GroupCall(m.MetadataRequest([wanted], allow_auto_topic_creation=False))
    (found,) = answer.topics
    _check(found.error_code, f"topic {topic}")
    leaders = {one.partition_index: one.leader_id for one in found.partitions}
    if partition is not None and partition not in leaders:
        raise GroupCallRefused(f"there is no partition {partition} of {topic}")
    offsets: list[PartitionOffset] = []
    for index in sorted(leaders) if partition is None else [partition]:
        offset = yield from _offset_of(topic, index, leaders[index], to)
        offsets.append(PartitionOffset(index, offset))
    on_resetting(tuple(offsets))
    if kind == SHARE:
        answer = yield GroupCall(_altering(group, topic, offsets))
        _check(answer.error_code, answer.error_message)
        answered = answer.responses
    else:
        answer = yield GroupCall(_committing(group, topic, found.topic_id, offsets))
        answered = answer.topics
    for each in answered:
        for result in each.partitions:
            _check(result.error_code, f"{topic}-{result.partition_index}")


def offsets_reset(
    group: str,
    topic: str,
    partition: int | None,
    to: OffsetSpec | int,
    offsets: tuple[PartitionOffset, ...],
) -> OffsetsReset:
    """The event of a reset."""
    if isinstance(to, OffsetSpec):
        return OffsetsReset(group, topic, offsets, end=to, partition=partition)
    return OffsetsReset(group, topic, offsets, asked=to, partition=partition)


def _committing(
    group: str, topic: str, topic_id: bytes, offsets: Iterable[PartitionOffset]
) -> m.OffsetCommitRequest:
    """A commit from outside of the group."""
    kind = m.OffsetCommitRequest
    partitions = [
        kind.OffsetCommitRequestPartition(
            partition_index=one.partition, committed_offset=one.offset, committed_metadata=""
        )
        for one in offsets
    ]
    topics = [kind.OffsetCommitRequestTopic(topic, topic_id, partitions)]
    return kind(group_id=group, generation_id_or_member_epoch=NO_MEMBER, topics=topics)


def _altering(
    group: str, topic: str, offsets: Iterable[PartitionOffset]
) -> m.AlterShareGroupOffsetsRequest:
    kind = m.AlterShareGroupOffsetsRequest
    row = kind.AlterShareGroupOffsetsRequestPartition
    partitions = [row(one.partition, one.offset) for one in offsets]
    return kind(group, [kind.AlterShareGroupOffsetsRequestTopic(topic, partitions)])


def _offset_of(topic: str, partition: int, leader: int, to: OffsetSpec | int) -> _Asking[int]:
    """The offset that is meant by `to`, as the partition's leader has it."""
    if leader < 0:
        raise GroupCallRefused(f"{topic}-{partition} has no leader")
    if isinstance(to, OffsetSpec):
        offset = yield from _listed(topic, partition, leader, to)
        return offset
    earliest = yield from _listed(topic, partition, leader, OffsetSpec.EARLIEST)
    latest = yield from _listed(topic, partition, leader, OffsetSpec.LATEST)
    return min(max(to, earliest), latest)


def _listed(topic: str, partition: int, leader: int, end: OffsetSpec) -> _Asking[int]:
    kind = m.ListOffsetsRequest
    row = kind.ListOffsetsPartition(partition_index=partition, timestamp=_TIMESTAMPS[end])
    topics = [kind.ListOffsetsTopic(topic, [row])]
    answer = yield GroupCall(kind(replica_id=CONSUMER_ID, topics=topics), broker=leader)
    (found,) = answer.topics[0].partitions
    _check(found.error_code, f"{topic}-{partition}")
    return int(found.offset)


def _rebalance_classic(group: str, described: Any) -> Calls:
    """A member joins, which begins a rebalance, and leaves before the others have joined again."""
    if described.group_state != _STABLE:
        raise GroupCallRefused(f"group {group} is in a rebalance: {described.group_state}")
    metadata = described.members[0].member_metadata
    protocol = m.JoinGroupRequest.JoinGroupRequestProtocol(described.protocol_data, metadata)
    joining = m.JoinGroupRequest(
        group_id=group,
        session_timeout_ms=_SESSION_TIMEOUT_MS,
        rebalance_timeout_ms=_REBALANCE_TIMEOUT_MS,
        protocol_type=described.protocol_type,
        protocols=[protocol],
        reason=REASON,
    )
    answer = yield GroupCall(joining)
    if answer.error_code != ErrorCode.MEMBER_ID_REQUIRED:
        _check(answer.error_code)
    joining.member_id = answer.member_id
    yield GroupCall(joining, is_awaited=False)
    for _ in range(MAX_LOOKS):
        _, described = yield from _described(group)
        if described.group_state != _STABLE:
            break
    leaver = m.LeaveGroupRequest.MemberIdentity(answer.member_id, None, REASON)
    answer = yield GroupCall(m.LeaveGroupRequest(group_id=group, members=[leaver]))
    _check(answer.error_code)


def _described(group: str) -> _Described:
    """The kind of a group, and its description."""
    answer = yield GroupCall(m.ListGroupsRequest())
    _check(answer.error_code)
    kinds = {one.group_id: one.group_type.lower() for one in answer.groups}
    if group not in kinds:
        likely = nearest(group, kinds)
        advice = "" if likely is None else f"; did you mean {likely}?"
        raise GroupCallRefused(f"there is no group {group}{advice}")
    kind = kinds[group] or CLASSIC  # brokers before 3.8 do not name it
    if kind == CLASSIC:
        request: Message = m.DescribeGroupsRequest(groups=[group])
    elif kind == CONSUMER:
        request = m.ConsumerGroupDescribeRequest(group_ids=[group])
    elif kind == SHARE:
        request = m.ShareGroupDescribeRequest(group_ids=[group])
    else:
        request = m.StreamsGroupDescribeRequest(group_ids=[group])
    answer = yield GroupCall(request)
    (found,) = answer.groups
    _check(found.error_code)
    return kind, found


def _member(described: Any) -> GroupMember:
    instance_id = getattr(described, "group_instance_id", getattr(described, "instance_id", None))
    return GroupMember(described.member_id, described.client_id, instance_id)


def _leave(kind: str, group: str, member_id: str) -> Calls:
    """A member of a group with epochs leaves."""
    request = _heartbeat_of(kind)(group_id=group, member_id=member_id, member_epoch=LEAVE_EPOCH)
    answer = yield GroupCall(request)
    _check(answer.error_code, answer.error_message)


def _heartbeat_of(kind: str) -> Callable[..., Any]:
    if kind == CONSUMER:
        return m.ConsumerGroupHeartbeatRequest
    return m.ShareGroupHeartbeatRequest if kind == SHARE else m.StreamsGroupHeartbeatRequest


def _streams_heartbeat(group: str, described: Any) -> m.StreamsGroupHeartbeatRequest:
    """The first heartbeat of an instance of a streams application, with its topology."""
    kind = m.StreamsGroupHeartbeatRequest
    topology = described.topology
    subtopologies = [
        kind.Subtopology(
            subtopology_id=one.subtopology_id,
            source_topics=one.source_topics,
            state_changelog_topics=_topics(one.state_changelog_topics),
            repartition_sink_topics=one.repartition_sink_topics,
            repartition_source_topics=_topics(one.repartition_source_topics),
        )
        for one in topology.subtopologies or ()
    ]
    return kind(
        group_id=group,
        member_epoch=JOIN_EPOCH,
        rebalance_timeout_ms=_REBALANCE_TIMEOUT_MS,
        topology=kind.Topology(topology.epoch, subtopologies),
        active_tasks=[],
        standby_tasks=[],
        warmup_tasks=[],
        client_tags=[],
    )


def _topics(described: Iterable[Any]) -> list[m.StreamsGroupHeartbeatRequest.TopicInfo]:
    kind = m.StreamsGroupHeartbeatRequest
    return [
        kind.TopicInfo(
            name=one.name,
            partitions=one.partitions,
            replication_factor=one.replication_factor,
            topic_configs=[kind.KeyValue(each.key, each.value) for each in one.topic_configs],
        )
        for one in described
    ]


def _check(code: int, message: str | None = None) -> None:
    """Raise the coordinator's refusal, if it is one."""
    if code:
        error = error_of(code)
        raise GroupCallRefused(f"{error.name}: {message or error.text}")
