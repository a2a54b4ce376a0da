"""Java's hash codes, the order in which its HashMap iterates over its keys, its PriorityQueue.

Owns: String.hashCode, the hash code of a client quota's entity, the order of keys by hash code, and
the order of equal elements in a priority queue. Never: decides which answers have that order (the
handlers do). Kafka: java.lang.String, java.util.HashMap and PriorityQueue of OpenJDK,
ClientQuotaEntity.hashCode.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

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


class JavaPriorityQueue(Generic[K]):
    """A binary heap that returns equal elements in the order of Java's PriorityQueue."""

    def __init__(self, weight_of: Callable[[K], float]) -> None:
        self._weight_of = weight_of
        self._heap: list[K] = []

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, element: K) -> None:
        heap, weight = self._heap, self._weight_of(element)
        at = len(heap)
        heap.append(element)
        while at > 0:
            parent = (at - 1) // 2
            if weight >= self._weight_of(heap[parent]):
                break
            heap[at] = heap[parent]
            at = parent
        heap[at] = element

    def poll(self) -> K:
        """The lightest element, which leaves the queue.  IndexError if there is none."""
        heap = self._heap
        first = heap[0]
        last = heap.pop()
        if heap:
            self._sift_down(last)
        return first

    def _sift_down(self, element: K) -> None:
        """Move `element` down to its place, from the root, which is free."""
        heap, weight = self._heap, self._weight_of(element)
        at = 0
        while (child := 2 * at + 1) < len(heap):
            right = child + 1
            if right < len(heap) and self._weight_of(heap[child]) > self._weight_of(heap[right]):
                child = right
            if weight <= self._weight_of(heap[child]):
                break
            heap[at] = heap[child]
            at = child
        heap[at] = element
