"""The guards of the two APIs that read offsets of several groups at once.

Owns: OffsetFetch and DescribeShareGroupOffsets.  Never: guards a group's changes (groups.py,
share.py).
Kafka: KafkaApis.handleOffsetFetchRequest, handleDescribeShareGroupOffsetsRequest; KIP-709, KIP-932.

DESCRIBE on each group, else its row has an error.  DESCRIBE on each topic that is named, else the
topic has an error; if all of a group's topics are asked for, hidden ones are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from msgspec.structs import replace

from kcluster.broker.authorization.guards import Guard, Result, call_of
from kcluster.broker.broker import Broker
from kcluster.broker.handlers.groups.offset_fetch import GROUPS_SINCE, TOPIC_IDS_SINCE
from kcluster.contract import Request
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.messages import Message
from kcluster.security.acls import AclOperation, AclResource
from kcluster.security.refusals import with_text
from kcluster.security.rights import Admitted, Rights

_GROUP_DENIED: Final = ErrorCode.GROUP_AUTHORIZATION_FAILED
_TOPIC_DENIED: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED
_REFUSED: Final = (_TOPIC_DENIED, ErrorCode.UNKNOWN_TOPIC_ID)

_FetchedTopic = m.OffsetFetchResponse.OffsetFetchResponseTopics
_NameOf = Callable[..., str]
T = TypeVar("T")


def offset_fetch(broker: Broker, request: Request, rights: Rights) -> Result:
    """Guard OffsetFetch, whose versions before 8 have one group."""
    if request.api_version >= GROUPS_SINCE:
        return _of_groups(broker, request, rights)
    body: m.OffsetFetchRequest = request.body
    call = call_of(broker, request)
    if not rights.may(AclOperation.DESCRIBE, AclResource.GROUP, body.group_id):
        return call.refused(_GROUP_DENIED)
    if body.topics is not None:
        return call.refused_topics(
            rights.denied(AclOperation.DESCRIBE, AclResource.TOPIC, call.topics)
        )

    def complete(answer: m.OffsetFetchResponse) -> m.OffsetFetchResponse:
        answer.topics = _visible(answer.topics, lambda topic: topic.name, rights)
        return answer

    return Admitted(body, complete)


def offsets_of_groups(
    failed_group: Callable[[str], Message],
    name_of: _NameOf,
    answered_name: _NameOf,
    failed_topic: Callable[..., Message],
) -> Guard:
    """The guard of an API whose request and answer have groups with topics.  `failed_group`,
    `failed_topic`: the rows of what is denied; `name_of`, `answered_name`: the name of a topic of
    the request, and of one of the answer."""

    def guard(broker: Broker, request: Request, rights: Rights) -> Result:
        body, names = request.body, broker.image.topic_names
        by_id = request.api_version >= TOPIC_IDS_SINCE
        group_ids = [group.group_id for group in body.groups]
        denied = rights.denied(AclOperation.DESCRIBE, AclResource.GROUP, group_ids)
        allowed = [group for group in body.groups if group.group_id not in denied]
        hidden = rights.denied(
            AclOperation.DESCRIBE,
            AclResource.TOPIC,
            [
                name
                for group in allowed
                for topic in group.topics or ()
                if (name := name_of(topic, names))
            ],
        )

        def complete(answer: Any) -> object:
            rows = iter(answer.groups)
            answer.groups = []
            for group in body.groups:
                if group.group_id in denied:
                    answer.groups.append(failed_group(group.group_id))
                    continue
                row = next(rows)
                answer.groups.append(row)
                if row.error_code:
                    continue
                if group.topics is None:
                    row.topics = _visible(row.topics, answered_name, rights)
                for topic in group.topics or ():
                    name = name_of(topic, names)
                    if name in hidden:
                        row.topics.append(failed_topic(topic, name))
                if by_id and hidden:
                    ids = [topic.topic_id for topic in group.topics or ()]
                    row.topics = _refused_last(row.topics, ids)
            return answer

        rest = []
        for group in allowed:
            if group.topics is not None:
                topics = [topic for topic in group.topics if name_of(topic, names) not in hidden]
                group = replace(group, topics=topics)
            rest.append(group)
        return Admitted(replace(body, groups=rest), complete)

    return guard


def _refused_last(topics: list[_FetchedTopic], ids: list[bytes]) -> list[_FetchedTopic]:
    """The rows in Kafka's order: refused topics come last, in the order of the requested `ids`."""

    def place(topic: _FetchedTopic) -> int:
        is_refused = any(row.error_code in _REFUSED for row in topic.partitions)
        return 1 + ids.index(topic.topic_id) if is_refused else 0

    return sorted(topics, key=place)


def _visible(topics: list[T], name_of: Callable[[T], str], rights: Rights) -> list[T]:
    names = map(name_of, topics)
    hidden = rights.denied(AclOperation.DESCRIBE, AclResource.TOPIC, names, silently=True)
    return [topic for topic in topics if name_of(topic) not in hidden]


# ------------------------------------------------------------------------------ the two APIs


def _fetched_name(
    topic: m.OffsetFetchRequest.OffsetFetchRequestTopics, names: Mapping[bytes, str]
) -> str:
    name: str = topic.name or names.get(topic.topic_id, "")
    return name


def _failed_fetch(topic: m.OffsetFetchRequest.OffsetFetchRequestTopics, name: str) -> Message:
    answer = m.OffsetFetchResponse
    return answer.OffsetFetchResponseTopics(
        name=name,
        topic_id=topic.topic_id,
        partitions=[
            answer.OffsetFetchResponsePartitions(
                partition_index=index, committed_offset=-1, error_code=_TOPIC_DENIED
            )
            for index in topic.partition_indexes
        ],
    )


def _failed_share(
    topic: m.DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestTopic, name: str
) -> Message:
    answer = m.DescribeShareGroupOffsetsResponse
    row = answer.DescribeShareGroupOffsetsResponsePartition
    return answer.DescribeShareGroupOffsetsResponseTopic(
        topic_name=name,
        partitions=[
            with_text(row(partition_index=index, start_offset=-1, error_code=_TOPIC_DENIED))
            for index in topic.partitions
        ],
    )


def _fetched_group(group_id: str) -> Message:
    return m.OffsetFetchResponse.OffsetFetchResponseGroup(
        group_id=group_id, error_code=_GROUP_DENIED
    )


def _share_group(group_id: str) -> Message:
    return m.DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseGroup(
        group_id=group_id, error_code=_GROUP_DENIED
    )


_of_groups: Final = offsets_of_groups(
    _fetched_group, _fetched_name, lambda topic: topic.name, _failed_fetch
)
describe_share_offsets: Final = offsets_of_groups(
    _share_group,
    lambda topic, _names: topic.topic_name,
    lambda topic: topic.topic_name,
    _failed_share,
)
"""The guard of DescribeShareGroupOffsets."""
