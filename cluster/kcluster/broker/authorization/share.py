"""The guards of share groups, and of the states of share partitions.

Owns: these guards.  Never: guards the topics of ShareFetch and ShareAcknowledge, whose sessions
keep denied topics (share/share_fetch.py, share_acknowledge.py).
Kafka: KafkaApis.handleShareFetchRequest and the others; KIP-932.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from kcluster.broker.authorization.group_offsets import describe_share_offsets
from kcluster.broker.authorization.groups import describe_modern, join_modern
from kcluster.broker.authorization.guards import Guard, Result, after, call_of, on_group
from kcluster.broker.broker import Broker
from kcluster.contract import Request
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.features import SHARE_VERSION
from kcluster.protocol.messages import Message
from kcluster.security.acls import AclOperation, AclResource
from kcluster.security.refusals import with_text
from kcluster.security.rights import Admitted, Rights


def _if_enabled(guard: Guard) -> Guard:
    """Check nothing while the feature share.version is off: the handler refuses the request for
    that."""

    def checked(broker: Broker, request: Request, rights: Rights) -> Result:
        return guard(broker, request, rights) if broker.image.supports(SHARE_VERSION) else None

    return checked


def _texted(guard: Guard) -> Guard:
    """A guard whose refusals have Kafka's message."""

    def checked(broker: Broker, request: Request, rights: Rights) -> Result:
        result = guard(broker, request, rights)
        return with_text(result) if isinstance(result, Message) else result

    return checked


def _read_topics(broker: Broker, request: Request, rights: Rights) -> Result:
    """READ on each topic; denied ones have Kafka's message."""
    call = call_of(broker, request)
    denied = rights.denied(AclOperation.READ, AclResource.TOPIC, call.topics)
    return call.refused_topics(denied, with_text)


def _delete_offsets(broker: Broker, request: Request, rights: Rights) -> Result:
    """DELETE on the group, and READ on each topic.  An error of the group is the whole answer."""
    refused = _delete_group(broker, request, rights)
    if refused is not None:
        return refused
    body: m.DeleteShareGroupOffsetsRequest = request.body
    names = [topic.topic_name for topic in body.topics]
    denied = rights.denied(AclOperation.READ, AclResource.TOPIC, names)
    if not denied:
        return None
    row = m.DeleteShareGroupOffsetsResponse.DeleteShareGroupOffsetsResponseTopic
    error = ErrorCode.TOPIC_AUTHORIZATION_FAILED

    def complete(answer: m.DeleteShareGroupOffsetsResponse) -> m.DeleteShareGroupOffsetsResponse:
        if not answer.error_code:
            answer.responses += [
                with_text(row(topic_name=name, error_code=error))
                for name in names
                if name in denied
            ]
        return answer

    topics = [topic for topic in body.topics if topic.topic_name not in denied]
    return Admitted(replace(body, topics=topics), complete)


def _state(broker: Broker, request: Request, rights: Rights) -> Result:
    """CLUSTER_ACTION on the cluster: brokers send these."""
    if rights.may_on_cluster(AclOperation.CLUSTER_ACTION):
        return None
    return with_text(call_of(broker, request).refused(ErrorCode.CLUSTER_AUTHORIZATION_FAILED))


_delete_group: Final = _texted(on_group(AclOperation.DELETE))

GUARDS: Final[Mapping[int, Guard]] = {
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: _if_enabled(
        _texted(after(on_group(AclOperation.READ), _read_topics))
    ),
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: _if_enabled(_delete_offsets),
    ApiKey.DELETE_SHARE_GROUP_STATE: _state,
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: _if_enabled(describe_share_offsets),
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: _state,
    ApiKey.READ_SHARE_GROUP_STATE: _state,
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: _state,
    ApiKey.SHARE_ACKNOWLEDGE: _if_enabled(on_group(AclOperation.READ)),
    ApiKey.SHARE_FETCH: _if_enabled(on_group(AclOperation.READ)),
    ApiKey.SHARE_GROUP_DESCRIBE: _if_enabled(describe_modern),
    ApiKey.SHARE_GROUP_HEARTBEAT: _if_enabled(join_modern),
    ApiKey.WRITE_SHARE_GROUP_STATE: _state,
}
