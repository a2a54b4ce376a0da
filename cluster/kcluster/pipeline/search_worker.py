"""A task of a search on its worker: schedules in, trials out, both as bytes.

Owns: the plays of one task.  Never: chooses a schedule, knows Spark.  Kafka: no counterpart.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator

from kcluster.pipeline.workers import free_run
from kcluster.search.schedule import Space
from kcluster.search.trial import run_trial


def trials_of(pickled_space: bytes, pickled_schedules: Iterable[bytes]) -> Iterator[bytes]:
    """The pickled trials of schedules, in their order."""
    space: Space = pickle.loads(pickled_space)
    for schedule in pickled_schedules:
        yield pickle.dumps(run_trial(space, pickle.loads(schedule)))
        free_run()
