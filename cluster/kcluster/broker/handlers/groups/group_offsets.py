"""Committing and deleting offsets: OffsetCommit 8 (v2-10), OffsetDelete 47 (v0).

Owns: checking topics against the metadata image, and the shape of the answers.  Never: decides who
may commit or stores an offset (coordinator/ does), reads one for a client (offset_fetch.py does).
Kafka: KafkaApis.handleOffsetCommitRequest, OffsetMetadataManager.commitOffset, deleteOffsets.
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

from collections.abc import Collection
from typing import TYPE_CHECKING, Final

from kcluster.broker.broker import Broker
from kcluster.broker.coordinator.group import Committer
from kcluster.broker.coordinator.group_log import NO_EXPIRY, OffsetRecord
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

    CommitTopic = OffsetCommitRequest.OffsetCommitRequestTopic
    CommitPartition = OffsetCommitRequest.OffsetCommitRequestPartition

CommittedPartition = m.OffsetCommitResponse.OffsetCommitResponsePartition

TOPIC_IDS_SINCE: Final = 10
DEFAULT_RETENTION: Final = -1


# --------------------------------------------------------------------------------- OffsetCommit


@handles(ApiKey.OFFSET_COMMIT, versions=(2, 10))
def offset_commit(broker: Broker, request: Request, now_ms: int) -> m.OffsetCommitResponse | Parked:
    body: m.OffsetCommitRequest = request.body
    answer = m.OffsetCommitResponse()
    known = _known_topics(broker, request, answer)
    if not known:
        return answer
    if request.api_version == IN_ZOOKEEPER:
        refused = commit_refused(broker, request)
        if refused is not None:
            return refused
    committer = None
    if request.api_version != IN_ZOOKEEPER:
        committer = Committer(
            member_id=body.member_id,
            instance_id=body.group_instance_id,
            generation=body.generation_id_or_member_epoch,
            api_version=request.api_version,
        )
    metadata_max = broker.config.offset_metadata_max_bytes

    def settled(error: ErrorCode, _at_ms: int) -> None:
        broker.reply(request, _merged(answer, _results(known, metadata_max, error)))

    records = _commit_records(body, known, metadata_max, now_ms)
    broker.coordinator.commit_offsets(body.group_id, committer, records, settled, now_ms)
    return PARKED


def _known_topics(
    broker: Broker, request: Request, answer: m.OffsetCommitResponse
) -> list[CommitTopic]:
    """The topics (with names) and partitions that exist; `answer` gets an error for the others."""
    by_id = request.api_version >= TOPIC_IDS_SINCE
    missing = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    known = []
    for topic in request.body.topics:
        name = broker.image.topic_names.get(topic.topic_id, "") if by_id else topic.name
        image = broker.image.topics.get(name)
        if image is None:
            for partition in topic.partitions:
                _add_result(answer, topic.name, topic.topic_id, partition.partition_index, missing)
            continue
        good = []
        for partition in topic.partitions:
            if 0 <= partition.partition_index < len(image.partitions):
                good.append(partition)
            else:
                index, error = partition.partition_index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                _add_result(answer, name, topic.topic_id, index, error)
        if good:
            known.append(
                m.OffsetCommitRequest.OffsetCommitRequestTopic(
                    name=name, topic_id=topic.topic_id, partitions=good
                )
            )
    return known


def _commit_records(
    body: m.OffsetCommitRequest, known: list[CommitTopic], metadata_max: int, now_ms: int
) -> list[OffsetRecord]:
    """The offsets that can be stored."""
    retention_ms = body.retention_time_ms
    # As in Kafka, 2^63-1, "for ever", becomes a time long past: the offset expires at once.
    expire_ms = NO_EXPIRY if retention_ms == DEFAULT_RETENTION else as_int64(now_ms + retention_ms)
    records = []
    for topic in known:
        for partition in topic.partitions:
            if _check_metadata(partition, metadata_max) is ErrorCode.NONE:
                has_timestamp = partition.commit_timestamp >= 0  # only version 1 has
                at_ms = partition.commit_timestamp if has_timestamp else now_ms
                committed = committed_offset(partition, topic.topic_id, at_ms, expire_ms)
                index = partition.partition_index
                records.append(OffsetRecord(body.group_id, topic.name, index, committed))
    return records


def _check_metadata(partition: CommitPartition, metadata_max: int) -> ErrorCode:
    is_too_large = len(partition.committed_metadata or "") > metadata_max
    return ErrorCode.OFFSET_METADATA_TOO_LARGE if is_too_large else ErrorCode.NONE


def _results(
    topics: list[CommitTopic], metadata_max: int, error: ErrorCode
) -> list[m.OffsetCommitResponse.OffsetCommitResponseTopic]:
    """The answer: `error` for each partition that exists, or each one's own result."""
    return [
        m.OffsetCommitResponse.OffsetCommitResponseTopic(
            topic.name,
            topic.topic_id,
            [
                CommittedPartition(one.partition_index, error or _check_metadata(one, metadata_max))
                for one in topic.partitions
            ],
        )
        for topic in topics
    ]


def _merged(
    answer: m.OffsetCommitResponse, results: list[m.OffsetCommitResponse.OffsetCommitResponseTopic]
) -> m.OffsetCommitResponse:
    """The answer merged with earlier errors.  Kafka: OffsetCommitResponse.Builder.merge, which
    merges a topic that was named twice only if there were errors."""
    if not answer.topics:
        answer.topics = results
        return answer
    for result in results:
        for one in result.partitions:
            _add_result(answer, result.name, result.topic_id, one.partition_index, one.error_code)
    return answer


def _add_result(
    answer: m.OffsetCommitResponse, name: str, topic_id: bytes, partition: int, error: int
) -> None:
    result = CommittedPartition(partition, error)
    for topic in answer.topics:
        if topic.name == name and topic.topic_id == topic_id:
            topic.partitions.append(result)
            return
    answer.topics.append(
        m.OffsetCommitResponse.OffsetCommitResponseTopic(
            name=name, topic_id=topic_id, partitions=[result]
        )
    )


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
