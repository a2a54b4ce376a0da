"""Reading committed offsets: OffsetFetch 9 (v1-10).

Owns: the shape of the answers.  Never: changes an offset.
Kafka: KafkaApis.handleOffsetFetchRequest, OffsetMetadataManager.fetchOffsets, fetchAllOffsets.
Behaviour:
- only offsets that are on all in-sync replicas are returned;
- with require_stable the answer waits for commits that came before the request, and an offset that
  an open transaction may change is UNSTABLE_OFFSET_COMMIT;
- a group that does not exist has no offsets, without an error;
- a member of a consumer group must name its current epoch. Versions:
- v0 (to 3.9): data/old_offsets.py
- v2: null topics for all; an error for the whole request
- v5: leader epoch (KIP-320)
- v7: require_stable (KIP-447)
- v8: many groups (KIP-709)
- v9: member epoch (KIP-848)
- v10: topic ids (KIP-848)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kcluster.broker.broker import Broker
from kcluster.broker.coordinator.group_log import NO_TOPIC_ID, CommittedOffset
from kcluster.broker.coordinator.interface import RequestRefused
from kcluster.broker.coordinator.offsets import GroupOffsets
from kcluster.broker.gather import OnPart, gather
from kcluster.broker.handlers.data.old_offsets import IN_ZOOKEEPER, fetched_from_zookeeper
from kcluster.broker.registry import PARKED, Parked, handles
from kcluster.contract import Request
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from kcluster.protocol.messages import OffsetFetchRequest, OffsetFetchResponse

    AskedGroup = OffsetFetchRequest.OffsetFetchRequestGroup
    FetchGroup = OffsetFetchResponse.OffsetFetchResponseGroup
    FetchTopic = OffsetFetchResponse.OffsetFetchResponseTopics
    FetchPartition = OffsetFetchResponse.OffsetFetchResponsePartitions

TOPIC_IDS_SINCE: Final = 10
GROUPS_SINCE: Final = 8
EPOCHS_SINCE: Final = 9
GROUP_ERROR_SINCE: Final = 2
NO_OFFSET: Final = -1
NO_LEADER_EPOCH: Final = -1


@handles(ApiKey.OFFSET_FETCH, versions=(1, 10))
def offset_fetch(broker: Broker, request: Request, now_ms: int) -> Parked:
    groups = _asked_groups(request)

    def fetch(index: int, on_fetched: OnPart[FetchGroup]) -> None:
        _fetch_group(broker, request, groups[index], on_fetched, now_ms)

    def fetched(answers: dict[int, FetchGroup], _at_ms: int) -> None:
        response = _fetch_response(request, list(answers.values()))
        if request.api_version == IN_ZOOKEEPER:
            response = fetched_from_zookeeper(broker, response)
        broker.reply(request, response)

    gather(range(len(groups)), fetch, fetched, now_ms)
    return PARKED


def _asked_groups(request: Request) -> list[AskedGroup]:
    """The groups of a request; a request before version 8 has one group."""
    body: m.OffsetFetchRequest = request.body
    if request.api_version >= GROUPS_SINCE:
        return body.groups
    topics = None
    if body.topics is not None:
        topics = [
            m.OffsetFetchRequest.OffsetFetchRequestTopics(
                name=topic.name, partition_indexes=topic.partition_indexes
            )
            for topic in body.topics
        ]
    group = m.OffsetFetchRequest.OffsetFetchRequestGroup(group_id=body.group_id, topics=topics)
    return [group]


def _fetch_group(
    broker: Broker,
    request: Request,
    requested: AskedGroup,
    on_fetched: OnPart[FetchGroup],
    now_ms: int,
) -> None:
    version = request.api_version
    is_stable = request.body.require_stable
    has_epoch = version >= EPOCHS_SINCE
    member = (requested.member_id, requested.member_epoch) if has_epoch else None

    def fetched(outcome: GroupOffsets | RequestRefused, at_ms: int) -> None:
        if isinstance(outcome, RequestRefused):
            on_fetched(_failed_group(request, requested, outcome.error), at_ms)
            return
        read = _read_all if requested.topics is None else _read_topics
        topics = read(broker, outcome, requested, version >= TOPIC_IDS_SINCE)
        for topic in topics:
            topic.partitions = [
                _no_offset(one.partition_index, ErrorCode.UNSTABLE_OFFSET_COMMIT)
                if (topic.name, one.partition_index) in outcome.unstable
                else one
                for one in topic.partitions
            ]
        row_of = m.OffsetFetchResponse.OffsetFetchResponseGroup
        on_fetched(row_of(group_id=requested.group_id, topics=topics), at_ms)

    broker.coordinator.fetch_offsets(requested.group_id, member, is_stable, fetched, now_ms)


def _read_all(
    broker: Broker, offsets: GroupOffsets, _requested: AskedGroup, by_id: bool
) -> list[FetchTopic]:
    """All offsets of the group."""
    topics = []
    for name, partitions in offsets.topics.items():
        image = broker.image.topics.get(name)
        if by_id and image is None:
            continue
        topics.append(
            m.OffsetFetchResponse.OffsetFetchResponseTopics(
                name=name,
                topic_id=image.topic_id if by_id and image is not None else NO_TOPIC_ID,
                partitions=[_fetched(index, offset) for index, offset in partitions.items()],
            )
        )
    return topics


def _read_topics(
    broker: Broker, offsets: GroupOffsets, requested: AskedGroup, by_id: bool
) -> list[FetchTopic]:
    """The offsets of the named topics, in the order of the request; if topics are named by ids,
    unknown ids come last.  Kafka: KafkaApis.fetchOffsetsForGroup."""
    known, unknown = [], []
    for topic in requested.topics or ():
        name = broker.image.topic_names.get(topic.topic_id, "") if by_id else topic.name
        answer = m.OffsetFetchResponse.OffsetFetchResponseTopics(name=name, topic_id=topic.topic_id)
        if by_id and not name:
            error = ErrorCode.UNKNOWN_TOPIC_ID
            answer.partitions = [_no_offset(index, error) for index in topic.partition_indexes]
            unknown.append(answer)
        else:
            stored = offsets.topics.get(name, {})
            answer.partitions = [
                _fetched(index, _same_topic(stored.get(index), topic.topic_id))
                for index in topic.partition_indexes
            ]
            known.append(answer)
    return known + unknown


def _same_topic(committed: CommittedOffset | None, topic_id: bytes) -> CommittedOffset | None:
    """Whether an offset belongs to this topic.  If both have ids, an offset of an earlier topic
    with this name does not."""
    if committed is None or NO_TOPIC_ID in (topic_id, committed.topic_id):
        return committed
    return committed if committed.topic_id == topic_id else None


def _fetched(index: int, committed: CommittedOffset | None) -> FetchPartition:
    if committed is None:
        return _no_offset(index, ErrorCode.NONE)
    return m.OffsetFetchResponse.OffsetFetchResponsePartitions(
        partition_index=index,
        committed_offset=committed.offset,
        committed_leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
    )


def _no_offset(index: int, error: ErrorCode) -> FetchPartition:
    return m.OffsetFetchResponse.OffsetFetchResponsePartitions(
        partition_index=index,
        committed_offset=NO_OFFSET,
        committed_leader_epoch=NO_LEADER_EPOCH,
        metadata="",
        error_code=error,
    )


def _failed_group(request: Request, requested: AskedGroup, error: ErrorCode) -> FetchGroup:
    """The answer for a group with an error; before version 2 only partitions have errors."""
    if request.api_version >= GROUP_ERROR_SINCE:
        return m.OffsetFetchResponse.OffsetFetchResponseGroup(
            group_id=requested.group_id, error_code=error
        )
    topics = [
        m.OffsetFetchResponse.OffsetFetchResponseTopics(
            name=topic.name, partitions=[_no_offset(i, error) for i in topic.partition_indexes]
        )
        for topic in requested.topics or ()
    ]
    return m.OffsetFetchResponse.OffsetFetchResponseGroup(
        group_id=requested.group_id, topics=topics, error_code=error
    )


def _fetch_response(request: Request, groups: list[FetchGroup]) -> m.OffsetFetchResponse:
    if request.api_version >= GROUPS_SINCE:
        return m.OffsetFetchResponse(groups=groups)
    (group,) = groups
    topics = [
        m.OffsetFetchResponse.OffsetFetchResponseTopic(
            name=topic.name,
            partitions=[
                m.OffsetFetchResponse.OffsetFetchResponsePartition(
                    partition_index=partition.partition_index,
                    committed_offset=partition.committed_offset,
                    committed_leader_epoch=partition.committed_leader_epoch,
                    metadata=partition.metadata,
                    error_code=partition.error_code,
                )
                for partition in topic.partitions
            ],
        )
        for topic in group.topics
    ]
    return m.OffsetFetchResponse(topics=topics, error_code=group.error_code)
