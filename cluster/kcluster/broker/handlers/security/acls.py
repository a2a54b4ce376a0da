"""DescribeAcls, CreateAcls, DeleteAcls (APIs 29, 30, 31, v1-3).

Owns: the description of ACLs, from the image; the refusal of all three without an authorizer.
Never: checks or stores an ACL (controller/security/acls.py does).
Kafka: AclApis, ControllerApis, {Describe,Create,Delete}AclsRequest; KIP-140, KIP-290.
Behaviour:
- SECURITY_DISABLED without authorizer.class.name;
- an UNKNOWN type, operation or permission (code 0) makes a request invalid for Kafka: the
  connection is closed.
Versions:
- v1: pattern types (KIP-290)
- v3: the resource type USER (KIP-373)
"""

from __future__ import annotations

from typing import Final

from kcluster.broker.broker import Broker
from kcluster.broker.handlers.forwarding import forward
from kcluster.broker.registry import NO_RESPONSE, Answer, NoResponse, handles
from kcluster.contract import CloseConnection, Request
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from kcluster.security.acls import Acl, filter_of

UNKNOWN: Final = 0
"""Code 0 in ResourceType, PatternType, AclOperation and AclPermissionType."""

_ON_THE_BROKER: Final = "No Authorizer is configured on the broker"
_ON_THE_CONTROLLER: Final = "No Authorizer is configured."


@handles(ApiKey.DESCRIBE_ACLS, versions=(1, 3))
def describe_acls(
    broker: Broker, request: Request, now_ms: int
) -> m.DescribeAclsResponse | NoResponse:
    """The ACLs that a filter finds, by resource, from this broker's image.

    Behaviour:
    - a code of a later version finds nothing.
    """
    body: m.DescribeAclsRequest = request.body
    if _is_unknown_filter(body):
        return _close(broker, request)
    if broker.access is None:
        return m.DescribeAclsResponse(
            error_code=ErrorCode.SECURITY_DISABLED, error_message=_ON_THE_BROKER
        )
    return m.DescribeAclsResponse(
        resources=_by_resource(broker.image.acls.found_by(filter_of(body)))
    )


def _by_resource(acls: list[Acl]) -> list[m.DescribeAclsResponse.DescribeAclsResource]:
    # DIFFERS: in Kafka's order of ACLs; its answers are in the order of hash maps.
    answer = m.DescribeAclsResponse
    resources: dict[tuple[int, str, int], m.DescribeAclsResponse.DescribeAclsResource] = {}
    for acl in acls:
        pattern = acl.resource_type.code, acl.resource_name, acl.pattern_type.code
        resource = resources.get(pattern)
        if resource is None:
            resource = resources[pattern] = answer.DescribeAclsResource(*pattern, [])
        resource.acls.append(
            answer.AclDescription(acl.principal, acl.host, acl.operation.code, acl.permission.code)
        )
    return list(resources.values())


@handles(ApiKey.CREATE_ACLS, versions=(1, 3))
def create_acls(broker: Broker, request: Request, now_ms: int) -> Answer:
    """Create ACLs.

    Behaviour:
    - as the controller answers; REQUEST_TIMED_OUT for each creation after request.timeout.ms;
    - without an authorizer, the creations are not checked.
    """
    for wanted in request.body.creations:
        if UNKNOWN in (
            wanted.resource_type,
            wanted.resource_pattern_type,
            wanted.operation,
            wanted.permission_type,
        ):
            return _close(broker, request)
    if broker.access is None:
        return _not_created(request.body, ErrorCode.SECURITY_DISABLED, _ON_THE_CONTROLLER)
    return forward(broker, request, broker.config.request_timeout_ms, create_timed_out, now_ms)


@handles(ApiKey.DELETE_ACLS, versions=(1, 3))
def delete_acls(broker: Broker, request: Request, now_ms: int) -> Answer:
    """Delete the ACLs that filters find.

    Behaviour:
    - as the controller answers; REQUEST_TIMED_OUT for each filter after request.timeout.ms.
    """
    if any(map(_is_unknown_filter, request.body.filters)):
        return _close(broker, request)
    if broker.access is None:
        return _not_deleted(request.body, ErrorCode.SECURITY_DISABLED, _ON_THE_CONTROLLER)
    return forward(broker, request, broker.config.request_timeout_ms, delete_timed_out, now_ms)


def create_timed_out(request: m.CreateAclsRequest) -> m.CreateAclsResponse:
    """REQUEST_TIMED_OUT for each creation."""
    error = ErrorCode.REQUEST_TIMED_OUT
    return _not_created(request, error, error.text)


def delete_timed_out(request: m.DeleteAclsRequest) -> m.DeleteAclsResponse:
    """REQUEST_TIMED_OUT for each filter."""
    error = ErrorCode.REQUEST_TIMED_OUT
    return _not_deleted(request, error, error.text)


def _not_created(request: m.CreateAclsRequest, error: ErrorCode, text: str) -> m.CreateAclsResponse:
    result = m.CreateAclsResponse.AclCreationResult
    return m.CreateAclsResponse(results=[result(error, text) for _ in request.creations])


def _not_deleted(request: m.DeleteAclsRequest, error: ErrorCode, text: str) -> m.DeleteAclsResponse:
    result = m.DeleteAclsResponse.DeleteAclsFilterResult
    return m.DeleteAclsResponse(filter_results=[result(error, text) for _ in request.filters])


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
