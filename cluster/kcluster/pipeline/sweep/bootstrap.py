"""The function that a Spark worker calls first: it checks what it can import, then runs the cells.

Owns: that function, which is pickled by value; all others are pickled by name.  Never: imports the
package before the check.
Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from kcluster.pipeline.shipping import import_check

if TYPE_CHECKING:
    from pyspark import Broadcast

    from kcluster.pipeline.sweep.worker import Play


def partition_function(
    done: Broadcast[bytes],
    cells: Broadcast[bytes],
    seeds: Broadcast[Sequence[int]],
    play: Play | None,
) -> Callable[[Iterable[tuple[int, int]]], Iterable[tuple[object, ...]]]:
    """The function for RDD.mapPartitions: ranges of run numbers in, rows out.

    `done`, `cells`, `seeds`: broadcasts.  `play`: runs one (cell, seed); None:
    kcluster.pipeline.sweep.runs.play.
    """
    check = import_check("kcluster.pipeline.sweep.worker")

    def of_partition(ranges: Iterable[tuple[int, int]]) -> Iterator[tuple[object, ...]]:
        check()
        from kcluster.pipeline.sweep.worker import rows_of

        for first, end in ranges:
            yield from rows_of(first, end, done.value, cells.value, seeds.value, play)

    return of_partition
