"""What compaction must leave in every log: the newest committed record of each key, no older record
of that key in the cleaned part, and the last batch of each producer, even if it is then empty.  It
may only drop records, none younger than min.compaction.lag.ms, and none behind the first record of
an open transaction; and each segment's largest timestamp and size must be those of its batches.

Owns: which records must stay and which must go, and what else compaction has changed.  Never:
cleans a log (partition/log/compaction.py does), uses the code that does.  Kafka: no counterpart;
the promise of cleanup.policy=compact.

Records of aborted and of open transactions do not count: they make no older record of their key
superfluous.  A tombstone may go once it is older than delete.retention.ms; its batch stores that
time.  Everything below the log start may go, too.  The last batch of a producer must stay because a
replica that copies the log later knows a producer only by its batches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from kcluster.invariants.facts import (
    BatchAltered,
    CleanedTooYoung,
    EndCompacted,
    Measure,
    NewestRemoved,
    Observed,
    OlderKept,
    OutOfBounds,
    SegmentDiffers,
)
from kcluster.invariants.observed import Append, Committed, ObservedPartition, ObservedReplica
from kcluster.invariants.producer_facts import SequenceRemoved
from kcluster.partition.log.log import Log
from kcluster.partition.replica import Replica
from kcluster.protocol.records.batches import (
    DELETE_HORIZON_BIT,
    NO_TIMESTAMP,
    Batch,
    InvalidRecords,
)
from kcluster.protocol.records.markers import read_marker
from kcluster.protocol.records.records import read_records

Problem = tuple[str, Observed]
"""(name of the violation, what was observed)."""
_KEPT: Final = (
    "last_offset", "leader_epoch", "producer_id", "producer_epoch", "base_sequence",
    "is_transactional", "is_control", "timestamp_type",
)  # fmt: skip
"""What compaction keeps of a batch."""


def problems(
    observed: ObservedPartition, log: Log, last: Mapping[int, Batch], now_ms: int, forgotten_ms: int
) -> Iterator[Problem]:
    """What compaction has done wrong in a log of a partition.  `last`, `forgotten_ms`: see
    `sequence_removed`."""
    kept = older_kept(log)
    if kept is not None:
        yield "older-kept", kept
    if observed.unclean_epoch >= 0:
        return  # what was committed before it may have been cleaned, and then lost
    young = observed.appended_after(now_ms - observed.delete_retention_ms)
    removed = newest_removed(observed.committed, log, young)
    if removed is not None:
        yield "newest-compacted", removed
    changed = altered(observed.committed, log)
    if changed is not None:
        yield "batch-altered", changed
    sequence = sequence_removed(last, log, forgotten_ms)
    if sequence is not None:
        yield "sequence-compacted", sequence


def observe_cleaning(old: ObservedReplica, replica: Replica, now_ms: int) -> Iterator[Problem]:
    """Observe that a log was cleaned, or truncated below what was cleaned; and what is wrong with
    that."""
    log, observed = replica.log, old.partition
    dirty = max(old.first_dirty_offset, observed.clean_elsewhere(old.broker))
    lag_ms = old.record_cleaning(replica)
    yield from differing_segments(log)
    if observed.unclean_epoch < 0:
        yield from cleaned_too_young(observed.committed, log, dirty, now_ms, lag_ms)
        yield from end_removed(observed.committed, log, replica.high_watermark)
        if "compact" in replica.config.cleanup_policy:
            yield from _cleaned_unstable(log, dirty, replica.high_watermark)
    before, old.horizons = old.horizons, horizons_of(log)
    moved = horizon_moved(before, old.horizons)
    if moved is not None:
        yield "batch-altered", moved


def newest_removed(committed: Committed, log: Log, tombstones_from: int) -> NewestRemoved | None:
    """The newest records of their keys that a log lacks, though it reaches so far; None if it has
    all of them.  `tombstones_from`: the offset from which on tombstones are too young to go."""
    try:
        newest = newest_of_keys(committed, tombstones_from)
        held = {
            offset
            for batch in log.batches_from(log.log_start_offset)
            if not batch.is_control
            for offset in _offsets(batch)
        }
    except InvalidRecords:
        return None  # Kafka does not clean such a log
    start, end = log.log_start_offset, log.log_end_offset
    gone = sorted(one for one in newest if start <= one < end and one not in held)
    return NewestRemoved(gone[0], len(gone)) if gone else None


def older_kept(log: Log) -> OlderKept | None:
    """The records in the cleaned part of a log that have a newer one of their key there; None if
    there is none."""
    newest: dict[bytes, int] = {}
    older: list[int] = []
    try:
        for batch in log.batches_from(log.log_start_offset):
            if batch.last_offset >= log.first_dirty_offset:
                break
            for record in () if batch.is_control else read_records(batch):
                if record.key is not None:
                    before = newest.get(record.key)
                    if before is not None:
                        older.append(before)
                    newest[record.key] = record.offset
    except InvalidRecords:
        return None
    return OlderKept(min(older), len(older)) if older else None


def differing_segments(log: Log) -> Iterator[Problem]:
    """The segments whose largest timestamp or size is not that of their batches: retention, and
    look-ups by time, go by it."""
    for segment in log.segments:
        largest = max((batch.max_timestamp for batch in segment.batches), default=NO_TIMESTAMP)
        size_bytes = sum(batch.size_bytes for batch in segment.batches)
        pairs = (
            ("timestamp", segment.max_timestamp, largest),
            ("size", segment.size_bytes, size_bytes),
        )
        for what, kept, given in pairs:
            if kept != given:
                yield "segment-differs", SegmentDiffers(segment.base_offset, what, kept, given)


def cleaned_too_young(
    committed: Committed, log: Log, dirty: int, now_ms: int, lag_ms: int
) -> Iterator[Problem]:
    """The first batch that was younger than min.compaction.lag.ms when the log was cleaned, from
    the offset on that was `dirty` before.  Kafka: LogCleanerManager.cleanableOffsets."""
    if lag_ms <= 0:
        return
    for base, batch in committed.batches.items():
        is_cleaned = max(dirty, log.log_start_offset) <= base < log.first_dirty_offset
        if is_cleaned and batch.max_timestamp > now_ms - lag_ms:
            age_ms = now_ms - batch.max_timestamp
            yield "cleaned-too-young", CleanedTooYoung(base, age_ms, lag_ms)
            return


def end_removed(committed: Committed, log: Log, high_watermark: int) -> Iterator[Problem]:
    """The batch that ended at the high watermark, if it is missing from a log that was cleaned up
    to there.  Without it no consumer that reads on reaches the high watermark.  Kafka:
    Cleaner.cleanInto."""
    last = next(reversed(committed.batches.values()), None)
    if (
        last is None
        or last.last_offset + 1 != high_watermark
        or not log.log_start_offset <= last.base_offset <= last.last_offset < log.first_dirty_offset
    ):
        return
    if not any(one.last_offset == last.last_offset for one in log.batches_from(last.base_offset)):
        yield "end-compacted", EndCompacted(last.base_offset, high_watermark)


def _cleaned_unstable(log: Log, dirty: int, high_watermark: int) -> Iterator[Problem]:
    """What is wrong if a log was cleaned further than before, and behind the first record of an
    open transaction.  Kafka: LogCleanerManager.cleanableOffsets."""
    cleaned_to, producers = log.first_dirty_offset, log.producer_table
    if producers is None or cleaned_to <= dirty:
        return
    stable = producers.last_stable_offset(high_watermark)
    if cleaned_to > stable:
        further = (Measure.CLEANED_TO, cleaned_to, Measure.LAST_STABLE, stable)
        yield "cleaned-unstable", OutOfBounds(*further)


def last_of_producers(appends: Iterable[Append], committed: Committed) -> dict[int, Batch]:
    """The last batch of each producer, by its id, if it is committed.  If it is not, or was lost,
    compaction may have gone by a batch that no log has any more."""
    last = {
        one.batch.producer_id: one.batch
        for one in appends
        if one.batch.producer_id >= 0 and not one.batch.is_control
    }
    return {
        producer_id: batch
        for producer_id, batch in last.items()
        if committed.batches.get(batch.base_offset) is batch
    }


def sequence_removed(last: Mapping[int, Batch], log: Log, since_ms: int) -> SequenceRemoved | None:
    """The first producer whose last batch a log lacks, although the log's own producer table has
    it; None if there is none.  `since_ms`: producers that were silent since then may be forgotten
    at any time."""
    table = log.producer_table
    if table is None:
        return None
    held = {batch.last_offset for batch in log.batches_from(log.log_start_offset)}
    for producer_id, batch in sorted(last.items()):
        state = table.states.get(producer_id)
        if (
            state is not None
            and state.batches
            and state.batches[-1].last_offset == batch.last_offset
            and state.last_timestamp > since_ms
            and log.log_start_offset <= batch.base_offset
            and batch.last_offset not in held
        ):
            return SequenceRemoved(producer_id, batch.base_sequence, batch.base_offset)
    return None


def altered(committed: Committed, log: Log) -> BatchAltered | None:
    """The first batch of a log that is not its committed batch without some of the records."""
    try:
        for batch in log.batches_from(log.log_start_offset):
            wanted = committed.batches.get(batch.base_offset)
            if wanted is None or wanted is batch:
                continue
            what = _difference(batch, wanted)
            if what:
                return BatchAltered(batch.base_offset, what)
    except InvalidRecords:
        pass
    return None


def _difference(batch: Batch, wanted: Batch) -> str:
    """What compaction has changed in a batch; "" if it has only dropped records."""
    for name in _KEPT:
        if getattr(batch, name) != getattr(wanted, name):
            return name.replace("_", " ").removeprefix("is ")
    before = {record.offset: record for record in read_records(wanted)}
    is_part = all(before.get(record.offset) == record for record in read_records(batch))
    return "" if is_part else "record"


def horizons_of(log: Log) -> dict[tuple[int, int], int]:
    """The times at which tombstones in the cleaned part of a log may go, by the base offset and
    the leader epoch of their batch."""
    found: dict[tuple[int, int], int] = {}
    for batch in log.batches_from(log.log_start_offset):
        if batch.last_offset >= log.first_dirty_offset:
            break
        if batch.attributes & DELETE_HORIZON_BIT:
            found[batch.base_offset, batch.leader_epoch] = batch.base_timestamp
    return found


def horizon_moved(
    before: Mapping[tuple[int, int], int], after: Mapping[tuple[int, int], int]
) -> BatchAltered | None:
    """The first batch of one log whose tombstones may go at another time than before: the first
    cleaning sets that time for good (KIP-534)."""
    for place, horizon_ms in before.items():
        if after.get(place, horizon_ms) != horizon_ms:
            return BatchAltered(place[0], "delete horizon")
    return None


def newest_of_keys(committed: Committed, tombstones_from: int) -> list[int]:
    """The offsets of the newest committed record of each key, except for tombstones before
    `tombstones_from`."""
    newest: dict[bytes, tuple[int, bool]] = {}
    in_transaction: dict[int, list[Batch]] = {}
    for _, batch in sorted(committed.batches.items()):
        if batch.is_control:
            marker = read_marker(batch)
            ended = in_transaction.pop(batch.producer_id, [])
            for one in ended if marker is not None and marker.is_commit else ():
                _count(newest, one)
        elif batch.is_transactional:
            in_transaction.setdefault(batch.producer_id, []).append(batch)
        else:
            _count(newest, batch)
    return [
        offset
        for offset, is_tombstone in newest.values()
        if not is_tombstone or offset >= tombstones_from
    ]


def _count(newest: dict[bytes, tuple[int, bool]], batch: Batch) -> None:
    for record in read_records(batch):
        if record.key is not None and newest.get(record.key, (-1, False))[0] < record.offset:
            newest[record.key] = (record.offset, record.value is None)


def _offsets(batch: Batch) -> list[int]:
    return [record.offset for record in read_records(batch)]
