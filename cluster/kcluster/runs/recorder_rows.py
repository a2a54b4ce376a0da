"""What a recorder has of the time between two moments, as rows or as columns.

Owns: reading the recorder's tables.  Never: records (evidence/), writes or sends a table.
Kafka: no counterpart.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from operator import attrgetter, itemgetter
from typing import Final, NamedTuple, TypeVar

from kcluster.evidence.group_history import commits_of
from kcluster.evidence.recorder import Recorder
from kcluster.evidence.rows import ExchangeRow
from kcluster.invariants.observed import Append, Move, ObservedPartition
from kcluster.runs.build_record import (
    append_row,
    commit_row,
    epochs_row,
    leader_row,
    move_row,
    note_rows,
)
from kcluster.runs.columns import Columns, columns_of
from kcluster.runs.record import Rows

T = TypeVar("T")

MANY_EXCHANGES: Final = 200
"""The exchanges, and one more per ms of their time, above which columns have only a part."""

OfPartitions = Sequence[tuple[ObservedPartition, Sequence[T]]]


class Recorded(NamedTuple):
    """What was recorded between two moments.  `ready`: the rows of most tables; `appends`, `moves`:
    the recorder's own objects, for the longest tables."""

    ready: Rows
    appends: OfPartitions[Append]
    moves: OfPartitions[Move]

    def rows(self) -> Rows:
        """All rows."""
        return self.ready | {
            "appends": [append_row(one, append) for one, part in self.appends for append in part],
            "moves": [move_row(one, move) for one, part in self.moves for move in part],
        }

    def columns(self) -> dict[str, Columns]:
        """All tables except that of events; of very many exchanges only a part
        (`_exchange_columns`)."""
        own = ("notes", "exchanges")
        tables = {name: columns_of(rows) for name, rows in self.ready.items() if name not in own}
        return tables | {
            "exchanges": _exchange_columns(self.ready["exchanges"]),
            "appends": _append_columns(self.appends),
            "moves": _move_columns(self.moves),
        }


def rows_between(recorder: Recorder, after_ms: int, before_ms: int) -> Rows:
    """The rows that were recorded after `after_ms` and before `before_ms`."""
    return recorded_between(recorder, after_ms, before_ms).rows()


def recorded_between(recorder: Recorder, after_ms: int, before_ms: int) -> Recorded:
    """What was recorded after `after_ms` and before `before_ms`.  For an append, the time of its
    recording counts, which may be later than its own time, the time of the request."""

    def part(rows: Sequence[T], at_ms: Callable[[T], int]) -> Sequence[T]:
        return _between(rows, at_ms, after_ms, before_ms)

    exchanges, states = recorder.exchanges(), recorder.states
    commits = commits_of(recorder, part(recorder.answers, _first))
    rows: Rows = {
        "notes": note_rows(part(recorder.notes, _at_ms)),
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
    appends: list[tuple[ObservedPartition, Sequence[Append]]] = []
    moves: list[tuple[ObservedPartition, Sequence[Move]]] = []
    for one in recorder.partitions.values():
        # Most partitions have no new rows.
        if one.appends and one.appends[-1].seen_ms > after_ms:
            appends.append((one, part(one.appends, _seen_ms)))
        if one.moves and one.moves[-1].at_ms > after_ms:
            moves.append((one, part(one.moves, _at_ms)))
        if one.registrations and one.registrations[-1][0] > after_ms:
            rows["leaders"] += [leader_row(one, *x) for x in part(one.registrations, _first)]
        if one.epoch_runs and one.epoch_runs[-1].at_ms > after_ms:
            rows["epochs"] += [epochs_row(one, runs) for runs in part(one.epoch_runs, _at_ms)]
    return Recorded(rows, appends, moves)


_at_ms: Final[Callable[[object], int]] = attrgetter("at_ms")
_seen_ms: Final[Callable[[object], int]] = attrgetter("seen_ms")
_first: Final[Callable[[Sequence[object]], int]] = itemgetter(0)


def _between(
    rows: Sequence[T], at_ms: Callable[[T], int], after_ms: int, before_ms: int
) -> Sequence[T]:
    """The rows between the two times, of rows in order of time."""
    first = bisect_right(rows, after_ms, key=at_ms)
    return rows[first : bisect_left(rows, before_ms, first, key=at_ms)]


def _exchange_columns(rows: Sequence[ExchangeRow]) -> Columns:
    """The columns of exchanges.  If there are more than a viewer can follow, they have every second
    exchange or fewer, and all failed ones; `times`: how many exchanges each row stands for."""
    if len(rows) <= MANY_EXCHANGES:
        return columns_of(rows)
    apart = len(rows) // (MANY_EXCHANGES + rows[-1].at_ms - rows[0].at_ms)
    if apart < 2:
        return columns_of(rows)
    shown: list[ExchangeRow] = []
    times: list[int] = []
    for number, row in enumerate(rows):
        if number % apart == 0:
            shown.append(row)
            times.append(apart)
        elif row.error or row.answered_ms < 0:
            shown.append(row)
            times.append(1)
    return columns_of(shown) | {"times": times}


def _append_columns(found: OfPartitions[Append]) -> Columns:
    """The columns of `build_record.append_row`, without the rows: a busy cluster has ten thousand
    in a second."""
    every = [append for _, appends in found for append in appends]
    if not every:
        return {}
    return _places(found) | {
        "at_ms": [append.at_ms for append in every],
        "broker": [append.broker for append in every],
        "epoch": [append.epoch for append in every],
        "base_offset": [append.base_offset for append in every],
        "last_offset": [append.last_offset for append in every],
        "client": [
            "" if append.request is None else append.request.client_id or "" for append in every
        ],
        "isr": [append.isr for append in every],
    }


def _move_columns(found: OfPartitions[Move]) -> Columns:
    """The columns of `build_record.move_row`, without the rows."""
    moves = columns_of([move for _, moves in found for move in moves])
    return _places(found) | moves if moves else {}


def _places(found: OfPartitions[T]) -> Columns:
    """The columns with the partition of each object."""
    topics: list[str] = []
    partitions: list[int] = []
    for one, objects in found:
        topics += [one.topic] * len(objects)
        partitions += [one.partition] * len(objects)
    return {"topic": topics, "partition": partitions}
