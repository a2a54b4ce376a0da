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
from kcluster.broker.coordinator.group_log import NO_EXPIRY, CommittedOffset
from kcluster.broker.coordinator.interface import RequestRefused
from kcluster.broker.coordinator.offsets import committed_offset
from kcluster.broker.handlers.data.old_offsets import IN_ZOOKEEPER, commit_refused
from kcluster.broker.handlers.groups.offsets_to_commit import OffsetsToCommit
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
