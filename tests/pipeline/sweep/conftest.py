"""One sweep for the tests of its results: reference.yaml, 4 cells of 20 seeds.

Owns: the sweep, run once.  Never: the expected figures (reference.json).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from kcluster.pipeline.sweep.grid import Grid, load_grid
from kcluster.pipeline.sweep.job import sweep
from kcluster.pipeline.sweep.summary import CellSummary, summarize

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GRID = Path(__file__).with_name("reference.yaml")


class Swept(NamedTuple):
    grid: Grid
    out: Path
    sums: list[CellSummary]


@pytest.fixture(scope="session")
def swept(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Swept:
    grid, out = load_grid(GRID), tmp_path_factory.mktemp("swept")
    sweep(spark, grid, out)
    return Swept(grid, out, summarize(spark, grid, out))
