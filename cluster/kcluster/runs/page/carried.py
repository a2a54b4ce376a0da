"""The data that the page of a run carries: the run, its verdict, the rows that are drawn, clients'
counts.

Owns: these values, the rows that are left out if there are too many, their packing.  Never: draws;
decides on the form of an event (runs/note_values.py).  Kafka: no counterpart.

A table travels as columns: JSON, compressed (zlib), in base64.  model.js makes rows of it.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any, Final

import msgspec
from msgspec import Struct, field

from kcluster.runs.note_values import notes_values
from kcluster.runs.record import STREAMED, MoveRow, RunRecord

MAX_POINTS: Final = 60_000
"""The most moves of all replicas together; above it, they are thinned, except for decreases."""
MAX_ROWS: Final = 60_000
"""The most appends, and the most exchanges.  The newest are kept, as on the page of a running
cluster."""
MAX_TIMES: Final = 4_000
"""The most times of a client's sends or reads; above it, adjacent times are merged."""

Counts = dict[int, int]
"""Counts by time."""


class _Client(Struct):
    """The records and errors of a client, counted by time."""

    name: str
    sent: Counts = field(default_factory=dict)
    ended: dict[int, list[int]] = field(default_factory=dict)
    """The outcomes by time: the numbers of acked, failed and unknown records, and the longest
    duration among them."""
    reads: Counts = field(default_factory=dict)
    errors: dict[tuple[int, str, str, str], int] = field(default_factory=dict)
    """The errors by time, API, error and partition."""


def packed(record: RunRecord) -> str:
    """The data that the page of a run carries, for a JSON string in a <script> element."""
    text = msgspec.json.encode(carried_values(record))
    return base64.b64encode(zlib.compress(text)).decode()


def carried_values(record: RunRecord) -> dict[str, Any]:
    """The values of the data before it is packed; times are on the cluster's clock."""
    info = record.info
    cell_ms = max(1, (info.ended_ms - info.began_ms) // MAX_TIMES)
    rows: dict[str, Sequence[Struct]] = {name: getattr(record, name) for name in STREAMED}
    rows["moves"] = thinned(record.moves, info.ended_ms - info.began_ms)
    rows |= {name: rows[name][-MAX_ROWS:] for name in ("appends", "exchanges")}
    tables = {name: _columns(found) for name, found in rows.items() if name != "notes"}
    notes = notes_values(record.notes, info.began_ms)
    return {
        "run": {
            "name": info.name,
            "clock": info.clock,
            "seed": info.seed,
            "outcome": info.outcome,
            "passed": info.passed,
            "failures": info.failures,
            "story": info.story.strip(),
            "replay": info.replay,
            "began": info.began_ms,
            "end": max(info.ended_ms, info.began_ms + 1),
            "brokers": [
                {"id": each["id"], "rack": each.get("rack") or ""}
                for each in info.topology.get("brokers", ())
            ],
        },
        "verdict": record.verdict or None,
        "problems": record.problems,
        "clients": [_client_values(each) for each in _clients(record, cell_ms)],
        "processed": _processed(record, cell_ms),
        "tables": {**tables, "notes": _columns_of_values(notes)},
    }


def _columns(rows: Sequence[Struct]) -> dict[str, list[object]]:
    names = rows[0].__struct_fields__ if rows else ()
    return {name: list(map(attrgetter(name), rows)) for name in names}


def _columns_of_values(rows: Sequence[Mapping[str, object]]) -> dict[str, list[object]]:
    return {name: [row[name] for row in rows] for name in (rows[0] if rows else ())}


# ---------------------------------------------------------------------------------------- moves


def thinned(moves: Sequence[MoveRow], length_ms: int) -> Sequence[MoveRow]:
    """At most about MAX_POINTS of the moves: for each replica the last move in each span of time,
    and both ends of each decrease, which readers look for."""
    if len(moves) <= MAX_POINTS:
        return moves
    replica = attrgetter("topic", "partition", "broker")
    replicas = [list(found) for _, found in groupby(sorted(moves, key=replica), replica)]
    cell_ms = -(-length_ms // max(MAX_POINTS // len(replicas), 20))
    return [move for found in replicas for move in _kept(found, cell_ms)]


def _kept(moves: Sequence[MoveRow], cell_ms: int) -> Iterator[MoveRow]:
    fell = False
    for at, move in enumerate(moves[:-1]):
        after = moves[at + 1]
        falls = (
            after.log_end_offset < move.log_end_offset or after.high_watermark < move.high_watermark
        )
        if falls or fell or after.at_ms // cell_ms > move.at_ms // cell_ms:
            yield move
        fell = falls
    yield moves[-1]


# --------------------------------------------------------------------------------------- counts


def _clients(record: RunRecord, cell_ms: int) -> Iterable[_Client]:
    """The clients, in the order of their first row."""
    found: dict[str, _Client] = {}

    def client(name: str) -> _Client:
        known = found.get(name)
        if known is None:
            known = found[name] = _Client(name)
        return known

    columns = {"acked": 0, "failed": 1}
    for send in record.sends:
        each = client(send.producer)
        if send.sent_ms >= 0:
            _count(each.sent, _cell(send.sent_ms, cell_ms))
        if send.ended_ms >= 0:
            counts = each.ended.setdefault(_cell(send.ended_ms, cell_ms), [0, 0, 0, 0])
            counts[columns.get(send.outcome, 2)] += 1
            counts[3] = max(counts[3], send.ended_ms - max(send.sent_ms, record.info.began_ms))
    for read in record.reads:
        _count(client(read.consumer).reads, _cell(read.at_ms, cell_ms))
    for row in record.errors:
        about = "" if row.topic is None else f"{row.topic}-{row.partition}"
        errors = client(row.client).errors
        key = (_cell(row.at_ms, cell_ms), row.api, row.error, about)
        errors[key] = errors.get(key, 0) + 1
    return found.values()


def _client_values(client: _Client) -> dict[str, object]:
    """The values of a client: rows of (ms, count); `ended`: (ms, acked, failed, unknown, longest
    ms); `errors`: (ms, API, error, partition, count)."""
    return {
        "name": client.name,
        "sent": sorted(client.sent.items()),
        "ended": [(at, *counts) for at, counts in sorted(client.ended.items())],
        "reads": sorted(client.reads.items()),
        "errors": [(*key, count) for key, count in sorted(client.errors.items())],
    }


def _processed(record: RunRecord, cell_ms: int) -> dict[str, list[tuple[int, int]]]:
    """By topic, rows of (ms, the number of records that the application reported as processed)."""
    counts: dict[str, Counts] = {}
    for row in record.processed:
        _count(counts.setdefault(row.topic, {}), _cell(row.at_ms, cell_ms))
    return {topic: sorted(found.items()) for topic, found in counts.items()}


def _cell(at_ms: int, cell_ms: int) -> int:
    return at_ms // cell_ms * cell_ms


def _count(counts: Counts, at_ms: int) -> None:
    counts[at_ms] = counts.get(at_ms, 0) + 1
