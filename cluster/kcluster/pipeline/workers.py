"""Spark's Python processes, of which each runs many tasks.

Owns: the garbage collector there.  Never: touches it in another process, such as a driver's.
Kafka: no counterpart.
"""

from __future__ import annotations

import gc
import os
from functools import cache

from kcluster.collector import collect_rarely


@cache
def spare_modules() -> None:
    """Call this when a task has imported what it needs; it does something once.  Spark collects all
    garbage after each task, and would look through the modules each time, in 12 to 30 ms."""
    if "SPARK_REUSE_WORKER" in os.environ:
        collect_rarely()
        gc.collect()
        gc.freeze()
