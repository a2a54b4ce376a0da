"""The rights of the clients whose requests brokers forward to the controller, by its own image.

Owns: the guard of each request, in Kafka's order with Kafka's errors.  Never: checks a request that
a broker makes for itself (it has no Envelope), or anything but rights.
Kafka: ControllerApis, AuthHelper.

A guard refuses the whole request (RequestDenied), or removes what is denied and adds the errors to
the answer, or lets it pass.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from msgspec.structs import replace

from kcluster.contract import CONTROLLER_ID
from kcluster.controller.ports import MetadataPort
from kcluster.controller.registry import Handler
from kcluster.events.security import denied_event
from kcluster.metadata.image import MetadataImage
from kcluster.metadata.records import GROUP_RESOURCE, TOPIC_RESOURCE, Envelope, RequestDenied
from kcluster.principals import MAX_SHOWN_CHARS
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.messages import Message
from kcluster.protocol.names import CLUSTER_METADATA_TOPIC
from kcluster.security.acls import AclOperation, AclResource
from kcluster.security.authorizer import Requester, StandardAuthorizer
from kcluster.security.denials import DenialCounts
from kcluster.security.refusals import DENIED
from kcluster.security.rights import Admitted, Denial, Rights

if TYPE_CHECKING:
    _AlterRequest = m.AlterConfigsRequest | m.IncrementalAlterConfigsRequest

_Result = RequestDenied | Admitted | None
_Guard = Callable[..., _Result]


class _Named(Protocol):
    name: str


N = TypeVar("N", bound=_Named)

_ZERO_ID: Final = bytes(16)
_TOPIC_DENIED: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED


class ControllerAuthorization:
    """The authorizer of the controller."""

    def __init__(self, metadata: MetadataPort, authorizer: StandardAuthorizer) -> None:
        self._metadata = metadata
        self._authorizer = authorizer
        self._denials = DenialCounts()

    def on_acls_changed(self) -> None:
        """Note denials again, because a right may have been given and taken away."""
        self._denials.clear()

    def answer(self, envelope: Envelope, handler: Handler, now_ms: int) -> object:
        """The handler's answer to what the client may ask, with errors for the rest."""
        metadata = self._metadata
        client_id = envelope.client_id[:MAX_SHOWN_CHARS]
        requester = Requester(envelope.identity.principal, envelope.client_host, client_id)
        rights = Rights(self._authorizer, metadata.image.acls, requester, self._note)
        guard = GUARDS[type(envelope.body).__name__]
        result = guard(metadata.image, envelope.body, rights)
        if result is None:
            return handler(envelope.body, now_ms)
        if isinstance(result, RequestDenied):
            return result
        return result.complete(handler(result.body, now_ms))

    def _note(self, denial: Denial) -> None:
        times = self._denials.count(denial)
        if times:
            offset = self._metadata.image.offset
            self._metadata.note(denied_event(denial, CONTROLLER_ID, offset, times))


# ------------------------------------------------------------------------------------- guards


def _on_cluster(
    operation: AclOperation, _image: MetadataImage, _body: object, rights: Rights
) -> _Result:
    """Guard a request that is allowed or denied as a whole."""
    if rights.may_on_cluster(operation):
        return None
    return RequestDenied(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)


def _create_topics(_image: MetadataImage, body: m.CreateTopicsRequest, rights: Rights) -> _Result:
    """CREATE on the cluster or on each topic.  Without DESCRIBE_CONFIGS the answer does not have
    the new topic's configs."""
    names = _once(topic.name for topic in body.topics) - {CLUSTER_METADATA_TOPIC}
    denied: frozenset[str] = frozenset()
    if not rights.may_on_cluster(AclOperation.CREATE, silently=True):
        denied = rights.denied(AclOperation.CREATE, AclResource.TOPIC, sorted(names))
    hidden = rights.denied(
        AclOperation.DESCRIBE_CONFIGS, AclResource.TOPIC, names - denied, silently=True
    )
    if not denied and not hidden:
        return None
    result = m.CreateTopicsResponse.CreatableTopicResult

    def complete(answer: m.CreateTopicsResponse) -> m.CreateTopicsResponse:
        for row in answer.topics:
            if row.name in hidden and not row.error_code:
                row.topic_config_error_code = _TOPIC_DENIED
                row.num_partitions = row.replication_factor = -1
                row.configs = []
        answer.topics += [
            result(topic.name, error_code=_TOPIC_DENIED, error_message="Authorization failed.")
            for topic in body.topics
            if topic.name in denied
        ]
        return answer

    return Admitted(replace(body, topics=_others(body.topics, denied)), complete)


def _delete_topics(image: MetadataImage, body: m.DeleteTopicsRequest, rights: Rights) -> _Result:
    """DELETE on the cluster or on each topic.  Whoever may not DESCRIBE a topic does not learn
    whether it exists, or its name."""
    if rights.may_on_cluster(AclOperation.DELETE, silently=True):
        return None
    wanted: list[tuple[str | None, bytes]] = [(name, _ZERO_ID) for name in body.topic_names]
    wanted += [(topic.name, topic.topic_id) for topic in body.topics]
    times = Counter(wanted)
    refused: list[m.DeleteTopicsResponse.DeletableTopicResult] = []
    denied: set[tuple[str | None, bytes]] = set()
    for name, topic_id in times:
        if times[name, topic_id] > 1 or (name is None) == (topic_id == _ZERO_ID):
            continue  # refused for another reason
        known = image.topic_names.get(topic_id) if name is None else name
        if known is None or not (row := _undeletable(image, name, topic_id, known, rights)):
            continue
        denied.add((name, topic_id))
        refused.append(row)
    if not refused:
        return None

    def complete(answer: m.DeleteTopicsResponse) -> m.DeleteTopicsResponse:
        answer.responses += refused
        return answer

    rest = replace(
        body,
        topic_names=[name for name in body.topic_names if (name, _ZERO_ID) not in denied],
        topics=[topic for topic in body.topics if (topic.name, topic.topic_id) not in denied],
    )
    return Admitted(rest, complete)


def _undeletable(
    image: MetadataImage, name: str | None, topic_id: bytes, known: str, rights: Rights
) -> m.DeleteTopicsResponse.DeletableTopicResult | None:
    """The refusal to delete a topic that was given by name or by id; `known`: its name."""
    may_describe = rights.may(AclOperation.DESCRIBE, AclResource.TOPIC, known, silently=True)
    if name is not None and may_describe and known not in image.topics:
        return None  # unknown, and no secret
    if rights.may(AclOperation.DELETE, AclResource.TOPIC, known) and may_describe:
        return None
    return m.DeleteTopicsResponse.DeletableTopicResult(
        name=known if may_describe else name,
        topic_id=topic_id,
        error_code=_TOPIC_DENIED,
        error_message=DENIED[_TOPIC_DENIED],
    )


def _create_partitions(
    _image: MetadataImage, body: m.CreatePartitionsRequest, rights: Rights
) -> _Result:
    """ALTER on each topic."""
    names = _once(topic.name for topic in body.topics)
    denied = rights.denied(AclOperation.ALTER, AclResource.TOPIC, sorted(names))
    if not denied:
        return None
    result = m.CreatePartitionsResponse.CreatePartitionsTopicResult

    def complete(answer: m.CreatePartitionsResponse) -> m.CreatePartitionsResponse:
        answer.results += [
            result(name=topic.name, error_code=_TOPIC_DENIED, error_message=None)
            for topic in body.topics
            if topic.name in denied
        ]
        return answer

    return Admitted(replace(body, topics=_others(body.topics, denied)), complete)


_ALTERED: Final = {
    TOPIC_RESOURCE: (AclResource.TOPIC, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    GROUP_RESOURCE: (AclResource.GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
}


def _alter_configs(
    row: Callable[..., Message], _image: MetadataImage, body: _AlterRequest, rights: Rights
) -> _Result:
    """ALTER_CONFIGS on each topic and group, and on the cluster for brokers and client metrics."""
    rest, refused = [], []
    for resource in body.resources:
        kind = _ALTERED.get(resource.resource_type)
        if kind is None:
            error = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            is_allowed = rights.may_on_cluster(AclOperation.ALTER_CONFIGS)
        else:
            resource_type, error = kind
            is_allowed = rights.may(
                AclOperation.ALTER_CONFIGS, resource_type, resource.resource_name
            )
        if is_allowed:
            rest.append(resource)
            continue
        name = resource.resource_name
        refused.append(row(error, DENIED[error], resource.resource_type, name))
    if not refused:
        return None

    def complete(answer: Any) -> object:
        answer.responses += refused
        return answer

    return Admitted(replace(body, resources=rest), complete)


def _once(names: Iterable[str]) -> set[str]:
    """The names that occur once; the handlers refuse repeated ones."""
    return {name for name, times in Counter(names).items() if times == 1}


def _others(topics: Iterable[N], denied: frozenset[str]) -> list[N]:
    return [topic for topic in topics if topic.name not in denied]


_alter: Final = partial(_on_cluster, AclOperation.ALTER)
_describe: Final = partial(_on_cluster, AclOperation.DESCRIBE)

GUARDS: Final[Mapping[str, _Guard]] = {
    "AddRaftVoterRequest": _alter,
    "AlterClientQuotasRequest": partial(_on_cluster, AclOperation.ALTER_CONFIGS),
    "AlterConfigsRequest": partial(
        _alter_configs, lambda *fields: m.AlterConfigsResponse.AlterConfigsResourceResponse(*fields)
    ),
    "AlterPartitionReassignmentsRequest": _alter,
    "AlterUserScramCredentialsRequest": _alter,
    "CreateAclsRequest": _alter,
    "CreatePartitionsRequest": _create_partitions,
    "CreateTopicsRequest": _create_topics,
    "DeleteAclsRequest": _alter,
    "DeleteTopicsRequest": _delete_topics,
    "DescribeQuorumRequest": _describe,
    "ElectLeadersRequest": _alter,
    "IncrementalAlterConfigsRequest": partial(
        _alter_configs,
        lambda *fields: m.IncrementalAlterConfigsResponse.AlterConfigsResourceResponse(*fields),
    ),
    "ListPartitionReassignmentsRequest": _describe,
    "RemoveRaftVoterRequest": _alter,
    "UnregisterBrokerRequest": _alter,
    "UnregisterControllerRequest": _alter,
    "UpdateFeaturesRequest": _alter,
}
"""The guard of each request that brokers forward, by the name of its message."""
