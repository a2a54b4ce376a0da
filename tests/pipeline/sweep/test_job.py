"""Each (cell, seed) of a grid is run once, whatever dies; finished runs are kept, others are run.

The tests' grids have runs of a second of virtual time, a few ms each.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from kcluster.cli.work.sweep import report_errors
from kcluster.pipeline.shipping import PACKAGE
from kcluster.pipeline.sweep.columns import Cell
from kcluster.pipeline.sweep.grid import Grid, parse_grid, with_seeds
from kcluster.pipeline.sweep.job import (
    SweepError,
    cost_of,
    done_runs,
    spark_errors_as_sweep_errors,
    sweep,
    table_of,
    tasks_of,
)
from kcluster.pipeline.sweep.runs import RunRow, play
from kcluster.pipeline.sweep.summary import summarize
from tests.pipeline.sweep import dying

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.timeout_s(240)

TINY = "brokers: 1, replication_factor: 1, rate: 5, consumers: 0, duration: 1s"
GRID = f"seeds: 16\ngrid: {{{TINY}, failures: 1, first_failure: 100ms, acks: [1, all]}}\n"
ONE_CELL = f"seeds: 60\ngrid: {{{TINY}}}\n"


def rows_in(spark: SparkSession, grid: Grid, out: Path) -> dict[tuple[str, int], RunRow]:
    """All rows of the table; fails where there are two of a (cell, seed)."""
    found: dict[tuple[str, int], RunRow] = {}
    for row in table_of(spark, out).toLocalIterator():
        assert (row["cell"], row["seed"]) not in found
        run = msgspec.convert(row.asDict(), RunRow)
        found[row["cell"], row["seed"]] = msgspec.structs.replace(run, wall_ms=0.0)
    return found


def expected(grid: Grid) -> dict[tuple[str, int], RunRow]:
    return {
        (cell.key, seed): msgspec.structs.replace(play(cell, seed), wall_ms=0.0)
        for cell in grid.cells
        for seed in grid.seeds
    }


def noted(log: Path) -> list[int]:
    return [int(line.split()[0]) for line in log.read_text().splitlines()]


def test_job__a_sweep_plays_each_run_once_and_resumes_with_missing_ones(
    spark: SparkSession, tmp_path: Path
) -> None:
    grid = parse_grid(GRID)
    progress: list[tuple[int, int]] = []
    first = sweep(spark, with_seeds(grid, "4"), tmp_path, lambda *counts: progress.append(counts))
    assert (first.runs, first.done_before, first.played, first.problems) == (8, 0, 8, [])
    assert progress[0] == (0, 8)
    assert progress[-1] == (8, 8)
    assert progress == sorted(progress)
    second = sweep(spark, grid, tmp_path)
    assert (second.runs, second.done_before, second.played) == (32, 8, 24)
    third = sweep(spark, grid, tmp_path)
    assert (third.done_before, third.played) == (32, 0)
    assert rows_in(spark, grid, tmp_path) == expected(grid)


def test_job__tasks_cost_alike_whatever_their_cells_do() -> None:
    grid = parse_grid("seeds: 500\ngrid: {duration: [1s, 10s, 10m], rate: [1, 100]}")
    done = bytearray((len(grid.cells) * len(grid.seeds) + 7) // 8)
    done[0] = 0b101
    ranges = tasks_of(grid, done, 2)
    numbers = [number for first, end in ranges for number in range(first, end)]
    assert sorted(numbers) == list(range(len(grid.cells) * len(grid.seeds)))

    def cost(first: int, end: int) -> float:
        return sum(cost_of(grid.cells[number % len(grid.cells)]) for number in range(first, end))

    costs = [cost(*some) for some in ranges]
    longest = max(cost_of(cell) for cell in grid.cells)
    assert max(costs) <= sum(costs) / len(costs) + longest
    is_long = [x >= 2 * sum(costs) / len(costs) for x in costs]
    assert is_long == sorted(is_long, reverse=True)
    few = tasks_of(parse_grid(ONE_CELL), bytearray(8), 2)
    assert len(few) == 15  # also with little work: no core is idle for long at the end


def test_job__a_sweep_survives_a_killed_worker(spark: SparkSession, tmp_path: Path) -> None:
    grid, log = parse_grid(ONE_CELL), tmp_path / "log"
    swept = sweep(spark, grid, tmp_path / "out", play=dying.noting(str(log), {9: "worker"}))
    assert swept.played == 60
    counts = Counter(noted(log))
    assert set(counts) == set(grid.seeds)
    # Only what the killed worker's task had begun is played again.
    repeated = sorted(seed for seed, count in counts.items() if count > 1)
    assert 9 in repeated
    assert len(repeated) <= 4
    assert max(counts.values()) == 2
    assert len(rows_in(spark, grid, tmp_path / "out")) == 60


def spark_home(tmp_path: Path) -> str:
    """Links to the real one, as executors create directories in it and leave them."""
    from pyspark.find_spark_home import _find_spark_home

    home = tmp_path / "spark"
    home.mkdir()
    for found in Path(_find_spark_home()).iterdir():
        if found.name != "work":
            (home / found.name).symlink_to(found)
    return str(home)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="looks for processes in /proc")
def test_job__killed_executor_and_driver_lose_and_repeat_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Two executors on a cluster, whose Python cannot import the package by itself."""
    out, log, file = tmp_path / "out", tmp_path / "log", tmp_path / "grid.yaml"
    file.write_text(ONE_CELL)
    python = tmp_path / "python"
    places = dict.fromkeys(sysconfig.get_path(name) for name in ("purelib", "platlib"))
    # -S: no .pth files, so not the editable installation that these tests may run in
    python.write_text(
        f'#!/bin/sh\nPYTHONPATH="$PYTHONPATH:{":".join(places)}" exec {sys.executable} -S "$@"\n'
    )
    python.chmod(0o755)
    env = {
        **os.environ,
        "PYSPARK_PYTHON": str(python),
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_HOME": spark_home(tmp_path),
    }
    kills = json.dumps({20: "executor", 45: "driver"})
    driver = [sys.executable, dying.__file__, str(file), str(out), str(log)]
    ended = subprocess.run(
        [*driver, "local-cluster[2,1,512]", kills],
        env=env,
        cwd=tmp_path,
        timeout=200,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert ended.returncode == -9, ended.stdout
    before = Counter(noted(log))
    files = {Path(line.split(maxsplit=3)[3]) for line in log.read_text().splitlines()}
    assert {place.parts[-3] for place in files} == {PACKAGE}  # the package was shipped

    grid = parse_grid(ONE_CELL)
    finished = {seed for _, seed in rows_in(spark, grid, out)}
    assert finished
    assert finished < set(grid.seeds)
    assert 20 in finished
    assert 45 not in finished
    assert all(before[seed] == 1 for seed in finished if not 15 < seed < 26)
    log.write_text("")
    swept = sweep(spark, grid, out, play=dying.noting(str(log), {}))
    assert (swept.done_before, swept.played) == (len(finished), 60 - len(finished))
    assert Counter(noted(log)) == Counter(set(grid.seeds) - finished)  # each once, no finished one

    assert rows_in(spark, grid, out) == expected(grid)
    sweep(spark, grid, tmp_path / "undisturbed")
    disturbed, quiet = (
        [msgspec.structs.replace(x, wall_ms=0.0) for x in summarize(spark, grid, place)]
        for place in (out, tmp_path / "undisturbed")
    )
    assert disturbed == quiet
    assert disturbed[0].runs == 60


def test_job__a_run_that_raises_is_reported_by_cell_and_seed_and_run_again(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    grid = with_seeds(parse_grid(GRID), "8")

    def broken(cell: Cell, seed: int) -> RunRow:
        if seed % 4 == 3:
            raise ArithmeticError(f"seed {seed}\n\tat java.lang.Thread")
        return RunRow(1, cell.key, seed, "valid")

    assert sweep(spark, grid, tmp_path, play=broken).played == 16
    assert report_errors(spark, grid, str(tmp_path)) == 4
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 5
    assert lines[0].startswith("kcluster: cell ")
    assert ", seed 3: ArithmeticError: seed 3 at" in (lines[0])
    assert lines[-1] == "kcluster: 4 runs ended with an error; the rest is used"
    assert summarize(spark, grid, tmp_path)[0].runs == 6
    again = sweep(spark, grid, tmp_path)
    assert (again.done_before, again.played) == (12, 4)
    assert report_errors(spark, grid, str(tmp_path)) == 0


def test_job__a_truncated_file_is_set_aside_and_its_runs_are_repeated(
    spark: SparkSession, tmp_path: Path
) -> None:
    grid = with_seeds(parse_grid(GRID), "8")
    out = tmp_path / "out [1] {a}"  # Spark would read it as a glob pattern
    sweep(spark, grid, out)
    files = sorted(out.glob("runs/*/*.parquet"))
    data = files[0].read_bytes()
    files[0].write_bytes(data[: len(data) // 2])
    files[1].write_bytes(b"")
    swept = sweep(spark, grid, out)
    reasons = [
        f"{file}: truncated Parquet file, renamed to *.broken; its runs are repeated"
        for file in files
    ]
    assert swept.problems == reasons[:2]
    assert 0 < swept.played < swept.runs
    assert len(rows_in(spark, grid, out)) == 16


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 99}, "a table of version 99; this reads version 1"),
        ({"lost": None}, "a table of another version: it has no column lost"),
    ],
)
def test_job__a_table_of_another_version_is_refused(
    spark: SparkSession, tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    import pyarrow
    from pyarrow import parquet

    whole = RunRow(
        1, "a", 1, "valid", noticed_ms=[1], elected_ms=[1], acked_ms=[1], ack_p50_ms=1, ack_p99_ms=1
    )
    row = {**msgspec.to_builtins(whole), **change}
    place = tmp_path / "runs" / "1"
    place.mkdir(parents=True)
    columns = {name: [value] for name, value in row.items() if value is not None}
    parquet.write_table(pyarrow.table(columns), place / "part-0.parquet")
    with pytest.raises(SweepError) as caught:
        sweep(spark, parse_grid(ONE_CELL), tmp_path)
    assert str(caught.value) == f"{tmp_path}: {message}"


def test_job__an_error_of_spark_is_one_line(spark: SparkSession, tmp_path: Path) -> None:
    place = tmp_path / "runs" / "1"
    place.mkdir(parents=True)
    (place / "part-0.parquet").write_bytes(b"PAR1" + b"nonsense" * 9 + b"PAR1")
    with pytest.raises(SweepError) as caught, spark_errors_as_sweep_errors():
        done_runs(spark, parse_grid(ONE_CELL), tmp_path)
    assert "\n" not in str(caught.value)
    assert "part-0.parquet" in str(caught.value)
