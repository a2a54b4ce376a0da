"""The offsets of share groups: DescribeShareGroupOffsets 90 (v0-1), AlterShareGroupOffsets 91 (v0),
DeleteShareGroupOffsets 92 (v0).

Owns: the answers, and the lag.  Never: changes a group (coordinator/share/offsets.py does).
Kafka: KafkaApis, GroupCoordinatorService.describeShareGroupOffsets, alterShareGroupOffsets,
deleteShareGroupOffsets; KIP-932.
Behaviour:
- Describe: the start offset of each share partition, -1 where there is none; a group that does not
  exist is no error, and any broker answers for topics that are named;
- Alter and Delete: only while the group has no members.
Versions:
- DescribeShareGroupOffsets v1: the lag (KIP-1226): end offset - start offset - records from it on
  that need no further delivery
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kcluster.broker.broker import Broker
from kcluster.broker.coordinator.share.offsets import alter_failed, delete_failed
from kcluster.broker.coordinator.share_state.state import (
    NO_COUNT,
    UNINITIALIZED,
    SharePartition,
    ShareSummary,
)
from kcluster.broker.gather import OnPart, gather
from kcluster.broker.registry import PARKED, Parked, handles
from kcluster.contract import Request
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode, error_of
from kcluster.protocol.features import SHARE_VERSION

LATEST: Final = -1
"""The timestamp of ListOffsets that means the end of the log."""
NO_LAG: Final = -1

GroupRow = m.DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseGroup
TopicRow = m.DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseTopic
PartitionRow = m.DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponsePartition
EndOffsets = dict[SharePartition, int | ErrorCode]


# -------------------------------------------------------------------------------------- describe


@handles(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, versions=(0, 1))
def describe_share_group_offsets(broker: Broker, request: Request, now_ms: int) -> Parked:
    """Describe each group independently; the answer is sent when the offsets of all groups are
    known."""
    body: m.DescribeShareGroupOffsetsRequest = request.body

    def describe(index: int, on_described: OnPart[GroupRow]) -> None:
        _describe(broker, body.groups[index], on_described, now_ms)

    def described(rows: dict[int, GroupRow], _at_ms: int) -> None:
        broker.reply(request, m.DescribeShareGroupOffsetsResponse(groups=list(rows.values())))

    gather(range(len(body.groups)), describe, described, now_ms)
    return PARKED


def _describe(
    broker: Broker,
    wanted: m.DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup,
    on_described: OnPart[GroupRow],
    now_ms: int,
) -> None:
    row = GroupRow(group_id=wanted.group_id)
    names: dict[bytes, str] = {}
    partitions: list[SharePartition] = []
    unknown: list[TopicRow] = []
    if not broker.image.supports(SHARE_VERSION):
        row.error_code = ErrorCode.UNSUPPORTED_VERSION
    elif wanted.topics is None:
        found = broker.coordinator.share_partitions(wanted.group_id)
        if isinstance(found, ErrorCode):
            row.error_code, row.error_message = found, found.text
        else:
            partitions = found
            known = broker.image.topic_names
            names = {one.topic_id: known[one.topic_id] for one in partitions}
    else:
        for one in wanted.topics:
            topic = broker.image.topics.get(one.topic_name)
            if topic is None:
                cells = [PartitionRow(index, UNINITIALIZED, lag=NO_LAG) for index in one.partitions]
                unknown.append(TopicRow(topic_name=one.topic_name, partitions=cells))
                continue
            if not one.partitions:
                # Kafka's persister throws here: DefaultStatePersister.validate.
                row.error_code = ErrorCode.UNKNOWN_SERVER_ERROR
                row.error_message = row.error_code.text
                on_described(row, now_ms)
                return
            names[topic.topic_id] = topic.name
            partitions += [
                SharePartition(wanted.group_id, topic.topic_id, index) for index in one.partitions
            ]
    if not partitions:
        row.topics = unknown
        on_described(row, now_ms)
        return

    def summarized(summaries: dict[SharePartition, ShareSummary | ErrorCode], at_ms: int) -> None:
        def ended(ends: EndOffsets, later_ms: int) -> None:
            topics: dict[bytes, TopicRow] = {}
            for partition in partitions:
                topic = topics.setdefault(
                    partition.topic_id, TopicRow(names[partition.topic_id], partition.topic_id)
                )
                cell = _cell(partition, summaries[partition], ends.get(partition))
                topic.partitions.append(cell)
            row.topics = [*topics.values(), *unknown]
            on_described(row, later_ms)

        with_lag = {
            partition: names[partition.topic_id]
            for partition, summary in summaries.items()
            if _has_lag(summary)
        }
        _list_end_offsets(broker, with_lag, ended, at_ms)

    broker.persister.summarize(partitions, summarized, now_ms)


def _has_lag(summary: ShareSummary | ErrorCode) -> bool:
    return (
        isinstance(summary, ShareSummary)
        and summary.start_offset != UNINITIALIZED
        and summary.delivery_complete_count != NO_COUNT
    )


def _cell(
    partition: SharePartition, summary: ShareSummary | ErrorCode, end: int | ErrorCode | None
) -> PartitionRow:
    """One partition's row; an error of the persister counts as missing data, as in OffsetFetch."""
    index = partition.partition
    if isinstance(summary, ErrorCode):
        return PartitionRow(index, UNINITIALIZED, lag=NO_LAG)
    if isinstance(end, ErrorCode):
        return PartitionRow(index, error_code=end, error_message=end.text)
    lag = NO_LAG
    if end is not None:
        lag = end - summary.start_offset - summary.delivery_complete_count
    return PartitionRow(index, summary.start_offset, summary.leader_epoch, lag)


def _list_end_offsets(
    broker: Broker,
    partitions: dict[SharePartition, str],
    on_ended: Callable[[EndOffsets, int], None],
    now_ms: int,
) -> None:
    """Request the ends of these partitions, given with their topics' names, from the leaders.
    Kafka: NetworkPartitionMetadataClient."""
    ends: EndOffsets = {}
    by_leader: dict[int, list[SharePartition]] = {}
    for partition, name in partitions.items():
        registration = broker.image.partition(name, partition.partition)
        leader = None if registration is None else broker.image.brokers.get(registration.leader)
        if leader is None or leader.fenced:
            ends[partition] = ErrorCode.LEADER_NOT_AVAILABLE
        else:
            by_leader.setdefault(leader.broker_id, []).append(partition)

    def ask(broker_id: int, on_answer: OnPart[m.ListOffsetsResponse | None]) -> None:
        body = _list_offsets_request(partitions, by_leader[broker_id])
        broker.ask_broker(broker_id, body, on_answer, broker.config.request_timeout_ms, now_ms)

    def answered(answers: dict[int, m.ListOffsetsResponse | None], at_ms: int) -> None:
        for broker_id, body in answers.items():
            found = {} if body is None else _listed(body)
            for one in by_leader[broker_id]:
                key = (partitions[one], one.partition)
                ends[one] = found.get(key, ErrorCode.NETWORK_EXCEPTION)
        on_ended(ends, at_ms)

    gather(by_leader, ask, answered, now_ms)


def _listed(body: m.ListOffsetsResponse) -> dict[tuple[str, int], int | ErrorCode]:
    """The offset, or the error, of each partition in an answer."""
    return {
        (topic.name, cell.partition_index): error_of(cell.error_code) or cell.offset
        for topic in body.topics
        for cell in topic.partitions
    }


def _list_offsets_request(
    names: dict[SharePartition, str], some: list[SharePartition]
) -> m.ListOffsetsRequest:
    kind = m.ListOffsetsRequest
    topics: dict[str, m.ListOffsetsRequest.ListOffsetsTopic] = {}
    for one in some:
        topic = topics.setdefault(names[one], kind.ListOffsetsTopic(name=names[one]))
        topic.partitions.append(
            kind.ListOffsetsPartition(partition_index=one.partition, timestamp=LATEST)
        )
    return kind(replica_id=-1, topics=list(topics.values()))


# -------------------------------------------------------------------------------- alter, delete


@handles(ApiKey.ALTER_SHARE_GROUP_OFFSETS, versions=(0, 0))
def alter_share_group_offsets(
    broker: Broker, request: Request, now_ms: int
) -> m.AlterShareGroupOffsetsResponse | Parked:
    body: m.AlterShareGroupOffsetsRequest = request.body
    if not broker.image.supports(SHARE_VERSION):
        return alter_failed(ErrorCode.UNSUPPORTED_VERSION)
    if not body.group_id:
        return alter_failed(ErrorCode.INVALID_GROUP_ID)

    def done(answer: m.AlterShareGroupOffsetsResponse, _at_ms: int) -> None:
        broker.reply(request, answer)

    broker.coordinator.alter_share_offsets(body, done, now_ms)
    return PARKED


@handles(ApiKey.DELETE_SHARE_GROUP_OFFSETS, versions=(0, 0))
def delete_share_group_offsets(
    broker: Broker, request: Request, now_ms: int
) -> m.DeleteShareGroupOffsetsResponse | Parked:
    body: m.DeleteShareGroupOffsetsRequest = request.body
    if not broker.image.supports(SHARE_VERSION):
        return delete_failed(ErrorCode.UNSUPPORTED_VERSION)
    if not body.group_id:
        return delete_failed(ErrorCode.INVALID_GROUP_ID)

    def done(answer: m.DeleteShareGroupOffsetsResponse, _at_ms: int) -> None:
        broker.reply(request, answer)

    broker.coordinator.delete_share_offsets(body, done, now_ms)
    return PARKED
