"""The keys under `security:` of topology files.

Owns: these Structs, as keys.py has those of the other keys.  Never: checks what several keys decide
together (user_checks.py and acl_checks.py do).
Kafka: server.properties, kafka-configs.sh --add-config SCRAM-SHA-256=[…].
"""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Struct, field

from kcluster.config.files.fields import (
    Flag,
    Later,
    ListOf,
    Milliseconds,
    OneOf,
    Schema,
    Text,
    struct_schema,
)
from kcluster.config.files.reading import TreeReader, kind
from kcluster.config.files.tree import Node, Scalar
from kcluster.config.topology.acl_keys import AclKeys, principal_of
from kcluster.security.sasl.mechanisms import PASSWORD_MECHANISMS

AUTO: Final = "auto"
MAX_HANDSHAKE_MS: Final = 10_000
CLIENT_AUTH: Final = ("none", "requested", "required")


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


class TlsKeys(Struct, frozen=True):
    """TLS of the brokers' listeners.  Without a keystore, certificates are made."""

    client_auth: Annotated[
        str | None,
        OneOf("ssl.client.auth", CLIENT_AUTH),
        "Whether clients show a certificate (ssl.client.auth); it names them to the authorizer.",
    ] = None
    files: Annotated[
        str | None,
        Text("path of a directory"),
        "Where the certificates for clients are written, to stay; without it, a temporary"
        " directory.",
    ] = None
    keystore: Annotated[
        str | None,
        Text("path of a file"),
        "The brokers' key and certificate, as .pem, .p12 or .jks (ssl.keystore.location).",
    ] = None
    keystore_password: Annotated[str | None, Text(), "Its password (ssl.keystore.password)."] = None
    key_password: Annotated[
        str | None, Text(), "The password of the key in it (ssl.key.password)."
    ] = None
    truststore: Annotated[
        str | None,
        Text("path of a file"),
        "The CAs of clients' certificates (ssl.truststore.location).",
    ] = None
    truststore_password: Annotated[
        str | None, Text(), "Its password (ssl.truststore.password)."
    ] = None
    handshake_cpu: Annotated[
        float,
        Milliseconds(MAX_HANDSHAKE_MS),
        "In virtual time: how long one handshake keeps a network thread of a broker busy"
        " (num.network.threads).  A live broker computes it, in about 0.5 ms.",
    ] = field(default=0, name="handshake_cpu_ms")


def _tls() -> Schema:
    return {"anyOf": [{"const": AUTO}, struct_schema(TlsKeys)]}


class SecurityKeys(Struct, frozen=True, kw_only=True):
    """Who may come in, and who may do what."""

    tls: Annotated[
        Node | None,
        Later("auto, or a mapping such as {client_auth: required}", _tls),
        "auto: a CA, a certificate per broker, and files for clients are made.",
    ] = None
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


def security_schema() -> Schema:
    """The schema of `security`."""
    return struct_schema(SecurityKeys)
