"""The runs of a grid on Spark, each (cell, seed) once, into a table that outlives its driver.

Owns: tasks, the table of runs, what is left to do.  Never: plays a run (worker.py), estimates.
Kafka: no counterpart.

The table is `OUT/runs/<sweep>/*.parquet`: each start of a sweep has its own directory, each task
commits one file by renaming it when it is done (FileOutputCommitter, algorithm 2).  So whatever
dies, what is there is whole; what is missing is run at the next start; what was committed twice, by
a task whose end was not heard of, is the same row twice and counts once.  OUT must be a directory
that the driver and all executors see.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct, field

from kcluster.pipeline.progress import POLL_S
from kcluster.pipeline.progress import tasks_of as tasks_of_spark
from kcluster.pipeline.session import ARCHIVE, is_local, why
from kcluster.pipeline.sweep import shipped
from kcluster.pipeline.sweep.columns import Cell
from kcluster.pipeline.sweep.grid import Grid
from kcluster.pipeline.sweep.runs import ERROR, FORMAT, RunRow
from kcluster.pipeline.sweep.worker import Play, is_set, set_bit
from kcluster.pipeline.tables import ddl

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TASK_COST: Final = 4_000.0
"""A task is about so many ms of work: a file now and then, nothing much to repeat."""
MAX_TASKS: Final = 4_000
TASKS_A_CORE: Final = 8
"""At least: so that the last tasks leave no core idle for long."""
_MAGIC: Final = b"PAR1"
"""A Parquet file begins and ends with it."""
_GLOB: Final = re.compile(r"([\\{}\[\]*?])")

Progress = Callable[[int, int], None]
"""(runs that are done, runs in all)."""


class SweepError(Exception):
    """A sweep cannot go on; the text is one line."""


class Swept(Struct):
    """What a start of a sweep did: runs of the grid, those that an earlier start had done, those
    that this one did, and its seconds."""

    runs: int
    found: int
    played: int
    wall_s: float
    problems: list[str] = field(default_factory=list)
    """Files that could not be used, a line each."""


def sweep(
    spark: SparkSession,
    grid: Grid,
    out: str | os.PathLike[str],
    progress: Progress = lambda done, all_: None,
    play: Play | None = None,
) -> Swept:
    """Run what is missing of the grid in `out`.  `play`: what runs one (cell, seed) instead of
    runs.play; it must be importable at the workers.  SweepError."""
    began_s = time.monotonic()
    problems = _set_aside(Path(out))
    with in_one_line():
        done = done_runs(spark, grid, out)
        count = len(grid.cells) * len(grid.seeds)
        found = sum(byte.bit_count() for byte in done)
        if found < count:
            _run(spark, grid, Path(out), done, found, progress, play)
    if not has_runs(out):
        raise SweepError(f"{out}: the workers' files are not here: it must be seen by all of them")
    progress(count, count)
    return Swept(count, found, count - found, time.monotonic() - began_s, problems)


def _run(
    spark: SparkSession,
    grid: Grid,
    out: Path,
    done: bytearray,
    found: int,
    progress: Progress,
    play: Play | None,
) -> None:
    from pyspark import cloudpickle

    context = spark.sparkContext
    ranges = tasks_of(grid, done, context.defaultParallelism)
    cloudpickle.register_pickle_by_value(shipped)  # type: ignore[no-untyped-call]  # has no types
    work = shipped.player(
        "" if is_local(context.master or "") else ARCHIVE,
        context.broadcast(bytes(done)),
        context.broadcast(msgspec.json.encode(grid.cells)),
        context.broadcast(grid.seeds),
        play,
    )
    rows = context.parallelize(ranges, len(ranges)).mapPartitions(work)
    table = spark.createDataFrame(rows, ddl(RunRow), verifySchema=False)
    place = out / "runs" / f"{time.time_ns():020}"
    count = len(grid.cells) * len(grid.seeds)
    committer = ("mapreduce.fileoutputcommitter.algorithm.version", "2")
    with _watched(spark, count, found, progress):
        table.write.option(*committer).parquet(str(place))


def tasks_of(grid: Grid, done: bytearray, cores: int) -> list[tuple[int, int]]:
    """Ranges of run numbers [first, end) of about equal cost, none without work; those with a run
    that costs more by itself come first, so that none of them is the last one still going on."""
    costs = [cost_of(cell) for cell in grid.cells]
    count = len(costs) * len(grid.seeds)
    whole = sum(costs[at % len(costs)] for at in range(count) if not is_set(done, at))
    wanted = min(MAX_TASKS, max(cores * TASKS_A_CORE, round(whole / TASK_COST)))
    share = whole / wanted
    ranges: list[tuple[int, int]] = []
    weights: list[float] = []
    first, sum_ = 0, 0.0
    for at in range(count):
        if not is_set(done, at):
            sum_ += costs[at % len(costs)]
            if sum_ >= share * 0.999:
                ranges.append((first, at + 1))
                weights.append(sum_)
                first, sum_ = at + 1, 0.0
    if sum_:
        ranges.append((first, count))
        weights.append(sum_)
    order = sorted(range(len(ranges)), key=lambda at: weights[at] < 2 * share)
    return [ranges[at] for at in order]


def cost_of(cell: Cell) -> float:
    """About how many ms a run takes, within a factor of two for cells of 1 to 9 brokers, 5 s to
    4 min, 1 to 200 records a second; only how it compares with other cells' matters."""
    seconds = cell.duration_ms / 1_000
    record = 0.12 + 0.02 * cell.replication_factor + 0.08 * cell.consumers
    return 15 + seconds * (0.3 + 0.05 * cell.brokers + record * cell.rate_per_s)


# ---------------------------------------------------------------------------------- the table


def has_runs(out: str | os.PathLike[str]) -> bool:
    """Whether a sweep has left a table there, with a file in it."""
    return any(Path(out).glob("runs/*/*.parquet"))


def table_of(spark: SparkSession, out: str | os.PathLike[str]) -> DataFrame:
    """All runs in `out`, each (cell, seed) once per outcome: a run that ended with an error is
    there too, beside the later one that did not.  SweepError for a table of another version."""
    files = str(Path(_GLOB.sub(r"\\\1", os.fspath(out))) / "runs" / "*" / "*.parquet")
    held = spark.read.parquet(files)
    wanted = RunRow.__struct_fields__
    missing = [name for name in wanted if name not in held.columns]
    if missing:
        raise SweepError(f"{out}: a table of another version: it has no column {missing[0]}")
    other = held.where(held["format"] != FORMAT).select("format").head()
    if other is not None:
        raise SweepError(f"{out}: a table of version {other[0]}; this reads version {FORMAT}")
    return held.select(*wanted).dropDuplicates(["cell", "seed", "outcome"])


def _set_aside(out: Path) -> list[str]:
    """Rename files that are cut short, as by a full disk: Spark would read none for one of them."""
    problems = []
    for file in sorted(out.glob("runs/*/*.parquet")):
        with open(file, "rb") as opened:
            is_whole = opened.read(len(_MAGIC)) == _MAGIC
            is_whole &= opened.seek(0, os.SEEK_END) >= 3 * len(_MAGIC)
            opened.seek(-min(len(_MAGIC), opened.tell()), os.SEEK_END)
            is_whole &= opened.read() == _MAGIC
        if not is_whole:
            file.rename(f"{file}.broken")
            problems.append(f"{file}: no whole Parquet file, now *.broken; its runs are run again")
    return problems


def done_runs(spark: SparkSession, grid: Grid, out: str | os.PathLike[str]) -> bytearray:
    """A bit for each run number of the grid that has a row."""
    count = len(grid.cells) * len(grid.seeds)
    done = bytearray((count + 7) // 8)
    if has_runs(out):
        cells = {cell.key: at for at, cell in enumerate(grid.cells)}
        seeds = {seed: at for at, seed in enumerate(grid.seeds)}
        rows = table_of(spark, out).where(f"outcome != '{ERROR}'").select("cell", "seed")
        for key, seed in rows.toLocalIterator():
            if key in cells and seed in seeds:
                set_bit(done, seeds[seed] * len(grid.cells) + cells[key])
    return done


def errors_of(spark: SparkSession, grid: Grid, out: str | os.PathLike[str]) -> Iterator[Any]:
    """(cell, seed, error) of the grid's runs that ended with an error, and not otherwise since."""
    from pyspark.sql import functions as F

    keys = [cell.key for cell in grid.cells]
    seeds = frozenset(grid.seeds)
    table = table_of(spark, out).where(F.col("cell").isin(keys))
    good = table.where(f"outcome != '{ERROR}'").select("cell", "seed")
    bad = table.where(f"outcome = '{ERROR}'").join(good, ["cell", "seed"], "left_anti")
    rows = bad.select("cell", "seed", "error").orderBy("seed", "cell").toLocalIterator()
    yield from (row for row in rows if row["seed"] in seeds)


# -------------------------------------------------------------------------- progress, failures


@contextmanager
def in_one_line() -> Iterator[None]:
    """What Spark raises in here as a SweepError."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise SweepError(why(error)) from None


class _watched:
    """While it is entered, tells the progress by what Spark knows of its tasks."""

    def __init__(self, spark: SparkSession, count: int, found: int, progress: Progress) -> None:
        self._spark = spark
        self._count, self._found, self._progress = count, found, progress
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> None:
        self._progress(self._found, self._count)
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._is_over.wait(POLL_S):
            done, all_ = tasks_of_spark(self._spark)
            if all_:
                left = self._count - self._found
                self._progress(self._found + left * done // all_, self._count)
