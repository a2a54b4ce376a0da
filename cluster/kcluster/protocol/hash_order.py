"""The iteration order of Java's HashMap, in which Kafka answers some requests.

Owns: hash codes of strings and of clients, the order of keys by their hash codes.  Never:
decides which answers have that order (the handlers do).  Kafka: java.util.HashMap, of OpenJDK.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

K = TypeVar("K")

_MASK = 0xFFFF_FFFF
_FIRST_SIZE = 16


def string_hash(text: str | None) -> int:
    """String.hashCode, as an unsigned number of 32 bits; of null 0."""
    hashed = 0
    units = (text or "").encode("utf-16-be", "surrogatepass")
    for at in range(0, len(units), 2):
        hashed = (31 * hashed + (units[at] << 8 | units[at + 1])) & _MASK
    return hashed


def entity_hash(entity: Iterable[tuple[str, str | None]]) -> int:
    """ClientQuotaEntity.hashCode, unsigned: of a map of types to names."""
    return (31 + sum(string_hash(kind) ^ string_hash(name) for kind, name in entity)) & _MASK


def hash_order(
    keys: Iterable[K], hash_of: Callable[[K], int], first_size: int = _FIRST_SIZE
) -> list[K]:
    """Keys of a HashMap that were put in this order, as it goes over them.

    `first_size`: how many buckets it was made with, a power of two.  Keys of one bucket stay in
    the order in which they came.
    """
    found = list(dict.fromkeys(keys))
    size = first_size
    while 4 * len(found) > 3 * size:
        size *= 2

    def bucket(key: K) -> int:
        hashed = hash_of(key)
        return (hashed ^ hashed >> 16) & (size - 1)

    return sorted(found, key=bucket)
