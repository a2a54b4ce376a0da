"""The guards of share groups, and of the states of share partitions.

Owns: these guards.  Never: guards the topics of ShareFetch and ShareAcknowledge, whose sessions
keep denied topics (share/share_fetch.py, share_acknowledge.py).
Kafka: KafkaApis.handleShareFetchRequest and the others; KIP-932.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kcluster.broker.authorization.group_offsets import describe_share_offsets
from kcluster.broker.authorization.groups import describe_modern, join_modern
from kcluster.broker.authorization.guards import Guard, Result, after, call_of, on_group
from kcluster.broker.broker import Broker
from kcluster.contract import Request
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.features import SHARE_VERSION
from kcluster.protocol.messages import Message
from kcluster.security.acls import AclOperation, AclResource
from kcluster.security.refusals import with_text
from kcluster.security.rights import Rights


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


def _state(broker: Broker, request: Request, rights: Rights) -> Result:
    """CLUSTER_ACTION on the cluster: brokers send these."""
    if rights.may_on_cluster(AclOperation.CLUSTER_ACTION):
        return None
    return with_text(call_of(broker, request).refused(ErrorCode.CLUSTER_AUTHORIZATION_FAILED))


GUARDS: Final[Mapping[int, Guard]] = {
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: _if_enabled(
        _texted(after(on_group(AclOperation.READ), _read_topics))
    ),
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: _if_enabled(
        _texted(after(on_group(AclOperation.DELETE), _read_topics))
    ),
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
