"""The grid of a sweep, as a verb reads it.

Owns: the form of its problems.  Never: parses it (pipeline/sweep/grid.py).
Kafka: no counterpart.
"""

from __future__ import annotations

import sys

from kcluster.cli.spark_job import refuse
from kcluster.pipeline.sweep.grid import Grid, GridError, load_grid, with_seeds
from kcluster.scenario.library import LibraryKind
from kcluster.scenario.search import file_or_name


def read_grid(file: str, seeds: str | None = None) -> Grid:
    """The grid of a file with these seeds; its problems go to stderr, with exit code 2."""
    try:
        path = file_or_name(file, LibraryKind.SWEEP)
    except LookupError as error:
        refuse(str(error))
    try:
        grid = load_grid(path)
        return grid if seeds is None else with_seeds(grid, seeds)
    except GridError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    except ValueError as error:
        refuse(f"--seeds: {error}")
