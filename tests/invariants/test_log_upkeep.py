"""Logs that do not roll or flush when their configs ask for it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kcluster.config.kafka.topic import TopicConfig
from kcluster.invariants.log_upkeep import overdue
from kcluster.partition.log.log import Log
from kcluster.partition.log.segment import Segment
from kcluster.protocol.records.batches import Batch, parse_batches
from kcluster.protocol.records.records import Record, build_batch
from tests.invariants.test_broken_cores import names, run


def batch_at(offset: int, at_ms: int) -> Batch:
    record = Record(offset, at_ms, None, b"x" * 20, ())
    return parse_batches(build_batch([record], base_offset=offset, last_offset=offset))[0]


def log_of(*times_ms: int) -> Log:
    """A log with a batch for each of these times, in one segment."""
    log = Log(b"t" * 16, 0)
    log.append_as_follower([batch_at(offset, at_ms) for offset, at_ms in enumerate(times_ms)])
    return log


def broken(log: Log, since: int = 0, **configs: int) -> list[str]:
    return [name for name, _ in overdue(log, replace(TopicConfig(), **configs), since)]


def test_segment__within_its_time() -> None:
    assert broken(log_of(1000, 1300, 1600), segment_ms=600) == []


def test_segment__beyond_its_time() -> None:
    assert broken(log_of(1000, 1300, 1601), segment_ms=600) == ["segment-overdue"]


def test_segment__whose_batches_were_appended_under_another_config() -> None:
    log = log_of(1000, 1300, 1601)
    assert broken(log, since=2, segment_ms=600) == ["segment-overdue"]
    assert broken(log, since=3, segment_ms=600) == []


def test_segment__that_was_cleaned() -> None:
    log = log_of(1000, 1300, 1601)
    log.first_dirty_offset = 1
    assert broken(log, segment_ms=600) == []


def test_segment__beyond_its_size() -> None:
    log = log_of(1000, 1000)
    assert broken(log, internal_segment_bytes=log.size_bytes) == []
    assert broken(log, internal_segment_bytes=log.size_bytes - 1) == ["segment-overdue"]
    assert broken(log_of(1000), internal_segment_bytes=1) == []


def test_flush__in_time_and_late() -> None:
    log = log_of(1000, 1000, 1000)
    assert broken(log, flush_messages=4) == []
    assert broken(log, flush_messages=3) == ["flush-overdue"]
    log.flush(2000)
    assert broken(log, flush_messages=1) == []


ROLLED = """\
topology:
  brokers: 1
  topics:
    orders: {partitions: 1, replication_factor: 1, config: {segment.ms: 500, flush.messages: 1}}
workload: {producers: {topic: orders, rate: 20/s}}
duration: 4s
steps:
  - {at: 2s, set_config: {topics: orders, config: {segment.ms: 300}}}
"""


@pytest.mark.pure_python  # a class of the extension cannot be broken on purpose
def test_broker__that_does_not_roll_or_flush(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(ROLLED).passed
    with monkeypatch.context() as patch:
        patch.setattr(Segment, "full", lambda *_: False)
        assert names(run(ROLLED)) == {"segment-overdue"}

    def flush(self: Log, now_ms: int) -> None:
        self.flushed_ms = now_ms

    monkeypatch.setattr(Log, "flush", flush)
    assert "flush-overdue" in names(run(ROLLED))
