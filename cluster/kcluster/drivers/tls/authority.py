"""A certificate authority of a cluster's own: certificates for brokers and clients, made in memory.

Owns: the CA's key, and the form of certificates, also of ones that are wrong on purpose.
Never: writes a file (certificate_folder.py does), reads a clock or listens.
Kafka: the openssl and keytool commands of its security documentation.

Certificates are valid from 2000 to 2049, and expired ones were valid in 2000, so that no clock is
read here.  A client's TLS library reads its machine's clock, also in virtual time.  Every field has
a fixed size, so that handshakes do not differ in length (decisions/039).
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from datetime import UTC, datetime
from ipaddress import ip_address
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kcluster.drivers.tls.credentials import Credentials, PrivateKey
from kcluster.security.certificates import MADE_FROM_MS, CertificateState, made_until_ms

ORGANIZATION: Final = "kcluster"
WRONG_NAME: Final = "wrong-name.invalid"
"""The only name in a certificate made for a wrong name; no machine has it (RFC 2606)."""


class Authority:
    """A CA.

    `fixed_size`: Ed25519 keys, whose signatures have one size; without it ECDSA P-256, which older
    clients (Java 8 to 14) know too, and whose signatures take 70 to 72 bytes.  `kept`: the key and
    the certificate of a CA that exists.
    """

    def __init__(self, *, fixed_size: bool = False, kept: Credentials | None = None) -> None:
        self._fixed_size = fixed_size
        own = kept or new_ca(self._new_key())
        self._key = own.key
        self._name = own.certificate.subject
        self.certificate: Final = own.certificate

    def for_broker(
        self, names: Iterable[str], state: CertificateState = CertificateState.VALID
    ) -> Credentials:
        """The key and the certificate of a broker with these host names and addresses."""
        named = dict.fromkeys(names)
        if state is CertificateState.WRONG_NAME:
            named = {WRONG_NAME: None}
        return self._issue(next(iter(named)), named, made_until_ms(state))

    def for_client(
        self, user: str, state: CertificateState = CertificateState.VALID
    ) -> Credentials:
        """The key and the certificate of a user, whose principal is `CN=<user>`."""
        return self._issue(user, (), made_until_ms(state))

    def _issue(self, common_name: str, names: Iterable[str], until_ms: int) -> Credentials:
        key = self._new_key()
        own = x509.SubjectKeyIdentifier.from_public_key(self._key.public_key())
        authority = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(own)
        uses = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        builder = (
            _builder(_subject(common_name), self._name, key.public_key(), until_ms)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(is_ca=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage(uses), critical=False)
            .add_extension(authority, critical=False)
        )
        alternatives = [_general_name(name) for name in names]
        if alternatives:
            builder = builder.add_extension(
                x509.SubjectAlternativeName(alternatives), critical=False
            )
        signed = builder.sign(self._key, _hash_for(self._key))
        return Credentials(key, signed, (self.certificate,))

    def _new_key(self) -> ed25519.Ed25519PrivateKey | ec.EllipticCurvePrivateKey:
        if self._fixed_size:
            return ed25519.Ed25519PrivateKey.generate()
        return ec.generate_private_key(ec.SECP256R1())


def new_ca(key: PrivateKey) -> Credentials:
    """The key and the certificate of a new CA."""
    name, public = _name(f"{ORGANIZATION} CA"), key.public_key()
    builder = (
        _builder(name, name, public, made_until_ms(CertificateState.VALID))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(is_ca=True), critical=True)
    )
    return Credentials(key, builder.sign(key, _hash_for(key)))


def new_kept_ca() -> Credentials:
    """A CA to be kept.  Its RSA signatures have one size, and every client knows them."""
    return new_ca(rsa.generate_private_key(public_exponent=65537, key_size=2048))


def _hash_for(key: PrivateKey) -> hashes.SHA256 | None:
    return None if isinstance(key, ed25519.Ed25519PrivateKey) else hashes.SHA256()


def _builder(
    subject: x509.Name, issuer: x509.Name, public: CertificatePublicKeyTypes, until_ms: int
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(1 << 62 | secrets.randbits(62))
        .not_valid_before(_time_of(MADE_FROM_MS))
        .not_valid_after(_time_of(until_ms))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
    )


def _time_of(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1_000, UTC)


def _name(common_name: str) -> x509.Name:
    organization = x509.NameAttribute(NameOID.ORGANIZATION_NAME, ORGANIZATION)
    return x509.Name([organization, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _subject(common_name: str) -> x509.Name:
    """Only the common name, so that a client's principal in an ACL is short."""
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _usage(*, is_ca: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=is_ca,
        crl_sign=is_ca,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
