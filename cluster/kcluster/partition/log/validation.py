"""What a leader checks in a produced batch before it appends it, and how it rewrites one.

Owns: pure functions on a batch and a topic's config, in Kafka's order of checks.  Never: touches a
log; opens records unless the topic's config requires it.
Kafka: UnifiedLog.analyzeAndValidateRecords, LogValidator; KIP-467 (record errors), KIP-937.

DIFFERS: Kafka reads the records of every batch.  Here they are opened only where something depends
on them (a compacted topic, a timestamp out of bounds, a change of codec).  Otherwise the lengths of
the records are added up in small uncompressed batches, such as a hand-written client sends; the
header of a larger batch is trusted.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from kcluster.config.kafka.definitions import TopicConfig
from kcluster.partition.log.append_rules import BEFORE_UNLIMITED, AppendRules
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.records import compression
from kcluster.protocol.records.batches import (
    CODEC_MASK,
    CONTROL_BIT,
    CREATE_TIME,
    LOG_APPEND_TIME,
    LOG_APPEND_TIME_BIT,
    NO_TIMESTAMP,
    Batch,
    InvalidRecords,
    check_crc,
    frames_add_up,
    parse_batches,
    seal,
)
from kcluster.protocol.records.records import Record, build_batch, read_records

ZSTD: Final = 4
NO_CODEC: Final = 0
_RECORDS_ADDED_UP_MAX: Final = 8
_TEXTS_SHOWN: Final = 3
_MAX_TIMESTAMP_AT: Final = 35
_ATTRIBUTES_AT: Final = 21


class Refusal(Struct, gc=False):
    """Why a batch is not appended; `record_errors`: (index in the batch, why)."""

    error: ErrorCode
    text: str
    record_errors: tuple[tuple[int, str], ...] = ()
    shows_log_start: bool = True
    """Whether the answer has the log start offset; Kafka leaves it out of some refusals."""


def admit(
    buffer: bytes | bytearray | memoryview, rules: AppendRules, now_ms: int, from_client: bool
) -> Batch | Refusal:
    """The one batch in `buffer`, ready to append but for its offset and leader epoch."""
    try:
        batches = parse_batches(buffer)
    except InvalidRecords as problem:
        return Refusal(problem.error, problem.text, shows_log_start=False)
    if len(batches) != 1:
        return Refusal(
            ErrorCode.INVALID_RECORD,
            f"{len(batches)} batches for a partition, must be one",
            shows_log_start=False,
        )
    batch = batches[0]
    refusal = check_header(batch, rules, from_client)
    if refusal is not None:
        return refusal
    if (
        rules.takes_as_sent
        and not batch.attributes & LOG_APPEND_TIME_BIT
        and batch.max_timestamp - now_ms <= rules.timestamp_after_max_ms
    ):
        refusal = _check_frames(batch, batch.attributes & CODEC_MASK)
    else:
        batch, refusal = check_contents(batch, rules.config, now_ms)
    if refusal is not None:
        return refusal
    if batch.size_bytes > rules.max_segment_bytes:
        return Refusal(
            ErrorCode.RECORD_LIST_TOO_LARGE,
            f"batch of {batch.size_bytes} bytes exceeds segment.bytes ({rules.max_segment_bytes})",
            shows_log_start=False,
        )
    return batch


def check_header(batch: Batch, rules: AppendRules, from_client: bool) -> Refusal | None:
    """Check the header and the crc."""
    if (
        batch.size_bytes <= rules.max_message_bytes
        and batch.attributes & CODEC_MASK <= ZSTD
        and check_crc(batch)
    ):
        if not from_client:
            return None
        if (
            batch.base_offset == 0
            and 0 < batch.record_count == batch.last_offset + 1
            and not batch.attributes & CONTROL_BIT
            and (batch.producer_id < 0 or batch.base_sequence >= 0)
        ):
            return None
    refusal = _first_fault(batch, rules.config, from_client)
    assert refusal is not None, batch
    return refusal


def _first_fault(batch: Batch, config: TopicConfig, from_client: bool) -> Refusal | None:
    """The reason that Kafka would find first."""
    if from_client and batch.base_offset != 0:
        return _invalid(f"base offset must be 0, but is {batch.base_offset}")
    if batch.size_bytes > config.max_message_bytes:
        return Refusal(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"batch of {batch.size_bytes} bytes exceeds max.message.bytes "
            f"({config.max_message_bytes})",
            shows_log_start=False,
        )
    if not check_crc(batch):
        return Refusal(
            ErrorCode.CORRUPT_MESSAGE,
            "crc of the batch does not match its bytes",
            shows_log_start=False,
        )
    if batch.codec >= len(compression.CODEC_NAMES):
        return Refusal(
            ErrorCode.UNKNOWN_SERVER_ERROR, f"compression codec {batch.codec} is unknown"
        )
    return _check_client_header(batch) if from_client else None


def _check_client_header(batch: Batch) -> Refusal | None:
    """Kafka: LogValidator.validateBatch."""
    offsets = batch.last_offset - batch.base_offset + 1
    if offsets <= 0:
        return _invalid(f"last offset delta {offsets - 1} is negative")
    if batch.record_count <= 0:
        return _invalid(f"record count is {batch.record_count}")
    if offsets != batch.record_count:
        return _invalid(f"{batch.record_count} records, but {offsets} offsets")
    if batch.attributes & CONTROL_BIT:
        return _invalid("clients may not write control batches")
    if batch.producer_id >= 0 and batch.base_sequence < 0:
        return _invalid(
            f"producer {batch.producer_id} sent no valid sequence: {batch.base_sequence}"
        )
    return None


def target_codec(batch: Batch, config: TopicConfig) -> int:
    """The codec in which the topic stores this batch (compression.type)."""
    wanted = config.compression_type
    if wanted == "producer":
        return batch.codec
    if wanted == "uncompressed":
        # This includes the broker's own control batches, which are never compressed.
        return compression.NONE
    return batch.codec if batch.is_control else compression.CODEC_IDS[wanted]


def compression_level(codec: int, config: TopicConfig) -> int | None:
    """How hard a batch that is stored in `codec` is compressed (KIP-390)."""
    if codec == compression.GZIP:
        return config.compression_gzip_level
    if codec == compression.LZ4:
        return config.compression_lz4_level
    if codec == compression.ZSTD:
        return config.compression_zstd_level
    return None


def check_contents(batch: Batch, config: TopicConfig, now_ms: int) -> tuple[Batch, Refusal | None]:
    """Check records and timestamps; return the batch to append, rewritten if the config says so.

    A rewritten batch has its own buffer or changed attributes and crc in the given one.
    """
    compacted = "compact" in config.cleanup_policy and not batch.is_control
    log_append_time = config.message_timestamp_type == "LogAppendTime"
    codec = batch.attributes & CODEC_MASK
    if config.compression_type != "producer":
        codec = target_codec(batch, config)
    if (
        compacted
        or codec != batch.attributes & CODEC_MASK
        or batch.attributes & LOG_APPEND_TIME_BIT
        or (
            not log_append_time
            and (
                batch.max_timestamp - now_ms > config.message_timestamp_after_max_ms
                or config.message_timestamp_before_max_ms != BEFORE_UNLIMITED
            )
        )
    ):
        batch, refusal = _check_opened(batch, config, now_ms, codec, compacted)
        if refusal is not None:
            return batch, refusal
    else:
        refusal = _check_frames(batch, codec)
        if refusal is not None:
            return batch, refusal
    if log_append_time:
        _stamp(batch, LOG_APPEND_TIME, now_ms)
    return batch, None


def _check_frames(batch: Batch, codec: int) -> Refusal | None:
    """Check a batch that is not opened."""
    if (
        codec == NO_CODEC
        and batch.record_count <= _RECORDS_ADDED_UP_MAX
        and not frames_add_up(batch)
    ):
        return _invalid(f"bytes of the batch are not {batch.record_count} records")
    return None


def _check_opened(
    batch: Batch, config: TopicConfig, now_ms: int, codec: int, compacted: bool
) -> tuple[Batch, Refusal | None]:
    try:
        records = read_records(batch)
    except InvalidRecords as problem:
        return batch, _unreadable(problem)
    refusal = _check_records(batch, records, config, now_ms, compacted)
    if refusal is not None:
        return batch, refusal
    if codec != batch.codec:
        batch = _rebuild(batch, records, codec, compression_level(codec, config))
        if batch.size_bytes > config.max_message_bytes:
            return batch, Refusal(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"batch has {batch.size_bytes} bytes once stored in the topic's codec, more than "
                f"max.message.bytes ({config.max_message_bytes})",
                shows_log_start=False,
            )
    if config.message_timestamp_type == "CreateTime":
        # Kafka computes it itself, and ignores the header's value.
        _stamp(batch, CREATE_TIME, max(record.timestamp for record in records))
    return batch, None


def _unreadable(problem: InvalidRecords) -> Refusal:
    """A payload that does not decompress is Kafka's UNKNOWN_SERVER_ERROR."""
    if problem.error == ErrorCode.CORRUPT_MESSAGE:
        return Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, problem.text)
    return Refusal(problem.error, problem.text)


def _check_records(
    batch: Batch, records: list[Record], config: TopicConfig, now_ms: int, compacted: bool
) -> Refusal | None:
    """Kafka: LogValidator.validateRecord for each, then processRecordErrors."""
    keyless = not_in_bounds = 0
    problems: list[tuple[int, str]] = []
    for index, record in enumerate(records):
        if compacted and record.key is None:
            keyless += 1
            problems.append((index, "a compacted topic takes no record without a key"))
        elif (problem := _bad_timestamp(batch, record, config, now_ms)) is not None:
            not_in_bounds += 1
            problems.append((index, problem))
    if not problems:
        return None
    if not_in_bounds:
        return Refusal(
            ErrorCode.INVALID_TIMESTAMP,
            f"{not_in_bounds} of {len(records)} records have an invalid timestamp",
            tuple(problems),
        )
    shown = "; ".join(f"record {index}: {problem}" for index, problem in problems[:_TEXTS_SHOWN])
    return Refusal(
        ErrorCode.INVALID_RECORD, f"{keyless} records are invalid: {shown}", tuple(problems)
    )


def _bad_timestamp(batch: Batch, record: Record, config: TopicConfig, now_ms: int) -> str | None:
    if config.message_timestamp_type == "CreateTime" and record.timestamp != NO_TIMESTAMP:
        earliest = now_ms - config.message_timestamp_before_max_ms
        latest = now_ms + config.message_timestamp_after_max_ms
        if not earliest <= record.timestamp <= latest:
            return f"timestamp {record.timestamp} is not within [{earliest}, {latest}]"
    elif batch.attributes & LOG_APPEND_TIME_BIT:
        return "producers may not set the timestamp type LogAppendTime"
    return None


def _rebuild(batch: Batch, records: list[Record], codec: int, level: int | None) -> Batch:
    rebuilt = build_batch(
        records,
        compression=codec,
        level=level,
        base_offset=batch.base_offset,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        transactional=batch.is_transactional,
        control=batch.is_control,
    )
    return parse_batches(rebuilt)[0]


def _stamp(batch: Batch, timestamp_type: int, max_timestamp: int) -> None:
    """Set timestamp type and max timestamp in the header, and the crc that follows from them."""
    if batch.timestamp_type == timestamp_type and batch.max_timestamp == max_timestamp:
        return
    batch.buffer = own = writable(batch.buffer)
    if timestamp_type == LOG_APPEND_TIME:
        batch.attributes |= LOG_APPEND_TIME_BIT
    else:
        batch.attributes &= ~LOG_APPEND_TIME_BIT
    batch.max_timestamp = max_timestamp
    own[_ATTRIBUTES_AT : _ATTRIBUTES_AT + 2] = batch.attributes.to_bytes(2, "big", signed=True)
    own[_MAX_TIMESTAMP_AT : _MAX_TIMESTAMP_AT + 8] = max_timestamp.to_bytes(8, "big", signed=True)
    seal(own)


def writable(buffer: bytes | bytearray | memoryview) -> memoryview:
    """`buffer` itself, or a copy if it cannot be written to."""
    view = memoryview(buffer)
    return memoryview(bytearray(view)) if view.readonly else view


def _invalid(text: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_RECORD, text)
