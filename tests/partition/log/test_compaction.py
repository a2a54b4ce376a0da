"""Log compaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from kcluster.config.kafka.definitions import TopicConfig
from kcluster.partition.log.compaction import compact
from kcluster.partition.log.log import Log
from kcluster.partition.log.retention import expire
from kcluster.protocol.records.batches import check_crc
from kcluster.protocol.records.markers import Marker, build_marker
from kcluster.protocol.records.records import Record
from tests.partition.records_for_tests import (
    EVERYTHING,
    NOW_MS,
    append,
    contents,
    keyed,
    new_log,
    ranges,
)
from tests.rig.requests import batch_with_wrong_lengths

CONFIG = TopicConfig(cleanup_policy=("compact",), internal_segment_bytes=400)


def log_of(
    *batches: Sequence[tuple[str, str | None]], config: TopicConfig = CONFIG, **more: Any
) -> Log:
    """Each batch in a segment of its own, and an empty newest one."""
    log = new_log()
    for batch in batches:
        append(log, keyed(*batch, **more), config=config)
        log.roll(log.log_end_offset, NOW_MS)
    return log


def test_compact__keeps_the_newest_record_of_each_key_at_its_offset() -> None:
    log = log_of([("a", "1"), ("b", "1")], [("a", "2"), ("c", "1")], [("b", "2")])
    before = log.size_bytes
    assert compact(log, NOW_MS, CONFIG, log.log_end_offset) == 2
    assert contents(log) == [(2, "a", "2"), (3, "c", "1"), (4, "b", "2")]
    assert (log.log_start_offset, log.log_end_offset) == (0, 5)
    assert log.size_bytes < before
    assert ranges(log.read(0, EVERYTHING, 5)) == [(2, 3), (4, 4)]
    assert all(check_crc(batch) for batch in log.batches_from(0))


def test_compact__an_empty_batch_is_kept_only_at_the_high_watermark() -> None:
    """Up to 4.3 it was kept where the cleaned part of the log ends."""
    log = log_of([("a", "1")], [("b", "1")], [("a", "2"), ("b", None)])
    later_ms = NOW_MS + 2 * CONFIG.delete_retention_ms
    for now_ms in (NOW_MS, later_ms):  # tombstones go in the second pass
        log.first_dirty_offset = 0
        compact(log, now_ms, CONFIG, log.log_end_offset)
    assert contents(log) == [(2, "a", "2")]
    log = log_of([("a", "1")], [("b", None)])
    for now_ms in (NOW_MS, later_ms):
        log.first_dirty_offset = 0
        compact(log, now_ms, CONFIG, log.log_end_offset)
    assert [batch.record_count for batch in log.batches_from(0)] == [1, 0]
    append(log, keyed(("c", "1")), config=CONFIG)
    log.roll(log.log_end_offset, NOW_MS)
    log.first_dirty_offset = 0
    compact(log, later_ms, CONFIG, log.log_end_offset)
    assert [batch.record_count for batch in log.batches_from(0)] == [1, 1]


def test_compact__a_log_with_a_record_above_the_limit_is_not_cleaned_any_more() -> None:
    log = log_of([("a", "1" * 500)], [("a", "2")], compression="gzip")
    lowered = replace(CONFIG, max_decompressed_message_bytes=100)
    assert compact(log, NOW_MS, lowered, log.log_end_offset) == 0
    assert log.is_uncleanable
    assert compact(log, NOW_MS, CONFIG, log.log_end_offset) == 0


def test_compact__a_batch_keeps_its_offset_range_and_its_origin() -> None:
    origin = {"producer_id": 5, "producer_epoch": 2}
    log = new_log()
    append(log, keyed(("a", "1"), ("b", "1"), base_sequence=0, **origin), epoch=3, config=CONFIG)
    append(log, keyed(("a", "2"), base_sequence=2, **origin), epoch=4, config=CONFIG)
    log.roll(3, NOW_MS)
    compact(log, NOW_MS, CONFIG, log.log_end_offset)
    first = log.batches_from(0)[0]
    assert (first.base_offset, first.last_offset, first.record_count) == (0, 1, 1)
    assert (first.producer_id, first.producer_epoch, first.base_sequence) == (5, 2, 0)
    assert first.leader_epoch == 3


def test_compact__followers_keep_the_batches_they_share() -> None:
    log = log_of([("a", "1")], [("a", "2")])
    follower = new_log()
    follower.append_as_follower(log.batches_from(0), 0, NOW_MS, CONFIG)
    compact(log, NOW_MS, CONFIG, 2)
    assert contents(follower) == [(0, "a", "1"), (1, "a", "2")]


def test_compact__the_newest_segment_and_uncommitted_records_are_kept() -> None:
    log = log_of([("a", "1")], [("a", "2")], [("a", "3")])
    append(log, keyed(("a", "4")), config=CONFIG)
    assert compact(log, NOW_MS, CONFIG, high_watermark=2) == 1
    assert [value for _, _, value in contents(log)] == ["2", "3", "4"]
    assert compact(log, NOW_MS, CONFIG, high_watermark=4) == 1
    assert [value for _, _, value in contents(log)] == ["3", "4"]


def test_compact__recent_records_are_kept() -> None:
    config = replace(CONFIG, min_compaction_lag_ms=1_000)
    log = log_of([("a", "1")], [("a", "2")], config=config)
    assert compact(log, NOW_MS + 999, config, 2) == 0
    assert compact(log, NOW_MS + 1_001, config, 2) == 1


def test_compact__waits_for_the_dirty_ratio() -> None:
    config = replace(CONFIG, min_cleanable_dirty_ratio=0.6)
    log = log_of([("a", "1"), ("b", "1")], config=config)
    compact(log, NOW_MS, config, 2)
    append(log, keyed(("a", "2")), config=config)
    log.roll(3, NOW_MS)
    assert compact(log, NOW_MS, config, 3) == 0
    soon = replace(config, max_compaction_lag_ms=5_000)
    assert compact(log, NOW_MS + 5_000, soon, 3) == 0
    assert compact(log, NOW_MS + 5_001, soon, 3) == 1


def test_compact__tombstones_stay_for_their_retention_time() -> None:
    config = replace(CONFIG, delete_retention_ms=1_000, min_cleanable_dirty_ratio=0.0)
    log = log_of([("a", "1"), ("b", "1")], [("a", None)])
    compact(log, NOW_MS, config, 3)
    assert contents(log) == [(1, "b", "1"), (2, "a", None)]
    for now_ms, left in [(NOW_MS + 999, [1, 2, 3]), (NOW_MS + 1_000, [1, 3, 4])]:
        append(log, keyed((f"k{now_ms}", "x")), config=config)
        log.roll(log.log_end_offset, NOW_MS)
        compact(log, now_ms, config, log.log_end_offset)
        assert [offset for offset, _, _ in contents(log)] == left


def test_compact__the_last_batch_of_a_producer_stays_for_its_sequence() -> None:
    log = new_log()
    append(log, keyed(("a", "1"), producer_id=5, producer_epoch=0, base_sequence=0), config=CONFIG)
    log.roll(1, NOW_MS)
    append(log, keyed(("a", "2")), config=CONFIG)
    log.roll(2, NOW_MS)
    compact(log, NOW_MS, CONFIG, 2)
    assert [batch.record_count for batch in log.batches_from(0)] == [0, 1]
    log.truncate_to(1)
    assert log.producers.states[5].next_sequence == 1


def test_compact__small_segments_are_merged() -> None:
    log = log_of(*([(f"k{n}", "v")] for n in range(12)))
    assert len(log.segments) == 13
    compact(log, NOW_MS, CONFIG, 12)
    assert len(log.segments) == 4
    assert len(contents(log)) == 12
    assert all(segment.size_bytes <= 400 for segment in log.segments)


def test_compact__is_independent_of_expire() -> None:
    log = log_of([("a", "1")], [("a", "2")])
    assert expire(log, NOW_MS, CONFIG, 2) == 0
    assert contents(log) == [(0, "a", "1"), (1, "a", "2")]
    assert compact(log, NOW_MS, CONFIG, 2) == 1
    assert contents(log) == [(1, "a", "2")]


@pytest.mark.parametrize("codec", ["gzip", "zstd"])
def test_compact__keeps_the_codec(codec: str) -> None:
    log = log_of([("a", "1"), ("b", "1")], [("a", "2")], compression=codec)
    compact(log, NOW_MS, CONFIG, 3)
    assert contents(log) == [(1, "b", "1"), (2, "a", "2")]
    assert {batch.codec for batch in log.batches_from(0)} == {1 if codec == "gzip" else 4}


def test_compact__records_of_an_aborted_transaction_go_and_its_marker_stays() -> None:
    log = log_of([("a", "committed")])
    origin = {"producer_id": 5, "producer_epoch": 0, "base_sequence": 0, "transactional": True}
    append(log, keyed(("a", "aborted"), **origin), config=CONFIG, transaction_verified=True)
    log.roll(log.log_end_offset, NOW_MS)
    open_until = log.log_end_offset
    assert compact(log, NOW_MS, CONFIG, open_until) == 0
    append(log, build_marker(5, 0, Marker(False, 0), NOW_MS), config=CONFIG, from_client=False)
    log.roll(log.log_end_offset, NOW_MS)
    assert compact(log, NOW_MS, CONFIG, log.log_end_offset) == 1
    batches = log.batches_from(0)
    assert [(one.base_offset, one.is_control) for one in batches if one.record_count] == [
        (0, False),
        (2, True),
    ]


def test_compact__leaves_a_log_alone_that_it_cannot_read() -> None:
    log = log_of([("a", "1")], [("a", "2")], [("a", "3")])
    append(log, batch_with_wrong_lengths([Record(0, NOW_MS, b"b", b"1")]), config=CONFIG)
    log.roll(log.log_end_offset, NOW_MS)
    size_bytes = log.size_bytes
    assert compact(log, NOW_MS, CONFIG, log.log_end_offset) == 0
    assert (log.is_uncleanable, log.size_bytes) == (True, size_bytes)
    log.truncate_fully_and_start_at(0)
    assert not log.is_uncleanable
