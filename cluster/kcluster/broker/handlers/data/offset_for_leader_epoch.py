"""OffsetForLeaderEpoch (API 23, v2-4): the end of an epoch in the leader's log.

Owns: the answer for one partition.  Never: truncates anything; the requester does.
Kafka: Partition.lastOffsetForLeaderEpoch; KIP-101, KIP-320.
Versions:
- v3: replica id (KIP-392)
- v4: flexible
"""

from __future__ import annotations

from kcluster.broker import registry
from kcluster.broker.broker import Broker
from kcluster.broker.registry import handles
from kcluster.contract import Request
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode

Answer = m.OffsetForLeaderEpochResponse.EpochEndOffset


@handles(ApiKey.OFFSET_FOR_LEADER_EPOCH, versions=(2, 4))
def offset_for_leader_epoch(broker: Broker, request: Request, _now_ms: int) -> registry.Answer:
    """Answer each partition independently."""
    return m.OffsetForLeaderEpochResponse(
        topics=[
            m.OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[_answer(broker, topic.topic, p) for p in topic.partitions],
            )
            for topic in request.body.topics
        ]
    )


def _answer(
    broker: Broker, topic: str, wanted: m.OffsetForLeaderEpochRequest.OffsetForLeaderPartition
) -> Answer:
    replica = broker.replicas.find(topic, wanted.partition)
    if isinstance(replica, ErrorCode):
        return Answer(error_code=replica, partition=wanted.partition)
    error = replica.check_leader(wanted.current_leader_epoch)
    if error != ErrorCode.NONE:
        return Answer(error_code=error, partition=wanted.partition)
    epoch, end_offset = replica.log.epochs.end_offset_for(
        wanted.leader_epoch, replica.log.log_end_offset
    )
    return Answer(
        error_code=ErrorCode.NONE,
        partition=wanted.partition,
        leader_epoch=epoch,
        end_offset=end_offset,
    )
