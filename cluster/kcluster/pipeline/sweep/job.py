"""The runs of a grid on Spark, each (cell, seed) once, in a table that survives the driver.

Owns: tasks, the table of runs, the list of missing runs.  Never: plays a run (worker.py), has
formulas (estimates.py).
Kafka: no counterpart.

The table is `OUT/runs/<sweep>/*.parquet`.  Each start of a sweep has its own directory.  Each task
commits one file by a rename when it is done (FileOutputCommitter, algorithm 2), so every file is
complete, whichever process dies.  Missing runs are played at the next start.  A task that Spark
repeats after its commit writes the same rows again; they count once.  The driver and all executors
must see OUT.
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
from kcluster.pipeline.session import why
from kcluster.pipeline.sweep.bootstrap import partition_function
from kcluster.pipeline.sweep.columns import Cell
from kcluster.pipeline.sweep.grid import Grid
from kcluster.pipeline.sweep.runs import ERROR, FORMAT, RunRow
from kcluster.pipeline.sweep.worker import Play, is_set, set_bit
from kcluster.pipeline.tables import ddl

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TASK_COST: Final = 4_000.0
"""The target cost of a task in ms: large enough for few files, small enough to be repeated after a
failure."""
MAX_TASKS: Final = 4_000
TASKS_PER_CORE: Final = 8
"""The least number of tasks per core, so that no core is idle for long at the end."""
_MAGIC: Final = b"PAR1"
"""The first and the last bytes of a Parquet file."""
_GLOB: Final = re.compile(r"([\\{}\[\]*?])")

Progress = Callable[[int, int], None]
"""Called with (runs done, runs in total)."""


class SweepError(Exception):
    """The error for a sweep that cannot continue; the text is one line."""


class SweepResult(Struct):
    """The outcome of one start of a sweep."""

    runs: int
    """The number of runs of the grid."""
    done_before: int
    """Runs that an earlier start had played."""
    played: int
    """Runs that this start has played."""
    wall_s: float
    problems: list[str] = field(default_factory=list)
    """Unusable files, one line per file."""


def sweep(
    spark: SparkSession,
    grid: Grid,
    out: str | os.PathLike[str],
    progress: Progress = lambda done, all_: None,
    play: Play | None = None,
) -> SweepResult:
    """Play the runs of the grid that `out` does not have.  `play`: plays one (cell, seed) instead
    of runs.play; the workers must be able to import it.  Raises SweepError."""
    began_s = time.monotonic()
    problems = _set_aside(Path(out))
    with spark_errors_as_sweep_errors():
        done = done_runs(spark, grid, out)
        count = len(grid.cells) * len(grid.seeds)
        done_before = sum(byte.bit_count() for byte in done)
        if done_before < count:
            _run(spark, grid, Path(out), done, done_before, progress, play)
    if not has_runs(out):
        raise SweepError(f"{out}: no files of the workers: driver and executors must share it")
    progress(count, count)
    return SweepResult(
        count, done_before, count - done_before, time.monotonic() - began_s, problems
    )


def _run(
    spark: SparkSession,
    grid: Grid,
    out: Path,
    done: bytearray,
    done_before: int,
    progress: Progress,
    play: Play | None,
) -> None:
    context = spark.sparkContext
    ranges = tasks_of(grid, done, context.defaultParallelism)
    work = partition_function(
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
    with _ProgressWatcher(spark, count, done_before, progress):
        table.write.option(*committer).parquet(str(place))


def tasks_of(grid: Grid, done: bytearray, cores: int) -> list[tuple[int, int]]:
    """Ranges of run numbers [first, end) of about equal cost, each with a missing run.  Ranges
    with a run that costs more than a task's share come first, so that none of them ends last."""
    costs = [cost_of(cell) for cell in grid.cells]
    count = len(costs) * len(grid.seeds)
    total = sum(costs[at % len(costs)] for at in range(count) if not is_set(done, at))
    wanted = min(MAX_TASKS, max(cores * TASKS_PER_CORE, round(total / TASK_COST)))
    share = total / wanted
    ranges: list[tuple[int, int]] = []
    weights: list[float] = []
    first, cost = 0, 0.0
    for at in range(count):
        if not is_set(done, at):
            cost += costs[at % len(costs)]
            if cost >= share * 0.999:
                ranges.append((first, at + 1))
                weights.append(cost)
                first, cost = at + 1, 0.0
    if cost:
        ranges.append((first, count))
        weights.append(cost)
    order = sorted(range(len(ranges)), key=lambda at: weights[at] < 2 * share)
    return [ranges[at] for at in order]


def cost_of(cell: Cell) -> float:
    """The estimated ms of a run, within a factor of two for 1 to 9 brokers, 5 s to 4 min, 1 to 200
    records per second.  Only the ratio between cells matters."""
    seconds = cell.duration_ms / 1_000
    record = 0.12 + 0.02 * cell.replication_factor + 0.08 * cell.consumers
    return 15 + seconds * (0.3 + 0.05 * cell.brokers + record * cell.rate_per_s)


# ---------------------------------------------------------------------------------------- the table


def has_runs(out: str | os.PathLike[str]) -> bool:
    """Whether `out` has a table of runs with at least one file."""
    return any(Path(out).glob("runs/*/*.parquet"))


def table_of(spark: SparkSession, out: str | os.PathLike[str]) -> DataFrame:
    """All runs in `out`, each (cell, seed) once per outcome: a run that failed with an error and
    was repeated has two rows.  Raises SweepError for a table of another version."""
    files = str(Path(_GLOB.sub(r"\\\1", os.fspath(out))) / "runs" / "*" / "*.parquet")
    table = spark.read.parquet(files)
    wanted = RunRow.__struct_fields__
    missing = [name for name in wanted if name not in table.columns]
    if missing:
        raise SweepError(f"{out}: a table of another version: it has no column {missing[0]}")
    other = table.where(table["format"] != FORMAT).select("format").head()
    if other is not None:
        raise SweepError(f"{out}: a table of version {other[0]}; this reads version {FORMAT}")
    return table.select(*wanted).dropDuplicates(["cell", "seed", "outcome"])


def _set_aside(out: Path) -> list[str]:
    """Rename truncated files (a full disk): a single one would make Spark refuse the table."""
    problems = []
    for file in sorted(out.glob("runs/*/*.parquet")):
        with open(file, "rb") as opened:
            is_complete = opened.read(len(_MAGIC)) == _MAGIC
            is_complete &= opened.seek(0, os.SEEK_END) >= 3 * len(_MAGIC)
            opened.seek(-min(len(_MAGIC), opened.tell()), os.SEEK_END)
            is_complete &= opened.read() == _MAGIC
        if not is_complete:
            file.rename(f"{file}.broken")
            problems.append(
                f"{file}: truncated Parquet file, renamed to *.broken; its runs are repeated"
            )
    return problems


def done_runs(spark: SparkSession, grid: Grid, out: str | os.PathLike[str]) -> bytearray:
    """One bit per run number of the grid: whether the table has its row."""
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
    """(cell, seed, error) of the grid's runs that ended with an error and have not succeeded
    since."""
    from pyspark.sql import functions as F

    keys = [cell.key for cell in grid.cells]
    seeds = frozenset(grid.seeds)
    table = table_of(spark, out).where(F.col("cell").isin(keys))
    good = table.where(f"outcome != '{ERROR}'").select("cell", "seed")
    bad = table.where(f"outcome = '{ERROR}'").join(good, ["cell", "seed"], "left_anti")
    rows = bad.select("cell", "seed", "error").orderBy("seed", "cell").toLocalIterator()
    yield from (row for row in rows if row["seed"] in seeds)


# ------------------------------------------------------------------------------- progress, failures


@contextmanager
def spark_errors_as_sweep_errors() -> Iterator[None]:
    """Turn exceptions of Spark into a SweepError."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise SweepError(why(error)) from None


class _ProgressWatcher:
    """Reports progress from Spark's task counts while it is entered."""

    def __init__(
        self, spark: SparkSession, count: int, done_before: int, progress: Progress
    ) -> None:
        self._spark = spark
        self._count, self._done_before, self._progress = count, done_before, progress
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> None:
        self._progress(self._done_before, self._count)
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._is_over.wait(POLL_S):
            done, all_ = tasks_of_spark(self._spark)
            if all_:
                remaining = self._count - self._done_before
                self._progress(self._done_before + remaining * done // all_, self._count)
