"""`kcluster pipeline sweep GRID.yaml`: thousands of failure schedules, and what settings cost.

Owns: options, progress, files of the report, how bad input is told.  Never: runs
(pipeline/sweep/job.py).
Exit: 0 done, 1 some runs ended with an error, 2 bad input.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cluster.cli.pipeline_audit import refuse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from cluster.pipeline.sweep.grid import Grid
    from cluster.pipeline.sweep.summary import Summed


@click.command("sweep", help="What durability settings cost: a grid of them, many seeds each.")
@click.argument("file", metavar="GRID.yaml")
@click.option("--seeds", metavar="N", help="So many seeds, or some: 1..50,77; else the grid's.")
@click.option("--out", metavar="DIR", default="sweep", show_default=True, help="Where to.")
@click.option("--master", default="local[*]", show_default=True, help="Spark's master.")
@click.option(
    "--compare", nargs=2, metavar="A B", help="Two cells: by number, or acks=all,brokers=3."
)
@click.option("-v", "--verbose", is_flag=True, help="Spark's own warnings too.")
def command(
    file: str, seeds: str | None, out: str, master: str, compare: tuple[str, str] | None,
    verbose: bool,
) -> None:  # fmt: skip
    """What DIR already has is not run again."""
    from cluster.pipeline.session import SessionError, open_session
    from cluster.pipeline.sweep.job import SweepError

    grid = read_grid(file, seeds)
    try:
        pair = None if compare is None else (grid.find(compare[0]), grid.find(compare[1]))
        Path(out).mkdir(parents=True, exist_ok=True)
        spark = open_session(master, verbose=verbose)
    except (ValueError, SessionError) as error:
        refuse(str(error))
    except OSError as error:
        refuse(f"{error.filename}: {error.strerror}")
    try:
        _sweep(spark, grid, out, pair)
    except SweepError as error:
        refuse(str(error))


def read_grid(file: str, seeds: str | None = None) -> Grid:
    """The grid of a file with these seeds; what is wrong with it on stderr, and exit 2."""
    from cluster.pipeline.sweep.grid import GridError, load_grid, with_seeds

    try:
        grid = load_grid(file)
        return grid if seeds is None else with_seeds(grid, seeds)
    except GridError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    except ValueError as error:
        refuse(f"--seeds: {error}")


def _sweep(spark: SparkSession, grid: Grid, out: str, pair: tuple[int, int] | None) -> None:
    from cluster.pipeline.sweep.job import errors_of, sweep
    from cluster.pipeline.sweep.report import comparison, durability
    from cluster.pipeline.sweep.summary import pair_of, summarize

    with _progress() as progress:
        swept = sweep(spark, grid, out, progress)
    if swept.played:
        rate = f"{swept.played / swept.wall_s:,.1f} runs/s"
        print(
            f"{swept.played:,} runs in {swept.wall_s:,.1f} s ({rate}); {swept.found:,} were there"
        )
    else:
        print(f"all {swept.found:,} runs were there")
    sums = summarize(spark, grid, out)
    for at, row in enumerate(durability(grid, sums)[1]):
        print(f"cell {at + 1}: {row[1]}: P(loss) {row[4]} ({row[5]}), {row[7]} lost of a billion")
    if pair is not None:
        lines = comparison(grid, sums, *pair, pair_of(spark, grid, out, *pair))
        (Path(out) / "compare.md").write_text("\n".join(lines) + "\n", "utf-8")
        print("\n".join(["", *lines]))
    for place in _write(spark, grid, out, sums):
        print(place)
    failed = 0
    cells = {cell.key: at for at, cell in enumerate(grid.cells)}
    for failed, (key, seed, error) in enumerate(errors_of(spark, grid, out), 1):
        if failed <= 20:
            print(f"kcluster: cell {cells[key] + 1}, seed {seed}: {error}", file=sys.stderr)
    if failed:
        print(f"kcluster: {failed} runs ended with an error; the rest is used", file=sys.stderr)
        sys.exit(1)


def _write(spark: SparkSession, grid: Grid, out: str, sums: list[Summed]) -> list[Path]:
    """The report's files."""
    from cluster.pipeline.sweep.plots import PLOTS_HELP, can_draw, write_plots
    from cluster.pipeline.sweep.report import page, report, write_losses
    from cluster.pipeline.sweep.summary import losses_of

    words = [word for word in sys.argv[1:] if word not in ("-v", "--verbose")]
    ran = "kcluster " + shlex.join(words)
    losses = write_losses(grid, losses_of(spark, grid, out), out)
    plots: list[Path] = []
    if can_draw():
        plots = write_plots(grid, sums, out)
    else:
        print(f"kcluster: {PLOTS_HELP}", file=sys.stderr)
    lines = report(grid, sums, ran, losses, [plot.name for plot in plots])
    told, shown = Path(out) / "report.md", Path(out) / "report.html"
    told.write_text("\n".join(lines) + "\n", "utf-8")
    shown.write_text(page(grid, sums, ran, losses, plots), "utf-8")
    return [told, shown]


@contextmanager
def _progress() -> Iterator[Callable[[int, int], None]]:
    """A progress bar of runs, on a terminal."""
    if not sys.stderr.isatty():
        yield lambda done, all_: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    columns: tuple[Any, ...] = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, transient=True, console=Console(stderr=True)) as bar:
        task = bar.add_task("runs")
        yield lambda done, all_: bar.update(task, completed=done, total=all_)
