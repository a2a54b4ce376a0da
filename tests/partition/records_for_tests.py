"""Helpers for the tests of logs: batches to send, filled logs."""

from __future__ import annotations

import struct
from typing import Any

from kcluster.config.kafka.definitions import TopicConfig
from kcluster.partition.log.log import Log
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.records.batches import seal
from kcluster.protocol.records.records import Batch, Record, build_batch, read_records

NOW_MS = 1_000_000
TOPIC_ID = b"0123456789abcdef"
CONFIG = TopicConfig()
EVERYTHING = 1 << 40


def sent(
    count: int = 1, *, timestamp: int = NOW_MS, key: bytes | None = b"k", **more: Any
) -> bytearray:
    """A batch as a producer sends it; `more` goes to build_batch."""
    records = [Record(0, timestamp, key, b"v%d" % i) for i in range(count)]
    return build_batch(records, **more)


def keyed(*pairs: tuple[str, str | None], timestamp: int = NOW_MS, **more: Any) -> bytearray:
    """A batch of records with these keys and values."""
    records = [
        Record(0, timestamp, key.encode(), None if value is None else value.encode())
        for key, value in pairs
    ]
    return build_batch(records, **more)


def patched(batch: bytearray, layout: str, at: int, value: int, sealed: bool = True) -> bytearray:
    """A copy with one field changed, and a crc that matches unless `sealed` is False."""
    copy = bytearray(batch)
    struct.pack_into(layout, copy, at, value)
    if sealed:
        seal(copy)
    return copy


def new_log() -> Log:
    return Log(TOPIC_ID, 0)


def append(
    log: Log,
    data: bytes | bytearray | memoryview,
    *,
    epoch: int = 0,
    now_ms: int = NOW_MS,
    config: TopicConfig = CONFIG,
    **more: Any,
) -> list[Batch]:
    """Append as leader records that must be accepted; return the batches."""
    appended = log.append_as_leader(data, epoch, now_ms, config, **more)
    assert appended.error == ErrorCode.NONE, appended
    return list(appended.batches)


def filled(*counts: int, epoch: int = 0, config: TopicConfig = CONFIG, **more: Any) -> Log:
    """A log of one batch per count."""
    log = new_log()
    for count in counts:
        append(log, sent(count, **more), epoch=epoch, config=config)
    return log


def ranges(batches: list[Batch]) -> list[tuple[int, int]]:
    """(first, last offset) of each batch."""
    return [(batch.base_offset, batch.last_offset) for batch in batches]


def contents(log: Log) -> list[tuple[int, str, str | None]]:
    """(offset, key, value) of every record of the log."""
    return [
        (
            record.offset,
            (record.key or b"").decode(),
            None if record.value is None else record.value.decode(),
        )
        for batch in log.batches_from(log.log_start_offset)
        for record in read_records(batch)
    ]
