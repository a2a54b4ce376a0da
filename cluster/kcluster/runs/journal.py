"""The directory of a run that is not over: kept current, so that the run of a killed process can be
read.

Owns: the rows that are written while the run goes on.  Never: judges; directory.py writes the
verdict, the clients' records and the page when the run ends.  Kafka: no counterpart.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from kcluster.evidence.group_history import commits_of
from kcluster.evidence.recorder import Recorder
from kcluster.runs.build_record import (
    append_row,
    commit_row,
    epochs_row,
    leader_row,
    move_row,
    note_rows,
    topology_values,
)
from kcluster.runs.directory import INFO, VERDICT, link_latest, new_run, write_values
from kcluster.runs.record import STREAMED, TABLES, RunInfo, RunRecord
from kcluster.runs.whole_files import PRIVATE, append_whole, removed_on_failure

T = TypeVar("T")

Rows = dict[str, list[Any]]
"""The rows of a run, by field of RunRecord."""
NOT_OVER: Final = {"outcome": "unknown", "reason": "the run has not ended, or was killed"}


def rows_after(record: RunRecord, at_ms: int) -> Rows:
    """The rows of a whole record after that time, as a running cluster would have streamed them."""
    return {
        field: [row for row in getattr(record, field) if row.at_ms > at_ms] for field in STREAMED
    }


def rows_from(record: RunRecord, at_ms: int) -> Rows:
    """The rows that describe a run from that time on: all events, all later rows and, for each
    state (a leader, a log's end, a log's epochs), the last row before that time."""
    rows = rows_after(record, at_ms - 1)
    rows["notes"] = list(record.notes)
    for field, table in TABLES.items():
        if table.state_of:
            subject = attrgetter(*table.state_of)
            states = {subject(row): row for row in getattr(record, field) if row.at_ms < at_ms}
            rows[field] = [*states.values(), *rows[field]]
    return rows


def rows_between(recorder: Recorder, after_ms: int, before_ms: int) -> Rows:
    """The rows that were recorded after `after_ms` and before `before_ms`.  For an append, the time
    of its recording counts, which may be later than its own time, the time of the request."""

    def part(rows: Sequence[T], at_ms: Callable[[T], int]) -> Iterator[T]:
        return _between(rows, at_ms, after_ms, before_ms)

    exchanges, states = recorder.exchanges(), recorder.states
    commits = commits_of(recorder, part(recorder.answers, _first))
    rows: Rows = {
        "notes": note_rows(part(recorder.notes, _at_ms)),
        "appends": [],
        "moves": [],
        "leaders": [],
        "epochs": [],
        "commits": [commit_row(commit) for commit in commits],
        "exchanges": list(part(exchanges.rows, _at_ms)),
        "beliefs": list(part(exchanges.beliefs.rows, _at_ms)),
        "groups": list(part(states.groups.rows, _at_ms)),
        "transaction_states": list(part(states.transactions.rows, _at_ms)),
        "logins": list(part(recorder.security.logins.rows, _at_ms)),
        "credentials": list(part(recorder.security.credentials.rows, _at_ms)),
    }
    for one in recorder.partitions.values():
        # Most partitions have no new rows.
        if one.appends and one.appends[-1].seen_ms > after_ms:
            rows["appends"] += [append_row(one, append) for append in part(one.appends, _seen_ms)]
        if one.moves and one.moves[-1].at_ms > after_ms:
            rows["moves"] += [move_row(one, move) for move in part(one.moves, _at_ms)]
        if one.registrations and one.registrations[-1][0] > after_ms:
            rows["leaders"] += [leader_row(one, *x) for x in part(one.registrations, _first)]
        if one.epoch_runs and one.epoch_runs[-1].at_ms > after_ms:
            rows["epochs"] += [epochs_row(one, runs) for runs in part(one.epoch_runs, _at_ms)]
    return rows


_at_ms: Final[Callable[[object], int]] = attrgetter("at_ms")
_seen_ms: Final[Callable[[object], int]] = attrgetter("seen_ms")
_first: Final[Callable[[Sequence[object]], int]] = itemgetter(0)


def _between(
    rows: Sequence[T], at_ms: Callable[[T], int], after_ms: int, before_ms: int
) -> Iterator[T]:
    """The rows between the two times. Rows are in order of time, so the search begins at the
    newest."""
    first = len(rows)
    while first > 0 and at_ms(rows[first - 1]) > after_ms:
        first -= 1
    return (row for row in rows[first:] if at_ms(row) < before_ms)


class Journal:
    """The files of a run that goes on.  `path`: its directory."""

    def __init__(self, parent: str | os.PathLike[str], info: RunInfo, recorder: Recorder) -> None:
        info.topology = topology_values(recorder)
        self._info = info
        self.path = new_run(parent, info)
        with removed_on_failure(self.path):
            write_values(self.path / VERDICT, NOT_OVER)
            for table in TABLES.values():
                Path(self.path, table.file).touch(PRIVATE)
            write_values(self.path / INFO, info)
        link_latest(self.path)

    def write(self, rows: Rows, ended_ms: int) -> None:
        """Append rows; the run goes on at least until `ended_ms`."""
        for field, added in rows.items():
            if added:
                self._append(TABLES[field].file, added)
        self._info.ended_ms = ended_ms
        write_values(self.path / INFO, self._info)

    def _append(self, file: str, rows: Iterable[object]) -> None:
        encode = msgspec.json.Encoder().encode
        append_whole(self.path / file, b"".join(encode(row) + b"\n" for row in rows))
