"""The names of the SASL mechanisms that are simulated.

Owns: these names, and the codes of the SCRAM mechanisms in Kafka's messages and records.  Never:
speaks one.
Kafka: PlainSaslServer, ScramMechanism, OAuthBearerLoginModule.
"""

from __future__ import annotations

from typing import Final

PLAIN: Final = "PLAIN"
OAUTHBEARER: Final = "OAUTHBEARER"
SCRAM_CODES: Final = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
"""The code of each mechanism of SCRAM.  Kafka: ScramMechanism.type."""
SCRAM_NAMES: Final = {code: name for name, code in SCRAM_CODES.items()}

PASSWORD_MECHANISMS: Final = (PLAIN, *SCRAM_CODES)
"""The mechanisms that check a password."""
MECHANISMS: Final = (*PASSWORD_MECHANISMS, OAUTHBEARER)
"""Kafka's mechanisms without GSSAPI."""
