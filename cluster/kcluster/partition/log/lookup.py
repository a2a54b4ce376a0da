"""Finding batches and records in a log's segments, by offset and by time.

Owns: pure functions on a list of segments.  Never: changes one; knows the high watermark (the
caller passes the offset where reading ends).
Kafka: LocalLog.read, LogSegment.findOffsetByTimestamp; KIP-74, KIP-734.
"""

from __future__ import annotations

from kcluster.partition.log.segment import Segment, segment_index
from kcluster.protocol.records.batches import Batch
from kcluster.protocol.records.records import read_records


def read_batches(
    segments: list[Segment], offset: int, max_bytes: int, end_offset: int, at_least_one: bool
) -> list[Batch]:
    """Whole batches from the one that holds `offset` on, all below `end_offset`; see Log.read."""
    result: list[Batch] = []
    at = segment_index(segments, offset)
    index = segments[at].index_of(offset)
    while at < len(segments):
        batches = segments[at].batches
        for position in range(index, len(batches)):
            batch = batches[position]
            if batch.last_offset >= end_offset:
                return result
            max_bytes -= batch.size_bytes
            if max_bytes < 0 and (result or not at_least_one):
                return result
            result.append(batch)
        at += 1
        index = 0
    return result


def end_of_batch_with(segments: list[Segment], offset: int) -> int:
    """The offset after the batch that holds `offset`, or after the next batch; `offset` if there is
    no later batch."""
    if not segments:
        return offset
    for segment in segments[segment_index(segments, offset) :]:
        index = segment.index_of(offset)
        if index < len(segment.batches):
            return segment.batches[index].last_offset + 1
    return offset


def batches_from(segments: list[Segment], offset: int) -> list[Batch]:
    """All batches from the one that holds `offset` on."""
    if not segments:
        return []
    at = segment_index(segments, offset)
    first = segments[at]
    batches = first.batches[first.index_of(offset) :]
    for segment in segments[at + 1 :]:
        batches += segment.batches
    return batches


def first_not_older(
    segments: list[Segment], timestamp_ms: int, log_start_offset: int, record_max: int
) -> tuple[int, int, int] | None:
    """Return (timestamp, offset, leader epoch) of the first record with a timestamp of at least
    `timestamp_ms`; None if there is none.  In most cases, only one batch is opened.  Raises
    InvalidRecords, also for a record of more than `record_max` bytes (see read_records)."""
    for segment in segments:
        if segment.max_timestamp < timestamp_ms:
            continue
        for batch in segment.batches:
            if batch.max_timestamp < timestamp_ms or batch.last_offset < log_start_offset:
                continue
            for record in read_records(batch, record_max=record_max):
                if record.timestamp >= timestamp_ms and record.offset >= log_start_offset:
                    return record.timestamp, record.offset, batch.leader_epoch
    return None


def newest_by_time(segments: list[Segment], record_max: int) -> tuple[int, int, int] | None:
    """Return (timestamp, offset, leader epoch) of the first record with the greatest timestamp;
    None if no record has one.  Raises InvalidRecords like `first_not_older`."""
    filled = [segment for segment in segments if segment.max_timestamp >= 0]
    if not filled:
        return None
    newest = max(filled, key=lambda segment: segment.max_timestamp)
    timestamp = newest.max_timestamp
    for batch in newest.batches:
        if batch.max_timestamp == timestamp:
            for record in read_records(batch, record_max=record_max):
                if record.timestamp == timestamp:
                    return timestamp, record.offset, batch.leader_epoch
    return None
