"""Deleting by age, by size, and below the log start."""

from __future__ import annotations

from typing import Any

from kcluster.config.kafka.definitions import TopicConfig
from kcluster.partition.log.log import Log
from kcluster.partition.log.retention import expire
from tests.partition.records_for_tests import EVERYTHING, NOW_MS, append, new_log, ranges, sent

BATCH_BYTES = len(sent())
ONE_BATCH: dict[str, Any] = {"internal_segment_bytes": BATCH_BYTES}
"""Each batch gets a segment of its own."""


def daily(config: TopicConfig, count: int = 4) -> Log:
    """Segments of one record each, a thousand ms apart, the first at NOW_MS."""
    log = new_log()
    for n in range(count):
        at_ms = NOW_MS + 1_000 * n
        append(log, sent(timestamp=at_ms), config=config, now_ms=at_ms)
    return log


def test_expire__by_age() -> None:
    config = TopicConfig(retention_ms=5_000, **ONE_BATCH)
    log = daily(config)
    assert expire(log, NOW_MS + 5_000, config, 4) == 0
    assert expire(log, NOW_MS + 6_001, config, 4) == 2
    assert (log.log_start_offset, log.log_end_offset) == (2, 4)
    assert ranges(log.read(2, EVERYTHING, 4)) == [(2, 2), (3, 3)]
    assert log.size_bytes == 2 * BATCH_BYTES


def test_expire__the_newest_segment_is_deleted_when_it_expires() -> None:
    config = TopicConfig(retention_ms=5_000)
    log = daily(config)
    assert expire(log, NOW_MS + 50_000, config, 4) == 4
    assert (log.log_start_offset, log.log_end_offset, log.size_bytes) == (4, 4, 0)
    assert expire(log, NOW_MS + 50_000, config, 4) == 0
    append(log, sent(), config=config)
    assert ranges(log.read(4, EVERYTHING, 5)) == [(4, 4)]


def test_expire__nothing_at_or_above_the_high_watermark_is_deleted() -> None:
    config = TopicConfig(retention_ms=0, **ONE_BATCH)
    log = daily(config)
    assert expire(log, NOW_MS + 50_000, config, 2) == 2
    assert log.log_start_offset == 2


def test_expire__by_size() -> None:
    config = TopicConfig(retention_ms=-1, retention_bytes=2 * BATCH_BYTES, **ONE_BATCH)
    log = daily(config)
    assert expire(log, NOW_MS, config, 4) == 2
    assert expire(log, NOW_MS, config, 4) == 0
    less = TopicConfig(retention_ms=-1, retention_bytes=2 * BATCH_BYTES - 1, **ONE_BATCH)
    assert expire(log, NOW_MS, less, 4) == 0  # whole segments only


def test_expire__segments_below_the_start_are_deleted_under_any_policy() -> None:
    config = TopicConfig(cleanup_policy=("compact",), retention_ms=0, **ONE_BATCH)
    log = daily(config)
    log.advance_log_start_offset(2)
    assert expire(log, NOW_MS + 50_000, config, 4) == 0
    assert log.size_bytes == 2 * BATCH_BYTES
    assert log.log_start_offset == 2


def test_expire__a_topic_without_a_policy_keeps_everything() -> None:
    config = TopicConfig(cleanup_policy=(), retention_ms=0, retention_bytes=0, **ONE_BATCH)
    log = daily(config)
    assert expire(log, NOW_MS + 50_000, config, 4) == 0
    assert log.size_bytes == 4 * BATCH_BYTES


def test_expire__records_without_timestamps_age_from_their_append() -> None:
    config = TopicConfig(retention_ms=5_000)
    log = new_log()
    append(log, sent(timestamp=-1), config=config)
    assert expire(log, NOW_MS + 5_000, config, 1) == 0
    assert expire(log, NOW_MS + 5_001, config, 1) == 1
