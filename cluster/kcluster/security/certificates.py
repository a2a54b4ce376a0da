"""What a broker's certificate may be on purpose.

Owns: the states of certificates, and which one a broker shows.  Never: makes a certificate
(drivers/tls/authority.py does).
Kafka: no counterpart.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from msgspec import Struct


class CertificateState(StrEnum):
    """A certificate that clients accept, or what is wrong with it."""

    VALID = "valid"
    EXPIRED = "expired"
    WRONG_NAME = "wrong-name"


class BrokerCertificate(Struct, frozen=True):
    """The certificate that a broker shows to new connections.  `number`: how many it has had before
    this one."""

    state: CertificateState = CertificateState.VALID
    number: int = 0


FIRST: Final = BrokerCertificate()
"""The certificate of a broker that nobody has replaced."""
