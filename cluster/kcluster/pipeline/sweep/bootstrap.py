"""The function that a Spark worker calls first: it finds the shipped package, then runs the cells.

Owns: that function, which is pickled by value; all others are pickled by name.  Never: imports the
package before `sys.path` has it.
Kafka: no counterpart.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any


def partition_function(
    archive: str, done: Any, cells: Any, seeds: Any, play: Callable[..., Any] | None
) -> Callable[[Iterable[tuple[int, int]]], Iterable[tuple[Any, ...]]]:
    """The function for RDD.mapPartitions: ranges of run numbers in, rows out.

    `archive`: the directory of the unpacked package, "" where it is installed.  `done`, `cells`,
    `seeds`: broadcasts.  `play`: runs one (cell, seed); None: kcluster.pipeline.sweep.runs.play.
    """

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
