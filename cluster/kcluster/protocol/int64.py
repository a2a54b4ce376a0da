"""Java's long: the overflow of 64 bits.

Owns: that rule.  Never: applied to a number that clients cannot choose.  A client may send any
int64; Kafka adds to it without a check, and a response or record has room for 64 bits only.  Kafka:
no counterpart; the Java Language Specification, 15.18.2.
"""

from __future__ import annotations

from typing import Final

INT64_MAX: Final = 2**63 - 1
_HALF: Final = 1 << 63
_MASK: Final = (1 << 64) - 1


def as_int64(number: int) -> int:
    """`number` wrapped to a signed number of 64 bits."""
    return ((number + _HALF) & _MASK) - _HALF
