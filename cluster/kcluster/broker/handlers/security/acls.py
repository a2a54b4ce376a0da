"""DescribeAcls, CreateAcls, DeleteAcls (APIs 29, 30, 31, v1-3), as a broker without an authorizer
answers them.

Owns: the refusal of each.  Never: stores an ACL, since authorizer.class.name is not simulated.
Kafka: AclApis, ControllerApis, {Describe,Create,Delete}AclsRequest; KIP-140, KIP-290.
Behaviour:
- SECURITY_DISABLED for every request;
- an UNKNOWN type, operation or permission (code 0) makes a request invalid for Kafka: the
  connection is closed.
Versions:
- v1: pattern types (KIP-290)
- v3: the resource type USER (KIP-373)
"""

from __future__ import annotations

from typing import Final

from kcluster.broker.broker import Broker
from kcluster.broker.registry import NO_RESPONSE, NoResponse, handles
from kcluster.contract import CloseConnection, Request
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode

UNKNOWN: Final = 0
"""Code 0 in ResourceType, PatternType, AclOperation and AclPermissionType."""

_ON_THE_BROKER: Final = "No Authorizer is configured on the broker"
_ON_THE_CONTROLLER: Final = "No Authorizer is configured."


@handles(ApiKey.DESCRIBE_ACLS, versions=(1, 3))
def describe_acls(
    broker: Broker, request: Request, now_ms: int
) -> m.DescribeAclsResponse | NoResponse:
    """Refuse with SECURITY_DISABLED."""
    if _is_unknown_filter(request.body):
        return _close(broker, request)
    return m.DescribeAclsResponse(
        error_code=ErrorCode.SECURITY_DISABLED, error_message=_ON_THE_BROKER
    )


@handles(ApiKey.CREATE_ACLS, versions=(1, 3))
def create_acls(broker: Broker, request: Request, now_ms: int) -> m.CreateAclsResponse | NoResponse:
    """Refuse each creation with SECURITY_DISABLED; the creations are not checked."""
    for wanted in request.body.creations:
        if UNKNOWN in (
            wanted.resource_type,
            wanted.resource_pattern_type,
            wanted.operation,
            wanted.permission_type,
        ):
            return _close(broker, request)
    return m.CreateAclsResponse(
        results=[
            m.CreateAclsResponse.AclCreationResult(
                error_code=ErrorCode.SECURITY_DISABLED, error_message=_ON_THE_CONTROLLER
            )
            for _ in request.body.creations
        ]
    )


@handles(ApiKey.DELETE_ACLS, versions=(1, 3))
def delete_acls(broker: Broker, request: Request, now_ms: int) -> m.DeleteAclsResponse | NoResponse:
    """Refuse each filter with SECURITY_DISABLED."""
    if any(map(_is_unknown_filter, request.body.filters)):
        return _close(broker, request)
    return m.DeleteAclsResponse(
        filter_results=[
            m.DeleteAclsResponse.DeleteAclsFilterResult(
                error_code=ErrorCode.SECURITY_DISABLED, error_message=_ON_THE_CONTROLLER
            )
            for _ in request.body.filters
        ]
    )


def _is_unknown_filter(
    wanted: m.DescribeAclsRequest | m.DeleteAclsRequest.DeleteAclsFilter,
) -> bool:
    return UNKNOWN in (
        wanted.resource_type_filter,
        wanted.pattern_type_filter,
        wanted.operation,
        wanted.permission_type,
    )


def _close(broker: Broker, request: Request) -> NoResponse:
    reason = f"{ApiKey(request.api_key).name} with an unknown (0) type, operation or permission"
    broker.emit(CloseConnection(request.connection_id, reason))
    return NO_RESPONSE
