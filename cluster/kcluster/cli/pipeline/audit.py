"""`kcluster pipeline audit RUN…`: what became of every record of these runs.

Owns: options, how the sums are shown and written, how bad input is told.  Never: the audit itself
(pipeline/audit.py).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from kcluster.cli.click_tools import fail
from kcluster.cli.control.client import ControlError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kcluster.pipeline.tables import Run


@click.command("audit", help="What became of every record of runs: lost, doubled, reordered, late.")
@click.argument("paths", metavar="RUN...", nargs=-1, required=True)
@click.option("--out", metavar="DIR", default="", help="Write fates, summary and totals: Parquet.")
@click.option("--table", metavar="DIR", default="", help="What the topics hold, as ingested.")
@click.option(
    "--late-ms", default=1_000, show_default=True, type=click.IntRange(min=0),
    help="A later ack is late.",
)  # fmt: skip
@click.option("--master", default="local[*]", show_default=True, help="Spark's master.")
@click.option("-v", "--verbose", is_flag=True, help="Spark's own warnings too.")
def command(
    paths: tuple[str, ...], out: str, table: str, late_ms: int, master: str, verbose: bool
) -> None:
    """RUN: run directories, or directories that have some."""
    from kcluster.pipeline.tables import find_runs
    from kcluster.runs.directory import RunError

    try:
        runs, problems = find_runs(paths)
    except RunError as error:
        refuse(str(error))
    spark = session(master, verbose, runs)
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    from kcluster.pipeline.audit import audit
    from kcluster.pipeline.progress import Progress
    from kcluster.pipeline.tables import Tables

    tables = Tables(spark, runs)
    try:
        with Progress("reading the ledger", spark) as progress:
            contents = _contents(spark, table, [run.name for run in runs]) if table else None
            found = audit(tables, late_ms, contents)
            lines = [_total(row) for row in found.totals.collect()]
            if out:
                progress.part("writing the fates")
                for name in ("fates", "summary", "totals"):
                    getattr(found, name).write.mode("overwrite").parquet(f"{out}/{name}")
        tell((*problems, *tables.problems))
        for line in lines:
            print(line)
        for row in found.summary.toLocalIterator():
            print(_finding(row))
    except (PySparkException, Py4JError) as error:
        refuse(first_line(error))
    finally:
        tables.close()


def tell(problems: Iterable[str]) -> None:
    """What cannot be read, on stderr."""
    for problem in problems:
        print(f"kcluster: {problem}; the rest is used", file=sys.stderr)


def refuse(text: str) -> NoReturn:
    """One line, exit 2."""
    fail(ControlError(text, 2), as_json=False)
    raise AssertionError("fail leaves")


def session(master: str, verbose: bool, runs: Iterable[Run]) -> SparkSession:
    """A Spark session, as small as these runs; one line and exit 2 where there can be none."""
    from kcluster.pipeline.session import SMALL, SMALL_BYTES, SessionError, open_session

    size_bytes = sum(file.stat().st_size for run in runs for file in run.path.glob("*.jsonl"))
    try:
        return open_session(master, SMALL if size_bytes <= SMALL_BYTES else None, verbose)
    except SessionError as error:
        refuse(str(error))


def first_line(error: Exception) -> str:
    """Of Spark's words, the line that says what was wrong."""
    from kcluster.pipeline.session import why

    return why(error)


def _contents(spark: SparkSession, path: str, runs: list[str]) -> DataFrame:
    """A table of what topics hold: one of `kcluster pipeline ingest`, or any Parquet.  Where it
    does not say of which run it is, it is of the only one."""
    from pyspark.sql import functions as F

    from kcluster.pipeline.ingest.options import BadInput
    from kcluster.pipeline.ingest.table import INFO, read_records

    if not Path(path).is_dir():
        refuse(f"{path}: no such directory")
    is_ingested = (Path(path) / INFO).exists()
    try:
        held = read_records(spark, path) if is_ingested else spark.read.parquet(path)
    except BadInput as error:
        refuse(str(error))
    if is_ingested or "run" not in held.columns:  # its runs are starts of the ingest
        if len(runs) != 1:
            refuse(f"{path}: of one run, and there are {len(runs)}")
        held = held.withColumn("run", F.lit(runs[0]))
    wanted = ("run", "topic", "partition", "offset", "value")
    missing = [name for name in wanted if name not in held.columns]
    if missing:
        refuse(f"{path}: no column {missing[0]}; it has {', '.join(held.columns)}")
    return held.select(*wanted[:-1], held["value"].cast("string"))


def _total(row: Any) -> str:
    counts = "  ".join(
        f"{name} {row[name]:,}"
        for name in ("sent", "acked", "lost", "duplicated", "reordered", "late")
    )
    return f"{row['run']}: {row['topic']}-{row['partition']}: {counts}"


def _finding(row: Any) -> str:
    where = f"{row['topic']}-{row['partition']}"
    if row["epoch"] is not None:
        where += f", epoch {row['epoch']}"
    if row["first"] is not None:
        where += f", offsets {row['first']} to {row['last']}"
    allowed = f" ({row['allowed']})" if row["allowed"] else ""
    return (
        f"  {row['fate']} {row['records']:,} of {row['producer']} in {row['run']}: {where}:"
        f" {row['cause']}{allowed}"
    )
