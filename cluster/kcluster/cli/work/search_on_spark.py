"""`kcluster search --master`: the session of Spark whose workers play the runs.

Owns: that session, as long as a search needs it.  Never: searches (search.py).
Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from kcluster.cli.spark_job import interruptible, spark_session
from kcluster.pipeline.searching import SparkTrials
from kcluster.pipeline.shipping import SWEEP_NEEDS
from kcluster.search.schedule import Space


@contextmanager
def spark_players(spaces: Sequence[Space], master: str, *, ship_env: bool) -> Iterator[SparkTrials]:
    """Plays schedules on the workers of `master`; `ship_env`: they get the dependencies."""
    needs = SWEEP_NEEDS if ship_env else ()
    with spark_session(master, False, 0, needs) as spark, interruptible():
        yield SparkTrials(spark, spaces)
