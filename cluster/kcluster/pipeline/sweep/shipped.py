"""What a Spark worker runs first: finds the package that was sent along, then plays its runs.

Owns: that bootstrap.  Never: imports the package before it is found: this module's functions travel
by value, all others by name.
Kafka: no counterpart.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any


def player(
    archive: str, done: Any, cells: Any, seeds: Any, play: Callable[..., Any] | None
) -> Callable[[Iterable[tuple[int, int]]], Iterable[tuple[Any, ...]]]:
    """A function for RDD.mapPartitions: ranges of run numbers to rows.  `done`, `cells`, `seeds`:
    broadcasts; `archive`: where the package was unpacked,
    "" where it is installed; `play`: what runs one, None: kcluster.pipeline.sweep.runs.play."""

    def of_partition(ranges: Iterable[tuple[int, int]]) -> Iterator[tuple[Any, ...]]:
        if archive:
            from pyspark import SparkFiles

            place = f"{SparkFiles.getRootDirectory()}/{archive}"
            if place not in sys.path:
                sys.path.insert(0, place)
        from kcluster.pipeline.sweep.worker import rows_of

        for first, end in ranges:
            yield from rows_of(first, end, done.value, cells.value, seeds.value, play)

    return of_partition
