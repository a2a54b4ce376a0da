"""What the brokers of a real Kafka say of their logs: where each replica ends, and its records.

Owns: the questions (ListOffsets, Fetch), and reading their answers.  Never: keeps what it read.
Kafka: ListOffsets and Fetch by a debugging consumer (replica id -2), which every replica answers;
kafka-replica-verification.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from kcluster.mirror.connection import NoAnswer
from kcluster.mirror.requests import NodeRequests
from kcluster.partition.log.log import Log
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.records.batches import parse_batches

CONSUMER: Final = -1
DEBUGGING_CONSUMER: Final = -2
"""Kafka: ListOffsetsRequest.CONSUMER_REPLICA_ID, DEBUGGING_REPLICA_ID."""
LATEST: Final = -1
EARLIEST: Final = -2
FETCH_BYTES: Final = 8 << 20

Partition = tuple[str, int]
"""Topic and number."""


class LogEnds(Struct):
    """The ends of the logs of one broker: `log_ends` of all its replicas, `high_watermarks` of the
    partitions that it leads."""

    log_ends: dict[Partition, int]
    high_watermarks: dict[Partition, int]


def read_ends(node: NodeRequests, hosted: list[Partition], led: list[Partition]) -> LogEnds:
    """Ask one broker where its logs end; NoAnswer if it does not answer."""
    ends = _offsets(node, DEBUGGING_CONSUMER, LATEST, hosted) if hosted else {}
    watermarks = _offsets(node, CONSUMER, LATEST, led) if led else {}
    return LogEnds(ends, watermarks)


def _offsets(
    node: NodeRequests, replica_id: int, timestamp: int, partitions: list[Partition]
) -> dict[Partition, int]:
    ask = m.ListOffsetsRequest
    topics = [
        ask.ListOffsetsTopic(
            name=topic,
            partitions=[
                ask.ListOffsetsPartition(partition_index=number, timestamp=timestamp)
                for number in numbers
            ],
        )
        for topic, numbers in by_topic(partitions).items()
    ]
    answer = node.ask(
        ask(replica_id=replica_id, isolation_level=0, topics=topics), m.ListOffsetsResponse
    )
    return {
        (topic.name, found.partition_index): found.offset
        for topic in answer.topics
        for found in topic.partitions
        if not found.error_code
    }


def read_log(node: NodeRequests, topic_id: bytes, topic: str, number: int) -> Log | None:
    """The log of a replica, with all records below its high watermark, which is as far as Kafka
    lets anyone but a follower read; None if the broker does not give it."""
    partition = (topic, number)
    starts = _offsets(node, DEBUGGING_CONSUMER, EARLIEST, [partition])
    ends = _offsets(node, DEBUGGING_CONSUMER, LATEST, [partition])
    if partition not in starts or partition not in ends:
        return None
    log = Log(topic_id, number)
    log.truncate_fully_and_start_at(starts[partition])
    while log.log_end_offset < ends[partition]:
        data = _fetched(node, topic_id, number, log.log_end_offset)
        batches = [
            batch
            for batch in parse_batches(bytes(data.records or b""))
            if batch.last_offset >= log.log_end_offset
        ]
        if data.error_code:
            return None
        if not batches:
            break
        log.append_as_follower(batches)
    return log


def _fetched(
    node: NodeRequests, topic_id: bytes, number: int, offset: int
) -> m.FetchResponse.PartitionData:
    ask = m.FetchRequest
    partition = ask.FetchPartition(
        partition=number, fetch_offset=offset, partition_max_bytes=FETCH_BYTES
    )
    topics = [ask.FetchTopic(topic_id=topic_id, partitions=[partition])]
    request = ask(
        replica_state=ask.ReplicaState(replica_id=DEBUGGING_CONSUMER),
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=FETCH_BYTES,
        topics=topics,
    )
    answer = node.ask(request, m.FetchResponse)
    if answer.error_code or not answer.responses:
        raise NoAnswer(f"fetch: {answer.error_code or ErrorCode.UNKNOWN_TOPIC_ID}")
    found: m.FetchResponse.PartitionData = answer.responses[0].partitions[0]
    return found


def by_topic(partitions: Iterable[Partition]) -> dict[str, list[int]]:
    """The partition numbers of each topic."""
    found: dict[str, list[int]] = {}
    for topic, number in partitions:
        found.setdefault(topic, []).append(number)
    return found
