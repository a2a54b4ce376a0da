"""Deleting segments of a log by age, by size, and below its start.

Owns: the choice of segments to delete.  Never: appends or reads.
Kafka: UnifiedLog.deleteOldSegments; retention.ms, retention.bytes, cleanup.policy.

# DIFFERS: Kafka looks at the size only every log.retention.check.interval.ms, five minutes.  A #
disk has room for the writes in between; here they take memory, up to 100 MB/s.  So a log that is #
32 MiB above retention.bytes is shortened at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kcluster.config.kafka.definitions import TopicConfig
from kcluster.partition.log.log import Log
from kcluster.partition.log.segment import Segment
from kcluster.timers import NEVER_MS

EXCESS_BYTES: Final = 32 << 20
"""The excess of a log over its limit that is tolerated: more than a live cluster writes between two
samples of its recorder (evidence/sampling.py)."""
NO_LIMIT: Final = 1 << 62


def size_limit(config: TopicConfig) -> int:
    """The size at which a log is shortened at once (`limit_size`)."""
    if config.retention_bytes < 0 or "delete" not in config.cleanup_policy:
        return NO_LIMIT
    return config.retention_bytes + EXCESS_BYTES


def limit_size(log: Log, now_ms: int, config: TopicConfig, high_watermark: int) -> None:
    """Delete the oldest segments until the log is within retention.bytes, by the rules of
    `expire`."""
    _delete_leading(log, now_ms, high_watermark, _over_size(log, config.retention_bytes))


def expire(log: Log, now_ms: int, config: TopicConfig, high_watermark: int) -> int:
    """Delete the segments that are due; return the number of offsets by which the log start moved.

    Whole segments only, oldest first, none with an offset at or above the high watermark.  If the
    newest segment is due a new one is rolled first, and the log is then empty.  The last stable
    offset holds nothing back, as in Kafka: records of an open transaction are deleted too.
    """
    if not log.segments:
        return 0
    start = log.log_start_offset
    _delete_leading(log, now_ms, high_watermark, _below_start(log))
    if "delete" in config.cleanup_policy:
        if 0 <= config.retention_bytes <= log.size_bytes:
            _delete_leading(log, now_ms, high_watermark, _over_size(log, config.retention_bytes))
        if config.retention_ms >= 0:
            _delete_leading(log, now_ms, high_watermark, _over_age(now_ms, config.retention_ms))
    return log.log_start_offset - start


def next_expiry_ms(log: Log, now_ms: int, config: TopicConfig) -> int:
    """The earliest time at which `expire`, which has just run, may delete something although
    neither the log nor its config nor its high watermark changes; NEVER_MS if time changes nothing.
    """
    if not log.segments or config.retention_ms < 0 or "delete" not in config.cleanup_policy:
        return NEVER_MS
    due_ms = log.segments[0].largest_timestamp + config.retention_ms + 1
    # Segments that are due already are held back by the high watermark, or are empty.
    return due_ms if due_ms > now_ms else NEVER_MS


_Predicate = Callable[[Segment, int | None], bool]
"""Whether a segment is due: (segment, base offset of the next segment or None) -> bool."""


def _below_start(log: Log) -> _Predicate:
    start = log.log_start_offset
    return lambda _, next_base: next_base is not None and next_base <= start


def _over_size(log: Log, retention_bytes: int) -> _Predicate:
    excess = log.size_bytes - retention_bytes

    def due(segment: Segment, _: int | None) -> bool:
        nonlocal excess
        if excess < segment.size_bytes:
            return False
        excess -= segment.size_bytes
        return True

    return due


def _over_age(now_ms: int, retention_ms: int) -> _Predicate:
    return lambda segment, _: now_ms - segment.largest_timestamp > retention_ms


def _delete_leading(log: Log, now_ms: int, high_watermark: int, due: _Predicate) -> None:
    segments = log.segments
    count = 0
    while count < len(segments):
        segment = segments[count]
        is_last = count + 1 == len(segments)
        next_base = None if is_last else segments[count + 1].base_offset
        end_offset = log.log_end_offset if next_base is None else next_base
        if high_watermark < end_offset or not due(segment, next_base):
            break
        if is_last and not segment.batches:
            break
        count += 1
    if not count:
        return
    if count == len(segments):
        log.roll(log.log_end_offset, now_ms)
    log.drop_segments(count)
