"""The loss of a group's state, as its coordinator's log began without it; of an assignment; and
answers of a coordinator that has a successor.

Owns: the choice of the group's record, or of the member's heartbeat, that matters.
Never: guesses: each link is a note, or an error in a client's ledger.  Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from kcluster.broker.auto_topics import auto_created_topic
from kcluster.broker.coordinator.group_log import ClassicGroupRecord, LogRecord, OffsetRecord
from kcluster.broker.coordinator.group_records import decode_batch
from kcluster.broker.coordinator.modern.records import (
    ConsumerGroupMetadata,
    StreamsGroupCurrentMemberAssignment,
    StreamsGroupTargetAssignmentMember,
)
from kcluster.broker.coordinator.streams.tasks import TaskIds
from kcluster.checks.chain.facts import (
    ErrorOfClient,
    GroupMadeClassic,
    OffsetAnswered,
    TopicNeedsBrokers,
)
from kcluster.checks.chain.links import Link, link
from kcluster.checks.settings import Setting
from kcluster.checks.stories.losses import losses
from kcluster.clients.connections import DISCONNECTED, REQUEST_TIMED_OUT
from kcluster.clients.ledger import Partition, Unowned
from kcluster.events.clients import (
    GroupAssigned,
    GroupMemberExpired,
    GroupMemberJoined,
    GroupMemberLeft,
)
from kcluster.events.partitions import BecameLeader, LeaderElected
from kcluster.evidence.client_names import client_name
from kcluster.evidence.group_history import FetchedOffset, group_home, offset_answers
from kcluster.evidence.lookups import Facts, of_type
from kcluster.invariants.observed import Append, ObservedPartition
from kcluster.protocol.apis import APIS, ApiKey
from kcluster.protocol.consumer_protocol import ASSIGNMENT, decode_consumer_message
from kcluster.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from kcluster.protocol.messages import GroupMetadataValue

_HEARTBEAT: Final = APIS[ApiKey.STREAMS_GROUP_HEARTBEAT].name
_LOST: Final = (
    *(DISCONNECTED, REQUEST_TIMED_OUT),
    *(ErrorCode.NOT_COORDINATOR.name, ErrorCode.COORDINATOR_NOT_AVAILABLE.name),
)
"""What a client gets in place of an answer: also of a coordinator that resigns after its write."""


def group_losses(
    facts: Facts, group: str, written_ms: int, until_ms: int, committed: Partition | None = None
) -> tuple[list[Link], Setting]:
    """The events that removed a group's last record written until `written_ms`, and the setting
    that allowed them; none if each leader until `until_ms` had the record.  `committed`: the last
    commit for this partition."""
    home = group_home(facts.recorder, group)
    if home is None:
        return [], Setting.NONE
    for observed in facts.recorder.of_partition(home):
        for append in reversed(observed.appends):
            if append.at_ms > written_ms:
                continue
            if any(_is_of(record, group, committed) for record in decode_batch(append.batch)):
                if not _is_lost(facts, observed, append, until_ms):
                    break
                links, allowed = losses(facts, observed, append, append.base_offset)
                return [one for one in links if one.at_ms <= until_ms], allowed
    return [], Setting.NONE


def deposed_answer(
    facts: Facts, group: str, partition: Partition, offset: int, from_ms: int, until_ms: int
) -> list[Link]:
    """The election of a group's new coordinator, and the first answer of the old one between two
    times to an OffsetFetch, with a committed offset of at most `offset`; none without such an
    answer.  Kafka: a coordinator learns of its successor from the metadata alone, and has nothing
    to write before it answers."""
    home = group_home(facts.recorder, group)
    elections = [] if home is None else facts.of_partition(home, LeaderElected)
    for each in offset_answers(facts.recorder) if elections else ():
        if (
            isinstance(each, FetchedOffset)
            and (each.group, each.partition) == (group, partition)
            and from_ms <= each.at_ms <= until_ms
            and each.offset <= offset
        ):
            before = [one for one in elections if one[0].at_ms <= each.at_ms]
            if before and before[-1][1].new_leader != each.broker:
                answered = OffsetAnswered(each.broker, group, each.offset)
                return [link(before[-1][0]), Link(each.at_ms, answered)]
    return []


def made_classic(
    facts: Facts, group: str, partition: Partition, holder: str, from_ms: int, until_ms: int
) -> list[Link]:
    """The change of a consumer group to a classic one by which a member lost a partition that it
    had not revoked yet; none if a generation has begun since then.

    Kafka: ClassicGroup.fromConsumerGroup, in which members have their targets.  A consumer group
    that takes the place of the classic one (ConsumerGroup.fromClassicGroup) does not know more.
    """
    is_consumer = False
    links: list[Link] = []
    for at_ms, record in _group_records(facts, group, until_ms):
        match record:
            case ConsumerGroupMetadata(value=value):
                is_consumer = is_consumer or value is not None
            case ClassicGroupRecord(value=value) if value is not None:
                was_consumer, is_consumer, links = is_consumer, False, []
                if was_consumer and at_ms >= from_ms and _is_without(value, holder, partition):
                    links = [Link(at_ms, GroupMadeClassic(group, holder))]
    return links


def revived(facts: Facts, group: str, holder: str, since_ms: int, until_ms: int) -> list[Link]:
    """The removal of a member that its coordinator had written before `since_ms`, and the change of
    leaders by which that broker coordinates the group again: other brokers coordinated it in
    between, without that record."""
    home = group_home(facts.recorder, group)
    if home is None:
        return []
    changes = [note for note, _ in facts.of_partition(home, BecameLeader)]
    back = [note for note in changes if since_ms < note.at_ms <= until_ms]
    for note in facts.notes if back else ():
        event = note.event
        if (
            isinstance(event, GroupMemberExpired | GroupMemberLeft)
            and (event.group, event.member) == (group, holder)
            and note.at_ms < since_ms
            and note.note_id[0] == back[-1].note_id[0]
            and any(note.at_ms < one.at_ms < back[-1].at_ms for one in changes)
        ):
            return [link(note), link(back[-1])]
    return []


def _is_without(value: GroupMetadataValue, holder: str, partition: Partition) -> bool:
    """Whether a classic group has a member, without a partition."""
    for member in value.members:
        if member.member_id == holder:
            assignment = decode_consumer_message(ASSIGNMENT, bytes(member.assignment))
            topics = () if assignment is None else assignment.assigned_partitions
            return not any(
                one.topic == partition[0] and partition[1] in one.partitions for one in topics
            )
    return False


def missing_topic(facts: Facts, unowned: Unowned) -> list[Link]:
    """The internal topic that a group needs, and that was never created because its replication
    factor is larger than the number of brokers; none if there is no such topic.

    Kafka: CreateTopics answers INVALID_REPLICATION_FACTOR to the broker, and FindCoordinator
    COORDINATOR_NOT_AVAILABLE to the client.
    """
    recorder = facts.recorder
    created = {observed.topic for observed in recorder.partitions.values()}
    count = len(recorder.plan.disks)
    for node in recorder.dispatcher.brokers()[:1]:
        for topic in unowned.needs:
            replicas = auto_created_topic(topic, node.config).replication_factor
            if topic not in created and replicas > count:
                return [Link(recorder.began_ms, TopicNeedsBrokers(topic, replicas, count))]
    return []


def lost_tasks(facts: Facts, unowned: Unowned) -> list[Link]:
    """The assignment in which the tasks of a streams member changed, and the first heartbeat since
    then whose answer the member did not get; none without such a member that has the partition, or
    should have it."""
    changed_ms = _changed_ms(facts, unowned)
    clients = {
        client_name(joined.client_id, facts.recorder.plan.fabric.clients): changed_ms[joined.member]
        for _, joined in of_type(facts.notes, GroupMemberJoined)
        if joined.group == unowned.group and joined.member in changed_ms
    }
    for error in facts.ledger.errors:
        since_ms = clients.get(error.client)
        is_lost = error.api == _HEARTBEAT and error.error in _LOST
        if since_ms is not None and is_lost and error.at_ms >= since_ms:
            assigned = [
                note
                for note, event in of_type(facts.notes, GroupAssigned)
                if event.group == unowned.group and note.at_ms <= since_ms
            ]
            got = ErrorOfClient(error.error, error.client, error.api)
            return [*map(link, assigned[-1:]), Link(error.at_ms, got)]
    return []


def _changed_ms(facts: Facts, unowned: Unowned) -> dict[str, int]:
    """The streams members that have a partition or should have it, by the coordinator's log, with
    the time at which their tasks last changed.  Task N of clients here is partition N of each
    topic."""
    _, task = unowned.partition
    has: dict[str, set[int]] = {}
    gives_back: dict[str, set[int]] = {}
    wanted: dict[str, set[int]] = {}
    changed_ms: dict[str, int] = {}
    for at_ms, record in _group_records(facts, unowned.group, unowned.at_ms):
        match record:
            case StreamsGroupTargetAssignmentMember(member_id=member, value=value):
                wanted[member] = _numbers(value and value.active_tasks)
            case StreamsGroupCurrentMemberAssignment(member_id=member, value=value):
                before = has.get(member)
                has[member] = _numbers(value and value.active_tasks)
                gives_back[member] = _numbers(value and value.active_tasks_pending_revocation)
                if has[member] != before:
                    changed_ms[member] = at_ms
    return {
        member: at_ms
        for member, at_ms in changed_ms.items()
        if any(task in of.get(member, ()) for of in (has, gives_back, wanted))
    }


def _numbers(tasks: Iterable[TaskIds] | None) -> set[int]:
    return {number for ids in tasks or () for number in ids.partitions}


def _group_records(facts: Facts, group: str, until_ms: int) -> Iterator[tuple[int, LogRecord]]:
    """The records of a group in its coordinator's log before some time, in their order, without
    those that were lost: (time, record)."""
    home = group_home(facts.recorder, group)
    for observed in facts.recorder.of_partition(home) if home is not None else ():
        for append in observed.appends:
            if append.at_ms < until_ms and not _is_lost(facts, observed, append):
                for record in decode_batch(append.batch):
                    if record.group_id == group:
                        yield append.at_ms, record


def _is_lost(
    facts: Facts, observed: ObservedPartition, append: Append, until_ms: int | None = None
) -> bool:
    """Whether what was appended is gone, at some time: the newest leader began without it, or one
    before it has appended something else there.  A leader that began without it, and appended
    nothing, may have been followed by one that had it."""
    later = [
        began
        for note, began in facts.of_partition((observed.topic, observed.partition), BecameLeader)
        if began.leader_epoch > append.epoch and (until_ms is None or note.at_ms <= until_ms)
    ]
    if not later or all(began.start_offset > append.base_offset for began in later):
        return False
    newest = max(later, key=lambda began: began.leader_epoch)
    return newest.start_offset <= append.base_offset or any(
        other.epoch > append.epoch and other.base_offset <= append.base_offset <= other.last_offset
        for other in observed.appends
    )


def _is_of(record: LogRecord, group: str, committed: Partition | None) -> bool:
    if committed is None:
        return record.group_id == group
    return isinstance(record, OffsetRecord) and record.key == (group, *committed)
