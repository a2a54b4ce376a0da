"""WriteTxnMarkers (API 27, v1-2): end a transaction in the partitions that this broker leads.

Owns: appending markers, and the answer when each is committed or refused.  Never: decides how a
transaction ends (its coordinator has), checks a marker (partition/producers.py does).
Kafka: KafkaApis.handleWriteTxnMarkersRequest.
Behaviour:
- a marker in __consumer_offsets is answered when the group coordinator has applied it, so that the
  next transaction finds the offsets of this one (KAFKA-17507).
Versions:
- v2: the transaction version, which decides what epoch a marker may have (KIP-1228)
"""

from __future__ import annotations

from functools import partial
from typing import Any

from kcluster.broker.broker import Broker
from kcluster.broker.registry import PARKED, Parked, handles
from kcluster.contract import Request
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.names import GROUP_METADATA_TOPIC
from kcluster.protocol.records.markers import Marker

PartitionResult = m.WriteTxnMarkersResponse.WritableTxnMarkerPartitionResult


@handles(ApiKey.WRITE_TXN_MARKERS, versions=(1, 2))
def write_txn_markers(
    broker: Broker, request: Request, now_ms: int
) -> m.WriteTxnMarkersResponse | Parked:
    response = m.WriteTxnMarkersResponse(markers=[])
    wanted: list[tuple[Any, str, PartitionResult]] = []
    for marker in request.body.markers:
        topics = []
        for topic in marker.topics:
            partitions = [
                PartitionResult(index, ErrorCode.NONE) for index in topic.partition_indexes
            ]
            topics.append(
                m.WriteTxnMarkersResponse.WritableTxnMarkerTopicResult(
                    name=topic.name, partitions=partitions
                )
            )
            wanted += [(marker, topic.name, partition) for partition in partitions]
        response.markers.append(
            m.WriteTxnMarkersResponse.WritableTxnMarkerResult(
                producer_id=marker.producer_id, topics=topics
            )
        )
    if not wanted:
        return response
    waiting = [result for _, _, result in wanted]

    def finish(result: PartitionResult, error: ErrorCode, _at_ms: int) -> None:
        result.error_code = error
        waiting.pop()
        if not waiting:
            broker.reply(request, response)

    for marker, topic, result in wanted:
        _write(broker, marker, topic, result, partial(finish, result), now_ms)
    return PARKED


def _write(
    broker: Broker,
    wanted: m.WriteTxnMarkersRequest.WritableTxnMarker,
    topic: str,
    result: PartitionResult,
    finish: partial[None],
    now_ms: int,
) -> None:
    marker = Marker(wanted.transaction_result, wanted.coordinator_epoch)
    index = result.partition_index
    if topic == GROUP_METADATA_TOPIC and index in broker.coordinator.shards:
        broker.coordinator.shards[index].append_marker(
            wanted.producer_id,
            wanted.producer_epoch,
            marker,
            wanted.transaction_version,
            finish,
            now_ms,
        )
        return
    replica = broker.leader_replica(topic, index)
    if isinstance(replica, ErrorCode):
        finish(replica, now_ms)
        return
    appended = replica.append_marker(
        wanted.producer_id, wanted.producer_epoch, marker, wanted.transaction_version, now_ms
    )
    if appended.error:
        finish(appended.error, now_ms)
        return
    broker.await_committed(
        replica, appended.last_offset + 1, finish, broker.config.request_timeout_ms, now_ms
    )
