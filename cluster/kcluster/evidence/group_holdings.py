"""The partitions that members of groups held, and when.

Owns: these facts, read from recorded answers and notes after a run.  Never: judges them (checks/),
reads share groups: there, a partition belongs to several members on purpose.  Kafka: no
counterpart; ConsumerGroup.currentPartitionEpoch has it while a group runs.

A member holds a partition from the answer that assigns it, until the member's own next report omits
it, or the member leaves or is fenced.  Its report is the heartbeat of a group with epochs, or the
JoinGroup of a classic member, whose subscription lists the partitions that it keeps (none, if its
assignor is eager).  A report counts when the coordinator begins to process it, even if its answer
is lost.  An answer counts unless its member has sent a newer report, or has left, since its
request.  A member of a streams group holds the partitions that its active tasks read.

A classic coordinator begins a generation without the members that have not joined it in their
rebalance timeout.  It removes them, but keeps a static member, whose partitions it gives away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from kcluster.clients.ledger import Partition
from kcluster.contract import Reply, Request
from kcluster.events.clients import GroupMemberExpired, GroupMemberLeft
from kcluster.evidence.recorder import MEMBERSHIP_APIS, MembershipStep, Recorder
from kcluster.operations.controller import controller_image
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.consumer_protocol import (
    ASSIGNMENT,
    CONSUMER_PROTOCOL_TYPE,
    SUBSCRIPTION,
    decode_consumer_message,
)
from kcluster.protocol.errors import ErrorCode, error_of

_CLASSIC: Final = (int(ApiKey.JOIN_GROUP), int(ApiKey.SYNC_GROUP))
"""Classic APIs whose answers restart the session."""
_FENCING: Final = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH)
_FENCING_CLASSIC: Final = (
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.FENCED_INSTANCE_ID,
)


if TYPE_CHECKING:
    _TopicIds = (
        m.ConsumerGroupHeartbeatRequest.TopicPartitions
        | m.ConsumerGroupHeartbeatResponse.TopicPartitions
    )
    _TaskIds = m.StreamsGroupHeartbeatRequest.TaskIds | m.StreamsGroupHeartbeatResponse.TaskIds
    _TopicNames = (
        m.ConsumerProtocolAssignment.TopicPartition | m.ConsumerProtocolSubscription.TopicPartition
    )


class HeldTwice(Struct, frozen=True):
    """A partition that was assigned to `other` before `holder` had given it up."""

    at_ms: int
    broker: int
    group: str
    partition: Partition
    holder: str
    other: str
    since_ms: int
    """The time since which `holder` has the partition."""


_Member = tuple[str, str]
"""A member's key: (group, member id)."""


class _Said(Struct, frozen=True):
    """A member's report in a request that is not answered yet."""

    member: _Member
    lets_go: bool = False
    """Whether the member gives up all its partitions: it joins or leaves."""
    owned: list[Partition] | None = None
    """The partitions that the member has; None: unchanged."""


class _Word(Struct, frozen=True):
    """The report about one member in a request and its answer.  `session_ms`,
    `rebalance_timeout_ms`: -1 if the messages have no such field."""

    member: _Member
    lets_go: bool = False
    """Whether the member has no partitions from now on: it joins, has left or is fenced."""
    is_refused: bool = False
    owned: list[Partition] | None = None
    """The partitions that the member still has, by its own report."""
    is_join: bool = False
    """Whether it is a JoinGroup: what a member had before it was removed, it has not again by
    saying so."""
    assigned: list[Partition] | None = None
    instance: str = ""
    session_ms: int = -1
    rebalance_timeout_ms: int = -1
    generation: int = -1
    """The generation of classic members that begins with the answer."""


class _Fence(Struct):
    """The time at which a member counts as fenced without an answer that fences it."""

    session_ms: int
    heard_until_ms: int = 0
    """The end of the member's session."""
    rebalance_timeout_ms: int = 0
    revokes: dict[Partition, int] = {}
    """The partitions that the member must give up, each with the time since which it must."""
    generation: int = -1
    """The last generation that the member has joined, if it is a classic one."""

    def is_past(self, partition: Partition, now_ms: int) -> bool:
        since_ms = self.revokes.get(partition, now_ms)
        is_slow = 0 < self.rebalance_timeout_ms <= now_ms - since_ms
        return is_slow or now_ms >= self.heard_until_ms


class _Rebalance(Struct):
    """The newest generation of a classic group, and the time for which its coordinator waited for
    the members; `began_ms`: when the next rebalance began, -1: it has not."""

    generation: int = -1
    waited_ms: int = 0
    began_ms: int = -1

    def went_on_without(self, fence: _Fence) -> bool:
        """Whether the generation began after the rebalance timeout of a member that is not in
        it."""
        is_outside = 0 <= fence.generation < self.generation
        return is_outside and 0 < fence.rebalance_timeout_ms <= self.waited_ms


class _Holdings:
    """The holders of partitions, answer by answer."""

    def __init__(self) -> None:
        self._held: dict[str, dict[str, dict[Partition, int]]] = {}
        """The time since which a member has a partition, by group, member and partition."""
        self._fences: dict[_Member, _Fence] = {}
        self._instances: dict[_Member, str] = {}
        """The member with each instance id, by group and instance id."""
        self._rebalances: dict[str, _Rebalance] = {}

    def begin_rebalance(self, group: str, at_ms: int) -> None:
        """Apply the first sign of a rebalance: a member joins or has left."""
        rebalance = self._rebalances.setdefault(group, _Rebalance())
        if rebalance.began_ms < 0:
            rebalance.began_ms = at_ms

    def _end_rebalance(self, group: str, generation: int, at_ms: int) -> None:
        rebalance = self._rebalances.setdefault(group, _Rebalance())
        if generation != rebalance.generation:  # equal: a static member is back, and nothing begins
            began_ms = rebalance.began_ms
            rebalance.waited_ms = at_ms - began_ms if began_ms >= 0 else 0
            rebalance.generation = generation
        rebalance.began_ms = -1

    def drop(self, group: str, member: str) -> None:
        self._held.get(group, {}).pop(member, None)

    def hear(self, said: _Said) -> None:
        """Apply a member's own report: it has no other partitions."""
        group, member = said.member
        held = self._held.get(group, {})
        if said.lets_go:
            held.pop(member, None)
        elif said.owned is not None and member in held:
            own = held[member]
            held[member] = {one: own[one] for one in said.owned if one in own}

    def take(self, word: _Word, at_ms: int, heard_ms: int) -> Iterator[tuple[Partition, str, int]]:
        """Apply an answer; returns (partition, its holder, the time since which it holds it) for
        each partition that two members hold now.  `heard_ms`: the time at which its coordinator
        heard from the member."""
        group, member = word.member
        if word.lets_go:
            self.drop(group, member)
        members = self._held.setdefault(group, {})
        own = members.setdefault(member, {})
        if word.owned is not None:
            is_believed = not (word.is_refused or word.is_join)
            own = members[member] = {
                one: own.get(one, at_ms) for one in word.owned if one in own or is_believed
            }
        if word.is_refused:
            return
        fence = self._fences.setdefault(word.member, _Fence(max(word.session_ms, 0)))
        if word.session_ms >= 0:
            fence.session_ms = word.session_ms
        fence.heard_until_ms = heard_ms + fence.session_ms
        if word.rebalance_timeout_ms >= 0:
            fence.rebalance_timeout_ms = word.rebalance_timeout_ms
        self._replace(word)
        if word.generation >= 0:
            fence.generation = word.generation
            self._end_rebalance(group, word.generation, at_ms)
        if word.assigned is None:
            return
        rebalance = self._rebalances.get(group, _Rebalance())
        fence.revokes = {
            one: fence.revokes.get(one, at_ms) for one in own if one not in word.assigned
        }
        for partition in word.assigned:
            if partition not in own:
                own[partition] = at_ms
                for other, theirs in members.items():
                    if other == member or partition not in theirs:
                        continue
                    fenced = self._fences[group, other]
                    if not (fenced.is_past(partition, at_ms) or rebalance.went_on_without(fenced)):
                        yield partition, other, theirs[partition]

    def _replace(self, word: _Word) -> None:
        """Replace the member id of a static member that has returned under another id."""
        if word.instance:
            group, member = word.member
            before = self._instances.get((group, word.instance), member)
            self._instances[group, word.instance] = member
            if before != member:
                self.drop(group, before)


def held_twice(recorder: Recorder) -> Iterator[HeldTwice]:
    """Every partition of a group that was assigned while another member held it."""
    holdings, words = _Holdings(), _Words(recorder)
    said_at: dict[_Member, int] = {}
    """The step of each member's last new report or of its departure."""
    asked_at: dict[Request, tuple[int, int]] = {}
    """(step, time) of requests that have no answer yet."""
    for at, step in enumerate(_steps(recorder)):
        what = step.what
        if isinstance(what, Request):
            asked_at[what] = (at, step.at_ms)
            said = words.said(what)
            if what.api_key == ApiKey.JOIN_GROUP:
                holdings.begin_rebalance(what.body.group_id, step.at_ms)
            if said is not None:
                said_at[said.member] = at
                holdings.hear(said)
        elif isinstance(what, Reply):
            word = words.answered(what)
            asked, asked_ms = asked_at.pop(what.request, (at, step.at_ms))
            if word is None or said_at.get(word.member, -1) > asked:
                continue
            group, member = word.member
            if step.is_withheld:
                if word.lets_go:
                    holdings.drop(group, member)
                continue
            heard_ms = step.at_ms if what.request.api_key in _CLASSIC else asked_ms
            for partition, holder, since_ms in holdings.take(word, step.at_ms, heard_ms):
                yield HeldTwice(step.at_ms, step.broker, group, partition, holder, member, since_ms)
        else:
            said_at[what.group, what.member] = at
            holdings.begin_rebalance(what.group, step.at_ms)
            holdings.drop(what.group, what.member)


def _steps(recorder: Recorder) -> Iterable[MembershipStep]:
    """The membership steps of a run.  A recorder that sees no single steps has answers and
    departures; at equal times a departure comes before and after the answers."""
    if recorder.membership:
        return recorder.membership
    departures = [
        (note.at_ms, MembershipStep(note.at_ms, note.note_id[0], note.event))
        for note in recorder.notes
        if isinstance(note.event, GroupMemberExpired | GroupMemberLeft)
    ]
    answers = [
        (at_ms, MembershipStep(at_ms, broker, reply))
        for at_ms, broker, reply in recorder.answers
        if reply.request.api_key in MEMBERSHIP_APIS
    ]
    merged = sorted([*departures, *answers, *departures], key=lambda entry: entry[0])
    return [step for _, step in merged]


# ------------------------------------------------------------------------- requests and answers


class _Words:
    """Reads the reports of members from a run's requests and answers."""

    def __init__(self, recorder: Recorder) -> None:
        self._names = controller_image(recorder.dispatcher).topic_names
        configs = [
            node.config
            for process in recorder.dispatcher.processes.values()
            if (node := process.last_broker) is not None
        ]
        of_consumers = [config.group_consumer_session_timeout_ms for config in configs]
        of_streams = [config.group_streams_session_timeout_ms for config in configs]
        self._session_ms = min(of_consumers, default=0)
        self._streams_session_ms = min(of_streams, default=0)
        self._sources: dict[tuple[str, str], list[str]] = {}
        """The topics that a subtopology's tasks read, by streams group and subtopology."""
        self._consumers: set[_Member] = set()
        """Classic members whose assignments are partitions."""
        self._readers: dict[int, Callable[[Reply], _Word | None]] = {
            ApiKey.CONSUMER_GROUP_HEARTBEAT: self._consumer,
            ApiKey.STREAMS_GROUP_HEARTBEAT: self._streams,
            ApiKey.JOIN_GROUP: self._join,
            ApiKey.SYNC_GROUP: self._sync,
            ApiKey.HEARTBEAT: self._classic_heartbeat,
        }

    def said(self, request: Request) -> _Said | None:
        """The report in a request about its member; None if there is no report."""
        body, api_key = request.body, request.api_key
        if not body.member_id:
            return None
        member = (body.group_id, body.member_id)
        if api_key == ApiKey.JOIN_GROUP:
            is_consumer = body.protocol_type == CONSUMER_PROTOCOL_TYPE
            return _Said(member, owned=_kept_by(body)) if is_consumer else None
        if api_key == ApiKey.CONSUMER_GROUP_HEARTBEAT:
            owned = body.topic_partitions
            kept = None if owned is None else self._partitions(owned)
        elif api_key == ApiKey.STREAMS_GROUP_HEARTBEAT:
            kept = self._read_by(body.group_id, body.active_tasks)
        else:
            return None
        return _Said(member, body.member_epoch <= 0, kept)

    def answered(self, reply: Reply) -> _Word | None:
        """The report in an answer about its member; None if there is no report."""
        read = self._readers.get(reply.request.api_key)
        return None if read is None or reply.body is None else read(reply)

    def _consumer(self, reply: Reply) -> _Word:
        body, answer = reply.request.body, reply.body
        error = error_of(answer.error_code)
        owned, assigned = body.topic_partitions, answer.assignment
        return _Word(
            member=(body.group_id, answer.member_id or body.member_id),
            lets_go=error in _FENCING or body.member_epoch <= 0,
            is_refused=bool(error) or body.member_epoch < 0,
            owned=None if owned is None else self._partitions(owned),
            assigned=None if assigned is None else self._partitions(assigned.topic_partitions),
            instance=body.instance_id or "",
            session_ms=self._session_ms,
            rebalance_timeout_ms=body.rebalance_timeout_ms,
        )

    def _partitions(self, topics: Iterable[_TopicIds]) -> list[Partition]:
        # Topics that were deleted since are not compared: they have no names any more, and new ones
        # may have theirs.
        return [
            (name, number)
            for topic in topics
            if (name := self._names.get(topic.topic_id)) is not None
            for number in topic.partitions
        ]

    def _streams(self, reply: Reply) -> _Word:
        body, answer = reply.request.body, reply.body
        if body.topology is not None:
            for part in body.topology.subtopologies:
                repartitioned = (one.name for one in part.repartition_source_topics)
                topics = [*part.source_topics, *repartitioned]
                self._sources[body.group_id, part.subtopology_id] = topics
        error = error_of(answer.error_code)
        return _Word(
            member=(body.group_id, answer.member_id or body.member_id),
            lets_go=error in _FENCING or body.member_epoch <= 0,
            is_refused=bool(error) or body.member_epoch < 0,
            owned=self._read_by(body.group_id, body.active_tasks),
            assigned=self._read_by(body.group_id, answer.active_tasks),
            instance=body.instance_id or "",
            session_ms=self._streams_session_ms,
            rebalance_timeout_ms=body.rebalance_timeout_ms,
        )

    def _read_by(self, group: str, tasks: Iterable[_TaskIds] | None) -> list[Partition] | None:
        if tasks is None:
            return None
        return [
            (topic, number)
            for part in tasks
            for topic in self._sources.get((group, part.subtopology_id), ())
            for number in part.partitions
        ]

    def _join(self, reply: Reply) -> _Word | None:
        body, answer = reply.request.body, reply.body
        if body.protocol_type != CONSUMER_PROTOCOL_TYPE:
            return None
        member = (body.group_id, answer.member_id or body.member_id)
        self._consumers.add(member)
        error = error_of(answer.error_code)
        return _Word(
            member=member,
            lets_go=error in _FENCING_CLASSIC,
            is_refused=bool(error),
            owned=_kept_by(body),
            is_join=True,
            instance=body.group_instance_id or "",
            session_ms=body.session_timeout_ms,
            rebalance_timeout_ms=body.rebalance_timeout_ms,
            generation=answer.generation_id,
        )

    def _sync(self, reply: Reply) -> _Word | None:
        answer = reply.body
        word = self._classic_heartbeat(reply)
        if word is None or word.is_refused:
            return word
        assignment = decode_consumer_message(ASSIGNMENT, bytes(answer.assignment))
        partitions = [] if assignment is None else _named(assignment.assigned_partitions)
        return _Word(word.member, assigned=partitions)

    def _classic_heartbeat(self, reply: Reply) -> _Word | None:
        body, error = reply.request.body, error_of(reply.body.error_code)
        member = (body.group_id, body.member_id)
        if member not in self._consumers:
            return None
        is_heard = not error or error is ErrorCode.REBALANCE_IN_PROGRESS
        return _Word(member, lets_go=error in _FENCING_CLASSIC, is_refused=not is_heard)


def _kept_by(body: m.JoinGroupRequest) -> list[Partition]:
    """The partitions that a classic member keeps when it joins again."""
    subscribed = next((one.metadata for one in body.protocols), b"")
    subscription = decode_consumer_message(SUBSCRIPTION, bytes(subscribed))
    return [] if subscription is None else _named(subscription.owned_partitions)


def _named(topics: Iterable[_TopicNames]) -> list[Partition]:
    return [(one.topic, number) for one in topics for number in one.partitions]
