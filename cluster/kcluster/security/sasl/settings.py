"""What a SASL listener asks of its clients.

Owns: SaslSettings.  Never: reads a config (config/topology/),
keeps SCRAM credentials or delegation tokens (the metadata does).
Kafka: BrokerSecurityConfigs, SaslConfigs, JaasContext.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from kcluster.protocol.java import hash_order, java_hash_code
from kcluster.security.sasl.oauthbearer import UnsecuredTokens, Validator

MAX_RECEIVE_BYTES: Final = 524_288
"""The default of sasl.server.max.receive.size."""
FAILURE_DELAY_MS: Final = 100
"""The default of connection.failed.authentication.delay.ms."""


class SaslSettings(Struct, frozen=True):
    """The settings of one listener of one broker."""

    mechanisms: tuple[str, ...]
    passwords: Mapping[str, str] = {}
    """The passwords of PLAIN, by user."""
    max_reauth_ms: Mapping[str, int] = {}
    """The value of connections.max.reauth.ms by mechanism; 0 or absent: sessions do not end."""
    max_receive_bytes: int = MAX_RECEIVE_BYTES
    failure_delay_ms: int = FAILURE_DELAY_MS
    validate_token: Validator = UnsecuredTokens().validate
    """Validates a token of OAUTHBEARER."""

    def __repr__(self) -> str:
        return f"SaslSettings({', '.join(self.mechanisms)})"

    @property
    def listed(self) -> list[str]:
        """The mechanisms in the order in which Kafka lists them, that of a HashSet."""
        return hash_order(self.mechanisms, java_hash_code)
