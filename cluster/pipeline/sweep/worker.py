"""A task of a sweep at its worker: some run numbers to rows.

Owns: what a run's number means.  Never: knows Spark.
Kafka: no counterpart.

Run number `seed's index * cells + cell's index`: neighbours are of different cells, so tasks that
are cut from the numbers are mixed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from cluster.pipeline.sweep.grid import Cell
from cluster.pipeline.sweep.runs import RunRow, play

Play = Callable[[Cell, int], RunRow]


def rows_of(
    first: int, end: int, done: bytes, cells: bytes, seeds: Sequence[int], given: Play | None
) -> Iterator[tuple[Any, ...]]:
    """Rows of the runs from number `first` up to `end` that are not `done` (a bit each)."""
    known = msgspec.json.decode(cells, type=list[Cell])
    run = given or play
    for number in range(first, end):
        if not is_set(done, number):
            row = run(known[number % len(known)], seeds[number // len(known)])
            yield msgspec.structs.astuple(row)


def is_set(bits: bytes | bytearray, number: int) -> bool:
    """Whether this bit is 1."""
    return bool(bits[number >> 3] & (1 << (number & 7)))


def set_bit(bits: bytearray, number: int) -> None:
    """Make this bit 1."""
    bits[number >> 3] |= 1 << (number & 7)
