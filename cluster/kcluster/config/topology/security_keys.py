"""The keys under `security:` of topology files.

Owns: these Structs, as keys.py has those of the other keys.  Never: checks what several keys decide
together (user_checks.py does).
Kafka: server.properties, kafka-configs.sh --add-config SCRAM-SHA-256=[…].
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct

from kcluster.config.files.fields import Later, ListOf, OneOf, Schema, struct_schema
from kcluster.config.files.reading import TreeReader, kind
from kcluster.config.files.tree import Node, Scalar
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


class SecurityKeys(Struct, frozen=True, kw_only=True):
    """Who may come in, and who may do what."""

    users: Annotated[
        Node | None,
        Later("mapping such as {alice: alice-secret}", _users),
        "Users of SASL listeners by name, each with its password: for PLAIN in the configs of the"
        " brokers, for SCRAM in the metadata.",
    ] = None
