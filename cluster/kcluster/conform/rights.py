"""Rights: ACLs in short form, and the roles that send each request.

Owns: the bodies of these ACLs, ROLES, OWN_ROLES, which part of an outcome is of which roles,
creating ACLs until every broker knows them.  Never: logs in (logins.py does), knows a case.

A role is a user with one right, to everything whose name begins as the names of this run do.  So
one request, sent by each role, shows which rights it needs, in which order they are checked, and
what a client without them sees.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from kcluster.conform.filling import CaseError, Values
from kcluster.conform.probes import Asker
from kcluster.json_types import JsonObject
from kcluster.protocol import messages as m
from kcluster.protocol.errors import error_of
from kcluster.security.acls import (
    CLUSTER_NAME,
    OPERATIONS,
    AclOperation,
    AclPermission,
    AclResource,
    PatternType,
)

Right = Mapping[str, object]
"""A creation of CreateAcls; without a principal, it is for the user who is given the right."""

NOBODY: Final = "nobody"
"""The role without rights."""
_TRIES: Final = 400


def allow(operation: str, host: str = "*", **resource: str | bool) -> Right:
    """`allow("read", topic="{topic}")`: a name that ends with `*` is a prefix, and `*` alone is any
    name; `cluster=True`."""
    return _right(AclPermission.ALLOW, operation, host, resource)


def deny(operation: str, host: str = "*", **resource: str | bool) -> Right:
    """As `allow`."""
    return _right(AclPermission.DENY, operation, host, resource)


def _right(
    permission: AclPermission, operation: str, host: str, resource: Mapping[str, str | bool]
) -> Right:
    ((kind, name),) = resource.items()
    text = CLUSTER_NAME if name is True else str(name)
    is_prefix = text != "*" and text.endswith("*")
    return {
        "resource_type": AclResource(kind).code,
        "resource_name": text[:-1] if is_prefix else text,
        "resource_pattern_type": (PatternType.PREFIXED if is_prefix else PatternType.LITERAL).code,
        "host": host,
        "operation": AclOperation(operation).code,
        "permission_type": permission.code,
    }


def _on(kind: AclResource) -> str | bool:
    if kind is AclResource.CLUSTER:
        return True
    has_other_names = kind in (AclResource.USER, AclResource.DELEGATION_TOKEN)
    return "*" if has_other_names else "{tag}.*"


def _roles() -> dict[str, tuple[Right, ...]]:
    found: dict[str, tuple[Right, ...]] = {NOBODY: ()}
    for kind, operations in OPERATIONS.items():
        for operation in (*operations, AclOperation.ALL):
            found[f"{operation} {kind}"] = (
                _right(AclPermission.ALLOW, operation, "*", {kind: _on(kind)}),
            )
    return found


ROLES: Final[Mapping[str, tuple[Right, ...]]] = _roles()
"""Name -> rights.  The first has none; then one for each operation on each type of resource."""
_OF_OWN_NAMES: Final = frozenset(
    kind.code for kind in (AclResource.TOPIC, AclResource.GROUP, AclResource.TRANSACTIONAL_ID)
)
OWN_ROLES: Final[Mapping[str, tuple[Right, ...]]] = {
    role: rights
    for role, rights in ROLES.items()
    if all(right["resource_type"] in _OF_OWN_NAMES for right in rights)
}
"""Those without a right to the cluster itself, to its users, or to tokens of others."""
ANSWER: Final = "answer"
"""The key of an outcome with what the role without rights gets, and all roles that get the same."""


def by_roles(answers: Mapping[str, object]) -> JsonObject:
    """The outcome of a request that each role sent: each different answer once, by its roles."""
    by_text: dict[str, tuple[object, list[str]]] = {}
    for role, answer in answers.items():
        by_text.setdefault(repr(answer), (answer, []))[1].append(role)
    return {
        ANSWER if NOBODY in roles else ", ".join(roles): answer
        for answer, roles in by_text.values()
    }


def of_own_roles(outcome: object) -> object:
    """An outcome as OWN_ROLES alone get it, if it is of `by_roles`, with what else is in it."""
    if not isinstance(outcome, dict):
        return outcome
    found: JsonObject = {}
    for key, value in outcome.items():
        roles = key.split(", ")
        if roles[0] in ROLES:
            roles = [role for role in roles if role in OWN_ROLES]
        if roles:
            found[", ".join(roles)] = value
    return found


def create_acls(runner: Asker, rights: Mapping[str, Iterable[Right]], values: Values) -> None:
    """Give users rights; returns when every broker knows them."""
    creations = [
        {"principal": f"User:{user}", **right} for user, each in rights.items() for right in each
    ]
    if not creations:
        return
    answer = runner.message(m.CreateAclsResponse, {"creations": creations}, 1, values)
    for row in answer.results:
        if row.error_code:
            raise CaseError(f"CreateAcls got {error_of(row.error_code).name}")
    wanted: dict[str, set[str]] = {}
    for one in creations:
        names = wanted.setdefault(str(one["principal"]), set())
        names.add(str(values.fill(one["resource_name"])))
    for principal, names in wanted.items():
        for broker in runner.system.addresses:
            _wait_until_known(runner, broker, principal, names, values)


def delete_acls(runner: Asker, user: str, values: Values) -> None:
    """Take every right from a user."""
    wanted = {"filters": [acl_filter(f"User:{user}")]}
    runner.message(m.DeleteAclsResponse, wanted, 1, values)


def acl_filter(principal: str | None) -> JsonObject:
    """The ACLs of a principal; None: of all."""
    any_code = AclOperation.ANY.code
    return {
        "resource_type_filter": any_code,
        "resource_name_filter": None,
        "pattern_type_filter": any_code,
        "principal_filter": principal,
        "host_filter": None,
        "operation": any_code,
        "permission_type": any_code,
    }


def _wait_until_known(
    runner: Asker, broker: int, principal: str, names: set[str], values: Values
) -> None:
    for _ in range(_TRIES):
        found = runner.message(m.DescribeAclsResponse, acl_filter(principal), broker, values)
        if names <= {resource.resource_name for resource in found.resources}:
            return
        runner.system.sleep_ms(5)
    raise CaseError(f"broker {broker} does not know the ACLs of {principal}")
