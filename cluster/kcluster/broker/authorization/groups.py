"""The guards of groups of every protocol, their members, their offsets, and their coordinators.

Owns: these guards.  Never: guards the offsets of share groups (share.py).
Kafka: KafkaApis.handleJoinGroupRequest and the others; KIP-848, KIP-1071.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from kcluster.broker.authorization.group_offsets import offset_fetch
from kcluster.broker.authorization.guards import Guard, Result, after, on_group, on_topics
from kcluster.broker.broker import Broker
from kcluster.broker.coordinator.classic_calls import NULLABLE_PROTOCOL_NAME
from kcluster.broker.handlers.groups.find_coordinator import BATCHED_SINCE, CoordinatorType
from kcluster.broker.handlers.groups.group_offsets import TOPIC_IDS_SINCE
from kcluster.broker.handlers.groups.groups import OPERATIONS_NOT_ASKED, SYNC_NAMES_PROTOCOL_SINCE
from kcluster.contract import Request
from kcluster.protocol import messages as m
from kcluster.protocol.apis import APIS, ApiKey
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.features import GROUP_VERSION, STREAMS_VERSION
from kcluster.protocol.messages import message_class
from kcluster.protocol.names import is_internal, name_fault
from kcluster.security.acls import AclOperation, AclResource
from kcluster.security.refusals import DENIED, with_text
from kcluster.security.rights import Admitted, Rights

if TYPE_CHECKING:
    _Topology = m.StreamsGroupHeartbeatRequest.Topology | m.StreamsGroupDescribeResponse.Topology
    _Described = (
        m.DescribeGroupsResponse
        | m.ConsumerGroupDescribeResponse
        | m.ShareGroupDescribeResponse
        | m.StreamsGroupDescribeResponse
    )
    _Assigned = (
        m.ConsumerGroupDescribeResponse.DescribedGroup | m.ShareGroupDescribeResponse.DescribedGroup
    )

_GROUP_DENIED: Final = ErrorCode.GROUP_AUTHORIZATION_FAILED
_TOPIC_DENIED: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED
_NOT_ASKED: Final = (
    _TOPIC_DENIED, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
)  # fmt: skip
"""The errors of topics that are refused before the coordinator is asked."""


def _if_enabled(feature: str, guard: Guard) -> Guard:
    """Check nothing while the feature is off: the handler refuses the request for that."""

    def checked(broker: Broker, request: Request, rights: Rights) -> Result:
        return guard(broker, request, rights) if broker.image.supports(feature) else None

    return checked


# ------------------------------------------------------------------------------------ members


def _join(broker: Broker, request: Request, rights: Rights) -> Result:
    """READ on the group."""
    if _read_group(broker, request, rights) is None:
        return None
    answer = m.JoinGroupResponse(error_code=_GROUP_DENIED)
    if request.api_version >= NULLABLE_PROTOCOL_NAME:
        answer.protocol_name = None
    return answer


def _sync(broker: Broker, request: Request, rights: Rights) -> Result:
    """READ on the group, after Kafka's check of what newer versions must name."""
    body: m.SyncGroupRequest = request.body
    names_protocol = body.protocol_type is not None and body.protocol_name is not None
    if request.api_version >= SYNC_NAMES_PROTOCOL_SINCE and not names_protocol:
        return None
    return _read_group(broker, request, rights)


def join_modern(broker: Broker, request: Request, rights: Rights) -> Result:
    """READ on the group, and DESCRIBE on each topic that the member subscribes to."""
    refused = _read_group(broker, request, rights)
    if refused is not None:
        return refused
    return _may_describe(request, rights, request.body.subscribed_topic_names or ())


def _join_streams(broker: Broker, request: Request, rights: Rights) -> Result:
    """READ on the group, and DESCRIBE on each topic of the topology."""
    refused = _read_group(broker, request, rights)
    topology = request.body.topology
    if refused is not None or topology is None:
        return refused
    names = list(_topics_of(topology))
    if any(is_internal(name) or name_fault(name) is not None for name in names):
        return None  # refused for these names
    return _may_describe(request, rights, names)


def _may_describe(request: Request, rights: Rights, topics: Iterable[str]) -> Result:
    if not rights.denied(AclOperation.DESCRIBE, AclResource.TOPIC, topics):
        return None
    answer = message_class(f"{APIS[request.api_key].name}Response")
    return answer(error_code=_TOPIC_DENIED)


def _topics_of(topology: _Topology) -> Iterator[str]:
    """The names of all topics of a Kafka Streams topology, in a request or an answer."""
    for subtopology in topology.subtopologies or ():
        yield from subtopology.source_topics
        yield from subtopology.repartition_sink_topics
        yield from (topic.name for topic in subtopology.repartition_source_topics)
        yield from (topic.name for topic in subtopology.state_changelog_topics)


def _commit(broker: Broker, request: Request, rights: Rights) -> Result:
    """READ on each topic.  As in Kafka the refused topics come first, in the order of the
    request."""
    result = _read_topics(broker, request, rights)
    if not isinstance(result, Admitted):
        return result
    by_id = request.api_version >= TOPIC_IDS_SINCE
    asked = [topic.topic_id if by_id else topic.name for topic in request.body.topics]

    def place(row: m.OffsetCommitResponse.OffsetCommitResponseTopic) -> int:
        is_refused = any(cell.error_code in _NOT_ASKED for cell in row.partitions)
        return asked.index(row.topic_id if by_id else row.name) if is_refused else len(asked)

    def complete(answer: m.OffsetCommitResponse) -> object:
        merged = result.complete(answer)
        assert isinstance(merged, m.OffsetCommitResponse)
        merged.topics.sort(key=place)
        return merged

    return Admitted(result.body, complete)


# --------------------------------------------------------------------------------- inspection


def _find_coordinator(_broker: Broker, request: Request, rights: Rights) -> Result:
    """DESCRIBE on the group or the transactional id; CLUSTER_ACTION for share partitions."""
    body: m.FindCoordinatorRequest = request.body
    is_batched = request.api_version >= BATCHED_SINCE
    keys = body.coordinator_keys if is_batched else [body.key]
    if body.key_type == CoordinatorType.GROUP:
        error, kind = _GROUP_DENIED, AclResource.GROUP
    elif body.key_type == CoordinatorType.TRANSACTION:
        error = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        kind = AclResource.TRANSACTIONAL_ID
    else:
        return _find_share_coordinator(body, rights)
    denied = rights.denied(AclOperation.DESCRIBE, kind, keys)
    if not denied:
        return None
    if not is_batched:
        return m.FindCoordinatorResponse(
            error_code=error, error_message=DENIED[error], node_id=-1, port=-1
        )
    row = m.FindCoordinatorResponse.Coordinator

    def complete(answer: m.FindCoordinatorResponse) -> m.FindCoordinatorResponse:
        found = iter(answer.coordinators)
        answer.coordinators = [
            row(key=key, node_id=-1, port=-1, error_code=error) if key in denied else next(found)
            for key in keys
        ]
        return answer

    allowed = [key for key in keys if key not in denied]
    rest = m.FindCoordinatorRequest(key_type=body.key_type, coordinator_keys=allowed)
    return Admitted(rest, complete)


def _find_share_coordinator(body: m.FindCoordinatorRequest, rights: Rights) -> Result:
    is_share = body.key_type == CoordinatorType.SHARE
    if not is_share or rights.may_on_cluster(AclOperation.CLUSTER_ACTION):
        return None
    error = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    row = m.FindCoordinatorResponse.Coordinator
    return m.FindCoordinatorResponse(
        coordinators=[
            with_text(row(key=key, node_id=-1, port=-1, error_code=error))
            for key in body.coordinator_keys
        ]
    )


def _describe(ids_field: str, hides: Callable[..., None]) -> Guard:
    """The guard of an API that describes groups: DESCRIBE on each.  `hides`: removes what the
    client may not see from a group's row."""

    def guard(_broker: Broker, request: Request, rights: Rights) -> Result:
        body = request.body
        ids = getattr(body, ids_field)
        denied = rights.denied(AclOperation.DESCRIBE, AclResource.GROUP, ids)
        row = vars(message_class(f"{APIS[request.api_key].name}Response"))["DescribedGroup"]

        def complete(answer: _Described) -> object:
            for group in answer.groups:
                if group.authorized_operations != OPERATIONS_NOT_ASKED:
                    group.authorized_operations = rights.operations(
                        AclResource.GROUP, group.group_id
                    )
                hides(group, rights)
            refused = [row(group_id=id_, error_code=_GROUP_DENIED) for id_ in ids if id_ in denied]
            answer.groups[:0] = refused
            return answer

        rest = type(body)(
            **{ids_field: [id_ for id_ in ids if id_ not in denied]},
            include_authorized_operations=body.include_authorized_operations,
        )
        return Admitted(rest, complete)

    return guard


def _hide_nothing(_group: object, _rights: Rights) -> None:
    """Hide nothing: a classic group's row has its members' topics as bytes, which Kafka does not
    read."""


def _hide_assigned(group: _Assigned, rights: Rights) -> None:
    topics = [
        topic.topic_name
        for member in group.members
        for assignment in (member.assignment, getattr(member, "target_assignment", None))
        if assignment is not None
        for topic in assignment.topic_partitions
    ]
    text = "The group has described topic(s) that the client is not authorized to describe."
    _hide(group, rights, topics, text)


def _hide_topology(group: m.StreamsGroupDescribeResponse.DescribedGroup, rights: Rights) -> None:
    if group.topology is not None:
        text = "The described group uses topics that the client is not authorized to describe."
        _hide(group, rights, _topics_of(group.topology), text)


def _hide(
    group: _Assigned | m.StreamsGroupDescribeResponse.DescribedGroup,
    rights: Rights,
    topics: Iterable[str],
    text: str,
) -> None:
    """Reduce a group's row to an error if the group uses a topic that the client may not
    DESCRIBE."""
    if not rights.denied(AclOperation.DESCRIBE, AclResource.TOPIC, topics):
        return
    bare = type(group)(group_id=group.group_id, error_code=_TOPIC_DENIED, error_message=text)
    for field in group.__struct_fields__:
        setattr(group, field, getattr(bare, field))


def _list(_broker: Broker, request: Request, rights: Rights) -> Result:
    """All groups, with DESCRIBE on the cluster; otherwise the groups that the client may
    DESCRIBE."""
    if rights.may_on_cluster(AclOperation.DESCRIBE, silently=True):
        return None

    def complete(answer: m.ListGroupsResponse) -> m.ListGroupsResponse:
        ids = [group.group_id for group in answer.groups]
        hidden = rights.denied(AclOperation.DESCRIBE, AclResource.GROUP, ids, silently=True)
        answer.groups = [group for group in answer.groups if group.group_id not in hidden]
        return answer

    return Admitted(request.body, complete)


# ----------------------------------------------------------------------------------- deletion


def _delete(_broker: Broker, request: Request, rights: Rights) -> Result:
    """DELETE on each group."""
    names = list(dict.fromkeys(request.body.groups_names))
    denied = rights.denied(AclOperation.DELETE, AclResource.GROUP, names)
    if not denied:
        return None
    row = m.DeleteGroupsResponse.DeletableGroupResult

    def complete(answer: m.DeleteGroupsResponse) -> m.DeleteGroupsResponse:
        answer.results += [row(name, _GROUP_DENIED) for name in names if name in denied]
        return answer

    rest = [name for name in names if name not in denied]
    return Admitted(m.DeleteGroupsRequest(groups_names=rest), complete)


_read_group: Final = on_group(AclOperation.READ)
_read_topics: Final = on_topics(AclOperation.READ)
describe_modern: Final = _describe("group_ids", _hide_assigned)
"""The guard of ConsumerGroupDescribe and ShareGroupDescribe."""

GUARDS: Final[Mapping[int, Guard]] = {
    ApiKey.CONSUMER_GROUP_DESCRIBE: _if_enabled(GROUP_VERSION, describe_modern),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: _if_enabled(GROUP_VERSION, join_modern),
    ApiKey.DELETE_GROUPS: _delete,
    ApiKey.DESCRIBE_GROUPS: _describe("groups", _hide_nothing),
    ApiKey.FIND_COORDINATOR: _find_coordinator,
    ApiKey.HEARTBEAT: _read_group,
    ApiKey.JOIN_GROUP: _join,
    ApiKey.LEAVE_GROUP: _read_group,
    ApiKey.LIST_GROUPS: _list,
    ApiKey.OFFSET_COMMIT: after(_read_group, _commit),
    ApiKey.OFFSET_DELETE: after(on_group(AclOperation.DELETE), _read_topics),
    ApiKey.OFFSET_FETCH: offset_fetch,
    ApiKey.STREAMS_GROUP_DESCRIBE: _if_enabled(
        STREAMS_VERSION, _describe("group_ids", _hide_topology)
    ),
    ApiKey.STREAMS_GROUP_HEARTBEAT: _if_enabled(STREAMS_VERSION, _join_streams),
    ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE: _if_enabled(STREAMS_VERSION, _read_group),
    ApiKey.SYNC_GROUP: _sync,
}
