"""Committing and deleting offsets: OffsetCommit 8 (v2-10), OffsetDelete 47 (v0).

Owns: which offsets belong to existing partitions, what is stored of them (for a TxnOffsetCommit
too), and the results in Kafka's order.  Never: decides who may commit or stores an offset
(coordinator/ does), reads one for a client (offset_fetch.py does).
Kafka: KafkaApis.handleOffsetCommitRequest, OffsetMetadataManager.commitOffset, deleteOffsets; the
Builders of OffsetCommitResponse and TxnOffsetCommitResponse.
Behaviour:
- a commit is answered when it is on all in-sync replicas;
- a commit counts as a heartbeat.
Versions:
- OffsetCommit v0-1 (to 3.9): data/old_offsets.py
- OffsetCommit v6: leader epoch (KIP-320)
- OffsetCommit v7: static members (KIP-345)
- OffsetCommit v9: member epoch (KIP-848)
- OffsetCommit v10: topic ids (KIP-848)
- OffsetDelete v0: KIP-496
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar, final

from kcluster.broker.broker import Broker
from kcluster.broker.coordinator.group import Committer
from kcluster.broker.coordinator.group_log import NO_EXPIRY, CommittedOffset, OffsetRecord
from kcluster.broker.coordinator.interface import RequestRefused
from kcluster.broker.coordinator.offsets import committed_offset
from kcluster.broker.handlers.data.old_offsets import IN_ZOOKEEPER, commit_refused
from kcluster.broker.registry import PARKED, Parked, handles
from kcluster.contract import Request
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.int64 import as_int64

if TYPE_CHECKING:
    from kcluster.protocol.messages import OffsetCommitRequest

    CommitPartition = OffsetCommitRequest.OffsetCommitRequestPartition

CommittedTopic = m.OffsetCommitResponse.OffsetCommitResponseTopic
CommittedPartition = m.OffsetCommitResponse.OffsetCommitResponsePartition

TOPIC_IDS_SINCE: Final = 10
DEFAULT_RETENTION: Final = -1


# --------------------------------------------------------------------------------- OffsetCommit


@handles(ApiKey.OFFSET_COMMIT, versions=(2, 10))
def offset_commit(broker: Broker, request: Request, now_ms: int) -> m.OffsetCommitResponse | Parked:
    body: m.OffsetCommitRequest = request.body
    by_id = request.api_version >= TOPIC_IDS_SINCE
    offsets = OffsetsToCommit(broker, body.topics, by_id, CommittedTopic, CommittedPartition)
    if not offsets.known:
        return m.OffsetCommitResponse(topics=offsets.results())
    committer = None
    if request.api_version == IN_ZOOKEEPER:
        refused = commit_refused(broker, request)
        if refused is not None:
            return refused
    else:
        committer = Committer(
            member_id=body.member_id,
            instance_id=body.group_instance_id,
            generation=body.generation_id_or_member_epoch,
            api_version=request.api_version,
        )
    retention_ms = body.retention_time_ms
    # As in Kafka, 2^63-1, "for ever", becomes a time long past: the offset expires at once.
    expire_ms = NO_EXPIRY if retention_ms == DEFAULT_RETENTION else as_int64(now_ms + retention_ms)

    def committed(partition: CommitPartition, sent_id: bytes, _topic_id: bytes) -> CommittedOffset:
        has_timestamp = partition.commit_timestamp >= 0  # only version 1 has one
        at_ms = partition.commit_timestamp if has_timestamp else now_ms
        return committed_offset(partition, sent_id, at_ms, expire_ms)

    def settled(error: ErrorCode, _at_ms: int) -> None:
        broker.reply(request, m.OffsetCommitResponse(topics=offsets.results(error)))

    records = offsets.records(body.group_id, committed)
    broker.coordinator.commit_offsets(body.group_id, committer, records, settled, now_ms)
    return PARKED


# --------------------------------------------------------------------------------- OffsetDelete


@handles(ApiKey.OFFSET_DELETE, versions=(0, 0))
def offset_delete(broker: Broker, request: Request, now_ms: int) -> m.OffsetDeleteResponse | Parked:
    """KIP-496: delete offsets of topics that no member of the group consumes any more."""
    body: m.OffsetDeleteRequest = request.body
    asked = [(topic.name, one.partition_index) for topic in body.topics for one in topic.partitions]
    existing = [one for one in asked if broker.image.partition(*one) is not None]

    def deleted(outcome: frozenset[str] | RequestRefused, _at_ms: int) -> None:
        if isinstance(outcome, RequestRefused):
            answer = m.OffsetDeleteResponse(error_code=outcome.error)
        else:
            topics = [_deleted_of(topic, existing, outcome) for topic in body.topics]
            answer = m.OffsetDeleteResponse(topics=[topic for topic in topics if topic.partitions])
        broker.reply(request, answer)

    broker.coordinator.delete_offsets(body.group_id, existing, deleted, now_ms)
    return PARKED


def _deleted_of(
    topic: m.OffsetDeleteRequest.OffsetDeleteRequestTopic,
    existing: Collection[tuple[str, int]],
    subscribed: Collection[str],
) -> m.OffsetDeleteResponse.OffsetDeleteResponseTopic:
    """The answer; missing topics come first, as in Kafka."""
    missing, results = [], []
    for partition in topic.partitions:
        index = partition.partition_index
        result = m.OffsetDeleteResponse.OffsetDeleteResponsePartition(partition_index=index)
        if (topic.name, index) not in existing:
            result.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            missing.append(result)
            continue
        if topic.name in subscribed:
            result.error_code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
        results.append(result)
    results = missing + results
    return m.OffsetDeleteResponse.OffsetDeleteResponseTopic(name=topic.name, partitions=results)


class _PartitionToCommit(Protocol):
    """A partition of a request."""

    partition_index: int
    committed_metadata: str | None


Sent = TypeVar("Sent", bound=_PartitionToCommit)
"""A request's partition."""
Cell = TypeVar("Cell")
"""A partition's row in the answer."""
Row = TypeVar("Row")
"""A topic's row in the answer."""


class _TopicToCommit(Protocol[Sent]):
    """A topic of a request."""

    name: str
    topic_id: bytes
    partitions: list[Sent]


@final
class OffsetsToCommit(Generic[Sent, Cell, Row]):
    """`row`, `cell`: the classes of a topic's and a partition's row in the answer."""

    def __init__(
        self,
        broker: Broker,
        topics: Iterable[_TopicToCommit[Sent]],
        by_id: bool,
        row: Callable[[str, bytes, list[Cell]], Row],
        cell: Callable[[int, int], Cell],
    ) -> None:
        self._metadata_max = broker.config.offset_metadata_max_bytes
        self._row = row
        self._cell = cell
        self._unknown: dict[tuple[str, bytes], list[Cell]] = {}
        """The results for topics and partitions that do not exist, by (name, topic id)."""
        self.known: list[tuple[str, bytes, bytes, list[Sent]]] = []
        """The topics and partitions that exist: (name, topic id as the request has it, topic id,
        partitions)."""
        missing = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        for topic in topics:
            name = broker.image.topic_names.get(topic.topic_id, "") if by_id else topic.name
            image = broker.image.topics.get(name)
            if image is None:
                self._refuse(topic.name, topic.topic_id, topic.partitions, missing)
                continue
            count = len(image.partitions)
            good = [one for one in topic.partitions if 0 <= one.partition_index < count]
            bad = [one for one in topic.partitions if not 0 <= one.partition_index < count]
            self._refuse(name, topic.topic_id, bad, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            if good:
                self.known.append((name, topic.topic_id, image.topic_id, good))

    def _refuse(self, name: str, topic_id: bytes, partitions: list[Sent], error: ErrorCode) -> None:
        if partitions:
            cells = [self._cell(one.partition_index, error) for one in partitions]
            self._unknown.setdefault((name, topic_id), []).extend(cells)

    def _check_metadata(self, partition: Sent) -> ErrorCode:
        is_too_large = len(partition.committed_metadata or "") > self._metadata_max
        return ErrorCode.OFFSET_METADATA_TOO_LARGE if is_too_large else ErrorCode.NONE

    def records(
        self, group_id: str, committed: Callable[[Sent, bytes, bytes], CommittedOffset]
    ) -> list[OffsetRecord]:
        """What can be stored.  `committed`: of (the request's partition, the request's topic id,
        the topic's id)."""
        return [
            OffsetRecord(group_id, name, one.partition_index, committed(one, sent_id, topic_id))
            for name, sent_id, topic_id, partitions in self.known
            for one in partitions
            if self._check_metadata(one) is ErrorCode.NONE
        ]

    def results(self, error: ErrorCode = ErrorCode.NONE) -> list[Row]:
        """`error` for each partition that exists, or each partition's own outcome.  As in Kafka a
        topic that was named twice is merged only if something does not exist."""
        found = [
            (name, sent_id, [self._outcome(one, error) for one in partitions])
            for name, sent_id, _, partitions in self.known
        ]
        if not self._unknown:
            return [self._row(*one) for one in found]
        merged = {key: list(cells) for key, cells in self._unknown.items()}
        for name, sent_id, cells in found:
            merged.setdefault((name, sent_id), []).extend(cells)
        return [self._row(*key, cells) for key, cells in merged.items()]

    def _outcome(self, partition: Sent, error: ErrorCode) -> Cell:
        return self._cell(partition.partition_index, error or self._check_metadata(partition))
