"""The data that the page of a run carries: the run, its verdict, the rows that are drawn, clients'
counts.

Owns: these values, the rows that are left out if there are too many, their packing.  Never: draws;
decides on the form of an event (runs/note_values.py).  Kafka: no counterpart.

A table travels as columns: JSON, compressed (zlib), in base64.  carried.js makes rows of it.  The
page opens with the timeline: what only other views draw is packed apart, and unpacked when one of
them is opened.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from operator import attrgetter
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct, field

from kcluster.checks.manners import find_manners
from kcluster.checks.manners_words import manner_values
from kcluster.clients.ledger import Partition
from kcluster.json_types import JsonObject
from kcluster.runs.columns import columns_of, columns_of_values
from kcluster.runs.note_values import notes_values
from kcluster.runs.page.waiting import waiting_rows
from kcluster.runs.record import STREAMED, AppendRow, CommitRow, MoveRow, ProblemRow, RunRecord

MAX_POINTS: Final = 60_000
"""The most moves of all replicas, and the most commits; above it, they are thinned, except for
decreases."""
MAX_ROWS: Final = 60_000
"""The most appends, and the most exchanges.  The newest are kept, as on the page of a running
cluster."""
MAX_TIMES: Final = 4_000
"""The most times of a client's sends or reads; above it, adjacent times are merged."""
DRAWN_FIRST: Final = ("leaders", "moves", "epochs", "logins", "credentials")
"""The tables that the timeline draws, besides the events, and the tables that decide which tabs
there are."""
EVENT_FIELDS: Final = frozenset({
    "kind", "broker", "how", "topic", "partition", "leader", "epoch", "source", "destination",
    "links", "remaining", "undone", "latency_us", "loss", "bytes_per_s", "from_offset", "to_offset",
    "resource_type", "node", "client_id", "silent_ms", "high_watermark", "leader_end_offset",
})  # fmt: skip
"""The fields of events that the page reads: EventFields in types.d.ts."""

_Row = TypeVar("_Row", MoveRow, CommitRow)
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


def packed(data: bytes, level: int = zlib.Z_DEFAULT_COMPRESSION) -> str:
    """Data for a <script> element: letters, digits, +, / and = only."""
    return base64.b64encode(zlib.compress(data, level)).decode()


def packed_run(record: RunRecord, lessons: Sequence[JsonObject]) -> tuple[str, str]:
    """The data with which the page opens, and the data that only views other than the timeline
    draw.  `lessons`: the cards of a class."""
    values = (carried_values(record) | {"lessons": list(lessons)}, later_tables(record))
    first, later = (packed(msgspec.json.encode(each)) for each in values)
    return first, later


def carried_values(record: RunRecord) -> JsonObject:
    """The data that the page opens with; times are on the cluster's clock."""
    info = record.info
    cell_ms = max(1, (info.ended_ms - info.began_ms) // MAX_TIMES)
    topics = {row.topic for row in record.processed} | {row.topic for row in record.problems}
    commits = [row for row in record.commits if row.topic in topics]
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
        "verdict": _verdict_values(record),
        "problems": _problems(record),
        "clients": [_client_values(each) for each in _clients(record, cell_ms)],
        "processed": _processed(record, cell_ms),
        "commits": columns_of(_thinned_commits(commits, record)),
        "tables": {
            **{name: columns_of(_rows(record, name)) for name in _drawn_first(record)},
            "notes": columns_of_values(_notes(record)),
        },
    }


def _verdict_values(record: RunRecord) -> JsonObject | None:
    """The verdict of a run, with the manners of its clients; None without a verdict."""
    if not record.verdict:
        return None
    manners = find_manners(record.exchanges, record.groups)
    return {**record.verdict, "manners": [manner_values(each) for each in manners]}


def later_tables(record: RunRecord) -> JsonObject:
    """The tables that only views other than the timeline draw."""
    names = set(STREAMED) - {"notes", "commits", *_drawn_first(record)}
    commits = _thinned_commits(_changed_commits(record), record)
    tables = {name: columns_of(_rows(record, name)) for name in sorted(names)}
    return {**tables, "commits": columns_of(commits), "waiting": columns_of(waiting_rows(record))}


def _drawn_first(record: RunRecord) -> tuple[str, ...]:
    """The tables that the timeline needs. A record without replicas' epochs also needs the appends,
    from which the page then reads the epochs."""
    return DRAWN_FIRST if record.epochs else (*DRAWN_FIRST, "appends")


def _rows(record: RunRecord, name: str) -> Sequence[Struct]:
    """The rows of a table, thinned or cut to its limit."""
    if name == "moves":
        length_ms = record.info.ended_ms - record.info.began_ms
        return thinned(record.moves, length_ms, _replica, _is_lower_move)
    rows: Sequence[Struct] = getattr(record, name)
    return rows[-MAX_ROWS:] if name in ("appends", "exchanges") else rows


def _notes(record: RunRecord) -> list[JsonObject]:
    """The events, reduced to the fields that the page reads."""
    notes = notes_values(record.notes, record.info.began_ms)
    for note in notes:
        del note["kind"], note["sentence"]
        note["event"] = {
            name: note["event"][name] for name in note["event"] if name in EVENT_FIELDS
        }
    return notes


def _problems(record: RunRecord) -> list[JsonObject]:
    """The problems of the application. `from_ms`, `to_ms`: the times at which the first and the
    last of these records were last appended; None if that was not recorded."""
    partitions = {(row.topic, row.partition) for row in record.problems}
    appends: dict[Partition, list[AppendRow]] = {each: [] for each in partitions}
    for append in reversed(record.appends if partitions else ()):
        if (append.topic, append.partition) in partitions:
            appends[append.topic, append.partition].append(append)

    def appended_ms(problem: ProblemRow, offset: int) -> int | None:
        found = appends[problem.topic, problem.partition]
        return next((x.at_ms for x in found if x.base_offset <= offset <= x.last_offset), None)

    return [
        {
            **msgspec.to_builtins(row),
            "from_ms": appended_ms(row, row.first),
            "to_ms": appended_ms(row, row.last),
        }
        for row in record.problems
    ]


# --------------------------------------------------------------------------------------- states


_replica = attrgetter("topic", "partition", "broker")
_position = attrgetter("group", "topic", "partition")


def _is_lower_move(before: MoveRow, after: MoveRow) -> bool:
    return (
        after.log_end_offset < before.log_end_offset or after.high_watermark < before.high_watermark
    )


def _is_refused_or_lower(before: CommitRow, after: CommitRow) -> bool:
    return bool(before.error or after.error) or after.offset < before.offset


def _changed_commits(record: RunRecord) -> list[CommitRow]:
    """The commits by which a group's position changed."""
    positions: dict[object, int] = {}
    changed = []
    for row in record.commits:
        if not row.error and positions.get(_position(row)) != row.offset:
            positions[_position(row)] = row.offset
            changed.append(row)
    return changed


def _thinned_commits(commits: Sequence[CommitRow], record: RunRecord) -> Sequence[CommitRow]:
    length_ms = record.info.ended_ms - record.info.began_ms
    return thinned(commits, length_ms, _position, _is_refused_or_lower)


def thinned(
    rows: Sequence[_Row],
    length_ms: int,
    key: Callable[[_Row], Any],
    falls: Callable[[_Row, _Row], bool],
) -> Sequence[_Row]:
    """At most about MAX_POINTS of the rows: for each key the last row in each span of time, and
    both ends of each decrease, which readers look for."""
    if len(rows) <= MAX_POINTS:
        return rows
    by_key = [list(found) for _, found in groupby(sorted(rows, key=key), key)]
    cell_ms = -(-length_ms // max(MAX_POINTS // len(by_key), 20))
    return [row for found in by_key for row in _kept(found, cell_ms, falls)]


def _kept(
    rows: Sequence[_Row], cell_ms: int, falls: Callable[[_Row, _Row], bool]
) -> Iterator[_Row]:
    fell = False
    for row, after in pairwise(rows):
        falling = falls(row, after)
        if falling or fell or after.at_ms // cell_ms > row.at_ms // cell_ms:
            yield row
        fell = falling
    yield rows[-1]


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
