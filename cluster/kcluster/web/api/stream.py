"""The stream under the page: the rows of the record as they come, as server-sent events.

Owns: this route, who watches which cluster, that watchers of one cluster share their readings.
Never: records (evidence/), blocks a cluster while it encodes: rows are read in the cluster's
thread, and made text in another.
Kafka: no counterpart.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from typing import Annotated, Any, Final

import gevent
import msgspec
from msgspec import Meta, Struct

from kcluster.events.words import text_of
from kcluster.operations.errors import ClusterError
from kcluster.runs.journal import SLACK_MS, Rows
from kcluster.runs.record import AppendRow, NoteRow
from kcluster.web.call import ApiAnswer, ApiCall
from kcluster.web.held import HeldCluster
from kcluster.web.routes import EVENT_STREAM, route
from kcluster.web.streams import COMMENT, QUIET_S, sse_event

EVERY_S: Final = 0.1
_FEED: Final = "stream"


class StreamParameters(Struct):
    """From when on."""

    after_ms: Annotated[
        int, Meta(description="Only rows after this time of the cluster's clock; else all.")
    ] = -1


class WordedNote(Struct, gc=False):
    """A row of events with its words."""

    id: tuple[int, int]
    at_ms: int
    kind: str
    subject: str
    text: str
    event: Any
    cause: tuple[int, int] | None


class Reading(Struct, gc=False):
    """What was read of the record after some time.  `text`: its `rows` event, None if it has no
    rows."""

    until_ms: int
    text: bytes | None


class Feed:
    """The readings of one cluster, for all who watch it.

    Watchers that have read up to the same time share the next reading; those that joined at
    different times soon do, because a reading ends with the current millisecond.
    """

    def __init__(self, held: HeldCluster) -> None:
        self._held = held
        self._lock = threading.Lock()
        self._sent: dict[int, dict[tuple[str, int, int, int], None]] = {}
        """By the end of a reading: the newest appends that were part of it or of one before."""
        self._newest: dict[int, Reading] = {}
        """By the time after which it was read."""

    def read(self, after_ms: int) -> Reading:
        """The rows after this time, in a thread that may wait."""
        with self._lock:
            shared = self._newest.get(after_ms)
            if shared is not None and shared.text is not None:
                return shared
            rows, until_ms = self._held.source.recorded_since(after_ms)
            self._keep_fresh_appends(rows, after_ms, until_ms)
            reading = Reading(until_ms, rows_text(rows, until_ms))
            self._newest = {
                after: kept
                for after, kept in self._newest.items()
                if kept.until_ms > until_ms - SLACK_MS
            }
            self._newest[after_ms] = reading
            return reading

    def _keep_fresh_appends(self, rows: Rows, after_ms: int, until_ms: int) -> None:
        """Take out appends that were sent before: readings overlap (runs/journal.py)."""
        sent = self._sent.get(after_ms, {})
        appends: list[AppendRow] = rows.get("appends", [])
        newest = {key_of(row): None for row in appends if row.at_ms > until_ms - 2 * SLACK_MS}
        rows["appends"] = [row for row in appends if key_of(row) not in sent]
        self._sent = {
            until: keys for until, keys in self._sent.items() if until > until_ms - SLACK_MS
        }
        self._sent[until_ms] = {**self._sent.get(until_ms, {}), **newest}


def key_of(row: AppendRow) -> tuple[str, int, int, int]:
    """What tells an append from others."""
    return row.topic, row.partition, row.epoch, row.base_offset


def rows_text(rows: Rows, until_ms: int) -> bytes | None:
    """The `rows` event for these rows; None if there are none."""
    shown = {field: found for field, found in rows.items() if found}
    if not shown:
        return None
    if "notes" in shown:
        shown["notes"] = [worded(row) for row in shown["notes"]]
    data = msgspec.json.encode({"until_ms": until_ms, "rows": shown})
    return sse_event("rows", data, until_ms)


def worded(row: NoteRow) -> WordedNote:
    """A row of events with its words."""
    event = row.event
    return WordedNote(
        id=row.id,
        at_ms=row.at_ms,
        kind=event.kind,
        subject=event.subject,
        text=text_of(event),
        event=event,
        cause=row.cause,
    )


@route(
    "GET",
    "/v1/clusters/<id>/stream",
    query=StreamParameters,
    answer=EVENT_STREAM,
    errors=(404, 409),
    in_hub=True,
)
def stream_rows(call: ApiCall) -> ApiAnswer:
    """The rows of the record as server-sent events, for the page: first all so far, then, about
    every 100 ms, those that are new."""
    after_ms = call.query.after_ms
    after_ms = call.request.headers.get("Last-Event-ID", after_ms, type=int)
    held = call.held
    feed: Feed = held.belonging(_FEED, lambda: Feed(held))
    first = call.in_thread(lambda: feed.read(after_ms))
    return ApiAnswer(body=watched(call, feed, first), media_type=EVENT_STREAM)


def watched(call: ApiCall, feed: Feed, reading: Reading) -> Iterator[bytes]:
    """The readings of a watcher; ends with the cluster."""
    yield reading.text or COMMENT
    quiet_s = 0.0
    try:
        while not call.is_over:
            gevent.sleep(EVERY_S)
            reading = call.in_thread(partial(feed.read, reading.until_ms))
            quiet_s = 0.0 if reading.text else quiet_s + EVERY_S
            if reading.text or quiet_s >= QUIET_S:
                yield reading.text or COMMENT
                quiet_s = 0.0
    except ClusterError:
        return  # it has stopped
