"""What a listener's TLS configs name: its key, its certificates, the CAs of its clients.

Owns: opening the files, the rules about which configs go together.  Never: shows a password or a
key; makes a context of it (contexts.py does).
Kafka: DefaultSslEngineFactory.createKeystore, createTruststore.
"""

from __future__ import annotations

from collections.abc import Sequence

from cryptography import x509
from msgspec import Struct

from kcluster.config.kafka.tls import TlsTexts
from kcluster.drivers.tls.contexts import VERSIONS, ClientAuth, TlsSettings
from kcluster.drivers.tls.credentials import (
    PEM,
    TYPES,
    Credentials,
    KeystoreError,
    pem_credentials,
    read_certificates,
    read_keystore,
    read_truststore,
)
from kcluster.security.certificate_names import MappingRule, mapping_rules


class TlsConfigError(Exception):
    """A config that cannot be used: its base name, and why, without secrets."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{name}: {reason}")
        self.name = name
        self.reason = reason


class ListenerStores(Struct, frozen=True):
    """What the configs name.  `credentials`, `trusted`: None if no config names any."""

    settings: TlsSettings
    credentials: Credentials | None
    trusted: Sequence[x509.Certificate] | None
    rules: tuple[MappingRule, ...]


def open_stores(texts: TlsTexts) -> ListenerStores:
    """Open what the configs name; TlsConfigError."""
    return ListenerStores(_settings(texts), _credentials(texts), _trusted(texts), _rules(texts))


def _settings(texts: TlsTexts) -> TlsSettings:
    protocols = texts.items("ssl.enabled.protocols")
    if not any(name in VERSIONS for name in protocols):
        known = ", ".join(VERSIONS)
        raise TlsConfigError("ssl.enabled.protocols", f"none of them works here; {known} do")
    auth = texts.get("ssl.client.auth") or ClientAuth.NONE
    try:
        client_auth = ClientAuth(auth.lower())
    except ValueError:
        raise TlsConfigError("ssl.client.auth", f"must be one of {', '.join(ClientAuth)}") from None
    return TlsSettings(protocols, texts.items("ssl.cipher.suites"), client_auth)


def _rules(texts: TlsTexts) -> tuple[MappingRule, ...]:
    name = "ssl.principal.mapping.rules"
    try:
        return mapping_rules(texts.get(name) or "")
    except ValueError as error:
        raise TlsConfigError(name, str(error)) from None


def _credentials(texts: TlsTexts) -> Credentials | None:
    key, chain = texts.get("ssl.keystore.key"), texts.get("ssl.keystore.certificate.chain")
    location, password = texts.get("ssl.keystore.location"), texts.get("ssl.keystore.password")
    key_password, kind = texts.get("ssl.key.password"), _type(texts, "ssl.keystore.type")
    if kind == PEM and password is not None and (key or location):
        text = "PEM has none; the key's is ssl.key.password"
        raise TlsConfigError("ssl.keystore.password", text)
    if key is not None or chain is not None:
        if kind != PEM:
            raise TlsConfigError("ssl.keystore.type", "it must be PEM, with ssl.keystore.key")
        if key is None or chain is None:
            lacks = "ssl.keystore.key" if key is None else "ssl.keystore.certificate.chain"
            raise TlsConfigError(lacks, "the key and the certificate chain go together")
        if location is not None:
            raise TlsConfigError(
                "ssl.keystore.location", "it cannot be combined with ssl.keystore.key"
            )
        try:
            return pem_credentials(key.encode(), chain.encode(), key_password)
        except KeystoreError as error:
            raise TlsConfigError("ssl.keystore.key", str(error)) from None
    if location is None:
        return None
    data = _read("ssl.keystore.location", location)
    try:
        return read_keystore(data, kind, password, key_password)
    except KeystoreError as error:
        raise TlsConfigError("ssl.keystore.location", f"{location}: {error}") from None


def _trusted(texts: TlsTexts) -> Sequence[x509.Certificate] | None:
    certificates, location = (
        texts.get("ssl.truststore.certificates"),
        texts.get("ssl.truststore.location"),
    )
    kind = _type(texts, "ssl.truststore.type")
    if certificates is not None:
        if kind != PEM:
            text = "it must be PEM, with ssl.truststore.certificates"
            raise TlsConfigError("ssl.truststore.type", text)
        if location is not None:
            text = "it cannot be combined with ssl.truststore.certificates"
            raise TlsConfigError("ssl.truststore.location", text)
        try:
            return read_certificates(certificates.encode())
        except KeystoreError as error:
            raise TlsConfigError("ssl.truststore.certificates", str(error)) from None
    if location is None:
        return None
    data = _read("ssl.truststore.location", location)
    try:
        return read_truststore(data, kind, texts.get("ssl.truststore.password"))
    except KeystoreError as error:
        raise TlsConfigError("ssl.truststore.location", f"{location}: {error}") from None


def _type(texts: TlsTexts, name: str) -> str:
    kind = texts.get(name) or ""
    if kind.upper() not in TYPES:
        raise TlsConfigError(name, f"no such type of store; there are {', '.join(TYPES)}")
    return kind.upper()


def _read(name: str, location: str) -> bytes:
    try:
        with open(location, "rb") as file:
            return file.read()
    except OSError as error:
        raise TlsConfigError(name, f"{location}: {error.strerror}") from None
