"""Sums over the runs of each cell, and two cells compared seed by seed.

Owns: the sums, which Spark computes.  Never: has formulas (estimates.py) or words (report.py).
Kafka: no counterpart.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from kcluster.pipeline.sweep.estimates import (
    BILLION,
    Interval,
    clopper_pearson,
    exact_sign_test,
    per_billion,
    per_year,
    ratio_error,
    wilson,
)
from kcluster.pipeline.sweep.grid import Grid
from kcluster.pipeline.sweep.job import table_of
from kcluster.pipeline.sweep.runs import ERROR

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

PERCENTS: Final = (50, 95, 99)
_ACCURACY: Final = 10_000
"""The accuracy argument of percentile_approx: the relative error is 1 / _ACCURACY, and memory does
not grow with runs."""


class CellSummary(Struct):
    """One cell.  Tuples are percentiles (PERCENTS) in ms, empty if nothing was measured."""

    cell: str
    runs: int = 0
    losses: int = 0
    """The number of runs that lost at least one acked record."""
    invalid: int = 0
    """The number of runs with any anomaly."""
    sent: int = 0
    acked: int = 0
    lost: int = 0
    unconfirmed: int = 0
    """The number of sends that failed, or whose outcome the producer does not know."""
    failures: int = 0
    ran_ms: int = 0
    writes_ms: float = 0
    reads_ms: float = 0
    lost_lost: float = 0
    lost_acked: float = 0
    acked_acked: float = 0
    wall_ms: float = 0
    ack_p50_ms: float | None = None
    """Median of the runs' medians."""
    ack_p99_ms: float | None = None
    """Median of the runs' 99th percentiles."""
    noticed: tuple[float, ...] = ()
    """The time from a leader's failure to the fencing of its broker, if it was not back before."""
    elected: tuple[float, ...] = ()
    """The time from a leader's failure to the election of its successor."""
    first_ack: tuple[float, ...] = ()
    """The time from a leader's failure to the first ack of its successor."""

    @property
    def loss(self) -> float:
        """The share of runs with a loss."""
        return self.losses / self.runs if self.runs else 0.0

    @property
    def loss_wilson(self) -> Interval:
        return wilson(self.losses, self.runs)

    @property
    def loss_exact(self) -> Interval:
        return clopper_pearson(self.losses, self.runs)

    @property
    def lost_per_billion(self) -> float:
        return per_billion(self.lost, self.acked)

    @property
    def lost_per_billion_error(self) -> float:
        """The standard error of `lost_per_billion`."""
        error = ratio_error(
            self.runs, self.lost, self.acked, self.lost_lost, self.lost_acked, self.acked_acked
        )
        return error * BILLION

    def unavailable_s(self, kind: str) -> float:
        """The unavailable seconds of all runs; `kind`: `writes` or `reads`."""
        return (self.writes_ms if kind == "writes" else self.reads_ms) / 1_000

    def per_failure_s(self, kind: str) -> float:
        """Unavailable seconds per failure of a broker."""
        return self.unavailable_s(kind) / self.failures if self.failures else 0.0

    def per_year_s(self, kind: str, brokers: int, mtbf_ms: float) -> float:
        """Unavailable seconds per year with `brokers` brokers that each fail once in `mtbf_ms`."""
        return per_year(self.unavailable_s(kind), self.failures, brokers, mtbf_ms)

    def losses_per_year(self, brokers: int, mtbf_ms: float) -> float:
        """Losses per year; a run with a loss counts as one."""
        return per_year(self.losses, self.failures, brokers, mtbf_ms)


class Pair(Struct, frozen=True):
    """Two cells at the same seeds: the numbers of seeds that lost records in both, or only in
    one."""

    seeds: int
    both: int
    only_a: int
    only_b: int

    @property
    def p_value(self) -> float:
        """The p-value of the exact sign test; the null hypothesis is that both cells lose equally
        often."""
        return exact_sign_test(self.only_a, self.only_b)


def summarize(spark: SparkSession, grid: Grid, out: str | os.PathLike[str]) -> list[CellSummary]:
    """One summary per cell, in the grid's order, also for cells without a run."""
    runs = successful_runs(spark, grid, out)
    sums = {row["cell"]: row.asDict() for row in _sums(runs).toLocalIterator()}
    steps = ("noticed_ms", "elected_ms", "acked_ms")
    noticed, elected, first_ack = (_percentiles_of(runs, step) for step in steps)
    return [
        CellSummary(
            **sums.get(cell.key, {"cell": cell.key}),
            noticed=noticed.get(cell.key, ()),
            elected=elected.get(cell.key, ()),
            first_ack=first_ack.get(cell.key, ()),
        )
        for cell in grid.cells
    ]


def successful_runs(spark: SparkSession, grid: Grid, out: str | os.PathLike[str]) -> DataFrame:
    """The grid's runs that did not end with an error."""
    from pyspark.sql import functions as F

    keys = [cell.key for cell in grid.cells]
    in_grid = F.col("cell").isin(keys) & F.col("seed").isin(list(grid.seeds))
    if grid.seeds == tuple(range(grid.seeds[0], grid.seeds[-1] + 1)):
        in_grid = F.col("cell").isin(keys) & F.col("seed").between(grid.seeds[0], grid.seeds[-1])
    return table_of(spark, out).where(in_grid & (F.col("outcome") != ERROR))


def _sums(runs: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    def product(a: str, b: str) -> Column:
        return F.sum(F.col(a).cast("double") * F.col(b))

    summed = ("sent", "acked", "lost", "failures", "ran_ms", "wall_ms")
    return runs.groupBy("cell").agg(
        F.count("*").alias("runs"),
        F.count_if(F.col("lost") > 0).alias("losses"),
        F.count_if(F.col("outcome") == "invalid").alias("invalid"),
        F.sum(F.col("failed") + F.col("unknown")).alias("unconfirmed"),
        *(F.sum(name).alias(name) for name in summed),
        F.sum("writes_unavailable_ms").alias("writes_ms"),
        F.sum("reads_unavailable_ms").alias("reads_ms"),
        product("lost", "lost").alias("lost_lost"),
        product("lost", "acked").alias("lost_acked"),
        product("acked", "acked").alias("acked_acked"),
        *(F.percentile_approx(n, 0.5, _ACCURACY).alias(n) for n in ("ack_p50_ms", "ack_p99_ms")),
    )


def _percentiles_of(runs: DataFrame, column: str) -> dict[str, tuple[float, ...]]:
    from pyspark.sql import functions as F

    each = runs.select("cell", F.explode(column).alias("ms"))
    shares = [percent / 100 for percent in PERCENTS]
    rows = each.groupBy("cell").agg(F.percentile_approx("ms", shares, _ACCURACY).alias("found"))
    return {row["cell"]: tuple(map(float, row["found"])) for row in rows.toLocalIterator()}


def losses_of(
    spark: SparkSession, grid: Grid, out: str | os.PathLike[str]
) -> Iterator[tuple[int, int, int]]:
    """(cell's index, seed, records lost) of every run with a loss."""
    at = {cell.key: number for number, cell in enumerate(grid.cells)}
    lost = successful_runs(spark, grid, out).where("lost > 0").select("cell", "seed", "lost")
    for row in lost.orderBy("cell", "seed").toLocalIterator():
        yield at[row["cell"]], row["seed"], row["lost"]


def pair_of(
    spark: SparkSession, grid: Grid, out: str | os.PathLike[str], cell_a: int, cell_b: int
) -> Pair:
    """Two cells compared over the seeds for which both have runs."""
    from pyspark.sql import functions as F

    runs = successful_runs(spark, grid, out)

    def lost_in(at: int, name: str) -> DataFrame:
        own = runs.where(F.col("cell") == grid.cells[at].key)
        return own.select("seed", (F.col("lost") > 0).alias(name))

    a, b = F.col("a"), F.col("b")
    row = (
        lost_in(cell_a, "a")
        .join(lost_in(cell_b, "b"), "seed")
        .agg(F.count("*"), F.count_if(a & b), F.count_if(a & ~b), F.count_if(~a & b))
        .head()
    )
    assert row is not None  # an aggregate has a row
    return Pair(*row)
