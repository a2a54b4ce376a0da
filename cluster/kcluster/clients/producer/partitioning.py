"""Which partition a record goes to.

Owns: murmur2 as Kafka hashes keys, the sticky choice for records without one.  Never: knows whether
a partition's leader is up, beyond what metadata says.
Kafka: BuiltInPartitioner, RoundRobinPartitioner, Utils.murmur2; KIP-794.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from kcluster.clients.metadata import NOBODY, Metadata
from kcluster.clients.producer.batches import PartitionQueue
from kcluster.contract import Rng

_SEED: Final = 0x9747B28C
_M: Final = 0x5BD1E995
_MASK: Final = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """32 bits, unsigned."""
    length = len(data)
    h = (_SEED ^ length) & _MASK
    whole = length & ~3
    for at in range(0, whole, 4):
        k = int.from_bytes(data[at : at + 4], "little") * _M & _MASK
        k = (k ^ k >> 24) * _M & _MASK
        h = (h * _M & _MASK) ^ k
    if length > whole:
        h = (h ^ int.from_bytes(data[whole:], "little")) * _M & _MASK
    h = (h ^ h >> 13) * _M & _MASK
    return h ^ h >> 15


def partition_of_key(key: bytes, partitions: int) -> int:
    """Where all Java clients put a key."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions


class StickyPartitioner:
    """Stays with a partition until a batch's worth of bytes went to it.  One per topic."""

    __slots__ = ("_batch_size_bytes", "_metadata", "_produced_bytes", "_topic", "partition")

    def __init__(self, topic: str, metadata: Metadata, batch_size_bytes: int) -> None:
        self._topic = topic
        self._metadata = metadata
        self._batch_size_bytes = batch_size_bytes
        self._produced_bytes = 0
        self.partition = NOBODY
        """NOBODY: to be chosen."""

    def choose(self, queues: Mapping[tuple[str, int], PartitionQueue], rng: Rng) -> int:
        """The partition for the next record of a topic that has some."""
        if self.partition == NOBODY:
            self.partition = self._next(queues, rng)
            self._produced_bytes = 0
        return self.partition

    def took(self, size_bytes: int, is_batch_full: Callable[[], bool]) -> None:
        """So many bytes went to it: perhaps the next record goes elsewhere, though not from a
        batch that is half full, unless that goes on for long."""
        self._produced_bytes += size_bytes
        if self._produced_bytes >= self._batch_size_bytes and (
            self._produced_bytes >= 2 * self._batch_size_bytes or is_batch_full()
        ):
            self.partition = NOBODY

    def _next(self, queues: Mapping[tuple[str, int], PartitionQueue], rng: Rng) -> int:
        """One that has a leader, rather one with a short queue."""
        views = self._metadata.topics[self._topic].partitions
        open_ones = [view.index for view in views if view.leader != NOBODY]
        if not open_ones:
            return rng.randrange(len(views))
        sizes = []
        for index in open_ones:
            queue = queues.get((self._topic, index))
            if queue is None:
                # Weights are of use only when every partition has been sent to once.
                return open_ones[rng.randrange(len(open_ones))]
            sizes.append(len(queue.waiting))
        weights = [max(sizes) + 1 - size for size in sizes]
        drawn = rng.randrange(sum(weights))
        for index, weight in zip(open_ones, weights, strict=True):
            drawn -= weight
            if drawn < 0:
                return index
        raise AssertionError("the weights are all there is to draw from")
