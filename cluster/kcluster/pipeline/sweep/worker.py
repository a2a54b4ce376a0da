"""A task of a sweep on its worker: run numbers in, rows out.

Owns: the meaning of a run's number, the row of a run that raises.  Never: knows Spark.
Kafka: no counterpart.

A run's number is `seed's index * cells + cell's index`.  Neighbouring numbers are of different
cells, so a task that takes a range of numbers has a mix of cells.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType

import msgspec

from kcluster.pipeline.sweep.columns import Cell
from kcluster.pipeline.sweep.runs import ERROR, FORMAT, RunRow, play
from kcluster.pipeline.workers import free_run

Play = Callable[[Cell, int], RunRow]


def rows_of(
    first: int,
    end: int,
    done: bytes,
    encoded_cells: bytes,
    seeds: Sequence[int],
    play_function: Play | None,
) -> Iterator[tuple[object, ...]]:
    """The rows of the runs [first, end) that are not `done` (one bit per run).  `encoded_cells`:
    the cells as JSON; `play_function`: None for runs.play."""
    cells = msgspec.json.decode(encoded_cells, type=list[Cell])
    for number in range(first, end):
        if not is_set(done, number):
            cell, seed = cells[number % len(cells)], seeds[number // len(cells)]
            yield msgspec.structs.astuple(row_of(play_function or play, cell, seed))
            free_run()


def row_of(play_function: Play, cell: Cell, seed: int) -> RunRow:
    """The row of a run; a run that raises has outcome ERROR and the error's text."""
    with _CaughtError() as caught:
        return play_function(cell, seed)
    return RunRow(format=FORMAT, cell=cell.key, seed=seed, outcome=ERROR, error=caught.text)


class _CaughtError(AbstractContextManager["_CaughtError"]):
    """Suppresses any Exception raised inside and keeps it as one line of `text`: a run that raises
    must not end the other runs of its task."""

    text = ""

    def __enter__(self) -> _CaughtError:
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
        message = " ".join(str(error).split())
        place = f"{Path(frame.filename).name}:{frame.lineno}"
        self.text = f"{type(error).__name__}: {message} ({place})"
        return True


def is_set(bits: bytes | bytearray, number: int) -> bool:
    """Whether bit `number` is 1."""
    return bool(bits[number >> 3] & (1 << (number & 7)))


def set_bit(bits: bytearray, number: int) -> None:
    """Set bit `number` to 1."""
    bits[number >> 3] |= 1 << (number & 7)
