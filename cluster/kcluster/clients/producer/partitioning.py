"""The choice of a record's partition.

Owns: Kafka's murmur2 hash of keys, the sticky choice for records without a key.  Never: knows
leaders except from the metadata. Kafka: BuiltInPartitioner, RoundRobinPartitioner, Utils.murmur2;
KIP-794.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from kcluster.clients.metadata import NO_BROKER, Metadata
from kcluster.clients.producer.batches import PartitionQueue
from kcluster.contract import Rng

NO_PARTITION: Final = -1
"""The partition number before a partition is chosen.  Kafka: RecordMetadata.UNKNOWN_PARTITION."""

_SEED: Final = 0x9747B28C
_M: Final = 0x5BD1E995
_MASK: Final = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """The murmur2 hash of a key, as an unsigned 32-bit number."""
    length = len(data)
    h = (_SEED ^ length) & _MASK
    whole = length & ~3
    for start in range(0, whole, 4):
        k = int.from_bytes(data[start : start + 4], "little") * _M & _MASK
        k = (k ^ k >> 24) * _M & _MASK
        h = (h * _M & _MASK) ^ k
    if length > whole:
        h = (h ^ int.from_bytes(data[whole:], "little")) * _M & _MASK
    h = (h ^ h >> 13) * _M & _MASK
    return h ^ h >> 15


def partition_of_key(key: bytes, partitions: int) -> int:
    """The partition of a key, as in all Java clients."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions


class StickyPartitioner:
    """Chooses partitions for records without a key: it stays with one partition for the bytes of
    one batch.  Each topic has its own."""

    __slots__ = ("_batch_size_bytes", "_metadata", "_produced_bytes", "_topic", "partition")

    def __init__(self, topic: str, metadata: Metadata, batch_size_bytes: int) -> None:
        self._topic = topic
        self._metadata = metadata
        self._batch_size_bytes = batch_size_bytes
        self._produced_bytes = 0
        self.partition = NO_PARTITION
        """The current partition; NO_PARTITION if none is chosen."""

    def choose(self, queues: Mapping[tuple[str, int], PartitionQueue], rng: Rng) -> int:
        """The partition for the topic's next record; the topic must have partitions."""
        if self.partition == NO_PARTITION:
            self.partition = self._next(queues, rng)
            self._produced_bytes = 0
        return self.partition

    def update(self, size_bytes: int, is_batch_full: Callable[[], bool]) -> None:
        """Count the bytes appended to the current partition.  After the bytes of one batch, leave
        the partition as soon as its current batch is full, at the latest after twice as many bytes.
        Kafka: updatePartitionInfo."""
        self._produced_bytes += size_bytes
        if self._produced_bytes >= self._batch_size_bytes and (
            self._produced_bytes >= 2 * self._batch_size_bytes or is_batch_full()
        ):
            self.partition = NO_PARTITION

    def _next(self, queues: Mapping[tuple[str, int], PartitionQueue], rng: Rng) -> int:
        """A random partition with a leader, preferably one with a short queue."""
        views = self._metadata.topics[self._topic].partitions
        available = [view.index for view in views if view.leader != NO_BROKER]
        if not available:
            return rng.randrange(len(views))
        sizes = []
        for index in available:
            queue = queues.get((self._topic, index))
            if queue is None:
                # Queue sizes are comparable only after every partition has had a record.
                return available[rng.randrange(len(available))]
            sizes.append(len(queue.waiting))
        weights = [max(sizes) + 1 - size for size in sizes]
        drawn = rng.randrange(sum(weights))
        for index, weight in zip(available, weights, strict=True):
            drawn -= weight
            if drawn < 0:
                return index
        raise AssertionError("the number drawn exceeds the sum of the weights")
