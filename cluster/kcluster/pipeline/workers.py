"""Spark's Python processes, of which each runs many tasks.

Owns: the garbage collector there.  Never: touches it in another process, such as a driver's.
Kafka: no counterpart.
"""

from __future__ import annotations

import os
from functools import cache

from kcluster.collector import collect_after_run, collect_rarely


@cache
def spare_modules() -> None:
    """Call this when a task has imported what it needs; it does something once.  Spark collects all
    garbage after each task, and would look through the modules each time, in 12 to 30 ms."""
    free_run()


def free_run() -> None:
    """Call this after each run of a task."""
    if "SPARK_REUSE_WORKER" in os.environ:
        collect_rarely()
        collect_after_run()
