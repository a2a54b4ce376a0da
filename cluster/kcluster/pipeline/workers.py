"""Spark's Python processes, each of which runs many tasks.

Owns: the garbage collector there.  Never: changes it in another process, such as a driver.
Kafka: no counterpart.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from kcluster.collector import collect_after_run


@cache
def spare_modules() -> None:
    """Exempt the loaded modules from collection.  To be called when a task has imported its
    modules; only the first call has an effect.  Spark collects all garbage after each task, and
    would otherwise look through the modules each time, in 12 to 30 ms."""
    free_run()


def free_run() -> None:
    """Free the memory of a run.  To be called after each run of a task."""
    if "SPARK_REUSE_WORKER" in os.environ:
        collect_after_run()


@contextmanager
def uncollected() -> Iterator[None]:
    """Collect nothing meanwhile: for work that makes many objects, and none that refer to each
    other in a circle.  The judge of long histories takes less than half the time."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
