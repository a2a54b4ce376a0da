"""The work of `kcluster pipeline sweep`.

Owns: progress, the files of the report, the form of invalid input.  Never: runs
(pipeline/sweep/job.py).
Kafka: no counterpart.
"""

from __future__ import annotations

import shlex
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kcluster.cli.click_tools import refuse_both
from kcluster.cli.interrupts import INTERRUPTED
from kcluster.cli.spark_job import interruptible, refuse
from kcluster.cli.work.grid import read_grid
from kcluster.extras import how_to_install
from kcluster.pipeline.progress import Progress
from kcluster.pipeline.session import SMALL, SessionError, open_session, waits_for_executors
from kcluster.pipeline.shipping import SWEEP_NEEDS
from kcluster.pipeline.sweep.job import (
    SweepError,
    SweepResult,
    errors_of,
    spark_errors_as_sweep_errors,
    sweep,
)
from kcluster.pipeline.sweep.plots import can_draw
from kcluster.pipeline.sweep.report import comparison, durability, write_report
from kcluster.pipeline.sweep.summary import CellSummary, losses_of, pair_of, summarize

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kcluster.pipeline.sweep.grid import Grid

_SHOWN_ERRORS: Final = 20
_LINE_EVERY_S: Final = 10
_NO_EXECUTOR: Final = (
    "no executor yet; Spark waits for a worker with memory for one (spark.executor.memory: 1 GB)"
)


def sweep_grid(
    file: str,
    seeds: str | None,
    out: str,
    master: str,
    ship_env: bool,
    compare: tuple[str, str] | None,
    mtbf_days: float,
    verbose: bool,
    quiet: bool,
) -> None:
    """Run a grid of settings, and write its report."""
    refuse_both(verbose, quiet)
    grid = read_grid(file, seeds)
    try:
        pair = None if compare is None else (grid.find(compare[0]), grid.find(compare[1]))
        Path(out).mkdir(parents=True, exist_ok=True)
        spark = open_session(master, SMALL, verbose, SWEEP_NEEDS if ship_env else ())
    except (ValueError, SessionError) as error:
        refuse(str(error))
    except OSError as error:
        refuse(f"{error.filename}: {error.strerror}")
    if not quiet:
        count = len(grid.cells) * len(grid.seeds)
        print(
            f"kcluster: {count:,} runs: {len(grid.cells):,} combinations of settings,"
            f" {len(grid.seeds):,} seeds each",
            file=sys.stderr,
            flush=True,
        )
    try:
        with interruptible(), spark_errors_as_sweep_errors():
            _sweep(spark, grid, out, pair, mtbf_days * 86_400_000, quiet)
    except SweepError as error:
        refuse(str(error))
    except KeyboardInterrupt:
        print(f"kcluster: interrupted; the same command resumes from {out}", file=sys.stderr)
        sys.exit(INTERRUPTED)


def _sweep(
    spark: SparkSession,
    grid: Grid,
    out: str,
    pair: tuple[int, int] | None,
    mtbf_ms: float,
    quiet: bool,
) -> None:

    if grid.left_out and not quiet:
        print(f"{grid.left_out} impossible combinations left out, such as: {grid.reasons[0]}")
    began_s, done_before = time.monotonic(), -1
    with Progress("runs", line_every_s=_LINE_EVERY_S, is_quiet=quiet) as bar:

        def progress(done: int, all_: int) -> None:
            nonlocal done_before
            done_before = done if done_before < 0 else done_before
            more = _rate(done - done_before, time.monotonic() - began_s, all_ - done)
            if not more and waits_for_executors(spark):
                more = _NO_EXECUTOR
            bar.update(done, all_, more)

        swept = sweep(spark, grid, out, progress)
    for problem in swept.problems:
        print(f"kcluster: {problem}", file=sys.stderr)
    if not quiet:
        print(_played_line(swept))
    sums = summarize(spark, grid, out)
    for at, row in enumerate(durability(grid, sums)[1]):
        print(f"cell {at + 1}: {row[1]}: P(loss) {row[4]} ({row[5]}), {row[6]} lost per billion")
    if pair is not None:
        lines = comparison(grid, sums, *pair, pair_of(spark, grid, out, *pair), mtbf_ms)
        (Path(out) / "compare.md").write_text("\n".join(lines) + "\n", "utf-8")
        print("\n".join(["", *lines]))
    for place in _write(spark, grid, out, sums, mtbf_ms):
        if not quiet:
            print(place)
    if report_errors(spark, grid, out):
        sys.exit(1)


def _played_line(swept: SweepResult) -> str:
    """The line with the number of played runs, and their rate."""
    if not swept.played:
        return f"all {swept.done_before:,} runs were done before"
    rate = f"{swept.played / swept.wall_s:,.1f} runs/s"
    return (
        f"{swept.played:,} runs in {swept.wall_s:,.1f} s ({rate});"
        f" {swept.done_before:,} done before"
    )


def report_errors(spark: SparkSession, grid: Grid, out: str) -> int:
    """Show the first runs that ended with an error, one per line; returns the number of such
    runs."""
    failed = 0
    cells = {cell.key: at for at, cell in enumerate(grid.cells)}
    for failed, (key, seed, error) in enumerate(errors_of(spark, grid, out), 1):
        if failed <= _SHOWN_ERRORS:
            print(f"kcluster: cell {cells[key] + 1}, seed {seed}: {error}", file=sys.stderr)
    if failed:
        print(f"kcluster: {failed:,} runs ended with an error; the rest is used", file=sys.stderr)
    return failed


def _write(
    spark: SparkSession, grid: Grid, out: str, sums: list[CellSummary], mtbf_ms: float
) -> list[Path]:
    """Write the report's files."""
    shown = ("-v", "--verbose", "-q", "--quiet")
    words = [word for word in sys.argv[1:] if word not in shown]
    if not can_draw():
        print(f"kcluster: no plots: {how_to_install('plots')}", file=sys.stderr)
    losses = losses_of(spark, grid, out)
    return write_report(grid, sums, losses, "kcluster " + shlex.join(words), out, mtbf_ms)


def _rate(played: int, played_s: float, remaining: int) -> str:
    """The rate and the remaining time: `12.3 runs/s, 0:04:10 left`, for this many runs in this
    time."""
    if not played:
        return ""
    time_left = timedelta(seconds=round(remaining * played_s / played))
    return f"{played / played_s:,.1f} runs/s, {time_left} left"
