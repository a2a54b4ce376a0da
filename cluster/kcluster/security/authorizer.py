"""Whether a client may do something: decided from the ACLs alone, with the reason.

Owns: the decision and its reason.  Never: knows a request (broker/authorization/ and
controller/security/ do), notes an event, or holds ACLs: each node passes those of its image.
Kafka: StandardAuthorizer, StandardAuthorizerData; Authorizer.authorizeByResourceType; KIP-801.

A denial is stronger than any permission, and without a permission everything is denied, unless no
ACL at all concerns the resource and `allow.everyone.if.no.acl.found` is set.  Super users may do
everything.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import Final

from msgspec import Struct

from kcluster.principals import Principal
from kcluster.security.acls import (
    OPERATIONS,
    WILDCARD,
    WILDCARD_PRINCIPAL,
    Acl,
    AclIndex,
    AclOperation,
    AclPermission,
    AclResource,
    PatternType,
    operation_bits,
)

IMPLIED_BY: Final = {
    AclOperation.DESCRIBE: frozenset(
        {
            AclOperation.DESCRIBE, AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE,
            AclOperation.ALTER,
        }
    ),
    AclOperation.DESCRIBE_CONFIGS: frozenset(
        {AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS}
    ),
}  # fmt: skip
"""The operations whose permission includes the operation that is the key.  A denial includes no
other."""

STANDARD_AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
"""The value of authorizer.class.name for this authorizer."""

_PROBE: Final = "hardcode"
"""A name that stands for any resource in authorizeByResourceType.  As in Kafka, it is a name like
any other: whoever may use the topic `hardcode` passes."""


class Grounds(IntEnum):
    """Why a decision was made."""

    SUPER_USER = 1
    ACL = 2
    """The ACL of the decision allows or denies it."""
    NO_ACL = 3
    """No ACL concerns the resource."""
    NO_PERMISSION = 4
    """ACLs concern the resource, but none allows the operation to this principal from this host."""


class AclDecision(Struct, frozen=True):
    """Whether an operation is allowed, and why."""

    is_allowed: bool
    grounds: Grounds
    acl: Acl | None = None


class Requester(Struct, frozen=True):
    """Who asks, and from which address.  `client_id`: the client's name, which decides nothing.
    Kafka: AuthorizableRequestContext."""

    principal: Principal
    host: str
    client_id: str = ""


_BY_SUPER_USER: Final = AclDecision(True, Grounds.SUPER_USER)
_NO_PERMISSION: Final = AclDecision(False, Grounds.NO_PERMISSION)


class StandardAuthorizer(Struct, frozen=True):
    """The settings of a node's authorizer.  `super_users`: principals, as `User:admin`."""

    super_users: frozenset[str] = frozenset()
    allows_without_acl: bool = False
    """allow.everyone.if.no.acl.found."""

    def authorize(
        self,
        acls: AclIndex,
        client: Requester,
        operation: AclOperation,
        resource_type: AclResource,
        name: str,
    ) -> AclDecision:
        """Decide about an operation on one resource."""
        principal = str(client.principal)
        if principal in self.super_users:
            return _BY_SUPER_USER
        permission: Acl | None = None
        is_concerned = False
        for acl in acls.concerning(resource_type, name):
            is_concerned = True
            if not (_is_about(acl, principal, client.host) and _covers(acl, operation)):
                continue
            if acl.permission is AclPermission.DENY:
                return AclDecision(False, Grounds.ACL, acl)
            permission = acl
        if permission is not None:
            return AclDecision(True, Grounds.ACL, permission)
        if is_concerned:
            return _NO_PERMISSION
        return AclDecision(self.allows_without_acl, Grounds.NO_ACL)

    def authorize_any(
        self, acls: AclIndex, client: Requester, operation: AclOperation, resource_type: AclResource
    ) -> bool:
        """Whether the operation is allowed on at least one resource of the type, whatever its
        name.  Kafka: authorizeByResourceType, for which no operation implies another."""
        if self.authorize(acls, client, operation, resource_type, _PROBE).is_allowed:
            return True
        principal = str(client.principal)
        allowed: list[Acl] = []
        denied: set[tuple[PatternType, str]] = set()
        for acl in acls.of_type(resource_type):
            if not _is_about(acl, principal, client.host):
                continue
            if acl.operation not in (operation, AclOperation.ALL):
                continue
            if acl.permission is AclPermission.DENY:
                denied.add((acl.pattern_type, acl.resource_name))
            else:
                allowed.append(acl)
        if (PatternType.LITERAL, WILDCARD) in denied:
            return False
        return any(not _is_overruled(acl, denied) for acl in allowed)

    def authorized_operations(
        self, acls: AclIndex, client: Requester, resource_type: AclResource, name: str
    ) -> int:
        """The operations that are allowed on a resource, as bits."""
        return operation_bits(
            tuple(
                operation
                for operation in OPERATIONS[resource_type]
                if self.authorize(acls, client, operation, resource_type, name).is_allowed
            )
        )


def authorizer_of(
    class_name: str, super_users: str, allows_without_acl: bool
) -> StandardAuthorizer | None:
    """The authorizer that a node's configs name; None if there is none, so that every client may do
    everything."""
    if not class_name:
        return None
    assert class_name == STANDARD_AUTHORIZER, class_name
    return StandardAuthorizer(super_users_of(super_users), allows_without_acl)


def super_users_of(text: str) -> frozenset[str]:
    """The principals that super.users lists: `User:admin;User:CN=a,OU=b`."""
    return frozenset(user for part in text.split(";") if (user := part.strip()))


def _is_about(acl: Acl, principal: str, host: str) -> bool:
    return acl.principal in (principal, WILDCARD_PRINCIPAL) and acl.host in (WILDCARD, host)


def _covers(acl: Acl, operation: AclOperation) -> bool:
    if acl.operation in (operation, AclOperation.ALL):
        return True
    if acl.permission is AclPermission.DENY:
        return False
    return acl.operation in IMPLIED_BY.get(operation, ())


def _is_overruled(allowed: Acl, denied: Iterable[tuple[PatternType, str]]) -> bool:
    """Whether denials cover all resources that an ACL allows."""
    name = allowed.resource_name
    if allowed.pattern_type is PatternType.LITERAL:
        if name == WILDCARD:
            return False
        if (PatternType.LITERAL, name) in denied:
            return True
    return any(
        pattern is PatternType.PREFIXED and name.startswith(prefix) for pattern, prefix in denied
    )
