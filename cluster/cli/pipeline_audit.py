"""`kcluster pipeline audit RUN…`: what became of every record of these runs.

Owns: options, how the sums are shown and written, how bad input is told.  Never: the audit itself
(pipeline/audit.py).
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NoReturn

import click

from cluster.cli.control import ControlError
from cluster.cli.group import fail

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@click.command("audit", help="What became of every record of runs: lost, doubled, reordered, late.")
@click.argument("paths", metavar="RUN...", nargs=-1, required=True)
@click.option("--out", metavar="DIR", default="", help="Write fates, summary and totals: Parquet.")
@click.option("--table", metavar="DIR", default="", help="What the topics hold, as ingested.")
@click.option("--late-ms", default=1_000, show_default=True, help="A later ack is late.")
@click.option("--master", default="local[*]", show_default=True, help="Spark's master.")
def command(paths: tuple[str, ...], out: str, table: str, late_ms: int, master: str) -> None:
    """RUN: run directories, or directories that have some."""
    from cluster.pipeline.tables import find_runs
    from cluster.runs.directory import RunError

    try:
        runs, problems = find_runs(paths)
    except RunError as error:
        refuse(str(error))
    spark = session(master)
    from pyspark.errors import PySparkException

    from cluster.pipeline.audit import audit
    from cluster.pipeline.tables import Tables

    tables = Tables(spark, runs)
    try:
        contents = _contents(spark, table) if table else None
        found = audit(tables, late_ms, contents)
        for problem in (*problems, *tables.problems):
            print(f"kcluster: {problem}; the rest is used", file=sys.stderr)
        if out:
            for name in ("fates", "summary", "totals"):
                getattr(found, name).write.mode("overwrite").parquet(f"{out}/{name}")
        for row in found.totals.toLocalIterator():
            print(_total(row))
        for row in found.summary.toLocalIterator():
            print(_finding(row))
    except PySparkException as error:
        refuse(first_line(error))
    finally:
        tables.close()


def refuse(text: str) -> NoReturn:
    """One line, exit 2."""
    fail(ControlError(text, 2), as_json=False)
    raise AssertionError("fail leaves")


def session(master: str) -> SparkSession:
    """A Spark session; one line and exit 2 where there can be none."""
    from cluster.pipeline.session import SessionError, open_session

    try:
        return open_session(master)
    except SessionError as error:
        refuse(str(error))


def first_line(error: Exception) -> str:
    """Of Spark's words, the first line."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def _contents(spark: SparkSession, path: str) -> DataFrame:
    held = spark.read.parquet(path)
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
    where = f"{row['topic']}-{row['partition']}, epoch {row['epoch']}"
    span = f"offsets {row['first']} to {row['last']}"
    return (
        f"  {row['fate']} {row['records']:,} of {row['producer']} in {row['run']}: {where},"
        f" {span}: {row['cause']}"
    )
