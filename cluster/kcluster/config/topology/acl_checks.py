"""Checks the authorization of a topology: from a tree (tree.py) to an AuthorizationSpec.

Owns: the rules for several keys together.  Never: raises; records every problem.
Kafka: StandardAuthorizer.configure, AclControlManager.validateNewAcl.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Final

from kcluster.config.files.fields import read_struct
from kcluster.config.files.problems import join
from kcluster.config.files.reading import TreeReader
from kcluster.config.files.tree import Map, Node
from kcluster.config.topology.acl_keys import AclKeys
from kcluster.config.topology.specs import AuthorizationSpec
from kcluster.security.acls import (
    CLUSTER_NAME,
    OPERATIONS,
    WILDCARD,
    Acl,
    AclOperation,
    AclPermission,
    AclResource,
    PatternType,
)

_RESOURCES: Final = (
    AclResource.TOPIC, AclResource.GROUP, AclResource.TRANSACTIONAL_ID, AclResource.CLUSTER,
    AclResource.USER, AclResource.DELEGATION_TOKEN,
)  # fmt: skip
_ONE_OF: Final = "topic, group, transactional_id or cluster"


def check_authorization(
    reading: TreeReader,
    path: str,
    super_users: tuple[str, ...],
    wanted: bool | None,
    node: Node | None,
) -> AuthorizationSpec:
    """The authorization under `security`: super_users, authorizer (`wanted`), acls (`node`)."""
    acls = () if node is None else tuple(_read_acls(reading, node, join(path, "acls")))
    if wanted is False and node is not None:
        text = "needs an authorizer; remove `authorizer: false`"
        reading.wrong(node, join(path, "acls"), text)
    is_enabled = bool(super_users or acls) if wanted is None else wanted
    return AuthorizationSpec(is_enabled, super_users, tuple(dict.fromkeys(acls)))


def _read_acls(reading: TreeReader, node: Node, path: str) -> Iterator[Acl]:
    for index, item in enumerate(reading.items(node, path, "ACLs")):
        at = join(path, index)
        keys = read_struct(reading, item, at, AclKeys, "key of an ACL")
        if keys is not None:
            yield from _read_acl(reading, item, at, keys)


def _read_acl(reading: TreeReader, node: Node, path: str, keys: AclKeys) -> Iterator[Acl]:
    problem = acl_problem(keys)
    if problem is None:
        yield from acls_of(keys)
        return
    key, text = problem
    at = node.entries[key].value if key and isinstance(node, Map) else node
    reading.wrong(at, join(path, key) if key else path, text)


def acl_problem(keys: AclKeys) -> tuple[str, str] | None:
    """How the keys of an ACL contradict each other: the key at fault, "" for all of them, and the
    reason."""
    if keys.allow and keys.deny:
        return "", "says both allow and deny; write an ACL for each"
    if not (keys.allow or keys.deny):
        return "", "it needs allow, or deny"
    kinds = _kinds(keys)
    if not kinds:
        return "", f"names no resource: {_ONE_OF}"
    for kind in kinds:
        for operation in map(AclOperation, keys.to):
            if operation not in (AclOperation.ALL, *OPERATIONS[kind]):
                known = ", ".join(OPERATIONS[kind])
                name = kind.replace("_", " ")
                return "to", f"{operation} does not apply to a {name}, which knows {known}, all"
    return None


def acls_of(keys: AclKeys) -> Iterator[Acl]:
    """The ACLs that these keys stand for; they have no problem."""
    permission = AclPermission.ALLOW if keys.allow else AclPermission.DENY
    principals, hosts = keys.allow or keys.deny or (), keys.hosts or (WILDCARD,)
    for kind in _kinds(keys):
        names = (CLUSTER_NAME,) if kind is AclResource.CLUSTER else getattr(keys, kind)
        operations = map(AclOperation, keys.to)
        for principal, operation, name, host in product(principals, operations, names, hosts):
            is_prefix = name != WILDCARD and name.endswith(WILDCARD)
            yield Acl(
                kind,
                name.removesuffix(WILDCARD) if is_prefix else name,
                PatternType.PREFIXED if is_prefix else PatternType.LITERAL,
                principal,
                host,
                operation,
                permission,
            )


def _kinds(keys: AclKeys) -> list[AclResource]:
    """The kinds of resources that an ACL names."""
    return [each for each in _RESOURCES if getattr(keys, each)]
