"""A broker's answers about metadata and logs, compared with its own metadata and logs.

Owns: the requests that a broker's handlers get from time to time without a client, and the expected
answers.  Never: changes a broker, sends anything.  Kafka: KafkaApis.handleTopicMetadataRequest,
DescribeTopicPartitionsRequestHandler, UnifiedLog.fetchOffsetByTimestamp; KIP-98, KIP-734, KIP-966,
KIP-1073.

    answer-differs    Metadata, DescribeCluster, DescribeTopicPartitions (page by page),
                      ListOffsets or OffsetForLeaderEpoch answers differently from the
                      broker's own metadata or log

These handlers change nothing, so a check can call them at any time.  Whether the broker's metadata
itself is right is for applied.py to check.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from kcluster.broker.broker import Broker
from kcluster.broker.handlers.data.list_offsets import (
    CONSUMER_ID,
    EARLIEST,
    LATEST,
    MAX_TIMESTAMP,
    READ_COMMITTED,
    list_offsets,
)
from kcluster.broker.handlers.data.offset_for_leader_epoch import offset_for_leader_epoch
from kcluster.broker.handlers.metadata.describe_cluster import (
    BROKER_ENDPOINT,
    build_describe_cluster,
)
from kcluster.broker.handlers.metadata.describe_topic_partitions import (
    build_describe_topic_partitions,
)
from kcluster.broker.handlers.metadata.metadata import build_metadata
from kcluster.contract import Request
from kcluster.invariants.facts import AnswerDiffers
from kcluster.metadata.image import MetadataImage
from kcluster.metadata.records import PartitionRegistration
from kcluster.partition.log.log import Log
from kcluster.partition.replica import Replica
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.records.batches import Batch

METADATA_VERSION: Final = 13
LIST_OFFSETS_VERSION: Final = 11
EPOCH_ENDS_VERSION: Final = 4
MOST_PARTITIONS: Final = 500
"""Metadata is not compared in a larger cluster, because each comparison would take long."""
MOST_BATCHES: Final = 2_000
"""A log with more batches is not compared."""
PAGES: Final = 20
"""The approximate number of pages in which all topics are described."""

Differing = Iterator[AnswerDiffers]


def metadata_differences(broker: Broker) -> Differing:
    """The answers that differ from a broker's own metadata."""
    image = broker.image
    if sum(len(topic.partitions) for topic in image.topics.values()) <= MOST_PARTITIONS:
        listener = broker.view.endpoints[0].listener
        yield from _of_metadata(image, broker.cluster_id, listener)
        yield from _of_cluster(image, broker.cluster_id, listener)
        yield from _of_pages(image)


def _due(registration: PartitionRegistration, leader: int) -> tuple[object, ...]:
    one = registration
    return one.partition, leader, one.leader_epoch, list(one.replicas), list(one.isr)


def _reachable(image: MetadataImage, listener: str) -> dict[int, bool]:
    """The brokers that a listener's clients can know, each with whether it is unfenced."""
    return {
        id_: not one.fenced
        for id_, one in sorted(image.brokers.items())
        if one.endpoint(listener) is not None
    }


def _of_metadata(image: MetadataImage, cluster_id: str, listener: str) -> Differing:
    body = m.MetadataRequest(topics=None)
    answer = build_metadata(image, body, METADATA_VERSION, cluster_id, listener)
    known = _reachable(image, listener)
    yield from _compared(
        "brokers in Metadata",
        [one.node_id for one in answer.brokers],
        [id_ for id_, is_up in known.items() if is_up],
    )
    given = {topic.name: topic.partitions for topic in answer.topics}
    yield from _compared("topics in Metadata", list(given), list(image.topics))
    for name, topic in image.topics.items():
        rows = [
            (one.partition_index, one.leader_id, one.leader_epoch, one.replica_nodes, one.isr_nodes)
            for one in given.get(name, ())
        ]
        due = [_due(one, one.leader if one.leader in known else -1) for one in topic.partitions]
        yield from _compared(f"{name} in Metadata", rows, due)


def _of_cluster(image: MetadataImage, cluster_id: str, listener: str) -> Differing:
    known = _reachable(image, listener)
    for with_fenced in (False, True):
        body = m.DescribeClusterRequest(
            endpoint_type=BROKER_ENDPOINT, include_fenced_brokers=with_fenced
        )
        answer = build_describe_cluster(image, body, cluster_id, listener)
        yield from _compared(
            "brokers in DescribeCluster",
            [(one.broker_id, not one.is_fenced) for one in answer.brokers],
            [(id_, is_up) for id_, is_up in known.items() if is_up or with_fenced],
        )


def _of_pages(image: MetadataImage) -> Differing:
    """Describe all topics, page by page, as an administrator does."""
    topics = sorted(image.topics.items())
    due = [
        (name, *_due(one, one.leader if one.leader in image.brokers else -1), list(one.elr))
        for name, topic in topics
        for one in topic.partitions
    ]
    limit = max(1, len(due) // PAGES)
    given: list[tuple[object, ...]] = []
    cursor: m.DescribeTopicPartitionsRequest.Cursor | None = None
    while len(given) <= len(due):
        body = m.DescribeTopicPartitionsRequest(response_partition_limit=limit, cursor=cursor)
        answer = build_describe_topic_partitions(image, body, limit)
        for topic in answer.topics:
            for row in topic.partitions:
                numbers = (row.partition_index, row.leader_id, row.leader_epoch)
                sets = (row.replica_nodes, row.isr_nodes, row.eligible_leader_replicas)
                given.append((topic.name, *numbers, *sets))
        following = answer.next_cursor
        if following is None or (cursor is not None and not answer.topics):
            break
        cursor = m.DescribeTopicPartitionsRequest.Cursor(
            topic_name=following.topic_name, partition_index=following.partition_index
        )
    yield from _compared("pages of DescribeTopicPartitions", given, due)


def _compared(what: str, given: Sequence[object], due: Sequence[object]) -> Differing:
    """The first row that differs."""
    if given == due:
        return
    at = next((i for i, rows in enumerate(zip(given, due, strict=False)) if rows[0] != rows[1]), -1)
    if at < 0:
        at = min(len(given), len(due))
    yield AnswerDiffers(what, *(str(rows[at]) if at < len(rows) else "" for rows in (given, due)))


# ------------------------------------------------------------------------------------ logs


def log_differences(broker: Broker, replica: Replica, now_ms: int) -> Differing:
    """The answers of a leader about its log that differ from the log."""
    if sum(len(segment.batches) for segment in replica.log.segments) <= MOST_BATCHES:
        yield from _of_offsets(broker, replica, now_ms)
        yield from _of_epochs(broker, replica, now_ms)


def _of_offsets(broker: Broker, replica: Replica, now_ms: int) -> Differing:
    log = replica.log
    start, watermark = log.log_start_offset, replica.high_watermark
    given = _listed(broker, replica, EARLIEST, now_ms)
    if given is not None and given.offset != start:
        yield AnswerDiffers("the earliest offset", str(given.offset), str(start))
    stable = stable_end(log, watermark)
    given = _listed(broker, replica, LATEST, now_ms, READ_COMMITTED)
    # A transaction that began before the log's start may hold back the last stable offset.
    if given is not None and given.offset > stable:
        yield AnswerDiffers("the latest offset for read_committed", str(given.offset), str(stable))
    batches = log.batches_from(start)
    newest = max((batch.max_timestamp for batch in batches), default=-1)
    given = _listed(broker, replica, MAX_TIMESTAMP, now_ms)
    # Kafka looks at the whole first segment, even at records before the log's start.
    is_whole = not log.segments or log.segments[0].base_offset == start
    if given is not None and is_whole and newest >= 0:
        first = next(batch for batch in batches if batch.max_timestamp == newest)
        yield from _compared_time("greatest timestamp", given, first, newest, watermark)
    if not is_whole:
        yield from _of_deleted(broker, replica, now_ms)
    if batches and is_whole:
        wanted = batches[len(batches) // 2].max_timestamp
        given = _listed(broker, replica, wanted, now_ms) if wanted >= 0 else None
        if given is not None:
            first = next(batch for batch in batches if batch.max_timestamp >= wanted)
            yield from _compared_time(f"timestamp {wanted}", given, first, wanted, watermark)


def _of_deleted(broker: Broker, replica: Replica, now_ms: int) -> Differing:
    """A deleted record, before the log's start, that a look-up by timestamp still finds."""
    log = replica.log
    oldest = log.segments[0].batches[0].max_timestamp if log.segments[0].batches else -1
    given = _listed(broker, replica, oldest, now_ms) if oldest >= 0 else None
    if given is not None and 0 <= given.offset < log.log_start_offset:
        due = f"{log.log_start_offset} or later"
        yield AnswerDiffers(f"the offset for timestamp {oldest}", str(given.offset), due)


def _of_epochs(broker: Broker, replica: Replica, now_ms: int) -> Differing:
    """The first leader epoch for which OffsetForLeaderEpoch returns a wrong end: before the end of
    the epoch's last batch, or after the beginning of the next batch.  Not checked for releases
    before KIP-279, whose logs may have records of epochs that the epoch cache lacks."""
    log, era = replica.log, broker.view.era
    if era.truncates_to_high_watermark or era.compares_epochs_once:
        return
    ends: dict[int, int] = {}
    for batch in log.batches_from(log.log_start_offset):
        ends[batch.leader_epoch] = batch.last_offset + 1
    ends.pop(-1, None)
    asks = m.OffsetForLeaderEpochRequest
    wanted = [asks.OffsetForLeaderPartition(replica.partition, -1, epoch) for epoch in ends]
    topic = asks.OffsetForLeaderTopic(replica.topic, wanted)
    body = asks(replica_id=CONSUMER_ID, topics=[topic])
    key, version = ApiKey.OFFSET_FOR_LEADER_EPOCH, EPOCH_ENDS_VERSION
    answer = offset_for_leader_epoch(broker, Request(-1, int(key), version, 0, None, body), now_ms)
    assert isinstance(answer, m.OffsetForLeaderEpochResponse)
    for (epoch, end), row in zip(ends.items(), answer.topics[0].partitions, strict=True):
        following = [batch.base_offset for batch in log.batches_from(end)[:1]]
        bounds = (end, *following, log.log_end_offset)
        is_right = row.leader_epoch == epoch and bounds[0] <= row.end_offset <= bounds[1]
        if not row.error_code and not is_right:
            given = f"epoch {row.leader_epoch} up to {row.end_offset}"
            yield AnswerDiffers("the end of a leader epoch", given, f"epoch {epoch} up to {end}")
            return


def stable_end(log: Log, watermark: int) -> int:
    """The last stable offset, derived from a log's batches: every transaction below it has
    ended."""
    ongoing: dict[int, int] = {}
    for batch in log.batches_from(log.log_start_offset):
        if batch.last_offset >= watermark:
            break
        if batch.is_control:
            ongoing.pop(batch.producer_id, None)
        elif batch.is_transactional:
            ongoing.setdefault(batch.producer_id, batch.base_offset)
    return min((*ongoing.values(), watermark))


def _compared_time(
    what: str,
    given: m.ListOffsetsResponse.ListOffsetsPartitionResponse,
    first: Batch,
    wanted: int,
    watermark: int,
) -> Differing:
    """Compare the answer for a timestamp with the first batch that has a timestamp at or after
    it."""
    text = f"timestamp {given.timestamp} at offset {given.offset}"
    if first.last_offset < watermark:
        is_in = first.base_offset <= given.offset <= first.last_offset
        if not is_in or not wanted <= given.timestamp <= first.max_timestamp:
            due = f"one of the batch at offset {first.base_offset}"
            yield AnswerDiffers(f"the offset for the {what}", text, due)
    elif given.offset >= watermark:
        yield AnswerDiffers(f"the offset for the {what}", text, f"none from {watermark} on")


def _listed(
    broker: Broker, replica: Replica, timestamp: int, now_ms: int, isolation_level: int = 0
) -> m.ListOffsetsResponse.ListOffsetsPartitionResponse | None:
    """A leader's answer to a consumer; None if it is an error, since a new leader may not know the
    end of the log yet."""
    asked = m.ListOffsetsRequest.ListOffsetsPartition(
        partition_index=replica.partition, timestamp=timestamp
    )
    topic = m.ListOffsetsRequest.ListOffsetsTopic(name=replica.topic, partitions=[asked])
    body = m.ListOffsetsRequest(
        replica_id=CONSUMER_ID, isolation_level=isolation_level, topics=[topic]
    )
    request = Request(-1, int(ApiKey.LIST_OFFSETS), LIST_OFFSETS_VERSION, 0, None, body)
    answer = list_offsets(broker, request, now_ms)
    assert isinstance(answer, m.ListOffsetsResponse)
    row = answer.topics[0].partitions[0]
    return None if row.error_code else row
