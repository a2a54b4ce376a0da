"""Delegation tokens: their settings, and the HMAC by which a client shows that it has one (KIP-48).

Owns: these.  Never: keeps a token (the metadata does), shows the secret key.
Kafka: DelegationTokenManager, DelegationTokenManagerConfigs.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import ModuleType
from typing import Final

from msgspec import Struct

DAY_MS: Final = 86_400_000


class TokenSettings(Struct, frozen=True):
    """Kafka's configs delegation.token.*; the secret key is in no repr."""

    secret: bytes
    max_lifetime_ms: int = 7 * DAY_MS
    expiry_ms: int = DAY_MS
    """The time for which a new or renewed token is valid."""
    check_interval_ms: int = 3_600_000
    """The time between two sweeps of expired tokens."""

    def __repr__(self) -> str:
        return "TokenSettings(...)"

    def hmac_of(self, token_id: str) -> bytes:
        """The HMAC of a token, which its owner keeps secret."""
        digest: bytes = _hmac().digest(self.secret, token_id.encode(), "sha512")
        return digest

    def find(self, token_ids: Iterable[str], shown: bytes) -> str | None:
        """The token with the HMAC that a client shows; None if there is none."""
        is_same = _hmac().compare_digest
        return next((one for one in token_ids if is_same(self.hmac_of(one), shown)), None)


def _hmac() -> ModuleType:
    import hmac  # OpenSSL takes a fiftieth of the start, and few clusters need it

    return hmac
