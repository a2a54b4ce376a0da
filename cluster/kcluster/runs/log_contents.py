"""Where the sent records are in the final logs, and which appended records are not there.

Owns: the numbers of sends; the rows of contents.jsonl and logs.jsonl.  Adjacent records share a
row: a log that one producer filled in order is one row per leader epoch.  Never: judges.
Kafka: no counterpart; kafka-dump-log on each partition's leader shows the logs.

A record is identified by its value, or by its name if it came from an outside client
(evidence/outside.py).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping

from kcluster.clients.ledger import Ledger, Partition
from kcluster.evidence.history import FinalLog
from kcluster.evidence.recorder import Judged, Recorder
from kcluster.invariants.observed import Append, ObservedPartition
from kcluster.runs.record import CUT, DELETED, HELD, HIDDEN, ContentRow, LogRow

Numbers = Mapping[tuple[Partition, bytes | None], list[tuple[str, int]]]
"""By partition and value: (producer, number) of its sends; more than one if it was sent twice."""
Entry = tuple[int, bytes | None]
"""(offset, the value or name that identifies the record)."""


def numbers_of(ledger: Ledger) -> tuple[list[int], Numbers]:
    """The number of each send, in the order of the ledger; and the sends by partition and value."""
    last: dict[tuple[str, Partition], int] = {}
    numbers: list[int] = []
    by_value: dict[tuple[Partition, bytes | None], list[tuple[str, int]]] = {}
    for send in ledger.sends:
        key = (send.producer, send.partition)
        last[key] = number = last.get(key, 0) + 1
        numbers.append(number)
        by_value.setdefault((send.partition, send.value), []).append((send.producer, number))
    return numbers, by_value


def log_rows(judged: Judged) -> list[LogRow]:
    """One row per partition: its final log."""
    return [
        LogRow(*partition, log.start_offset, log.clean_offset, log.end_offset)
        for partition, log in judged.logs.items()
    ]


def content_rows(judged: Judged, recorder: Recorder, numbers: Numbers) -> list[ContentRow]:
    """Records that are in the final logs (visible or hidden), were truncated, or were deleted with
    their topic."""
    rows: list[ContentRow] = []
    for partition, log in judged.logs.items():
        rows += _held(partition, log, numbers)
        cut = _Rows(partition, CUT, numbers)
        for observed in recorder.of_partition(partition):
            if observed.deleted_ms < 0:
                for append in observed.appends:
                    entries = _not_held(judged, recorder, log, append)
                    cut.add(entries, append.epoch, append.at_ms)
        rows += cut.rows
    for observed in recorder.partitions.values():
        if observed.deleted_ms >= 0:
            rows += _deleted(recorder, observed, numbers)
    return rows


class _Rows:
    """The rows of one partition and state.  An adjacent record extends the last row."""

    def __init__(self, partition: Partition, state: str, numbers: Numbers) -> None:
        self.rows: list[ContentRow] = []
        self._partition, self._state, self._numbers = partition, state, numbers
        self._copies: dict[tuple[str, int], int] = {}
        self._open: dict[str, ContentRow] = {}

    def add(self, entries: Iterable[Entry], epoch: int, at_ms: int = -1) -> None:
        """Add records of one epoch, in order of offset."""
        for offset, value in entries:
            for producer, number in self._numbers.get((self._partition, value), ()):
                copy = self._copies.get((producer, number), 0)
                self._copies[producer, number] = copy + 1
                row = self._open.get(producer)
                if row is not None and (
                    offset == row.offset + row.count
                    and number == row.number + row.count
                    and (epoch, at_ms, copy) == (row.epoch, row.at_ms, row.copy)
                ):
                    row.count += 1
                    continue
                self._open[producer] = row = ContentRow(
                    *self._partition, self._state, epoch, at_ms, offset, producer, number, 1, copy
                )
                self.rows.append(row)


def _held(partition: Partition, log: FinalLog, numbers: Numbers) -> list[ContentRow]:
    held, hidden = _Rows(partition, HELD, numbers), _Rows(partition, HIDDEN, numbers)
    names = log.names
    starts = [start for _, start in log.epochs]
    for offset, value in log.records:
        name = names.get(offset, value) if names else value
        rows = hidden if offset in log.hidden else held
        rows.add(((offset, name),), _epoch_at(log, starts, offset))
    return held.rows + hidden.rows


def _epoch_at(log: FinalLog, starts: list[int], offset: int) -> int:
    at = bisect_right(starts, offset)
    return log.epochs[at - 1][0] if at else -1


def _not_held(judged: Judged, recorder: Recorder, log: FinalLog, append: Append) -> Iterator[Entry]:
    """The records of an append that are missing from the final log: at their offsets it has records
    of another epoch, or none.  A leader epoch writes an offset only once."""
    starts = [start for _, start in log.epochs]
    ends = (append.base_offset, append.last_offset)
    if ends[1] < log.end_offset and all(
        _epoch_at(log, starts, offset) == append.epoch for offset in ends
    ):
        return
    for offset, value in _entries(judged, recorder, append):
        is_held = offset < log.end_offset and _epoch_at(log, starts, offset) == append.epoch
        if offset >= log.start_offset and not is_held:
            yield offset, value


def _entries(judged: Judged, recorder: Recorder, append: Append) -> Iterator[Entry]:
    contents = recorder.contents.of(append.batch)
    names = judged.names.get(append.batch)
    for index, (offset, value) in enumerate(contents):
        yield offset, value if names is None else names[index]


def _deleted(recorder: Recorder, observed: ObservedPartition, numbers: Numbers) -> list[ContentRow]:
    """The records of a deleted topic, identified by value as in the verdict."""
    rows = _Rows((observed.topic, observed.partition), DELETED, numbers)
    for append in observed.appends:
        rows.add(recorder.contents.of(append.batch), append.epoch)
    return rows.rows
