"""Files with the keys that sign tokens (JWKS), by their URLs.

Owns: which URLs can be read, the reading.  Never: knows the form of a key
(security/sasl/signed_tokens.py does).
Kafka: sasl.oauthbearer.jwks.endpoint.url, JwksFileVerificationKeyResolver.
"""

from __future__ import annotations

import re
from typing import Final

KEY_SET: Final = "sasl.oauthbearer.jwks.endpoint.url"
MAX_SIZE_BYTES: Final = 1 << 20
_FILE_URL: Final = re.compile("file:(?://)?(/[^?#]*)")
_ESCAPED: Final = re.compile(rb"%([0-9A-Fa-f]{2})")


def read_key_set(url: str) -> bytes:
    """The content of a key set's file; ValueError with the reason if it cannot be read."""
    match = _FILE_URL.fullmatch(url.strip())
    if match is None:
        raise ValueError(f"{KEY_SET} must be a file, like file:///etc/kafka/jwks.json")
    path = _ESCAPED.sub(lambda escaped: bytes((int(escaped[1], 16),)), match[1].encode())
    shown = path.decode(errors="replace")
    try:
        with open(path, "rb") as file:
            content = file.read(MAX_SIZE_BYTES + 1)
    except OSError as error:
        raise ValueError(f"{shown}: {error.strerror}") from None
    if len(content) > MAX_SIZE_BYTES:
        raise ValueError(f"{shown}: more than {MAX_SIZE_BYTES} bytes")
    return content
