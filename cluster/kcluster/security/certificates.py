"""What a broker's certificate may be on purpose.

Owns: the states of certificates.  Never: makes a certificate (drivers/tls/authority.py does).
Kafka: no counterpart.
"""

from __future__ import annotations

from enum import StrEnum


class CertificateState(StrEnum):
    """A certificate that clients accept, or what is wrong with it."""

    VALID = "valid"
    EXPIRED = "expired"
    WRONG_NAME = "wrong-name"
