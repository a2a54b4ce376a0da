"""Compacted logs that the cleaner should have cleaned by now.

Owns: the time since which each compacted log's oldest dirty segment is due for cleaning.  Never:
cleans a log (partition/log/compaction.py does).  Kafka: LogCleanerManager.maxCompactionDelay;
KIP-354.

    compaction-overdue   the oldest dirty segment of a log was still not cleaned more than two
                         rounds of the cleaner after max.compaction.lag.ms had passed

The lag counts from the oldest dirty records, so a log that is written to all the time must be
cleaned, too.  A segment is not due while the cleaner must leave it alone: if it is the active
segment, if it has uncommitted records or records younger than min.compaction.lag.ms, or if its log
has an open transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from kcluster.invariants.facts import NotCleaned
from kcluster.partition.log.compaction import NO_LAG_LIMIT
from kcluster.partition.replica import Replica
from kcluster.protocol.records.batches import Batch

SLACK_MS: Final = 1_000


class Uncleaned:
    """The due times of all brokers' logs.  `look` is called from time to time."""

    def __init__(self) -> None:
        self._due: dict[Replica, tuple[int, int]] = {}
        """(base offset of the oldest dirty batch, the time since which it is due)."""

    def look(
        self, replicas: Iterable[Replica], backoff_ms: int, now_ms: int
    ) -> Iterator[tuple[Replica, NotCleaned]]:
        """Yields the overdue logs of one running broker."""
        for replica in replicas:
            lag_ms = replica.config.max_compaction_lag_ms
            if lag_ms == NO_LAG_LIMIT or "compact" not in replica.config.cleanup_policy:
                continue
            oldest = oldest_dirty(replica, now_ms)
            if oldest is None or now_ms - oldest.max_timestamp <= lag_ms:
                self._due.pop(replica, None)
                continue
            known = self._due.get(replica)
            if known is None or known[0] != oldest.base_offset:
                self._due[replica] = (oldest.base_offset, now_ms)
            elif now_ms - known[1] > 2 * backoff_ms + SLACK_MS:
                del self._due[replica]
                age_ms = now_ms - oldest.max_timestamp
                yield replica, NotCleaned(oldest.base_offset, age_ms, lag_ms)

    def forget(self, replicas: Iterable[Replica]) -> None:
        """Discard the due times of the logs of a broker that is not running."""
        for replica in replicas:
            self._due.pop(replica, None)


def oldest_dirty(replica: Replica, now_ms: int) -> Batch | None:
    """The first batch of a log's oldest dirty segment; None if the cleaner must not clean that
    yet."""
    log, config = replica.log, replica.config
    table = log.producer_table
    if log.is_uncleanable or (table is not None and table.has_unstable):
        return None
    start = max(log.first_dirty_offset, log.log_start_offset)
    for segment, after in zip(log.segments, log.segments[1:], strict=False):
        if after.base_offset <= start:
            continue
        is_young = segment.largest_timestamp > now_ms - config.min_compaction_lag_ms
        if after.base_offset > replica.high_watermark or is_young or not segment.batches:
            return None
        return segment.batches[0]
    return None
