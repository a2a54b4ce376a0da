"""ListOffsets (API 2, v1-11): earliest, latest, by timestamp, of the greatest timestamp.

Owns: the offset for a timestamp.
Never: searches records itself (partition/log/log.py does).
Kafka: KafkaApis.handleListOffsetRequest, Partition.fetchOffsetForTimestamp.
Versions:
- v0 (to 3.9): old_offsets.py
- v2: isolation level (KIP-98)
- v4: leader epochs (KIP-320)
- v7: max timestamp (KIP-734)
- v8: earliest local (KIP-405)
- v9: last tiered (KIP-1005)
- v10: timeout (KIP-1075)
- v11: earliest pending upload (KIP-1023)
Not done: tiered storage: its offsets are -1, as from a broker without it.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from kcluster.broker import registry
from kcluster.broker.broker import Broker
from kcluster.broker.handlers.data.old_offsets import list_offsets_v0
from kcluster.broker.registry import handles
from kcluster.contract import Request
from kcluster.partition.replica import Replica
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.records.batches import InvalidRecords

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5
EARLIEST_PENDING_UPLOAD: Final = -6
_FIRST_VERSION: Final = {
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
FIRST_VERSION_WITH_NOT_AVAILABLE: Final = 5
CONSUMER_ID: Final = -1
DEBUGGING_CONSUMER_ID: Final = -2
READ_COMMITTED: Final = 1
ISOLATION_LEVELS: Final = (0, READ_COMMITTED)

NOWHERE: Final = (-1, -1, -1)

PartitionAnswer = m.ListOffsetsResponse.ListOffsetsPartitionResponse


@handles(ApiKey.LIST_OFFSETS, versions=(1, 11))
def list_offsets(broker: Broker, request: Request, now_ms: int) -> registry.Answer:
    """Answer each partition independently, once; a topic without partitions is left out."""
    if request.api_version == 0:
        return list_offsets_v0(broker, request, now_ms)
    body: m.ListOffsetsRequest = request.body
    named = Counter(
        (topic.name, p.partition_index) for topic in body.topics for p in topic.partitions
    )
    return m.ListOffsetsResponse(
        topics=[
            m.ListOffsetsResponse.ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    _answer(broker, request, topic.name, p, named[topic.name, p.partition_index])
                    for p in {p.partition_index: p for p in topic.partitions}.values()
                ],
            )
            for topic in body.topics
            if topic.partitions
        ]
    )


def _answer(
    broker: Broker,
    request: Request,
    topic: str,
    wanted: m.ListOffsetsRequest.ListOffsetsPartition,
    named: int,
) -> PartitionAnswer:
    index = wanted.partition_index
    if named > 1:
        return PartitionAnswer(index, ErrorCode.INVALID_REQUEST)
    if wanted.timestamp < EARLIEST_PENDING_UPLOAD or request.api_version < _FIRST_VERSION.get(
        wanted.timestamp, 1
    ):
        return PartitionAnswer(index, ErrorCode.UNSUPPORTED_VERSION)
    replica = broker.replicas.find(topic, index)
    if isinstance(replica, ErrorCode):
        return PartitionAnswer(index, replica)
    if request.body.replica_id == DEBUGGING_CONSUMER_ID:
        error = replica.check_epoch(wanted.current_leader_epoch)
    else:
        error = replica.check_leader(wanted.current_leader_epoch)
    if error != ErrorCode.NONE:
        return PartitionAnswer(index, error)
    if request.body.replica_id == CONSUMER_ID and not _watermark_is_of_this_epoch(replica):
        # A new leader does not know yet which of its first records are committed.
        is_known = request.api_version >= FIRST_VERSION_WITH_NOT_AVAILABLE
        return PartitionAnswer(
            index, ErrorCode.OFFSET_NOT_AVAILABLE if is_known else ErrorCode.LEADER_NOT_AVAILABLE
        )
    if request.body.isolation_level not in ISOLATION_LEVELS:
        return PartitionAnswer(index, ErrorCode.UNKNOWN_SERVER_ERROR)
    try:
        timestamp, offset, leader_epoch = _find_offset(replica, wanted.timestamp, request)
    except InvalidRecords as problem:
        return PartitionAnswer(index, problem.error)
    return PartitionAnswer(
        index, ErrorCode.NONE, timestamp=timestamp, offset=offset, leader_epoch=leader_epoch
    )


def _watermark_is_of_this_epoch(replica: Replica) -> bool:
    return replica.high_watermark >= replica.leader_epoch_start_offset


def _find_offset(replica: Replica, timestamp: int, request: Request) -> tuple[int, int, int]:
    """(timestamp, offset, leader epoch), each -1 where there is none."""
    log = replica.log
    is_consumer = request.body.replica_id == CONSUMER_ID
    end = log.log_end_offset
    if is_consumer:
        is_committed = request.body.isolation_level == READ_COMMITTED
        end = replica.last_stable_offset if is_committed else replica.high_watermark
    if timestamp == LATEST:
        return -1, end, replica.leader_epoch
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        start = log.log_start_offset
        return -1, start, log.epochs.epoch_for_offset(start)
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return NOWHERE
    record_max = replica.config.max_decompressed_message_bytes
    if timestamp == MAX_TIMESTAMP:
        record = log.offset_of_max_timestamp(record_max)
    else:
        record = log.offset_for_timestamp(timestamp, record_max)
    return NOWHERE if record is None or record[1] >= end else record
