"""Java's long: what becomes of a sum that does not fit into 64 bits.

Owns: that rule.  Never: used for what no client chooses.  Clients send any int64, Kafka adds to it
without a check, and the field of a response or a record has 64 bits again.
Kafka: no counterpart; the Java Language Specification, 15.18.2.
"""

from __future__ import annotations

from typing import Final

INT64_MAX: Final = 2**63 - 1
_HALF: Final = 1 << 63
_MASK: Final = (1 << 64) - 1


def as_int64(number: int) -> int:
    """`number`, or the one that remains of it in 64 bits."""
    return ((number + _HALF) & _MASK) - _HALF
