"""The keys of a topology's ACLs: who may do what to which resource.

Owns: these Structs, and principals as people write them.  Never: checks what several keys decide
together (acl_checks.py does).
Kafka: kafka-acls.sh, super.users.
"""

from __future__ import annotations

import re
from typing import Annotated, Final

from msgspec import Struct, field

from kcluster.config.files.fields import Flag, ListOf, OneOf, Text
from kcluster.principals import USER_TYPE
from kcluster.security.acls import WILDCARD, AclOperation

ACL_OPERATIONS: Final = tuple(
    operation.value
    for operation in AclOperation
    if operation not in (AclOperation.UNKNOWN, AclOperation.ANY)
)

_ADDRESS: Final = re.compile(r"[0-9]{1,3}(\.[0-9]{1,3}){3}|[0-9a-fA-F.]*(:[0-9a-fA-F.]*){2,7}")


def principal_of(text: str) -> str:
    """A principal: `User:` may be left out."""
    prefix = f"{USER_TYPE}:"
    return text if text.startswith(prefix) else f"{prefix}{text}"


def host_of_acl(text: str) -> str:
    """The address of an ACL; ValueError for a host name, because brokers do not resolve names."""
    if text == WILDCARD or _ADDRESS.fullmatch(text):
        return text
    raise ValueError(f"{text} is no IP address, which is all that a broker sees")


_PRINCIPALS: Final = ListOf(Text("user", principal_of), "users")
_NAMES: Final = ListOf(Text("name"), "names")


class AclKeys(Struct, frozen=True, kw_only=True):
    """What users may or may not do to resources.  A name that ends with `*` is a prefix; `*` alone
    is any name."""

    allow: Annotated[tuple[str, ...] | None, _PRINCIPALS, "Users that may; `*` is everyone."] = None
    deny: Annotated[
        tuple[str, ...] | None, _PRINCIPALS, "Users that may not, whatever else allows it."
    ] = None
    to: Annotated[
        tuple[str, ...],
        ListOf(OneOf("operation", ACL_OPERATIONS), "operations"),
        "Kafka's operations: read, write, describe, all, ….",
    ]
    topic: Annotated[tuple[str, ...] | None, _NAMES, "Topics."] = None
    group: Annotated[tuple[str, ...] | None, _NAMES, "Groups."] = None
    transactional_id: Annotated[tuple[str, ...] | None, _NAMES, "Transactional ids."] = None
    cluster: Annotated[bool | None, Flag(), "The cluster as a whole."] = None
    user: Annotated[tuple[str, ...] | None, _NAMES, "Users, for their delegation tokens."] = None
    delegation_token: Annotated[tuple[str, ...] | None, _NAMES, "Delegation tokens."] = None
    hosts: Annotated[
        tuple[str, ...] | None,
        ListOf(Text("IP address", host_of_acl), "IP addresses"),
        "Clients' addresses; without it, all.",
    ] = field(default=None, name="from")
