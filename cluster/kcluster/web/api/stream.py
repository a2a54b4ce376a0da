"""The stream under the page: the new rows of the record, as server-sent events.

Owns: this route, the watchers of each cluster and the readings that they share. Never: records
(evidence/), blocks a cluster while it encodes: rows are read in the cluster's thread, and encoded
in another.
Kafka: no counterpart.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Final, NamedTuple

import gevent
import msgspec
from msgspec import Meta, Struct

from kcluster.evidence.watching import Watching
from kcluster.handle.cluster import Cluster
from kcluster.operations.errors import ClusterError
from kcluster.runs.columns import Columns, columns_of, columns_of_values
from kcluster.runs.note_values import notes_values
from kcluster.runs.record import NoteRow
from kcluster.runs.recorder_rows import Recorded
from kcluster.scenario.started import waiting_records
from kcluster.web.api.clock import clock_answer
from kcluster.web.call import ApiAnswer, ApiCall
from kcluster.web.held import HeldCluster
from kcluster.web.routes import EVENT_STREAM, Runs, route
from kcluster.web.streams import sse_event

Table = Columns | Sequence[object]
"""Columns, or rows."""

EVERY_S: Final = 0.1
KEPT_MS: Final = 1_000
"""The time for which a reading is kept for other watchers."""
CLOCK_S: Final = 1.0
"""The interval at which the time is sent.  If writing it fails, the stream has no reader."""


class StreamParameters(Struct):
    """The moment from which rows are wanted, and their form."""

    after_ms: Annotated[
        int, Meta(description="Only rows after this time of the cluster's clock; else all.")
    ] = -1
    columns: Annotated[
        bool,
        Meta(
            description="Each table as {column: [values]}, which costs a busy cluster less, in"
            " place of [{column: value}]. Of more than 3,000 exchanges in a second a part, with"
            " the column `times`: for how many each stands."
        ),
    ] = False


class Reading(Struct, gc=False):
    """The rows of the record after some time.  `text`: the rows as a `rows` event, None without
    rows."""

    until_ms: int
    text: bytes | None


class Form(NamedTuple):
    """A form of tables: how they are made of the record, of rows, and of rows that are
    mappings."""

    of_record: Callable[[Recorded], Mapping[str, Table]]
    of_rows: Callable[[Sequence[Struct]], Table]
    of_values: Callable[[Sequence[Mapping[str, object]]], Table]


ROWS: Final = Form(Recorded.rows, list, list)
COLUMNS: Final = Form(Recorded.columns, columns_of, columns_of_values)


class TablesRead(NamedTuple):
    """What a reading found: the events, and the other tables; the words of events are made later,
    in another thread."""

    notes: Sequence[NoteRow]
    tables: dict[str, Table]
    until_ms: int


class Feed:
    """The readings of one cluster, for all its watchers.

    Watchers that have read up to the same time share the next reading, if they want the same form;
    watchers that joined at different times soon do so too, because a reading ends with the current
    millisecond.
    """

    def __init__(self, held: HeldCluster) -> None:
        self._held = held
        self._lock = threading.Lock()
        self._newest: dict[tuple[int, Form], Reading] = {}
        """The newest reading, by the time after which it was read and its form."""

    def read(self, after_ms: int, form: Form) -> Reading:
        """The rows after this time.  Called in a thread that may block."""
        with self._lock:
            shared = self._newest.get((after_ms, form))
            if shared is not None and shared.text is not None:
                return shared
            found = self._read_since(after_ms, form)
            if found.until_ms <= after_ms:  # the clock is paused: waiting records still wait
                return Reading(after_ms, None)
            reading = Reading(found.until_ms, self._event(found, form))
            self._newest = {
                key: kept
                for key, kept in self._newest.items()
                if kept.until_ms > found.until_ms - KEPT_MS
            }
            self._newest[after_ms, form] = reading
            return reading

    def read_present(self, until_ms: int, form: Form) -> bytes:
        """The rows of the moment in which the clock is paused, as an event."""
        cluster = self._held.cluster

        def read() -> TablesRead:
            found = cluster.record.read_now()
            return TablesRead(found.ready["notes"], {**form.of_record(found)}, until_ms)

        return self._event(cluster.call(read), form) or b""

    def _read_since(self, after_ms: int, form: Form) -> TablesRead:
        """Read the record, Watching, and producers' waiting records."""
        source = self._held.source
        if not isinstance(source, Cluster):
            found, until_ms = source.read_since(after_ms)
            return TablesRead(found.ready["notes"], {**form.of_record(found)}, until_ms)
        watching = source.parts.of(Watching, lambda: Watching(source.recorder))

        def read() -> TablesRead:
            found, until_ms = source.record.read_since(after_ms)
            watched = watching.read(after_ms, until_ms)._asdict()
            tables = {**form.of_record(found)}
            for name, rows in {**watched, "waiting": waiting_records(source)}.items():
                tables[name] = form.of_rows(rows)
            return TablesRead(found.ready["notes"], tables, until_ms)

        return source.call(read)

    def _event(self, found: TablesRead, form: Form) -> bytes | None:
        """The `rows` event of what was read; None without rows."""
        notes = notes_values(found.notes, self._held.began_ms)
        tables = {**found.tables, "notes": form.of_values(notes)}
        shown = {name: table for name, table in tables.items() if table}
        if not shown:
            return None
        data = msgspec.json.encode({"until_ms": found.until_ms, "rows": shown})
        return sse_event("rows", data, found.until_ms)


@route(
    "GET",
    "/v1/clusters/<id>/stream",
    query=StreamParameters,
    answer=EVENT_STREAM,
    errors=(404, 409),
    runs=Runs.AT_ONCE,
)
def stream_rows(call: ApiCall) -> ApiAnswer:
    """What happens in a cluster as server-sent events, for the page.

    `rows`: rows of the record by table, first all rows so far, then the new ones about every 100
    ms; the id is the time up to which they are complete.  Of a running cluster also a part of the
    messages between its nodes, the brokers' sessions, consumers' fetches that wait, and producers'
    waiting records.  `clock`: the cluster's clock, when it is set and every second.  `verdict`:
    after a request for one.  `lesson`: what `kcluster learn --page` shows beside the cluster.
    """
    after_ms = call.query.after_ms
    after_ms = call.request.headers.get("Last-Event-ID", after_ms, type=int)
    held = call.held
    feed = held.part(Feed, lambda: Feed(held))
    watcher = Watcher(held, feed, COLUMNS if call.query.columns else ROWS, after_ms)
    first = call.in_thread(watcher.read)
    return ApiAnswer(body=watched(call, watcher, first), media_type=EVENT_STREAM)


class Watcher:
    """A reader of a cluster's stream."""

    def __init__(self, held: HeldCluster, feed: Feed, form: Form, after_ms: int) -> None:
        self._held = held
        self._feed = feed
        self._form = form
        self._after_ms = after_ms
        self._clock: tuple[bool, float] | None = None
        self._clock_s = 0.0
        self._present = b""
        self._verdicts = held.verdicts.count
        self._lessons = 0

    def read(self) -> bytes:
        """The events since the last call, empty if there are none.  Called in a thread that may
        block."""
        if self._held.is_complete and self._clock is not None:
            parts = []
        else:
            reading = self._feed.read(self._after_ms, self._form)
            self._after_ms = reading.until_ms
            parts = [reading.text or b"", self._read_present(reading.until_ms)]
        parts.append(self._read_clock())
        count, verdict = self._held.verdicts.newest()
        if count != self._verdicts:
            self._verdicts = count
            parts.append(sse_event("verdict", verdict))
        count, card = self._held.lessons.newest()
        if count != self._lessons:
            self._lessons = count
            parts.append(sse_event("lesson", card))
        return b"".join(parts)

    def _read_present(self, until_ms: int) -> bytes:
        """Read the rows of the moment in which the clock is paused, whenever there are new ones.
        They are sent again when the moment is over."""
        if self._held.is_complete or not self._held.source.clock().paused:
            return b""
        text = self._feed.read_present(until_ms, self._form)
        text, self._present = (b"" if text == self._present else text), text
        return text

    def _read_clock(self) -> bytes:
        status = self._held.source.clock()
        state, now_s = (status.paused, status.speed), time.monotonic()
        if state == self._clock and now_s < self._clock_s + CLOCK_S:
            return b""
        self._clock, self._clock_s = state, now_s
        answer = clock_answer(self._held, status)
        return sse_event("clock", msgspec.json.encode(answer))


def watched(call: ApiCall, watcher: Watcher, first: bytes) -> Iterator[bytes]:
    """The parts of a watcher's stream, which ends with the cluster."""
    yield first
    try:
        while not call.is_over:
            gevent.sleep(EVERY_S)
            if parts := call.in_thread(watcher.read):
                yield parts
    except ClusterError:
        return  # the cluster has stopped
