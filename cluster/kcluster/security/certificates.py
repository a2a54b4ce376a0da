"""The certificates that brokers show: valid ones, and ones that are wrong on purpose.

Owns: the states of certificates, and which one a broker shows.  Never: makes a certificate
(drivers/tls/authority.py does).
Kafka: no counterpart.
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


class BrokerCertificate(Struct, frozen=True):
    """The certificate that a broker shows to new connections.  `number`: how many it has had before
    this one."""

    state: CertificateState = CertificateState.VALID
    number: int = 0


FIRST: Final = BrokerCertificate()
"""The certificate with which a broker starts."""
