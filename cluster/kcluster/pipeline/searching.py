"""The runs of a search on Spark: the schedules of a batch, a task each.

Owns: what is sent to the workers and back.  Never: chooses a schedule or learns from a run
(search/loop.py), so that a search is the same on Spark and without it.  Kafka: no counterpart.

Spark handles bytes alone: only this module's function, once it has checked what the worker's Python
can import, reads them.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from kcluster.pipeline.shipping import import_check
from kcluster.search.schedule import Schedule, Space
from kcluster.search.trial import Trial

if TYPE_CHECKING:
    from pyspark import Broadcast
    from pyspark.sql import SparkSession


class SparkTrials:
    """Plays the schedules of one search on the workers of a session."""

    def __init__(self, spark: SparkSession, spaces: Sequence[Space]) -> None:
        self._context = spark.sparkContext
        self._work = partition_function(self._context.broadcast(pickle.dumps(spaces)))

    def play(self, schedules: Sequence[Schedule]) -> Iterator[Trial]:
        """The trials of schedules, in their order."""
        sent = self._context.parallelize([pickle.dumps(each) for each in schedules], len(schedules))
        yield from map(pickle.loads, sent.mapPartitions(self._work).collect())


def partition_function(spaces: Broadcast[bytes]) -> Callable[[Iterable[bytes]], Iterable[bytes]]:
    """The function for RDD.mapPartitions: schedules in, trials out.  It is pickled by value, as the
    package may be missing where it begins to run."""
    check = import_check("kcluster.pipeline.search_worker")

    def of_partition(schedules: Iterable[bytes]) -> Iterator[bytes]:
        check()
        from kcluster.pipeline.search_worker import trials_of

        yield from trials_of(spaces.value, schedules)

    return of_partition
