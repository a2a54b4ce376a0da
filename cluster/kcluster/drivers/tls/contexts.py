"""Contexts of a listener's TLS: versions, cipher suites, certificates, what is asked of clients.

Owns: the translation of Kafka's configs to OpenSSL.  Never: opens a keystore (credentials.py), does
a handshake (tls_socket.py).  Kafka: DefaultSslEngineFactory.createSSLContext, SslConfigs.

# DIFFERS: sessions are not resumed.  A handshake with a new certificate is always whole, and all
# handshakes have one length.
# DIFFERS: the suites of TLS 1.3 are all on, or all off: Python's ssl cannot choose among them.
"""

from __future__ import annotations

import os
import secrets
import ssl
import tempfile
from collections.abc import Sequence
from enum import StrEnum
from typing import Final

from cryptography import x509
from msgspec import Struct

from kcluster.drivers.tls.credentials import Credentials, certificates_pem

VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
"""The values of ssl.enabled.protocols that work here, the oldest first."""


class ClientAuth(StrEnum):
    """Values of ssl.client.auth."""

    NONE = "none"
    REQUESTED = "requested"
    REQUIRED = "required"


_MODES: Final = {
    ClientAuth.NONE: ssl.CERT_NONE,
    ClientAuth.REQUESTED: ssl.CERT_OPTIONAL,
    ClientAuth.REQUIRED: ssl.CERT_REQUIRED,
}


class TlsSettings(Struct, frozen=True):
    """A listener's configs that are not secrets.  Empty tuples: OpenSSL's defaults."""

    protocols: tuple[str, ...] = tuple(VERSIONS)
    """The value of ssl.enabled.protocols."""
    cipher_suites: tuple[str, ...] = ()
    """The value of ssl.cipher.suites, in Java's names."""
    client_auth: ClientAuth = ClientAuth.NONE
    """The value of ssl.client.auth."""


def server_context(
    settings: TlsSettings, credentials: Credentials, trusted: Sequence[x509.Certificate] | None
) -> ssl.SSLContext:
    """The context of a listener.  `trusted`: the CAs of clients' certificates; None: the
    machine's, as Java takes its own.  ValueError: no protocol or suite is left."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.num_tickets = 0
    context.options |= ssl.OP_NO_TICKET
    _set_versions(context, settings)
    context.verify_mode = _MODES[settings.client_auth]
    if trusted is not None:
        context.load_verify_locations(cadata=certificates_pem(trusted).decode())
    elif settings.client_auth is not ClientAuth.NONE:
        context.load_default_certs(ssl.Purpose.CLIENT_AUTH)
    load_credentials(context, credentials)
    return context


def _set_versions(context: ssl.SSLContext, settings: TlsSettings) -> None:
    versions = [VERSIONS[name] for name in VERSIONS if name in settings.protocols]
    if settings.cipher_suites:
        older = [openssl_name(suite) for suite in settings.cipher_suites if "_WITH_" in suite]
        newer = [suite for suite in settings.cipher_suites if "_WITH_" not in suite]
        if older:
            try:
                context.set_ciphers(":".join(older))
            except ssl.SSLError:
                raise ValueError("OpenSSL knows none of ssl.cipher.suites") from None
        unusable = {ssl.TLSVersion.TLSv1_2} if not older else set()
        unusable |= {ssl.TLSVersion.TLSv1_3} if not newer else set()
        versions = [version for version in versions if version not in unusable]
    if not versions:
        raise ValueError(
            "no version of TLS is left: ssl.enabled.protocols and ssl.cipher.suites must have"
            f" one in common ({', '.join(VERSIONS)} work here)"
        )
    context.minimum_version, context.maximum_version = versions[0], versions[-1]


def openssl_name(suite: str) -> str:
    """OpenSSL's name of a suite of TLS 1.2: `TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256` is
    `ECDHE-RSA-AES128-GCM-SHA256`."""
    exchange, _, cipher = suite.removeprefix("TLS_").partition("_WITH_")
    cipher = cipher.replace("AES_", "AES").replace("_CBC_", "_")
    cipher = cipher.replace("CHACHA20_POLY1305_SHA256", "CHACHA20_POLY1305")
    named = cipher if exchange == "RSA" else f"{exchange}_{cipher}"
    return named.replace("_", "-")


def load_credentials(context: ssl.SSLContext, credentials: Credentials) -> None:
    """Load a key by a file, which is the only way of Python's ssl.  The key in it is encrypted by
    a password that nobody else has, and only this user may read it."""
    password = secrets.token_hex(16)
    descriptor, path = tempfile.mkstemp(prefix="kcluster-", suffix=".pem")  # 0600
    try:
        with open(descriptor, "wb") as file:
            file.write(credentials.pem(password.encode()))
        context.load_cert_chain(path, password=password)
    finally:
        os.unlink(path)
