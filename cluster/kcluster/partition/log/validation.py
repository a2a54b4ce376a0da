"""A leader's checks of a produced batch before the append, and its changes to the batch.

Owns: pure functions on a batch and a topic's config, in Kafka's order of checks.  Never: touches a
log; decompresses a batch twice.
Kafka: UnifiedLog.analyzeAndValidateRecords, LogValidator; KIP-467 (record errors), KIP-937.

The records of every batch are read, as in Kafka.  Like Kafka this code does not check:
- offset deltas, unless the batch is compressed and stored as it came;
- the length before each record, if the batch is compressed and stored as it came; since 4.4 it must
  be within max.decompressed.message.bytes, and not negative.
A batch with an error in one of these is appended, and its consumers meet the error.

DIFFERS: a payload is decompressed as a whole, before its first record is read.  If both are wrong,
Kafka may answer INVALID_RECORD instead of UNKNOWN_SERVER_ERROR.  A length of more than five bytes
in an uncompressed batch, and one of gigabytes in a batch to be converted, are INVALID_RECORD like
all other wrong lengths; Kafka fails internally (UNKNOWN_SERVER_ERROR).
"""

from __future__ import annotations

from typing import Final

from kcluster.config.kafka.broker import NO_SIZE_LIMIT
from kcluster.config.kafka.definitions import TopicConfig
from kcluster.partition.log.append_rules import PRODUCERS_CODEC, AppendRules
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.int64 import INT64_MAX, as_int64
from kcluster.protocol.records import compression
from kcluster.protocol.records.batches import (
    CODEC_MASK,
    CONTROL_BIT,
    CREATE_TIME,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    LOG_APPEND_TIME_BIT,
    NO_TIMESTAMP,
    Batch,
    InvalidRecords,
    check_crc,
    parse_batches,
    seal,
)
from kcluster.protocol.records.compression import Allowance, CompressionError, TooLargeError
from kcluster.protocol.records.records import Record, build_batch, read_opened
from kcluster.protocol.records.walk import GAVE_UP, RECORD_MIN_BYTES, each_record, newest_delta
from kcluster.structs import Untracked

ZSTD: Final = 4
NO_CODEC: Final = 0
_TEXTS_SHOWN: Final = 3
_MAX_TIMESTAMP_AT: Final = 35
_ATTRIBUTES_AT: Final = 21


class Refusal(Untracked):
    """The refusal of a batch; `record_errors`: (index in the batch, reason)."""

    error: ErrorCode
    text: str
    record_errors: tuple[tuple[int, str], ...] = ()
    shows_log_start: bool = True
    """Whether the answer has the log start offset; Kafka leaves it out of some refusals."""


def admit(
    buffer: bytes | bytearray | memoryview,
    rules: AppendRules,
    now_ms: int,
    from_client: bool,
    allowance: Allowance | None = None,
) -> Batch | Refusal:
    """The one batch in `buffer`, ready to append except for its offset and leader epoch.
    `allowance`: the request's allowance for decompressing; None: an allowance for this batch
    alone."""
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
    refusal = check_header(batches[0], rules, from_client)
    if refusal is not None:
        return refusal
    batch = _check_contents(batches[0], rules, now_ms, allowance)
    if isinstance(batch, Refusal):
        return batch
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
    """The fault that Kafka would find first."""
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
    """Check the header fields that must be valid in clients' batches only.  Kafka:
    LogValidator.validateBatch."""
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


def compression_level(codec: int, config: TopicConfig) -> int | None:
    """The compression level of a batch that is stored in `codec` (KIP-390)."""
    if codec == compression.GZIP:
        return config.compression_gzip_level
    if codec == compression.LZ4:
        return config.compression_lz4_level
    if codec == compression.ZSTD:
        return config.compression_zstd_level
    return None


def _check_contents(
    batch: Batch, rules: AppendRules, now_ms: int, allowance: Allowance | None
) -> Batch | Refusal:
    """Check records and timestamps; return the batch to append, rewritten if the config says so.

    A rewritten batch has its own buffer or changed attributes and crc in the given one.
    """
    codec = batch.attributes & CODEC_MASK
    needs_keys = rules.needs_keys
    stored_codec = codec
    if batch.attributes & CONTROL_BIT:
        # The broker's own batches are never compressed.
        needs_keys = False
    elif rules.codec != PRODUCERS_CODEC:
        stored_codec = rules.codec
    position = HEADER_BYTES
    data = bytes(batch.buffer)
    headers_max = len(data)
    record_max = NO_SIZE_LIMIT
    if codec != NO_CODEC:
        position = 0
        record_max = rules.max_record_bytes
        if allowance is None:
            allowance = Allowance(headers_max)
        opened = _opened(batch, data, allowance)
        if isinstance(opened, Refusal):
            return opened
        data = opened
    newest: int = GAVE_UP
    if (
        stored_codec == codec
        and not batch.attributes & LOG_APPEND_TIME_BIT
        and (record_max == NO_SIZE_LIMIT or record_max >= len(data))
    ):
        newest = newest_delta(data, position, batch.record_count, headers_max, needs_keys)
    if newest != GAVE_UP and _are_in_bounds(batch, newest, rules, now_ms):
        newest += batch.base_timestamp
    else:
        in_place = stored_codec == codec
        contents = _Contents(data, position, in_place, needs_keys, allowance, record_max)
        outcome = _examine(batch, contents, rules.config, now_ms)
        if isinstance(outcome, Refusal):
            return outcome
        newest = outcome
    if stored_codec != codec:
        rebuilt = _converted(batch, data[position:], stored_codec, rules.config)
        if isinstance(rebuilt, Refusal):
            return rebuilt
        batch = rebuilt
    # Kafka computes the newest timestamp itself, and ignores the header's value.
    if rules.is_create_time:
        _stamp(batch, CREATE_TIME, newest)
    else:
        _stamp(batch, LOG_APPEND_TIME, now_ms)
    return batch


def _opened(batch: Batch, data: bytes, allowance: Allowance) -> bytes | Refusal:
    """Decompress the records of a batch; `allowance` is charged for them and for reading them."""
    payload = memoryview(data)[HEADER_BYTES:]
    try:
        opened = bytes(compression.decompress(batch.codec, payload, allowance=allowance))
        allowance.spend_on(min(batch.record_count, len(opened) // RECORD_MIN_BYTES))
    except TooLargeError as too_large:
        return _too_large(too_large)
    except CompressionError as problem:
        return Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, str(problem))
    return opened


def _are_in_bounds(batch: Batch, newest_delta: int, rules: AppendRules, now_ms: int) -> bool:
    """Whether all timestamps, from the batch's base to the newest, are certainly within bounds."""
    oldest = batch.base_timestamp
    if not rules.is_create_time:
        return True
    if oldest < 0:
        return oldest == NO_TIMESTAMP and not newest_delta
    return (
        oldest + newest_delta - now_ms <= rules.timestamp_after_max_ms
        and now_ms - oldest <= rules.timestamp_before_max_ms
        and oldest + newest_delta <= INT64_MAX
    )


class _Contents(Untracked):
    """The records of a batch, which fill `data` from `position` on, and the way to read them.
    `is_in_place`: the batch is stored in the codec in which it arrived; `record_max`: the greatest
    size of a record in bytes, or NO_SIZE_LIMIT."""

    data: bytes
    position: int
    is_in_place: bool
    needs_keys: bool
    allowance: Allowance | None
    record_max: int


def _examine(batch: Batch, contents: _Contents, config: TopicConfig, now_ms: int) -> int | Refusal:
    """The newest timestamp, or the fault that Kafka would find first. Kafka:
    LogValidator.validateRecord for each, then processRecordErrors."""
    is_skimmed = contents.is_in_place and batch.codec != NO_CODEC
    newest = NO_TIMESTAMP
    problems: list[tuple[int, str]] = []
    has_bad_time = False
    try:
        for index, (timestamp_delta, offset_delta, has_key) in enumerate(
            each_record(
                contents.data,
                contents.position,
                batch.record_count,
                contents.allowance,
                has_lengths=not is_skimmed,
                record_max=contents.record_max,
            )
        ):
            timestamp = as_int64(batch.base_timestamp + timestamp_delta)
            if batch.attributes & LOG_APPEND_TIME_BIT:
                timestamp = batch.max_timestamp
            if contents.needs_keys and not has_key:
                problems.append((index, "a compacted topic takes no record without a key"))
            elif (problem := _bad_timestamp(batch, timestamp, config, now_ms)) is not None:
                has_bad_time = True
                problems.append((index, problem))
            elif not problems:
                if is_skimmed and offset_delta != index:
                    text = f"record {index} of a compressed batch has offset delta {offset_delta}"
                    return Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, text)
                newest = max(newest, timestamp)
    except InvalidRecords as invalid:
        return Refusal(invalid.error, invalid.text)
    except TooLargeError as too_large:
        return _too_large(too_large)
    if problems:
        return _of_records(problems, has_bad_time)
    return newest


def _too_large(problem: TooLargeError) -> Refusal:
    """The refusal of a batch above the limit.  DIFFERS: Kafka has no limit.  After this error, a
    Java producer splits the batch and sends the halves."""
    return Refusal(ErrorCode.MESSAGE_TOO_LARGE, str(problem), shows_log_start=False)


def _of_records(problems: list[tuple[int, str]], has_bad_time: bool) -> Refusal:
    count = len(problems)
    if has_bad_time:
        text = f"{count} records are invalid, at least one for its timestamp"
        return Refusal(ErrorCode.INVALID_TIMESTAMP, text, tuple(problems))
    shown = "; ".join(f"record {index}: {problem}" for index, problem in problems[:_TEXTS_SHOWN])
    return Refusal(
        ErrorCode.INVALID_RECORD, f"{count} records are invalid: {shown}", tuple(problems)
    )


def _bad_timestamp(batch: Batch, timestamp: int, config: TopicConfig, now_ms: int) -> str | None:
    """The refusal of a timestamp out of bounds, computed in Java's 64 bits.  Kafka:
    LogValidator.validateTimestamp."""
    if config.message_timestamp_type == "CreateTime" and timestamp != NO_TIMESTAMP:
        before_max_ms = config.message_timestamp_before_max_ms
        after_max_ms = config.message_timestamp_after_max_ms
        age_ms = as_int64(now_ms - timestamp)
        if age_ms > before_max_ms or as_int64(-age_ms) > after_max_ms:
            earliest, latest = now_ms - before_max_ms, now_ms + after_max_ms
            return f"timestamp {timestamp} is not within [{earliest}, {latest}]"
    elif batch.attributes & LOG_APPEND_TIME_BIT:
        return "producers may not set the timestamp type LogAppendTime"
    return None


def _converted(batch: Batch, data: bytes, codec: int, config: TopicConfig) -> Batch | Refusal:
    """The batch in another codec; `data`: its records, decompressed."""
    try:
        records = read_opened(batch, data)
    except InvalidRecords as problem:
        return Refusal(problem.error, problem.text)
    if any(record.timestamp < NO_TIMESTAMP for record in records):
        return Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, "a timestamp is negative")
    rebuilt = _rebuild(batch, records, codec, compression_level(codec, config))
    if rebuilt.size_bytes > config.max_message_bytes:
        return Refusal(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"batch has {rebuilt.size_bytes} bytes once stored in the topic's codec, more than "
            f"max.message.bytes ({config.max_message_bytes})",
            shows_log_start=False,
        )
    return rebuilt


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
    """Set timestamp type and max timestamp in the header, then the crc of the result."""
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
