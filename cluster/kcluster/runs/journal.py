"""The directory of a run that is not over: kept current, so that the run of a killed process can be
read.

Owns: the rows that are written while the run goes on.  Never: judges; directory.py writes the
verdict, the clients' records and the page when the run ends.  Kafka: no counterpart.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from operator import attrgetter
from pathlib import Path
from typing import Final

import msgspec

from kcluster.evidence.recorder import Recorder
from kcluster.runs.build_record import topology_values
from kcluster.runs.directory import INFO, VERDICT, link_latest, new_run, write_values
from kcluster.runs.record import STREAMED, TABLES, Rows, RunInfo, RunRecord
from kcluster.runs.whole_files import PRIVATE, append_whole, removed_on_failure

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
