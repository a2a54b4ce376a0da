"""Compaction leaves the newest committed record of each key, in every log."""

from __future__ import annotations

from typing import Any

from kcluster.invariants.compacted import (
    altered,
    cleaned_too_young,
    differing_segments,
    end_removed,
    horizon_moved,
    horizons_of,
    last_of_producers,
    newest_of_keys,
    newest_removed,
    older_kept,
    sequence_removed,
)
from kcluster.invariants.facts import (
    BatchAltered,
    CleanedTooYoung,
    EndCompacted,
    NewestRemoved,
    OlderKept,
    SegmentDiffers,
)
from kcluster.invariants.observed import Append, Committed
from kcluster.invariants.producer_facts import SequenceRemoved
from kcluster.partition.log.log import Log
from kcluster.protocol.records.batches import parse_batches
from kcluster.protocol.records.markers import Marker, build_marker
from kcluster.protocol.records.records import Record, build_batch
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.running import run_scenario

PRODUCER = 7


def committed(*batches: bytes | bytearray) -> Committed:
    """These batches, one offset each, as a partition's committed records."""
    found = Committed()
    for offset, encoded in enumerate(batches):
        (batch,) = parse_batches(encoded)
        batch.base_offset = batch.last_offset = offset
        found.batches[offset] = batch
    found.end = len(batches)
    return found


def record(key: bytes, value: bytes | None, producer: int = -1) -> bytes | bytearray:
    return build_batch(
        [Record(0, 0, key, value, ())],
        producer_id=producer,
        producer_epoch=0 if producer >= 0 else -1,
        base_sequence=0 if producer >= 0 else -1,
        transactional=producer >= 0,
    )


def marker(is_commit: bool) -> bytes | bytearray:
    return build_marker(PRODUCER, 0, Marker(is_commit, 0), 0)


def log_of(found: Committed, *offsets: int) -> Log:
    """A log that has kept these records."""
    log = Log(bytes(16), 0)
    log.append_as_follower([found.batches[at] for at in offsets])
    log.log_end_offset = found.end
    return log


def test_newest__of_each_key() -> None:
    found = committed(record(b"a", b"1"), record(b"b", b"2"), record(b"a", b"3"))
    assert newest_of_keys(found, 99) == [2, 1]


def test_newest__a_record_of_an_aborted_or_open_transaction_does_not_count() -> None:
    own = record(b"a", b"2", PRODUCER)
    assert newest_of_keys(committed(record(b"a", b"1"), own), 99) == [0]
    assert newest_of_keys(committed(record(b"a", b"1"), own, marker(False)), 99) == [0]
    assert newest_of_keys(committed(record(b"a", b"1"), own, marker(True)), 99) == [1]


def test_newest__a_tombstone_may_go_with_all_before_it_when_it_is_old() -> None:
    deleted = committed(record(b"a", b"1"), record(b"a", None))
    assert newest_of_keys(deleted, 2) == []
    assert newest_of_keys(deleted, 1) == [1]


def test_removed__the_newest_record_of_a_key() -> None:
    found = committed(record(b"a", b"1"), record(b"b", b"2"), record(b"a", b"3"))
    assert newest_removed(found, log_of(found, 1, 2), 99) is None
    assert newest_removed(found, log_of(found, 0, 1), 99) == NewestRemoved(2, 1)
    assert newest_removed(found, log_of(found, 0), 99) == NewestRemoved(1, 2)


def test_removed__not_what_was_deleted_or_has_not_arrived() -> None:
    found = committed(record(b"a", b"1"), record(b"b", b"2"), record(b"c", b"3"))
    log = log_of(found, 1)
    log.log_start_offset, log.log_end_offset = 1, 2
    assert newest_removed(found, log, 99) is None


def test_older_kept__in_the_part_that_was_cleaned() -> None:
    found = committed(record(b"a", b"1"), record(b"b", b"2"), record(b"a", None))
    log = log_of(found, 0, 1, 2)
    assert older_kept(log) is None
    log.first_dirty_offset = 3
    assert older_kept(log) == OlderKept(0, 1)
    log = log_of(found, 1, 2)
    log.first_dirty_offset = 3
    assert older_kept(log) is None


def appends(found: Committed) -> list[Append]:
    """The appends of these records, all by one leader."""
    return [
        Append(0, 1, 0, at, at, batch, None, (1,), 0) for at, batch in sorted(found.batches.items())
    ]


def cleaned(found: Committed, *gone: int) -> Log:
    """A log that had all these records, without those that compaction has removed."""
    log = log_of(found, *found.batches)
    (segment,) = log.segments
    segment.replace([one for one in segment.batches if one.base_offset not in gone])
    return log


def sequenced(key: bytes, sequence: int) -> bytes | bytearray:
    one = Record(0, 5_000, key, b"v", ())
    return build_batch([one], producer_id=PRODUCER, producer_epoch=0, base_sequence=sequence)


def test_sequence__of_a_producer_goes_with_its_last_batch_alone() -> None:
    found = committed(sequenced(b"a", 0), sequenced(b"a", 1), record(b"a", b"2"))
    last = last_of_producers(appends(found), found)
    assert last == {PRODUCER: found.batches[1]}
    assert sequence_removed(last, cleaned(found), 0) is None
    assert sequence_removed(last, cleaned(found, 0), 0) is None
    assert sequence_removed(last, cleaned(found, 0, 1), 0) == SequenceRemoved(PRODUCER, 1, 1)


def test_sequence__that_nobody_has_to_know() -> None:
    found = committed(sequenced(b"a", 0), record(b"a", b"1"))
    last = last_of_producers(appends(found), found)
    without = cleaned(found, 0)
    assert sequence_removed(last, without, 4_999) is not None
    assert sequence_removed(last, without, 5_000) is None, "the producer was silent for so long"
    assert sequence_removed(last, log_of(found, 1), 0) is None, "a copy of the log has no table"
    without.log_start_offset = 1
    assert sequence_removed(last, without, 0) is None, "deleted, not compacted"


def test_sequence__when_a_later_batch_was_lost() -> None:
    """Compaction went by the later one."""
    found = committed(sequenced(b"a", 0), record(b"a", b"1"), sequenced(b"a", 1))
    appended = appends(found)
    del found.batches[2]
    assert last_of_producers(appended, found) == {}


def test_horizon__of_the_cleaned_part_stays() -> None:
    found = committed(
        build_batch([Record(0, 0, b"a", None, ())], leader_epoch=4, delete_horizon_ms=900),
        build_batch([Record(0, 0, b"b", None, ())], leader_epoch=4, delete_horizon_ms=950),
    )
    log = log_of(found, 0, 1)
    log.first_dirty_offset = 1
    horizons = horizons_of(log)
    assert horizons == {(0, 4): 900}
    log.first_dirty_offset = 2
    assert horizon_moved(horizons, horizons_of(log)) is None
    assert horizon_moved(horizons, {}) is None, "the tombstone has gone"
    assert horizon_moved(horizons, {(0, 5): 990}) is None, "another leader's batch"
    assert horizon_moved(horizons, {(0, 4): 990}) == BatchAltered(0, "delete horizon")


def test_altered__a_batch_may_lose_records_and_nothing_else() -> None:
    records = [Record(at, 0, b"k%d" % at, b"v", ()) for at in range(3)]
    kept: dict[str, Any] = {
        "last_offset": 2,
        "producer_id": PRODUCER,
        "producer_epoch": 0,
        "base_sequence": 5,
    }
    found = Committed()
    (found.batches[0],) = parse_batches(build_batch(records, leader_epoch=4, **kept))
    other = Record(1, 0, b"k1", b"another value", ())
    for rebuilt, what in [
        (build_batch(records[1:], leader_epoch=4, **kept), ""),
        (build_batch([], leader_epoch=4, **kept), ""),
        (build_batch(records[1:], leader_epoch=0, **kept), "leader epoch"),
        (build_batch(records[1:], leader_epoch=4, transactional=True, **kept), "transactional"),
        (
            build_batch(records[1:], leader_epoch=4, **(kept | {"base_sequence": 6})),
            "base sequence",
        ),
        (build_batch([other], leader_epoch=4, **kept), "record"),
    ]:
        log = Log(bytes(16), 0)
        log.append_as_follower(parse_batches(rebuilt))
        assert altered(found, log) == (BatchAltered(0, what) if what else None)


def test_segment__its_timestamp_and_size_are_those_of_its_batches() -> None:
    found = committed(record(b"a", b"1"), record(b"b", b"2"))
    log = log_of(found, 0, 1)
    assert list(differing_segments(log)) == []
    size_bytes = log.segments[0].size_bytes
    log.segments[0].max_timestamp += 5
    log.segments[0].size_bytes -= 1
    assert list(differing_segments(log)) == [
        ("segment-differs", SegmentDiffers(0, "timestamp", 5, 0)),
        ("segment-differs", SegmentDiffers(0, "size", size_bytes - 1, size_bytes)),
    ]


def test_cleaning__leaves_young_records_alone() -> None:
    """The records here are of time 0."""
    found = committed(record(b"a", b"1"), record(b"b", b"2"))
    log = log_of(found, 0, 1)
    log.first_dirty_offset = 2
    assert list(cleaned_too_young(found, log, 0, 900, 900)) == []
    young = ("cleaned-too-young", CleanedTooYoung(0, 899, 900))
    assert list(cleaned_too_young(found, log, 0, 899, 900)) == [young]
    assert list(cleaned_too_young(found, log, 2, 899, 900)) == []  # it was cleaned before
    assert list(cleaned_too_young(found, log, 0, 899, 0)) == []


def test_cleaning__leaves_the_batch_that_ends_at_the_high_watermark() -> None:
    found = committed(record(b"a", b"1"), record(b"b", b"2"))
    whole, cut = log_of(found, 0, 1), log_of(found, 0)
    whole.first_dirty_offset = cut.first_dirty_offset = 2
    assert list(end_removed(found, whole, 2)) == []
    assert list(end_removed(found, cut, 2)) == [("end-compacted", EndCompacted(1, 2))]
    assert list(end_removed(found, cut, 5)) == []  # others follow, which will be committed
    cut.first_dirty_offset = 1  # a log that does not reach so far
    assert list(end_removed(found, cut, 2)) == []


RAISED = """\
topology:
  brokers: 3
  topics:
    table:
      partitions: 2
      replication_factor: 3
      config:
        min.insync.replicas: 2
        cleanup.policy: compact
        segment.ms: 400
        min.cleanable.dirty.ratio: 0.01
        min.compaction.lag.ms: 1500
  config:
    broker.session.timeout.ms: 1000
    broker.heartbeat.interval.ms: 200
    replica.lag.time.max.ms: 1000
    log.cleaner.backoff.ms: 100
workload: {producers: {topic: table, rate: 10/s, keys: 6, in_flight: 1}}
duration: 8s
steps:
  - {at: 2700ms, kill: 1, for: 3s}
  - {at: 5750ms, set_config: {topics: table, config: {min.compaction.lag.ms: 2500}}, for: 5s}
"""


def test_cleaning__in_the_step_that_learns_of_a_longer_lag_goes_by_the_shorter_one() -> None:
    result = run_scenario(Scenario.parse(RAISED), "virtual", 1)
    assert result.verdict.violations == ()
