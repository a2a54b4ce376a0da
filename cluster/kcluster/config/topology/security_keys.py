"""The keys under `security:` of topology files.

Owns: these Structs, as keys.py has those of the other keys.  Never: checks what several keys decide
together (user_checks.py and acl_checks.py do).
Kafka: server.properties, kafka-configs.sh --add-config SCRAM-SHA-256=[…].
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct

from kcluster.config.files.fields import Flag, Later, ListOf, OneOf, Schema, Text, struct_schema
from kcluster.config.files.reading import TreeReader, kind
from kcluster.config.files.tree import Node, Scalar
from kcluster.config.topology.acl_keys import AclKeys, principal_of
from kcluster.security.sasl.mechanisms import PASSWORD_MECHANISMS


class Password(Struct, frozen=True):
    """A password, which no message repeats."""

    def read(self, reading: TreeReader, node: Node, path: str) -> str | None:
        if not isinstance(node, Scalar):
            reading.wrong(node, path, f"{kind(node)}; a password is text")
        elif not node.text or not node.text.isprintable():
            reading.wrong(node, path, "a password is printable text, not empty")
        else:
            return node.text
        return None

    def schema(self) -> Schema:
        return {"type": ["string", "number"]}

    def form(self) -> str:
        return "password"


class UserKeys(Struct, frozen=True):
    """A user."""

    password: Annotated[str, Password(), "Its password."]
    mechanisms: Annotated[
        tuple[str, ...] | None,
        ListOf(OneOf("mechanism", PASSWORD_MECHANISMS), "mechanisms"),
        "The SASL mechanisms by which it logs in; without them, every enabled one that takes a"
        " password.",
    ] = None

    def __repr__(self) -> str:
        return "UserKeys(...)"


def _users() -> Schema:
    user = {"anyOf": [Password().schema(), struct_schema(UserKeys)]}
    return {"type": "object", "additionalProperties": user}


def _acls() -> Schema:
    return {"type": "array", "items": struct_schema(AclKeys)}


class SecurityKeys(Struct, frozen=True, kw_only=True):
    """Who may come in, and who may do what."""

    users: Annotated[
        Node | None,
        Later("mapping such as {alice: alice-secret}", _users),
        "Users of SASL listeners by name, each with its password: for PLAIN in the configs of the"
        " brokers, for SCRAM in the metadata.",
    ] = None
    super_users: Annotated[
        tuple[str, ...] | None,
        ListOf(Text("user", principal_of), "users"),
        "Users who may do everything (super.users); `User:` may be left out.",
    ] = None
    authorizer: Annotated[
        bool | None,
        Flag(),
        "Whether ACLs decide what users may do (authorizer.class.name: StandardAuthorizer); by"
        " itself with super_users or acls.",
    ] = None
    acls: Annotated[
        Node | None,
        Later("list such as [{allow: alice, to: read, topic: orders}]", _acls),
        "Who may do what in the new cluster; whatever no ACL allows is denied.",
    ] = None
