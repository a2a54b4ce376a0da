"""The keys of a topology's `security`: the values, default and meaning of each.

Owns: these Structs.  Never: checks what several keys decide together (security_checks.py does).
Kafka: the security configs of server.properties.
"""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Struct

from kcluster.config.files.fields import Later, OneOf, Schema, Text, struct_schema
from kcluster.config.files.tree import Node

AUTO: Final = "auto"
CLIENT_AUTH: Final = ("none", "requested", "required")


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


def _tls() -> Schema:
    return {"anyOf": [{"const": AUTO}, struct_schema(TlsKeys)]}


class SecurityKeys(Struct, frozen=True, kw_only=True):
    """Who may connect, and how."""

    tls: Annotated[
        Node | None,
        Later("auto, or a mapping such as {client_auth: required}", _tls),
        "auto: a CA, a certificate per broker, and files for clients are made.",
    ] = None


def security_schema() -> Schema:
    """The schema of `security`."""
    return struct_schema(SecurityKeys)
