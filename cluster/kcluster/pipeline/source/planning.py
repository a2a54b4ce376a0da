"""The part of each partition that a batch takes, and its division into tasks.

Owns: these two calculations.  Never: asks a broker.
Kafka: of Spark's connector KafkaMicroBatchStream.rateLimit and KafkaOffsetRangeCalculator; the
numbers agree with them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, floor

from msgspec import Struct
from msgspec.structs import replace

from kcluster.pipeline.source.losses import NO_EPOCH
from kcluster.pipeline.source.offsets import Key


class Range(Struct, frozen=True):
    """The part that one task reads: offsets [start, until) of a partition.

    `epoch`: the leader epoch in which `start` was valid; `topic_id`: the id of its topic.
    """

    topic: str
    partition: int
    start: int
    until: int
    epoch: int = NO_EPOCH
    topic_id: str = ""

    @property
    def size(self) -> int:
        """The number of offsets."""
        return max(self.until - self.start, 0)


def limited(starts: Mapping[Key, int], ends: Mapping[Key, int], limit: int) -> dict[Key, int]:
    """The ends of a batch of about `limit` offsets, which are divided among the partitions in
    proportion to their sizes.

    Each partition with records gets at least one offset, so the limit may be exceeded slightly.
    """
    sizes = {key: end - starts[key] for key, end in ends.items() if end > starts.get(key, end)}
    total = sum(sizes.values())
    limits = dict(ends)
    for key, size in sizes.items():
        share = limit * size / total
        count = ceil(share) if share < 1 else floor(share)
        limits[key] = min(ends[key], starts[key] + count)
    return limits


def split(
    ranges: Sequence[Range], min_partitions: int | None = None, max_records: int | None = None
) -> list[Range]:
    """The ranges that are not empty, large ones split: about `min_partitions` of them or more, with
    at most `max_records` offsets each."""
    nonempty = [one for one in ranges if one.size > 0]
    if max_records is not None:
        nonempty = [part for one in nonempty for part in _parts(one, -(-one.size // max_records))]
    if min_partitions is None or len(nonempty) >= min_partitions:
        return nonempty
    total = sum(one.size for one in nonempty)
    # Ranges too small to be split do not influence the splitting of others.
    small = {one for one in nonempty if _count(one.size, total, min_partitions) == 1}
    rest = total - sum(one.size for one in nonempty if one in small)
    wanted = max(min_partitions - len(small), 1)
    parts: list[Range] = []
    for one in nonempty:
        parts += [one] if one in small else _parts(one, _count(one.size, rest, wanted))
    return parts


def _count(size: int, total: int, partitions: int) -> int:
    # Java's Math.round: a half goes up.
    return max(floor(size / total * partitions + 0.5), 1)


def _parts(one: Range, count: int) -> list[Range]:
    parts, start = [], one.start
    for number in range(count):
        until = start + (one.until - start) // (count - number)
        parts.append(replace(one, start=start, until=until))
        start = until
    return parts
