"""The function that a Spark worker calls first: it finds the shipped package, then runs the cells.

Owns: that function, which is pickled by value; all others are pickled by name; the error if the
worker's Python lacks a module.  Never: imports the package before `sys.path` has it.  Kafka: no
counterpart.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark import Broadcast

    from kcluster.pipeline.sweep.worker import Play


class WorkerLacksModule(Exception):
    """The error for a worker's Python that cannot import a module that a run needs; the text names
    the module and the remedy."""


def partition_function(
    archive: str,
    done: Broadcast[bytes],
    cells: Broadcast[bytes],
    seeds: Broadcast[Sequence[int]],
    play: Play | None,
) -> Callable[[Iterable[tuple[int, int]]], Iterable[tuple[object, ...]]]:
    """The function for RDD.mapPartitions: it takes ranges of run numbers, and yields rows.

    `archive`: the directory of the unpacked package, "" where it is installed.  `done`, `cells`,
    `seeds`: broadcasts.  `play`: runs one (cell, seed); None: kcluster.pipeline.sweep.runs.play.
    """

    def of_partition(ranges: Iterable[tuple[int, int]]) -> Iterator[tuple[object, ...]]:
        if archive:
            from pyspark import SparkFiles

            place = f"{SparkFiles.getRootDirectory()}/{archive}"
            if place not in sys.path:
                sys.path.insert(0, place)
        try:
            from kcluster.pipeline.sweep.worker import rows_of
        except ImportError as error:
            import platform

            version, host = platform.python_version(), platform.node()
            raise WorkerLacksModule(
                f"a worker's Python ({sys.executable}, {version}, on {host}) cannot run the sweep:"
                f" {error}; --ship-env sends what this installation has, or install kcluster's"
                " dependencies there and name that Python in PYSPARK_PYTHON"
            ) from None

        for first, end in ranges:
            yield from rows_of(first, end, done.value, cells.value, seeds.value, play)

    return of_partition
