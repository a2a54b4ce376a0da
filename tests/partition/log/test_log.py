"""One replica's log: reading, following, truncating, time, flushing."""

from __future__ import annotations

import sys

import pytest
from msgspec.structs import replace

from kcluster.config.kafka.definitions import TopicConfig
from kcluster.partition.log.log import Log
from kcluster.protocol.records.batches import InvalidRecords
from kcluster.protocol.records.records import Record, build_batch
from tests.partition.records_for_tests import (
    CONFIG,
    EVERYTHING,
    NOW_MS,
    append,
    filled,
    new_log,
    ranges,
    sent,
)

SMALL_SEGMENTS = TopicConfig(internal_segment_bytes=200)


def following(leader: Log, config: TopicConfig = CONFIG) -> Log:
    """A follower that has all of `leader`."""
    log = new_log()
    log.append_as_follower(leader.batches_from(leader.log_start_offset), 99, NOW_MS, config)
    return log


# ------------------------------------------------------------------------------------- reading


@pytest.mark.parametrize("config", [CONFIG, SMALL_SEGMENTS])
@pytest.mark.parametrize(
    ("offset", "found"),
    [
        (0, [(0, 2), (3, 3), (4, 8)]),
        (2, [(0, 2), (3, 3), (4, 8)]),
        (3, [(3, 3), (4, 8)]),
        (4, [(4, 8)]),
        (8, [(4, 8)]),
        (9, []),
    ],
)
def test_read__starts_with_the_batch_that_holds_the_offset(
    config: TopicConfig, offset: int, found: list[tuple[int, int]]
) -> None:
    log = filled(3, 1, 5, config=config)
    assert ranges(log.read(offset, EVERYTHING, 9)) == found


@pytest.mark.parametrize(
    ("end_offset", "found"), [(9, [(0, 2), (3, 8)]), (8, [(0, 2)]), (3, [(0, 2)]), (2, []), (0, [])]
)
def test_read__returns_nothing_of_a_batch_that_reaches_the_end_offset(
    end_offset: int, found: list[tuple[int, int]]
) -> None:
    assert ranges(filled(3, 6).read(0, EVERYTHING, end_offset)) == found
    assert ranges(filled(9).read(5, EVERYTHING, 8)) == []


def test_read__the_first_batch_is_returned_whatever_its_size() -> None:
    log = filled(2, 2, 2)
    size = log.segments[0].batches[0].size_bytes
    assert ranges(log.read(0, 1, 6)) == [(0, 1)]
    assert ranges(log.read(0, 1, 6, at_least_one=False)) == []
    assert ranges(log.read(4, 1, 6, at_least_one=False)) == []
    assert ranges(log.read(0, 2 * size, 6, at_least_one=False)) == [(0, 1), (2, 3)]
    assert ranges(log.read(0, 2 * size - 1, 6, at_least_one=False)) == [(0, 1)]


def test_read__an_empty_log_has_nothing() -> None:
    assert new_log().read(0, EVERYTHING, 0) == []


def test_read__outside_the_log_is_an_error_of_the_caller() -> None:
    log = filled(2)
    log.advance_log_start_offset(1)
    for offset in (0, 3):
        with pytest.raises(AssertionError):
            log.read(offset, EVERYTHING, 2)


# ----------------------------------------------------------------------------------- following


def test_follow__shares_the_leaders_batches_and_learns_their_epochs() -> None:
    leader = filled(2, epoch=1)
    append(leader, sent(1, producer_id=5, producer_epoch=0, base_sequence=0), epoch=3)
    follower = following(leader)
    assert follower.log_end_offset == leader.log_end_offset
    assert follower.size_bytes == leader.size_bytes
    assert follower.epochs.entries == leader.epochs.entries == [(1, 0), (3, 2)]
    assert follower.producers.states == leader.producers.states
    pairs = zip(follower.batches_from(0), leader.batches_from(0), strict=True)
    assert all(mine is theirs for mine, theirs in pairs)


def test_follow__batches_of_a_later_epoch_are_left_for_the_next_fetch() -> None:
    leader = filled(2, epoch=1)
    append(leader, sent(1), epoch=2)
    follower = new_log()
    follower.append_as_follower(leader.batches_from(0), 1, NOW_MS, CONFIG)
    assert follower.log_end_offset == 2


def test_follow__offsets_may_skip_but_not_go_back() -> None:
    leader = filled(2, 2, 2)
    first, _, third = leader.batches_from(0)
    follower = new_log()
    follower.append_as_follower([first, third], 0, NOW_MS, CONFIG)
    assert ranges(follower.read(2, EVERYTHING, 6)) == [(4, 5)]
    with pytest.raises(AssertionError):
        follower.append_as_follower([third], 0, NOW_MS, CONFIG)


def test_follow__an_empty_log_may_begin_inside_a_batch() -> None:
    leader = filled(5, epoch=3)
    follower = new_log()
    follower.truncate_fully_and_start_at(2)
    follower.append_as_follower(leader.batches_from(0), 3, NOW_MS, CONFIG)
    assert (follower.log_start_offset, follower.log_end_offset) == (2, 5)
    assert follower.epochs.entries == [(3, 2)]
    assert ranges(follower.read(2, EVERYTHING, 5)) == [(0, 4)]


# -------------------------------------------------------------------------------------- rolling


def test_roll__by_size() -> None:
    log = filled(1, 1, 1, 1, 1, config=SMALL_SEGMENTS)
    assert [ranges(segment.batches) for segment in log.segments] == [
        [(0, 0), (1, 1)],
        [(2, 2), (3, 3)],
        [(4, 4)],
    ]
    assert following(log, SMALL_SEGMENTS).flushed_offset == 4


@pytest.mark.parametrize(("later_ms", "segments"), [(1_000, 1), (1_001, 2)])
def test_roll__by_the_time_between_timestamps(later_ms: int, segments: int) -> None:
    config = TopicConfig(segment_ms=1_000)
    log = filled(1, config=config)
    append(log, sent(timestamp=NOW_MS + later_ms), config=config)
    assert len(log.segments) == segments


@pytest.mark.parametrize(("later_ms", "segments"), [(1_000, 1), (1_001, 2)])
def test_roll__by_the_segments_age_where_there_are_no_timestamps(
    later_ms: int, segments: int
) -> None:
    config = TopicConfig(segment_ms=1_000)
    log = filled(1, config=config, timestamp=-1)
    append(log, sent(timestamp=-1), config=config, now_ms=NOW_MS + later_ms)
    assert len(log.segments) == segments


# ---------------------------------------------------------------------------------- truncating


@pytest.mark.parametrize("config", [CONFIG, SMALL_SEGMENTS])
@pytest.mark.parametrize(
    ("offset", "end_offset", "epochs"),
    [
        (9, 6, [(0, 0), (2, 3)]),
        (6, 6, [(0, 0), (2, 3)]),
        (5, 5, [(0, 0), (2, 3)]),
        (4, 3, [(0, 0)]),  # inside a batch: the whole batch is dropped
        (3, 3, [(0, 0)]),
        (1, 1, [(0, 0)]),
        (0, 0, []),
    ],
)
def test_truncate__drops_whole_batches(
    config: TopicConfig, offset: int, end_offset: int, epochs: list[tuple[int, int]]
) -> None:
    log = filled(1, 2, config=config)
    append(log, sent(2), epoch=2, config=config)
    append(log, sent(1), epoch=2, config=config)
    log.truncate_to(offset)
    assert log.log_end_offset == end_offset
    assert log.epochs.entries == epochs
    assert log.size_bytes == sum(batch.size_bytes for batch in log.batches_from(0))
    append(log, sent(1), epoch=3, config=config)
    assert ranges(log.read(end_offset, EVERYTHING, EVERYTHING)) == [(end_offset, end_offset)]


def idempotent(log: Log, sequence: int, config: TopicConfig = CONFIG) -> None:
    append(log, sent(1, producer_id=5, producer_epoch=0, base_sequence=sequence), config=config)


@pytest.mark.parametrize("config", [CONFIG, SMALL_SEGMENTS])
@pytest.mark.parametrize("offset", [1, 2, 7, 19])
def test_truncate__producer_states_are_those_at_that_offset(
    config: TopicConfig, offset: int
) -> None:
    log, expected = new_log(), new_log()
    for sequence in range(20):
        idempotent(log, sequence, config)
        if sequence < offset:
            idempotent(expected, sequence, config)
    log.truncate_to(offset)
    assert log.producers.states == expected.producers.states
    idempotent(log, offset, config)


def test_truncate__the_batch_that_the_log_starts_in_counts_for_its_producer() -> None:
    log = new_log()
    append(log, sent(3, producer_id=5, producer_epoch=0, base_sequence=0))
    idempotent(log, 3)
    log.advance_log_start_offset(1)
    log.truncate_to(3)
    idempotent(log, 3)


def test_truncate__below_the_start_restarts_the_log() -> None:
    log = filled(2, 2, 2)
    log.advance_log_start_offset(3)
    log.truncate_to(2)
    assert (log.log_start_offset, log.log_end_offset, log.size_bytes) == (2, 2, 0)


def test_truncate__inside_the_batch_that_the_log_starts_in_leaves_nothing() -> None:
    log = filled(5)
    log.advance_log_start_offset(2)
    log.truncate_to(4)
    assert (log.log_start_offset, log.log_end_offset, log.size_bytes) == (2, 2, 0)
    append(log, sent(1))
    assert ranges(log.read(2, EVERYTHING, 3)) == [(2, 2)]


def test_truncate__fully_and_start_at() -> None:
    log = filled(2, 2, epoch=4)
    log.truncate_fully_and_start_at(50)
    assert (log.log_start_offset, log.log_end_offset, log.epochs.entries) == (50, 50, [])
    append(log, sent(1), epoch=5)
    assert ranges(log.read(50, EVERYTHING, EVERYTHING)) == [(50, 50)]


def test_truncate__keeps_the_batches_that_followers_share() -> None:
    leader = filled(2, 2)
    follower = following(leader)
    leader.truncate_to(2)
    assert ranges(follower.read(0, EVERYTHING, 4)) == [(0, 1), (2, 3)]


def test_start__moves_up_only() -> None:
    log = filled(2, 2, epoch=1)
    append(log, sent(), epoch=2)
    assert log.advance_log_start_offset(3)
    assert not log.advance_log_start_offset(2)
    assert log.epochs.entries == [(1, 3), (2, 4)]
    assert ranges(log.read(3, EVERYTHING, 5)) == [(2, 3), (4, 4)]


# --------------------------------------------------------------------------------------- time


def timed(*batches: list[int], config: TopicConfig = CONFIG) -> Log:
    log = new_log()
    for epoch, times in enumerate(batches):
        append(log, build_batch([Record(0, at) for at in times]), epoch=epoch, config=config)
    return log


@pytest.mark.parametrize("config", [CONFIG, SMALL_SEGMENTS])
@pytest.mark.parametrize(
    ("timestamp", "answer"),
    [
        (0, (10, 0, 0)),
        (11, (30, 1, 0)),
        (30, (30, 1, 0)),
        (31, (50, 4, 1)),
        (50, (50, 4, 1)),
        (51, None),
    ],
)
def test_time__first_record_not_older(
    config: TopicConfig, timestamp: int, answer: tuple[int, int, int] | None
) -> None:
    assert (
        timed([10, 30, 20], [15, 50], [50], config=config).offset_for_timestamp(timestamp) == answer
    )


def test_time__records_below_the_log_start_do_not_count() -> None:
    log = timed([10, 30, 20], [15, 50])
    log.advance_log_start_offset(2)
    assert log.offset_for_timestamp(0) == (20, 2, 0)
    assert log.offset_for_timestamp(25) == (50, 4, 1)


@pytest.mark.parametrize("config", [CONFIG, SMALL_SEGMENTS])
def test_time__greatest_timestamp_is_that_of_its_first_record(config: TopicConfig) -> None:
    log = timed([10, 30, 20], [15, 50, 50], [50], config=config)
    assert log.offset_of_max_timestamp() == (50, 4, 1)
    assert new_log().offset_of_max_timestamp() is None


def test_time__a_record_above_the_limit_in_a_compressed_batch_is_invalid() -> None:
    log = new_log()
    append(log, build_batch([Record(0, 10, None, bytes(500))], compression="gzip"))
    append(log, build_batch([Record(0, 20, None, bytes(500))]))
    assert log.offset_for_timestamp(0, record_max=600) == (10, 0, 0)
    with pytest.raises(InvalidRecords, match="above 400"):
        log.offset_for_timestamp(0, record_max=400)
    assert log.offset_for_timestamp(20, record_max=400) == (20, 1, 0)
    assert log.offset_of_max_timestamp(record_max=400) == (20, 1, 0)


# ----------------------------------------------------------------------------------- power loss


def test_flush__unflushed_records_are_lost() -> None:
    log = filled(2, 2)
    assert log.lose_unflushed() == 4
    assert (log.log_start_offset, log.log_end_offset) == (0, 0)


def test_flush__flushed_records_are_kept() -> None:
    log = filled(2, 2)
    log.flush()
    append(log, sent(3))
    assert log.lose_unflushed() == 3
    assert log.log_end_offset == 4


def test_flush__by_count_and_by_time() -> None:
    config = replace(CONFIG, flush_messages=3, flush_ms=1_000)
    log = filled(2, config=config)
    assert log.flushed_offset == 0
    append(log, sent(1), config=config)
    assert log.flushed_offset == 3
    append(log, sent(1), config=config)
    log.flush_if_due(NOW_MS + 999, config)
    assert log.flushed_offset == 3
    log.flush_if_due(NOW_MS + 1_000, config)
    assert log.flushed_offset == 4


def test_flush__a_rolled_segment_is_flushed() -> None:
    log = filled(1, 1, 1, config=SMALL_SEGMENTS)
    assert log.flushed_offset == 2


def test_flush__the_start_of_a_log_is_never_lost() -> None:
    log = filled(2, 2)
    log.advance_log_start_offset(3)
    log.lose_unflushed()
    assert (log.log_start_offset, log.log_end_offset) == (3, 3)


# ---------------------------------------------------------------------------------------- cost


def test_cost__an_empty_log_is_small() -> None:
    log = new_log()
    parts = (log, log.epochs)
    assert sum(sys.getsizeof(part) for part in parts) < 400
    assert log.producer_table is None
    assert log.segments is new_log().segments
