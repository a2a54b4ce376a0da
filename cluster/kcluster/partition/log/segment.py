"""A segment: consecutive batches of one log, the unit in which retention deletes.

Owns: the batches of a segment, and finding one by offset or time.  Never: knows the log's start or
end, or decides when to roll; log.py does.  Kafka: LogSegment, LocalLog.
"""

from __future__ import annotations

from bisect import bisect_right
from operator import attrgetter
from typing import Final, final

from kcluster.partition.log.append_rules import AppendRules
from kcluster.protocol.records.batches import NO_TIMESTAMP, Batch

_BASE_OFFSET: Final = attrgetter("base_offset")
NEAR_END: Final = 16


@final
class Segment:
    """Batches from `base_offset` on.  Batches are shared with other replicas; the list is not."""

    __slots__ = (
        "appended_ms", "base_offset", "batches", "created_ms", "max_timestamp", "size_bytes",
    )  # fmt: skip

    def __init__(self, base_offset: int, created_ms: int) -> None:
        self.base_offset = base_offset
        self.created_ms = created_ms
        self.batches: list[Batch] = []
        self.size_bytes = 0
        self.max_timestamp = NO_TIMESTAMP
        self.appended_ms = NO_TIMESTAMP
        """The time of the last append, used like Kafka's lastModified when no record has a
        timestamp."""

    @property
    def largest_timestamp(self) -> int:
        """The time from which retention.ms counts."""
        return self.max_timestamp if self.max_timestamp >= 0 else self.appended_ms

    def index_of(self, offset: int) -> int:
        """Index of the first batch whose last offset is `offset` or greater; may be one past the
        end.  Compaction leaves gaps, so that batch may begin after `offset`."""
        batches = self.batches
        index = len(batches) - 1
        if index > NEAR_END and batches[index - NEAR_END].base_offset > offset:
            index = bisect_right(batches, offset, key=_BASE_OFFSET) - 1
        else:
            # Readers are mostly near the end, where a linear search is faster than bisection.
            while index >= 0 and batches[index].base_offset > offset:
                index -= 1
        if index < 0:
            return 0
        return index if batches[index].last_offset >= offset else index + 1

    def full(self, batch: Batch, now_ms: int, rules: AppendRules) -> bool:
        """Whether `batch` must go into a new segment, by segment.bytes or segment.ms.

        Time is counted between the timestamps of the first and the new batch, or from creation
        where there are none.
        """
        batches = self.batches
        if self.size_bytes + batch.size_bytes > rules.max_segment_bytes:
            return True
        if not batches:
            return False
        first_timestamp = batches[0].max_timestamp
        if first_timestamp >= 0 and batch.max_timestamp >= 0:
            return batch.max_timestamp - first_timestamp > rules.segment_ms
        return now_ms - self.created_ms > rules.segment_ms

    def replace(self, batches: list[Batch]) -> None:
        """Replace the batches by the rest of them after truncation or compaction."""
        self.batches = batches
        self.size_bytes = sum(batch.size_bytes for batch in batches)
        self.max_timestamp = max((batch.max_timestamp for batch in batches), default=NO_TIMESTAMP)


def segment_index(segments: list[Segment], offset: int) -> int:
    """Index of the last segment that starts at `offset` or before; at least 0."""
    last = len(segments) - 1
    if last >= 0 and segments[last].base_offset <= offset:
        return last
    return max(0, bisect_right(segments, offset, key=_BASE_OFFSET) - 1)
