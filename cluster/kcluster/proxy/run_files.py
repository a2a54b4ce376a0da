"""The run directory of a proxy, written while it runs.

Owns: the directory, the rows that wait to be written.  Never: fills a row (recording.py), judges.
Kafka: no counterpart.

If the disk is full, rows are counted and dropped, and the proxy goes on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from kcluster.contract import Note
from kcluster.runs.directory import (
    INFO,
    PAGE,
    VERDICT,
    link_latest,
    new_run,
    read_run,
    write_page,
    write_values,
)
from kcluster.runs.proxied_rows import (
    EVENTS,
    EXCHANGES,
    FETCHED,
    INCOMPLETE,
    PRODUCED,
    PROXY_CLOCK,
    TRANSACTION_REQUESTS,
)
from kcluster.runs.record import TABLES, NoteRow, RunInfo
from kcluster.runs.whole_files import PRIVATE, append_whole, removed_on_failure

MAX_WAITING_BYTES: Final = 1 << 20
"""The bytes of a file that may wait; more are written at once."""
MAX_DRAWN_BYTES: Final = 32 << 20
"""The most bytes of exchanges and events that are drawn as a page."""
PROXY_NODE: Final = -1
"""The node in the ids of the proxy's own events."""
NOT_JUDGED: Final = {"outcome": "unknown", "reason": "a proxy's record has no verdict"}


class RunFiles:
    """The files of one run, in a new directory below `parent`.  OSError if it cannot be made."""

    def __init__(self, parent: Path, name: str, version: str, log: Callable[[str], None]) -> None:
        now_ms = time.time_ns() // 1_000_000
        self.info = RunInfo(name, PROXY_CLOCK, 0, now_ms, now_ms, version=version)
        self.path = new_run(parent, self.info)
        self.dropped_rows = 0
        self._has_failed = False
        self._log = log
        self._waiting: dict[str, bytearray] = {}
        self._encode = msgspec.json.Encoder().encode
        with removed_on_failure(self.path):
            write_values(self.path / VERDICT, NOT_JUDGED)
            for table in TABLES.values():
                Path(self.path, table.file).touch(PRIVATE)
            for file in (PRODUCED, FETCHED, TRANSACTION_REQUESTS):
                Path(self.path, file).touch(PRIVATE)
            write_values(self.path / INFO, self.info)
        link_latest(self.path)

    def describe(self, host: str, ports: Mapping[int, int]) -> None:
        """Set the brokers that run.json names, with the proxy's ports for them."""
        brokers = [{"id": key, "rack": None, "port": port} for key, port in sorted(ports.items())]
        self.info.topology = {"host": host, "brokers": brokers}

    @property
    def page(self) -> Path:
        """The page of the record, whether it is drawn yet or not."""
        return self.path / PAGE

    def size_bytes(self) -> int:
        """The bytes of exchanges and events that are written.  OSError if the files are gone."""
        return sum((self.path / file).stat().st_size for file in (EXCHANGES, EVENTS))

    def draw(self) -> bool:
        """Write the page of the whole record; returns whether it is small enough for one.  OSError
        or RunError if the page cannot be written, or the record is gone."""
        self.flush()
        if self.size_bytes() > MAX_DRAWN_BYTES:
            return False
        write_page(self.path, read_run(self.path)[0])
        return True

    def put(self, file: str, row: Struct) -> None:
        """Write a row to a file of the run."""
        waiting = self._waiting.get(file)
        if waiting is None:
            waiting = self._waiting[file] = bytearray()
        waiting += self._encode(row)
        waiting += b"\n"
        if len(waiting) > MAX_WAITING_BYTES:
            self._flush(file)

    def note(self, note: Note) -> None:
        """Write an event."""
        self.put(EVENTS, NoteRow(note.note_id, note.at_ms, note.event))  # type: ignore[arg-type]  # of AnyEvent

    def flush(self) -> None:
        """Write what waits."""
        for file in self._waiting:
            self._flush(file)
        self.info.ended_ms = time.time_ns() // 1_000_000
        try:
            write_values(self.path / INFO, self.info)
        except OSError as error:
            self._report(error)

    def _flush(self, file: str) -> None:
        waiting = self._waiting[file]
        if not waiting:
            return
        try:
            append_whole(self.path / file, bytes(waiting))
        except OSError as error:
            self._report(error)
            self.dropped_rows += waiting.count(b"\n")
            self._mark_incomplete()
        waiting.clear()

    def _mark_incomplete(self) -> None:
        """Have the record say that rows are missing; a full disk has room for an empty file."""
        try:
            (self.path / INCOMPLETE).touch(PRIVATE)
        except OSError as error:
            self._report(error)

    def _report(self, error: OSError) -> None:
        """Log the first error; further ones would hide all other lines."""
        if not self._has_failed:
            self._has_failed = True
            place = error.filename or self.path
            self._log(f"{place}: {error.strerror}; rows that cannot be written are dropped")
