"""Logs that take a record without what its topic's config asks for at an append: a new segment, or
a flush.

Owns: since when each log has been under its present config, and the rules for its newest segment.
Never: rolls or flushes a log (partition/log/log.py does).  Kafka: LogSegment.shouldRoll,
UnifiedLog.maybeRoll, UnifiedLog.append.

    segment-overdue   the newest batch is in a segment whose first batch is older by more than
                      segment.ms, or which has grown beyond segment.bytes by it
    flush-overdue     as many records as flush.messages, or more, are not flushed

Retention and compaction spare the newest segment, so a log that does not roll keeps everything.
A batch counts only if it was appended under the present config, as two looks show.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct

from kcluster.config.kafka.topic import TopicConfig
from kcluster.invariants.facts import Measure, Observed, OutOfBounds
from kcluster.invariants.promises import forget_oldest
from kcluster.partition.log.log import Log
from kcluster.partition.replica import Replica

NEVER: Final = 1 << 62
"""An offset that no log reaches."""


class _LookedAt(Struct):
    """A log, its config, and the end that it had when it was first seen under this config (`since`;
    NEVER if something was overdue), and when it was looked at last (`log_end_offset`)."""

    log: Log
    config: TopicConfig
    since: int
    log_end_offset: int


class LogUpkeep:
    """The logs of one run.  `look` is called from time to time."""

    def __init__(self) -> None:
        self._seen: dict[Replica, _LookedAt] = {}

    def look(self, replicas: Iterable[Replica]) -> Iterator[tuple[Replica, str, Observed]]:
        """Yields what is overdue in the logs of one running broker; of each log once."""
        for replica in replicas:
            log, config, end = replica.log, replica.config, replica.log.log_end_offset
            known = self._seen.get(replica)
            if known is None or known.log is not log or known.config is not config:
                self._seen[replica] = _LookedAt(log, config, end, end)
                forget_oldest(self._seen)
            elif known.log_end_offset != end:
                known.log_end_offset = end
                found = next(overdue(log, config, known.since), None)
                if found is not None:
                    known.since = NEVER
                    yield replica, *found


def overdue(log: Log, config: TopicConfig, since: int) -> Iterator[tuple[str, Observed]]:
    """What is overdue in a log all of whose records from offset `since` on were appended under
    `config`."""
    if log.log_end_offset <= since or not log.segments:
        return
    unflushed = log.log_end_offset - log.flushed_offset
    if unflushed >= config.flush_messages:
        flush = (Measure.UNFLUSHED, unflushed, Measure.FLUSH_MESSAGES, config.flush_messages)
        yield "flush-overdue", OutOfBounds(*flush)
    segment = log.segments[-1]
    batches = segment.batches
    # The cleaner merges segments, and a truncation may make such a segment the newest one.
    if (
        len(batches) < 2
        or batches[-1].base_offset < since
        or segment.base_offset < log.first_dirty_offset
    ):
        return
    first_ms, newest_ms = batches[0].max_timestamp, batches[-1].max_timestamp
    if first_ms >= 0 and newest_ms - first_ms > config.segment_ms:
        span = (Measure.SEGMENT_SPAN, newest_ms - first_ms, Measure.SEGMENT_MS, config.segment_ms)
        yield "segment-overdue", OutOfBounds(*span)
    if segment.size_bytes > config.max_segment_bytes:
        size = (Measure.SEGMENT_SIZE, segment.size_bytes, Measure.SEGMENT_BYTES)
        yield "segment-overdue", OutOfBounds(*size, config.max_segment_bytes)
