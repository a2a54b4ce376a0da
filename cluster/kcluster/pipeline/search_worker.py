"""A task of a search on its worker: schedules in, trials out, both as bytes.

Owns: the plays of one task.  Never: chooses a schedule, knows Spark.  Kafka: no counterpart.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence

from kcluster.pipeline.workers import free_run
from kcluster.search.schedule import Schedule, Space
from kcluster.search.trial import run_trial


def trials_of(pickled_spaces: bytes, pickled_schedules: Iterable[bytes]) -> Iterator[bytes]:
    """The pickled trials of schedules, in their order."""
    spaces: Sequence[Space] = pickle.loads(pickled_spaces)
    for pickled in pickled_schedules:
        schedule: Schedule = pickle.loads(pickled)
        yield pickle.dumps(run_trial(spaces[schedule.space], schedule))
        free_run()
