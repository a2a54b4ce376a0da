"""Random text for nonces and salts.

Owns: its form.  Never: draws global randomness; the node's rng is passed in.
Kafka: ScramFormatter.secureRandomString.
"""

from __future__ import annotations

from typing import Final

from kcluster.contract import Rng

BITS: Final = 130
_BASE: Final = "0123456789abcdefghijklmnopqrstuvwxyz"


def draw_text(rng: Rng) -> str:
    """130 bits in base 36: up to 26 characters."""
    number = int.from_bytes(rng.randbytes(17)) >> (17 * 8 - BITS)
    digits = []
    while number:
        number, digit = divmod(number, len(_BASE))
        digits.append(_BASE[digit])
    return "".join(reversed(digits)) or "0"
