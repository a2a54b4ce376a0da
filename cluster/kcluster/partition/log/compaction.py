"""Log compaction: only the newest record of each key is kept.

Owns: the choice of segments and times, and the batches that remain.  Never: changes a batch
(replicas share it; a new one takes its place), moves the log's start or end, or renumbers a record.
Kafka: LogCleaner, LogCleanerManager.cleanableOffsets, MemoryRecords.filterTo; KIP-58, KIP-354,
KIP-534 (delete horizon).

Never cleaned: the newest segment, records at or above the last stable offset, records younger than
min.compaction.lag.ms.  Records of aborted transactions are dropped; markers stay. A tombstone (null
value) is kept for delete.retention.ms after compaction first saw it; that time is in its batch, in
the base timestamp field.  As in Kafka, a log is not cleaned any more if it has a batch that cannot
be read, or a record above max.decompressed.message.bytes in a compressed batch.  Not done: markers
whose transaction has no record left are not dropped.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from kcluster.config.kafka.definitions import TopicConfig
from kcluster.partition.log.log import Log
from kcluster.partition.log.segment import Segment, segment_index
from kcluster.partition.producers import AbortedTransaction
from kcluster.protocol.int64 import INT64_MAX
from kcluster.protocol.records.batches import (
    DELETE_HORIZON_BIT,
    Batch,
    InvalidRecords,
    parse_batches,
)
from kcluster.protocol.records.records import Record, build_batch, read_records

NO_LAG_LIMIT: Final = 2**63 - 1
"""Default of max.compaction.lag.ms."""


class _Pass(Struct):
    """One cleaning of one log."""

    newest: dict[bytes, int]
    """The offset of each key's newest record in the dirty part of the log."""
    high_watermark: int
    """The high watermark; a batch that ends there is kept, even if it is empty."""
    last_offsets: dict[int, int]
    """The last offset of each producer id.  The batch there is kept for its sequence, even if it is
    empty."""
    now_ms: int
    tombstone_ms: int
    aborted: list[AbortedTransaction]
    """The log's aborted transactions."""
    record_max: int
    """The value of max.decompressed.message.bytes."""


def compact(log: Log, now_ms: int, config: TopicConfig, high_watermark: int) -> int:
    """Clean the log if enough of it is dirty; return the number of records dropped."""
    if log.is_uncleanable:
        return 0
    segments = log.segments
    start = max(log.first_dirty_offset, log.log_start_offset)
    end_index = _cleanable_end(log, start, now_ms, config, high_watermark)
    if not end_index or segments[end_index].base_offset <= start:
        return 0
    end_offset = segments[end_index].base_offset
    cleanable = segments[:end_index]
    if not _worthwhile(cleanable, start, now_ms, config):
        return 0
    last_offsets: dict[int, int] = {}
    aborted: list[AbortedTransaction] = []
    producers = log.producer_table
    if producers is not None:
        last_offsets = {
            producer_id: state.batches[-1].last_offset
            for producer_id, state in producers.states.items()
            if state.batches
        }
        aborted = producers.aborted
    before = _count(cleanable)
    try:
        work = _Pass(
            newest=_newest_offsets(
                cleanable, start, aborted, config.max_decompressed_message_bytes
            ),
            high_watermark=high_watermark,
            last_offsets=last_offsets,
            now_ms=now_ms,
            tombstone_ms=min(now_ms + config.delete_retention_ms, INT64_MAX),
            aborted=aborted,
            record_max=config.max_decompressed_message_bytes,
        )
        cleaned = [_clean(segment, work) for segment in cleanable]
    except InvalidRecords:
        log.is_uncleanable = True
        return 0
    merged = _merge(cleaned, config.max_segment_bytes)
    log.replace_segments(end_index, merged)
    log.first_dirty_offset = end_offset
    return before - _count(merged)


def is_compactable(log: Log) -> bool:
    """Whether a log has a dirty part, apart from its newest segment."""
    segments = log.segments
    start = max(log.first_dirty_offset, log.log_start_offset)
    return len(segments) > 1 and segments[-1].base_offset > start


def _cleanable_end(
    log: Log, first_dirty: int, now_ms: int, config: TopicConfig, high_watermark: int
) -> int:
    """Index of the first segment that must not be cleaned."""
    segments = log.segments
    producers, stable = log.producer_table, high_watermark
    if producers is not None:
        stable = producers.last_stable_offset(high_watermark)
    lag_ms = config.min_compaction_lag_ms
    for index in range(len(segments) - 1):
        segment, next_base = segments[index], segments[index + 1].base_offset
        if next_base > stable:
            return index
        if lag_ms > 0 and next_base > first_dirty and segment.largest_timestamp > now_ms - lag_ms:
            return index
    return max(0, len(segments) - 1)


def _worthwhile(
    cleanable: list[Segment], first_dirty: int, now_ms: int, config: TopicConfig
) -> bool:
    dirty_index = segment_index(cleanable, first_dirty)
    dirty = cleanable[dirty_index:]
    dirty_bytes = sum(segment.size_bytes for segment in dirty)
    all_bytes = sum(segment.size_bytes for segment in cleanable)
    if dirty_bytes and dirty_bytes >= all_bytes * config.min_cleanable_dirty_ratio:
        return True
    if config.max_compaction_lag_ms == NO_LAG_LIMIT:
        return False
    oldest = min(
        (segment.batches[0].max_timestamp for segment in dirty if segment.batches), default=now_ms
    )
    return now_ms - oldest > config.max_compaction_lag_ms


def _is_aborted(batch: Batch, aborted: list[AbortedTransaction]) -> bool:
    """Whether a batch's transaction was aborted."""
    return batch.is_transactional and any(
        one.producer_id == batch.producer_id
        and one.first_offset <= batch.base_offset <= one.last_offset
        for one in aborted
    )


def _newest_offsets(
    segments: list[Segment], first_dirty: int, aborted: list[AbortedTransaction], record_max: int
) -> dict[bytes, int]:
    newest: dict[bytes, int] = {}
    for segment in segments:
        for batch in segment.batches:
            if batch.last_offset < first_dirty or batch.is_control:
                continue
            if aborted and _is_aborted(batch, aborted):
                continue
            for record in read_records(batch, record_max=record_max):
                if record.key is not None:
                    newest[record.key] = record.offset
    return newest


def _clean(segment: Segment, work: _Pass) -> Segment:
    batches = [
        remaining
        for batch in segment.batches
        if (remaining := _clean_batch(batch, work)) is not None
    ]
    cleaned = Segment(segment.base_offset, segment.created_ms)
    cleaned.appended_ms = segment.appended_ms
    cleaned.replace(batches)
    return cleaned


def _clean_batch(batch: Batch, work: _Pass) -> Batch | None:
    """The part of `batch` to keep: itself, a smaller batch, or None."""
    if batch.is_control:
        return batch
    horizon_ms = batch.base_timestamp if batch.attributes & DELETE_HORIZON_BIT else None
    tombstones_go = horizon_ms is not None and horizon_ms <= work.now_ms
    opened = read_records(batch, record_max=work.record_max)
    if work.aborted and _is_aborted(batch, work.aborted):
        retained: list[Record] = []
    else:
        retained = [record for record in opened if _is_kept(record, work, tombstones_go)]
    if not retained:
        ends_at_high_watermark = batch.last_offset + 1 == work.high_watermark
        last_of_producer = (
            batch.producer_id >= 0 and work.last_offsets.get(batch.producer_id) == batch.last_offset
        )
        if not (ends_at_high_watermark or last_of_producer):
            return None
    if horizon_ms is None and any(record.value is None for record in retained):
        horizon_ms = work.tombstone_ms
    elif len(retained) == len(opened):
        return batch
    return _rebuild(batch, retained, horizon_ms)


def _is_kept(record: Record, work: _Pass, tombstones_go: bool) -> bool:
    if record.key is None:
        return False
    if record.value is None and tombstones_go:
        return False
    return record.offset >= work.newest.get(record.key, -1)


def _rebuild(batch: Batch, records: list[Record], horizon_ms: int | None) -> Batch:
    rebuilt = build_batch(
        records,
        base_offset=batch.base_offset,
        last_offset=batch.last_offset,
        compression=batch.codec,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        transactional=batch.is_transactional,
        leader_epoch=batch.leader_epoch,
        timestamp_type=batch.timestamp_type,
        delete_horizon_ms=horizon_ms,
    )
    return parse_batches(rebuilt)[0]


def _merge(segments: list[Segment], segment_bytes: int) -> list[Segment]:
    """Join adjacent segments while they fit into one.  Kafka: groupSegmentsBySize."""
    merged: list[Segment] = []
    for segment in segments:
        if merged and merged[-1].size_bytes + segment.size_bytes <= segment_bytes:
            last = merged[-1]
            last.batches += segment.batches
            last.size_bytes += segment.size_bytes
            last.max_timestamp = max(last.max_timestamp, segment.max_timestamp)
            last.appended_ms = max(last.appended_ms, segment.appended_ms)
        else:
            merged.append(segment)
    return merged


def _count(segments: list[Segment]) -> int:
    return sum(batch.record_count for segment in segments for batch in segment.batches)
