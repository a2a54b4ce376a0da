"""Java's hash codes, and the order in which its HashMap iterates over its keys.

Owns: String.hashCode, the hash code of a client quota's entity, the order of keys by hash code.
Never: decides which answers have that order (the handlers do).
Kafka: java.lang.String and java.util.HashMap of OpenJDK, ClientQuotaEntity.hashCode.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

K = TypeVar("K")

_MASK = 0xFFFF_FFFF
_SIGN = 1 << 31
_FIRST_SIZE = 16


def java_hash_code(text: str | None) -> int:
    """String.hashCode: over UTF-16 units, as a signed 32 bit integer; 0 for null."""
    code = 0
    units = (text or "").encode("utf-16-be", "surrogatepass")
    for at in range(0, len(units), 2):
        code = (31 * code + (units[at] << 8 | units[at + 1])) & _MASK
    return code - (1 << 32) if code & _SIGN else code


def entity_hash(entity: Iterable[tuple[str, str | None]]) -> int:
    """ClientQuotaEntity.hashCode, unsigned: of a map of types to names."""
    codes = (java_hash_code(kind) ^ java_hash_code(name) for kind, name in entity)
    return (31 + sum(codes)) & _MASK


def hash_order(
    keys: Iterable[K], hash_of: Callable[[K], int], first_size: int = _FIRST_SIZE
) -> list[K]:
    """Keys in the order in which a HashMap iterates over them, after it was filled in this order.

    `first_size`: the initial number of buckets, a power of two.  Keys in one bucket stay in the
    order of insertion.
    """
    ordered = list(dict.fromkeys(keys))
    size = first_size
    while 4 * len(ordered) > 3 * size:
        size *= 2

    def bucket(key: K) -> int:
        code = hash_of(key) & _MASK
        return (code ^ code >> 16) & (size - 1)

    return sorted(ordered, key=bucket)
