"""The guards of what administrators ask of a broker: configs, quotas, ACLs, log directories.

Owns: these guards.  Never: guards what the controller answers, since it decides by its own image
(controller/security/authorization.py).
Kafka: KafkaApis, ConfigHelper, ConfigAdminManager, AclApis.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from msgspec.structs import replace

from kcluster.broker.authorization.guards import Guard, Result, on_cluster
from kcluster.broker.broker import Broker
from kcluster.broker.handlers.configs.alter_configs import BROKER_LOGGER_RESOURCE
from kcluster.contract import Request
from kcluster.metadata.records import (
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
)
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.messages import Message
from kcluster.security.acls import AclOperation, AclResource
from kcluster.security.refusals import DENIED, with_text
from kcluster.security.rights import Admitted, Rights

_CLUSTER_DENIED: Final = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
FIRST_TO_ASK_BEFORE_NAMES: Final = (4, 4)
"""The first version that asks for the right to alter brokers' configs before it looks which broker
the request names."""
_BY_CLUSTER: Final = (BROKER_RESOURCE, BROKER_LOGGER_RESOURCE, CLIENT_METRICS_RESOURCE)


def _describe_configs(_broker: Broker, request: Request, rights: Rights) -> Result:
    """DESCRIBE_CONFIGS on each topic and group, and on the cluster for everything else."""
    body: m.DescribeConfigsRequest = request.body
    rest, refused = [], []
    for resource in body.resources:
        error = _config_error(resource.resource_type, resource.resource_name, rights)
        if error is None:
            return None  # an unknown type fails the whole request
        if not error:
            rest.append(resource)
            continue
        refused.append(
            m.DescribeConfigsResponse.DescribeConfigsResult(
                error_code=error,
                error_message=DENIED[error],
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
        )
    if not refused:
        return None

    def complete(answer: m.DescribeConfigsResponse) -> m.DescribeConfigsResponse:
        answer.results += refused
        return answer

    return Admitted(replace(body, resources=rest), complete)


def _config_error(kind: int, name: str, rights: Rights) -> ErrorCode | None:
    if kind == TOPIC_RESOURCE:
        allowed = rights.may(AclOperation.DESCRIBE_CONFIGS, AclResource.TOPIC, name)
        return ErrorCode.NONE if allowed else ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if kind == GROUP_RESOURCE:
        allowed = rights.may(AclOperation.DESCRIBE_CONFIGS, AclResource.GROUP, name)
        return ErrorCode.NONE if allowed else ErrorCode.GROUP_AUTHORIZATION_FAILED
    if kind not in _BY_CLUSTER:
        return None
    allowed = rights.may_on_cluster(AclOperation.DESCRIBE_CONFIGS)
    return ErrorCode.NONE if allowed else _CLUSTER_DENIED


def _alter_configs(row: Callable[..., Message], kinds: Collection[int]) -> Guard:
    """The guard of both APIs that alter configs: ALTER_CONFIGS on the cluster for resources of
    `kinds`, which brokers alter.  The controller checks topics, groups and client metrics."""

    def guard(broker: Broker, request: Request, rights: Rights) -> Result:
        resources = request.body.resources
        is_old = broker.release.number < FIRST_TO_ASK_BEFORE_NAMES
        here = ("", str(broker.node_id))
        names = [(resource.resource_type, resource.resource_name) for resource in resources]
        times = Counter(names)
        # The handler refuses resources that are named twice.
        denied = [
            times[name] == 1
            and name[0] in kinds
            and not (is_old and name[0] == BROKER_RESOURCE and name[1] not in here)
            and not rights.may_on_cluster(AclOperation.ALTER_CONFIGS)
            for name in names
        ]
        if not any(denied):
            return None

        def refused(kind: int, name: str) -> Message:
            has_text = is_old and kind == BROKER_RESOURCE
            return row(_CLUSTER_DENIED, DENIED[_CLUSTER_DENIED] if has_text else None, kind, name)

        def complete(answer: Any) -> object:
            rows = iter(answer.responses)
            answer.responses = [
                refused(*name) if is_refused else next(rows)
                for name, is_refused in zip(names, denied, strict=True)
            ]
            return answer

        pairs = zip(resources, denied, strict=True)
        rest = [resource for resource, is_refused in pairs if not is_refused]
        return Admitted(replace(request.body, resources=rest), complete)

    return guard


def _describe_quotas(_broker: Broker, _request: Request, rights: Rights) -> Result:
    if rights.may_on_cluster(AclOperation.DESCRIBE_CONFIGS):
        return None
    return m.DescribeClientQuotasResponse(
        error_code=_CLUSTER_DENIED, error_message=None, entries=None
    )


def _describe_acls(_broker: Broker, _request: Request, rights: Rights) -> Result:
    if rights.may_on_cluster(AclOperation.DESCRIBE):
        return None
    return with_text(m.DescribeAclsResponse(error_code=_CLUSTER_DENIED))


def _describe_scram(_broker: Broker, request: Request, rights: Rights) -> Result:
    """DESCRIBE on the cluster.  As in Kafka, the answer has a nameless row for each user."""
    if rights.may_on_cluster(AclOperation.DESCRIBE):
        return None
    answer = m.DescribeUserScramCredentialsResponse
    row = answer.DescribeUserScramCredentialsResult
    return answer(
        error_code=_CLUSTER_DENIED,
        error_message=None,
        results=[
            row(error_code=_CLUSTER_DENIED, error_message=None) for _ in request.body.users or ()
        ],
    )


def _describe_log_dirs(_broker: Broker, _request: Request, rights: Rights) -> Result:
    if rights.may_on_cluster(AclOperation.DESCRIBE):
        return None
    return m.DescribeLogDirsResponse(error_code=_CLUSTER_DENIED)


GUARDS: Final[Mapping[int, Guard]] = {
    ApiKey.ALTER_CONFIGS: _alter_configs(
        lambda *fields: m.AlterConfigsResponse.AlterConfigsResourceResponse(*fields),
        (BROKER_RESOURCE,),  # loggers are refused to everyone
    ),
    ApiKey.ALTER_REPLICA_LOG_DIRS: on_cluster(AclOperation.ALTER),
    ApiKey.DESCRIBE_ACLS: _describe_acls,
    ApiKey.DESCRIBE_CLIENT_QUOTAS: _describe_quotas,
    ApiKey.DESCRIBE_CONFIGS: _describe_configs,
    ApiKey.DESCRIBE_LOG_DIRS: _describe_log_dirs,
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: _describe_scram,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: _alter_configs(
        lambda *fields: m.IncrementalAlterConfigsResponse.AlterConfigsResourceResponse(*fields),
        (BROKER_RESOURCE, BROKER_LOGGER_RESOURCE),
    ),
    ApiKey.LIST_CONFIG_RESOURCES: on_cluster(AclOperation.DESCRIBE_CONFIGS),
}
