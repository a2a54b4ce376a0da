"""The sums of a sweep are those of its runs, added here one by one without Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest
from msgspec import structs

from kcluster.pipeline.sweep.estimates import MS_PER_YEAR, clopper_pearson
from kcluster.pipeline.sweep.grid import with_seeds
from kcluster.pipeline.sweep.runs import RunRow, play
from kcluster.pipeline.sweep.summary import CellSummary, losses_of, pair_of, summarize

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.pipeline.sweep.conftest import Swept

pytestmark = pytest.mark.timeout_s(240)


@pytest.fixture(scope="module")
def played(swept: Swept) -> list[list[RunRow]]:
    """The rows of each cell by seed, as the workers have written them."""
    from pyarrow import parquet

    files = swept.out.glob("runs/*/*.parquet")
    rows = [row for file in files for row in parquet.read_table(file).to_pylist()]
    found = {(row["cell"], row["seed"]): msgspec.convert(row, RunRow) for row in rows}
    assert len(found) == len(rows)
    return [[found[cell.key, seed] for seed in swept.grid.seeds] for cell in swept.grid.cells]


def test_summary__a_run_on_spark_is_the_run_without_it(
    swept: Swept, played: list[list[RunRow]]
) -> None:
    for cell, rows in zip(swept.grid.cells, played, strict=True):
        for row in rows[:5]:
            assert structs.replace(play(cell, row.seed), wall_ms=row.wall_ms) == row


def nearest_rank(values: list[int], percent: int) -> float:
    """Like percentile_approx: value number ceil(n p) of n ordered ones."""
    ordered = sorted(values)
    return float(ordered[max(0, -(-len(ordered) * percent // 100) - 1)])


def test_summary__each_sum_is_that_of_the_runs(swept: Swept, played: list[list[RunRow]]) -> None:
    for cell, rows in zip(swept.sums, played, strict=True):
        assert cell.runs == len(rows) == 20
        assert cell.losses == sum(row.lost > 0 for row in rows)
        for name in ("sent", "acked", "lost", "failures", "ran_ms"):
            assert getattr(cell, name) == sum(getattr(row, name) for row in rows), name
        assert cell.unconfirmed == sum(row.failed + row.unknown for row in rows)
        assert cell.writes_ms == pytest.approx(sum(row.writes_unavailable_ms for row in rows))
        assert cell.reads_ms == pytest.approx(sum(row.reads_unavailable_ms for row in rows))
        assert cell.lost_acked == sum(row.lost * row.acked for row in rows)
        assert cell.loss_exact == clopper_pearson(cell.losses, cell.runs)
        for found, column in (
            (cell.noticed, "noticed_ms"),
            (cell.elected, "elected_ms"),
            (cell.first_ack, "acked_ms"),
        ):
            times = [ms for row in rows for ms in getattr(row, column)]
            assert found == tuple(nearest_rank(times, percent) for percent in (50, 95, 99)), column


def test_summary__some_lose_and_some_do_not(swept: Swept) -> None:
    """The reference covers both cases."""
    assert 0 < swept.sums[0].losses < swept.sums[0].runs
    assert swept.sums[0].elected
    assert swept.sums[0].first_ack > swept.sums[0].elected
    per_failure_s = swept.sums[0].writes_ms / 1_000 / swept.sums[0].failures
    assert swept.sums[0].per_failure_s("writes") == pytest.approx(per_failure_s)
    assert swept.sums[0].per_year_s("writes", 3, MS_PER_YEAR) == pytest.approx(3 * per_failure_s)


def test_summary__losses_are_those_of_the_runs_and_in_order(
    spark: SparkSession, swept: Swept, played: list[list[RunRow]]
) -> None:
    wanted = {
        (at, row.seed, row.lost) for at, rows in enumerate(played) for row in rows if row.lost
    }
    assert set(losses_of(spark, swept.grid, swept.out)) == wanted


def test_summary__two_cells_are_paired_by_seed(
    spark: SparkSession, swept: Swept, played: list[list[RunRow]]
) -> None:
    pair = pair_of(spark, swept.grid, swept.out, 0, 3)
    both = [(a.lost > 0, b.lost > 0) for a, b in zip(played[0], played[3], strict=True)]
    assert pair.seeds == 20
    assert pair.both == both.count((True, True))
    assert (pair.only_a, pair.only_b) == (both.count((True, False)), both.count((False, True)))
    assert 0 < pair.p_value <= 1


def test_summary__fewer_seeds_and_cells_without_a_run(spark: SparkSession, swept: Swept) -> None:
    few = summarize(spark, with_seeds(swept.grid, "3,5,11"), swept.out)
    assert [cell.runs for cell in few] == [3, 3, 3, 3]
    other = structs.replace(
        swept.grid, cells=(swept.grid.cells[0], structs.replace(swept.grid.cells[0], partitions=7))
    )
    first, empty = summarize(spark, other, swept.out)
    assert first == swept.sums[0]
    assert empty == CellSummary(other.cells[1].key)
    assert (empty.loss, empty.loss_exact, empty.per_failure_s("reads")) == (0, (0.0, 1.0), 0)
