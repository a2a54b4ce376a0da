"""A task of a sweep at its worker: some run numbers to rows.

Owns: what a run's number means, a run that raises as a row.  Never: knows Spark.
Kafka: no counterpart.

Run number `seed's index * cells + cell's index`: neighbours are of different cells, so tasks that
are cut from the numbers are mixed.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec

from kcluster.pipeline.sweep.columns import Cell
from kcluster.pipeline.sweep.runs import ERROR, FORMAT, RunRow, play

Play = Callable[[Cell, int], RunRow]


def rows_of(
    first: int, end: int, done: bytes, cells: bytes, seeds: Sequence[int], given: Play | None
) -> Iterator[tuple[Any, ...]]:
    """Rows of the runs from number `first` up to `end` that are not `done` (a bit each)."""
    known = msgspec.json.decode(cells, type=list[Cell])
    run = given or play
    for number in range(first, end):
        if not is_set(done, number):
            cell, seed = known[number % len(known)], seeds[number // len(known)]
            yield msgspec.structs.astuple(row_of(run, cell, seed))


def row_of(run: Play, cell: Cell, seed: int) -> RunRow:
    """Its row, or one that tells what it raised."""
    with _Told() as told:
        return run(cell, seed)
    return RunRow(FORMAT, cell.key, seed, ERROR, told.text)


class _Told(AbstractContextManager["_Told"]):
    """An error in here is told in one line and goes no further: a run that raises, whatever it
    raises, must not take the task's other runs along."""

    text = ""

    def __enter__(self) -> _Told:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if not isinstance(error, Exception):
            return False
        frame = traceback.extract_tb(trace)[-1]
        words = " ".join(str(error).split())
        place = f"{Path(frame.filename).name}:{frame.lineno}"
        self.text = f"{type(error).__name__}: {words} ({place})"
        return True


def is_set(bits: bytes | bytearray, number: int) -> bool:
    """Whether this bit is 1."""
    return bool(bits[number >> 3] & (1 << (number & 7)))


def set_bit(bits: bytearray, number: int) -> None:
    """Make this bit 1."""
    bits[number >> 3] |= 1 << (number & 7)
