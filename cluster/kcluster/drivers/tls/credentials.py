"""Private keys with their certificates: from keystores of Kafka's types, and back into them.

Owns: the formats PEM, PKCS12 and JKS, and what is wrong with a file or its password.  Never: puts a
password or a byte of a key into a message or a repr; speaks TLS.
Kafka: DefaultSslEngineFactory with its FileBasedStore, PemStore and FileBasedPemStore.

A keystore of type JKS may hold PKCS12: Java's keytool has written that since Java 9 under either
name, and Java reads both.  A true JKS file is converted by keytool, where Java is installed.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
    pkcs12,
)

from kcluster.drivers.tls.keytool import convert_store, find_keytool

PEM: Final = "PEM"
PKCS12: Final = "PKCS12"
JKS: Final = "JKS"
TYPES: Final = (JKS, PKCS12, PEM)

PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey
_KEYS: Final = (rsa.RSAPrivateKey, ec.EllipticCurvePrivateKey, ed25519.Ed25519PrivateKey)
"""The kinds of keys that OpenSSL and Java use for TLS."""

_JKS_MAGIC: Final = b"\xfe\xed\xfe\xed"
_PEM_KEY: Final = re.compile(rb"-----BEGIN ([A-Z ]*PRIVATE KEY)-----.*?-----END \1-----", re.DOTALL)


class KeystoreError(Exception):
    """A keystore or truststore that cannot be read; its text is for users, without secrets."""


class Credentials:
    """A private key, its certificate, and the certificates of the CAs above it."""

    __slots__ = ("certificate", "chain", "key")

    def __init__(
        self, key: PrivateKey, certificate: x509.Certificate, chain: Sequence[x509.Certificate] = ()
    ) -> None:
        self.key = key
        self.certificate = certificate
        self.chain = tuple(chain)

    def __repr__(self) -> str:
        return f"<Credentials of {self.certificate.subject.rfc4514_string()}>"

    def pem(self, password: bytes | None = None) -> bytes:
        """The key, the certificate and the chain, as one PEM file; with a password, the key is
        encrypted."""
        encryption: KeySerializationEncryption = (
            NoEncryption() if password is None else BestAvailableEncryption(password)
        )
        key = self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)
        return key + certificates_pem((self.certificate, *self.chain))

    def pkcs12(self, alias: str, password: str) -> bytes:
        """A PKCS12 keystore."""
        encryption = BestAvailableEncryption(password.encode())
        return pkcs12.serialize_key_and_certificates(
            alias.encode(), self.key, self.certificate, self.chain, encryption
        )


def certificates_pem(certificates: Sequence[x509.Certificate]) -> bytes:
    """Certificates as PEM."""
    return b"".join(each.public_bytes(Encoding.PEM) for each in certificates)


def truststore_pkcs12(certificates: Sequence[x509.Certificate], password: str) -> bytes:
    """A PKCS12 truststore, marked as Java wants it."""
    entries = [
        pkcs12.PKCS12Certificate(each, f"ca{number}".encode())
        for number, each in enumerate(certificates)
    ]
    return pkcs12.serialize_java_truststore(entries, BestAvailableEncryption(password.encode()))


# ---------------------------------------------------------------------------------------- reading


def read_keystore(
    data: bytes, store_type: str, password: str | None, key_password: str | None = None
) -> Credentials:
    """The key and certificates in the bytes of a keystore; KeystoreError if they cannot be read."""
    if store_type == PEM:
        return pem_credentials(data, data, key_password)
    if password is None:
        raise KeystoreError("a keystore of this type needs its password")
    key, certificate, chain = _load_pkcs12(_as_pkcs12(data, password, key_password), password)
    if key is None or certificate is None:
        raise KeystoreError("there is no private key in it")
    return _credentials(key, certificate, chain)


def pem_credentials(key_pem: bytes, chain_pem: bytes, key_password: str | None) -> Credentials:
    """The key and the certificates of two PEM texts, which may be one."""
    found = _PEM_KEY.search(key_pem)
    if found is None:
        raise KeystoreError("there is no PEM private key (BEGIN PRIVATE KEY) in it")
    password = None if key_password is None else key_password.encode()
    if found[1] == b"PRIVATE KEY":
        password = None  # Java ignores the password of a key that is not encrypted
    try:
        key = load_pem_private_key(found[0], password)
    except TypeError:
        raise KeystoreError("the private key is encrypted; give its password") from None
    except ValueError:
        wrong = "the password of the private key is wrong" if password else "it cannot be read"
        raise KeystoreError(f"the private key: {wrong}") from None
    certificates = read_certificates(chain_pem)
    return _credentials(key, certificates[0], certificates[1:])


def _credentials(
    key: object, certificate: x509.Certificate, chain: Sequence[x509.Certificate]
) -> Credentials:
    if not isinstance(key, _KEYS):
        raise KeystoreError("the private key is of a kind that TLS does not use")
    if certificate.public_key() != key.public_key():
        raise KeystoreError("the first certificate is not that of the private key")
    return Credentials(key, certificate, chain)


def read_certificates(pem: bytes) -> list[x509.Certificate]:
    """The certificates of a PEM text, at least one."""
    try:
        return x509.load_pem_x509_certificates(pem)
    except ValueError:
        raise KeystoreError("there is no PEM certificate (BEGIN CERTIFICATE) in it") from None


def read_truststore(data: bytes, store_type: str, password: str | None) -> list[x509.Certificate]:
    """The trusted certificates in the bytes of a truststore."""
    if store_type == PEM:
        return read_certificates(data)
    if password is None:
        raise KeystoreError("a truststore of this type needs its password")
    _, certificate, chain = _load_pkcs12(_as_pkcs12(data, password, None), password)
    certificates = [*([certificate] if certificate is not None else []), *chain]
    if not certificates:
        raise KeystoreError("there is no certificate in it")
    return certificates


def _load_pkcs12(
    data: bytes, password: str
) -> tuple[object, x509.Certificate | None, tuple[x509.Certificate, ...]]:
    try:
        loaded = pkcs12.load_pkcs12(data, password.encode())
    except ValueError as error:
        if "password" in str(error).lower():
            raise KeystoreError("its password is wrong") from None
        raise KeystoreError("it is no PKCS12 keystore") from None
    certificate = None if loaded.cert is None else loaded.cert.certificate
    chain = tuple(each.certificate for each in loaded.additional_certs)
    return loaded.key, certificate, chain


def _as_pkcs12(data: bytes, password: str, key_password: str | None) -> bytes:
    """The bytes of a keystore as PKCS12."""
    if not data.startswith(_JKS_MAGIC):
        return data
    keytool = find_keytool()
    if keytool is None:
        raise KeystoreError(
            "it is a JKS file, which takes Java's keytool to read: install Java, or convert it"
            " (keytool -importkeystore -deststoretype pkcs12)"
        )
    if key_password not in (None, password):
        raise KeystoreError(
            "the key of a JKS file must have the password of the keystore here: change it"
            " (keytool -keypasswd)"
        )
    with tempfile.TemporaryDirectory(prefix="kcluster-") as folder:  # 0700
        source = Path(folder, "store.jks")
        source.write_bytes(data)
        made = convert_store(keytool, source, "jks", "pkcs12", password)
        if isinstance(made, Path):
            return made.read_bytes()
    wrong = "password" in made
    raise KeystoreError("its password is wrong" if wrong else "it is no JKS keystore")
