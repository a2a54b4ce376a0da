"""What a broker's certificate may be on purpose, and why a TLS handshake fails.

Owns: the states of certificates, which one a broker shows, the reasons of failed handshakes.
Never: makes a certificate (drivers/tls/authority.py does), does a handshake.
Kafka: SslAuthenticationException, for the failures.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from msgspec import Struct


class CertificateState(StrEnum):
    """What is wrong with a certificate, if anything."""

    VALID = "valid"
    EXPIRED = "expired"
    WRONG_NAME = "wrong-name"


class HandshakeProblem(StrEnum):
    """The reason why a TLS handshake failed, as far as the broker knows it."""

    HTTP = "the client sent an HTTP request instead of TLS"
    NOT_TLS = "the client did not send TLS; is its security.protocol SSL?"
    NO_VERSION = "the client offers no version of TLS that ssl.enabled.protocols has"
    NO_CIPHER = "the client offers no cipher suite that the broker has"
    NO_CERTIFICATE = "the client sent no certificate, which ssl.client.auth=required demands"
    CLIENT_REFUSED = "the client's certificate is not accepted"
    NO_RULE = "no rule of ssl.principal.mapping.rules applies to the client's name"
    UNKNOWN_CA = "the client does not trust the CA of the broker's certificate"
    EXPIRED = "to the client, the broker's certificate has expired"
    NOT_ACCEPTED = "the client does not accept the broker's certificate"
    OTHER = "TLS failed"


def handshake_text(problem: HandshakeProblem, detail: str) -> str:
    """Why a handshake failed, in words; `detail`: more about it."""
    if problem is HandshakeProblem.OTHER and detail:
        return detail
    return f"{problem}: {detail}" if detail else str(problem)


class BrokerCertificate(Struct, frozen=True):
    """The certificate that a broker shows to new connections.  `number`: the number of certificates
    that it showed earlier."""

    state: CertificateState = CertificateState.VALID
    number: int = 0


MADE_FROM_MS: Final = 946_684_800_000
"""The beginning of every certificate that is made here, in ms since 1970: the year 2000."""
_VALID_UNTIL_MS: Final = 2_524_521_600_000
_EXPIRED_MS: Final = 978_307_200_000


def made_until_ms(state: CertificateState) -> int:
    """The end of a certificate that is made here, in ms since 1970: the year 2049, or 2001."""
    return _EXPIRED_MS if state is CertificateState.EXPIRED else _VALID_UNTIL_MS


FIRST: Final = BrokerCertificate()
"""The certificate with which a broker starts."""
