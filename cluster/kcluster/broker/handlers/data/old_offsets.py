"""The oldest versions of offsets: ListOffsets v0, OffsetCommit v0 and v1, OffsetFetch v0.

Owns: lookups that return offsets of segments; group offsets that were stored in ZooKeeper.
Never: registers a handler; the handlers of later versions call it.
Kafka: KafkaApis.handleListOffsetRequestV0, commitOffsetsToZookeeper,
handleOffsetFetchRequestFromZookeeper, UnifiedLog.legacyFetchOffsetsBefore.
Versions:
- to 3.2: all of them
- 3.3 to 3.9, without ZooKeeper: UNSUPPORTED_VERSION for the two that need it
- from 4.0 on: none (KIP-896)

DIFFERS: there is no ZooKeeper.  Offsets of v0 are ordinary offsets of the group, visible in all
versions, and only the group's coordinator answers; with ZooKeeper any broker answers.
"""

from __future__ import annotations

from typing import Final

from kcluster.broker.broker import Broker
from kcluster.contract import Request
from kcluster.partition.replica import Replica
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode

IN_ZOOKEEPER: Final = 0
"""The version of OffsetCommit and OffsetFetch whose offsets were in ZooKeeper."""

FIRST_WITH_MAX_TIMESTAMP: Final = (3, 0)
"""The first release with the timestamp for the greatest timestamp (KIP-734); earlier ones take -3
and below for ordinary timestamps."""

_LATEST: Final = -1
_EARLIEST: Final = -2
_CONSUMER_ID: Final = -1
_DEBUGGING_CONSUMER_ID: Final = -2


# -------------------------------------------------------------------------------------- ListOffsets


def list_offsets_v0(broker: Broker, request: Request, now_ms: int) -> m.ListOffsetsResponse:
    """The base offsets of segments, the newest first, max_num_offsets at most."""
    return m.ListOffsetsResponse(
        topics=[
            m.ListOffsetsResponse.ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    _offsets_v0(broker, request, topic.name, wanted, now_ms)
                    for wanted in topic.partitions
                ],
            )
            for topic in request.body.topics
        ]
    )


def _offsets_v0(
    broker: Broker,
    request: Request,
    topic: str,
    wanted: m.ListOffsetsRequest.ListOffsetsPartition,
    now_ms: int,
) -> m.ListOffsetsResponse.ListOffsetsPartitionResponse:
    answer = m.ListOffsetsResponse.ListOffsetsPartitionResponse(wanted.partition_index)
    if wanted.timestamp < _EARLIEST and broker.release.number >= FIRST_WITH_MAX_TIMESTAMP:
        answer.error_code = ErrorCode.UNSUPPORTED_VERSION
        return answer
    replica = broker.replicas.find(topic, wanted.partition_index)
    if isinstance(replica, ErrorCode):
        answer.error_code = replica
        return answer
    if not replica.is_leader and request.body.replica_id != _DEBUGGING_CONSUMER_ID:
        answer.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        return answer
    if wanted.max_num_offsets < 0:
        answer.error_code = ErrorCode.UNKNOWN_SERVER_ERROR
        return answer
    offsets = _offsets_before(replica, wanted.timestamp, now_ms)[: wanted.max_num_offsets]
    high_watermark = replica.high_watermark
    if request.body.replica_id == _CONSUMER_ID and any(o > high_watermark for o in offsets):
        offsets = [high_watermark, *(offset for offset in offsets if offset <= high_watermark)]
    answer.old_style_offsets = offsets
    return answer


def _offsets_before(replica: Replica, timestamp: int, now_ms: int) -> list[int]:
    """Base offsets of segments that were not written to after `timestamp`, the newest first."""
    log = replica.log
    times = [
        (max(segment.base_offset, log.log_start_offset), segment.appended_ms)
        for segment in log.segments
    ] or [(log.log_start_offset, now_ms)]
    if log.segments and log.segments[-1].size_bytes:
        times.append((log.log_end_offset, now_ms))
    if timestamp == _EARLIEST:
        times = times[:1]
    elif timestamp != _LATEST:
        while times and times[-1][1] > timestamp:
            times.pop()
    return sorted((offset for offset, _ in times), reverse=True)


# ----------------------------------------------------------------------------- offsets in ZooKeeper


def commit_refused(broker: Broker, request: Request) -> m.OffsetCommitResponse | None:
    """UNSUPPORTED_VERSION for each partition, if the broker has no ZooKeeper; else None."""
    if not broker.release.is_kraft:
        return None
    return m.OffsetCommitResponse(
        topics=[
            m.OffsetCommitResponse.OffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    m.OffsetCommitResponse.OffsetCommitResponsePartition(
                        partition.partition_index, ErrorCode.UNSUPPORTED_VERSION
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.body.topics
        ]
    )


def fetched_from_zookeeper(
    broker: Broker, response: m.OffsetFetchResponse
) -> m.OffsetFetchResponse:
    """The coordinator's answer in ZooKeeper's form: without metadata, and with an error for a
    partition without an offset."""
    for topic in response.topics:
        for partition in topic.partitions:
            if broker.release.is_kraft:
                partition.committed_offset = -1
                partition.error_code = ErrorCode.UNSUPPORTED_VERSION
            elif partition.committed_offset < 0 and not partition.error_code:
                partition.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            partition.metadata = ""
    return response
