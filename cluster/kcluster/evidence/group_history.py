"""The history of groups at the brokers: commits, departures, generations, resets, refusals.

Owns: these facts, read from recorded answers and notes after a run.  Never: judges them (checks/),
makes words of them; costs the running cluster anything (commits are too frequent to be events).
Kafka: no counterpart; kafka-consumer-groups shows the latest state only.

A client's actions without a broker are not known: whether it received an answer, its attempts while
no broker listened, its application.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct

from kcluster.broker.coordinator.group_log import OffsetRecord
from kcluster.broker.coordinator.group_records import decode_batch
from kcluster.broker.coordinator.share_state.share_state_log import (
    SnapshotRecord,
    StateRecord,
    decode_states,
)
from kcluster.broker.share.in_flight import RecordState
from kcluster.clients.ledger import DeliveryLimits, Partition, ShareLeadership
from kcluster.contract import Note, Request
from kcluster.events.clients import (
    GroupAssigned,
    GroupMemberExpired,
    GroupMemberLeft,
    GroupRebalanced,
)
from kcluster.events.share_groups import SharePartitionLoaded
from kcluster.evidence.client_names import client_name
from kcluster.evidence.exchanges import error_codes
from kcluster.evidence.recorder import Answer, Recorder
from kcluster.metadata.placement import coordinator_partition
from kcluster.metadata.records import BROKER_RESOURCE, GROUP_RESOURCE, ConfigRecord
from kcluster.operations.controller import controller_image, metadata_log
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode, error_of
from kcluster.protocol.names import GROUP_METADATA_TOPIC, SHARE_GROUP_STATE_TOPIC
from kcluster.protocol.records.markers import read_marker

_OFFSET_COMMIT: Final = int(ApiKey.OFFSET_COMMIT)
_OF_OFFSETS: Final = frozenset((_OFFSET_COMMIT, int(ApiKey.OFFSET_FETCH)))

LATEST: Final = -1
EARLIEST: Final = -2
"""The timestamp in a client's ListOffsets that means the start of a log."""
DELIVERY_LIMIT: Final = "share.delivery.count.limit"
EXPECTED: Final = (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED)
"""Errors that do not count as refusals: a new member's first request only gets its id (KIP-394)."""


class Commit(Struct, frozen=True, gc=False):
    """A broker's answer to the commit of one partition's offset.  `offset`: the next offset to be
    read.  `generation`: -1 for a commit from outside of the group.  `error`: Kafka's name of the
    refusal, empty if it was accepted."""

    at_ms: int
    broker: int
    client: str
    group: str
    member: str
    generation: int
    partition: Partition
    offset: int
    error: str = ""

    @property
    def is_accepted(self) -> bool:
        return not self.error


class FetchedOffset(Struct, frozen=True, gc=False):
    """A group's offset of a partition, -1 for none, in a broker's answer to an OffsetFetch that
    arrived at `asked_ms`."""

    at_ms: int
    broker: int
    group: str
    partition: Partition
    offset: int
    asked_ms: int


class WrittenOffset(Struct, frozen=True, gc=False):
    """A group's offset of a partition that a coordinator wrote to its log; -1 for a tombstone."""

    at_ms: int
    broker: int
    offset: int


class ArchivedRecords(Struct, frozen=True, gc=False):
    """Records that, by a share coordinator's record, are not delivered again; each was delivered
    `count` times, and `last_offset` is the last of them."""

    at_ms: int
    first_offset: int
    last_offset: int
    count: int


class OffsetLookup(Struct, frozen=True, gc=False):
    """A client's question for the start or the end of a log: to reset its position
    (auto.offset.reset), or for another reason.  `asked`: EARLIEST or LATEST."""

    at_ms: int
    client: str
    partition: Partition
    asked: int
    offset: int


class Departed(Struct, frozen=True, gc=False):
    """A member's departure from its group."""

    at_ms: int
    event: GroupMemberLeft | GroupMemberExpired


class Generation(Struct, frozen=True, gc=False):
    """The beginning of a generation of a group."""

    at_ms: int
    event: GroupRebalanced


class RefusedRequests(Struct, frozen=True, gc=False):
    """The number of a client's requests that brokers answered with an error."""

    client: str
    api: int
    error: str
    count: int
    first_ms: int
    last_ms: int


class GroupHistory(Struct, frozen=True):
    """The facts about the groups that read a topic; each list in order of time."""

    commits: tuple[Commit, ...] = ()
    departures: tuple[Departed, ...] = ()
    generations: tuple[Generation, ...] = ()


def group_history(recorder: Recorder, topic: str, group: str = "") -> GroupHistory:
    """The history of one group, or of all groups, that committed offsets of a topic or had it
    assigned."""
    commits = tuple(x for x in commits_of(recorder) if x.partition[0] == topic)
    notes = recorder.notes
    groups = {group} if group else {x.group for x in commits} | set(_assigned(notes, topic))
    return GroupHistory(
        tuple(x for x in commits if x.group in groups),
        tuple(x for x in _departures(notes) if x.event.group in groups),
        tuple(x for x in _generations(notes) if x.event.group in groups),
    )


def _assigned(notes: list[Note], topic: str) -> Iterator[str]:
    for note in notes:
        event = note.event
        if isinstance(event, GroupAssigned) and any(x.topic == topic for x in event.assignments):
            yield event.group


def _departures(notes: list[Note]) -> Iterator[Departed]:
    for note in notes:
        if isinstance(note.event, GroupMemberLeft | GroupMemberExpired):
            yield Departed(note.at_ms, note.event)


def _generations(notes: list[Note]) -> Iterator[Generation]:
    for note in notes:
        if isinstance(note.event, GroupRebalanced):
            yield Generation(note.at_ms, note.event)


def commits_of(recorder: Recorder, answers: Iterable[Answer] | None = None) -> Iterator[Commit]:
    """Every commit of any group that a broker answered, in order of time; or the commits among
    `answers`."""
    answered = offset_answers(recorder, answers)
    return (each for each in answered if isinstance(each, Commit))


def offset_answers(
    recorder: Recorder, answers: Iterable[Answer] | None = None
) -> Iterator[Commit | FetchedOffset]:
    """Every commit that a broker answered, and every offset that it returned, in order of time; or
    only the commits and offsets in `answers`."""
    every = recorder.answers if answers is None else answers
    found = [answer for answer in every if answer[2].request.api_key in _OF_OFFSETS]
    if not found:
        return  # as for most readings of a page that watches
    names = {key[0]: observed.topic for key, observed in recorder.partitions.items()}
    names |= controller_image(recorder.dispatcher).topic_names
    for answer in found:
        if answer[2].body is None:
            continue
        if answer[2].request.api_key == _OFFSET_COMMIT:
            yield from _commits(recorder, answer, names)
        else:
            yield from _fetched(answer, names)


def _commits(recorder: Recorder, answer: Answer, names: dict[bytes, str]) -> Iterator[Commit]:
    at_ms, broker, reply = answer
    request, asked = reply.request, reply.request.body
    offsets = {
        (_name(topic, names), entry.partition_index): entry.committed_offset
        for topic in asked.topics
        for entry in topic.partitions
    }
    for topic in reply.body.topics:
        for entry in topic.partitions:
            partition = (_name(topic, names), entry.partition_index)
            yield Commit(
                at_ms=at_ms,
                broker=broker,
                client=client_of(recorder, request),
                group=asked.group_id,
                member=asked.member_id,
                generation=asked.generation_id_or_member_epoch,
                partition=partition,
                offset=offsets.get(partition, -1),
                error=_error(entry.error_code),
            )


def _fetched(answer: Answer, names: dict[bytes, str]) -> Iterator[FetchedOffset]:
    at_ms, broker, reply = answer
    asked_ms = reply.request.arrived_ms
    for of_group in getattr(reply.body, "groups", None) or (reply.body,):
        group = getattr(of_group, "group_id", None) or reply.request.body.group_id
        for topic in of_group.topics:
            for entry in topic.partitions:
                if not entry.error_code:
                    partition = (_name(topic, names), entry.partition_index)
                    offset = entry.committed_offset
                    yield FetchedOffset(at_ms, broker, group, partition, offset, asked_ms)


def group_home(recorder: Recorder, group: str) -> Partition | None:
    """The partition of __consumer_offsets that holds a group; None before that topic exists."""
    count = sum(each.topic == GROUP_METADATA_TOPIC for each in recorder.partitions.values())
    return (GROUP_METADATA_TOPIC, coordinator_partition(group, count)) if count else None


def offsets_written(
    recorder: Recorder, group: str, partition: Partition
) -> Iterator[WrittenOffset]:
    """Every offset that coordinators wrote for this group and partition, in order of time,
    including the offsets of commits whose answer was lost."""
    home = group_home(recorder, group)
    for observed in () if home is None else recorder.of_partition(home):
        for append in observed.appends:
            for record in decode_batch(append.batch):
                if isinstance(record, OffsetRecord) and record.key == (group, *partition):
                    offset = -1 if record.committed is None else record.committed.offset
                    yield WrittenOffset(append.at_ms, append.broker, offset)


def offsets_marked(
    recorder: Recorder, group: str, partition: Partition, offset: int
) -> Iterator[int]:
    """The times at which markers committed this offset of a group, in order."""
    home = group_home(recorder, group)
    for observed in () if home is None else recorder.of_partition(home):
        waiting: dict[int, bool] = {}
        for append in observed.appends:
            batch = append.batch
            if batch.is_control:
                marker = read_marker(batch)
                is_awaited = waiting.pop(batch.producer_id, False)
                if is_awaited and marker is not None and marker.is_commit:
                    yield append.at_ms
            elif batch.is_transactional and any(
                isinstance(record, OffsetRecord)
                and record.key == (group, *partition)
                and record.committed is not None
                and record.committed.offset == offset
                for record in decode_batch(batch)
            ):
                waiting[batch.producer_id] = True


def archived_records(
    recorder: Recorder, group: str, partition: Partition
) -> Iterator[ArchivedRecords]:
    """Every archived batch that was written for this share group and partition, in order of time,
    including records that no member received because the answers were lost."""
    for at_ms, record in _state_records(recorder, group, partition):
        for first, last, state, count in record.stored_batches:
            if state == RecordState.ARCHIVED:
                yield ArchivedRecords(at_ms, first, last, count)


def share_state_begun_ms(recorder: Recorder, group: str, partition: Partition) -> Iterator[int]:
    """The times at which the state of a share partition began anew: it has no batches then, and no
    leader.  Its state epoch is the group's, and perhaps the same as before."""
    for at_ms, record in _state_records(recorder, group, partition):
        state = record.state if isinstance(record, SnapshotRecord) else None
        if state is not None and not state.batches and state.leader_epoch == 0:
            yield at_ms


def _state_records(
    recorder: Recorder, group: str, partition: Partition
) -> Iterator[tuple[int, StateRecord]]:
    """(time, record) of the state of a share partition, as its coordinators wrote it."""
    names = controller_image(recorder.dispatcher).topic_names
    for home in recorder.partitions.values():
        for append in home.appends if home.topic == SHARE_GROUP_STATE_TOPIC else ():
            for _, record in decode_states(append.batch):
                of = record.partition
                if (of.group_id, names.get(of.topic_id), of.partition) == (group, *partition):
                    yield append.at_ms, record


def delivery_limits(recorder: Recorder, groups: Iterable[str]) -> dict[str, DeliveryLimits]:
    """The limits on deliveries of these share groups: from the topology, and from later changes to
    the configs of brokers or of the group."""
    of_group: dict[str, set[int]] = {group: set() for group in groups}
    if not of_group:
        return {}
    topology = recorder.plan.topology
    of_brokers = {
        topology.broker_config(broker.id).group_share_delivery_count_limit
        for broker in topology.brokers
    }
    for record in metadata_log(recorder.dispatcher).records:
        if not isinstance(record, ConfigRecord) or record.value is None:
            continue
        at = record.resource_type, record.name
        if at == (BROKER_RESOURCE, f"group.{DELIVERY_LIMIT}"):
            of_brokers.add(int(record.value))
        elif at == (GROUP_RESOURCE, DELIVERY_LIMIT) and record.resource_name in of_group:
            of_group[record.resource_name].add(int(record.value))
    every = {group: of_brokers | own for group, own in of_group.items()}
    return {group: DeliveryLimits(min(limits), max(limits)) for group, limits in every.items()}


def share_leaderships(recorder: Recorder) -> list[ShareLeadership]:
    """The share leaderships of brokers, in order of time."""
    return [
        ShareLeadership(
            event.group,
            (event.topic, event.partition),
            event.broker,
            event.leader_epoch,
            note.at_ms,
        )
        for note in recorder.notes
        if isinstance(event := note.event, SharePartitionLoaded)
    ]


def lookups_of(recorder: Recorder) -> Iterator[OffsetLookup]:
    """Every successful question for the start or the end of a log, in order of time."""
    for at_ms, _, reply in recorder.answers:
        request, body = reply.request, reply.body
        if request.api_key != ApiKey.LIST_OFFSETS or body is None:
            continue
        asked = {
            (topic.name, entry.partition_index): entry.timestamp
            for topic in request.body.topics
            for entry in topic.partitions
        }
        for topic in body.topics:
            for entry in topic.partitions:
                partition = (topic.name, entry.partition_index)
                timestamp = asked.get(partition, 0)
                if timestamp in (LATEST, EARLIEST) and not entry.error_code:
                    client = client_of(recorder, request)
                    yield OffsetLookup(at_ms, client, partition, timestamp, entry.offset)


def refusals(recorder: Recorder) -> list[RefusedRequests]:
    """Requests of clients that brokers answered with an error: by client, API and error, in order
    of the first."""
    found: dict[tuple[str, int, str], list[int]] = {}
    for at_ms, _, reply in recorder.answers:
        if reply.body is None:
            continue
        for code in dict.fromkeys(error_codes(reply.body)):
            if code not in EXPECTED:
                client = client_of(recorder, reply.request)
                key = (client, reply.request.api_key, _error(code))
                found.setdefault(key, []).append(at_ms)
    return [RefusedRequests(*key, len(times), times[0], times[-1]) for key, times in found.items()]


def client_of(recorder: Recorder, request: Request) -> str:
    """The name of the client that sent a request: a simulated client's own name, else its id."""
    return client_name(request.client_id, recorder.plan.fabric.clients)


def _error(code: int) -> str:
    return "" if code == ErrorCode.NONE else error_of(code).name


def _name(topic: object, names: dict[bytes, str]) -> str:
    """The name of a topic that a message names by its name or by its id."""
    name: str = getattr(topic, "name", "")
    return name or names.get(getattr(topic, "topic_id", b""), "")
