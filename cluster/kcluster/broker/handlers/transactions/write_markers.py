"""WriteTxnMarkers (API 27, v1-2): end a transaction in the partitions that this broker leads.

Owns: appending markers, and the answer when each is committed or refused.  Never: decides how a
transaction ends (its coordinator has), checks a marker (partition/producers.py does).
Kafka: KafkaApis.handleWriteTxnMarkersRequest.
Behaviour:
- a marker in __consumer_offsets is answered when the group coordinator has applied it, so that the
  next transaction finds the offsets of this one (KAFKA-17507).
Versions:
- v2: the transaction version, which decides on the epochs that a marker may have (KIP-1228)
"""

from __future__ import annotations

from typing import Final

from kcluster.broker.broker import Broker
from kcluster.broker.coordinator.interface import Committed
from kcluster.broker.coordinator.transactions.transaction import ProducerIdentity
from kcluster.broker.gather import gather
from kcluster.broker.registry import PARKED, Parked, handles
from kcluster.contract import Request
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.names import GROUP_METADATA_TOPIC
from kcluster.protocol.records.markers import Marker

NONE: Final = -1
"""The value of a missing producer id or epoch."""
_Key = tuple[int, str, int]
"""A producer id, a topic and a partition."""
PartitionResult = m.WriteTxnMarkersResponse.WritableTxnMarkerPartitionResult


@handles(ApiKey.WRITE_TXN_MARKERS, versions=(1, 2))
def write_txn_markers(
    broker: Broker, request: Request, now_ms: int
) -> m.WriteTxnMarkersResponse | Parked:
    """Append the markers.

    Behaviour:
    - the answer has one row per producer, and each partition once;
    - a producer without partitions is left out of the answer;
    - UNKNOWN_SERVER_ERROR for all markers, if one has no producer id or epoch: Kafka cannot build
      such a marker.
    """
    wanted: dict[_Key, list[m.WriteTxnMarkersRequest.WritableTxnMarker]] = {}
    for marker in request.body.markers:
        for topic in marker.topics:
            for index in topic.partition_indexes:
                same = wanted.setdefault((marker.producer_id, topic.name, index), [])
                if marker not in same:
                    same.append(marker)
    if any(NONE in (marker.producer_id, marker.producer_epoch) for marker in request.body.markers):
        return _answer(dict.fromkeys(wanted, ErrorCode.UNKNOWN_SERVER_ERROR))

    def write(of: tuple[_Key, int], on_written: Committed) -> None:
        key, number = of
        _write(broker, wanted[key][number], key[1], key[2], on_written, now_ms)

    def written(errors: dict[tuple[_Key, int], ErrorCode], _at_ms: int) -> None:
        broker.reply(request, _answer({key: error for (key, _), error in errors.items()}))

    numbered = ((key, at) for key, markers in wanted.items() for at in range(len(markers)))
    gather(numbered, write, written, now_ms)
    return PARKED


def _answer(errors: dict[_Key, ErrorCode]) -> m.WriteTxnMarkersResponse:
    producers: dict[int, dict[str, list[PartitionResult]]] = {}
    for (producer_id, topic, index), error in errors.items():
        topics = producers.setdefault(producer_id, {})
        topics.setdefault(topic, []).append(PartitionResult(index, error))
    return m.WriteTxnMarkersResponse(
        markers=[
            m.WriteTxnMarkersResponse.WritableTxnMarkerResult(
                producer_id=producer_id,
                topics=[
                    m.WriteTxnMarkersResponse.WritableTxnMarkerTopicResult(
                        name=name, partitions=partitions
                    )
                    for name, partitions in topics.items()
                ],
            )
            for producer_id, topics in producers.items()
        ]
    )


def _write(
    broker: Broker,
    wanted: m.WriteTxnMarkersRequest.WritableTxnMarker,
    topic: str,
    index: int,
    finish: Committed,
    now_ms: int,
) -> None:
    marker = Marker(wanted.transaction_result, wanted.coordinator_epoch)
    if topic == GROUP_METADATA_TOPIC and index in broker.coordinator.led:
        producer = ProducerIdentity(wanted.producer_id, wanted.producer_epoch)
        version = wanted.transaction_version
        broker.coordinator.complete_transaction(index, producer, marker, version, finish, now_ms)
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
