"""The work of `kcluster pipeline audit`.

Owns: the form in which sums and findings are shown and written.  Never: audits (pipeline/audit.py).
Kafka: no counterpart.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from kcluster.cli.spark_job import refuse, report_problems, spark_job
from kcluster.pipeline.audit import audit
from kcluster.pipeline.ingest.options import BadInput
from kcluster.pipeline.ingest.table import INFO, read_records
from kcluster.pipeline.progress import Progress

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession


def audit_runs(
    paths: tuple[str, ...], out: str, table: str, late_ms: int, master: str, verbose: bool
) -> None:
    """Audit the records of these runs."""
    with spark_job(paths, master, verbose) as job:
        with Progress("reading the ledger", job.spark) as progress:
            names = [run.name for run in job.runs]
            contents = _contents(job.spark, table, names) if table else None
            result = audit(job.tables, late_ms, contents)
            lines = [_total(row) for row in result.totals.collect()]
            if out:
                progress.part("writing the fates")
                for name in ("fates", "summary", "totals"):
                    getattr(result, name).write.mode("overwrite").parquet(f"{out}/{name}")
        report_problems(job)
        for line in lines:
            print(line)
        for row in result.summary.toLocalIterator():
            print(_finding(row))


def _contents(spark: SparkSession, path: str, runs: list[str]) -> DataFrame:
    """A table of topics' contents, from `kcluster pipeline ingest` or any Parquet.  A table without
    a column `run` belongs to the only run."""
    from pyspark.sql import functions as F

    if not Path(path).is_dir():
        refuse(f"{path}: no such directory")
    is_ingested = (Path(path) / INFO).exists()
    try:
        table = read_records(spark, path) if is_ingested else spark.read.parquet(path)
    except BadInput as error:
        refuse(str(error))
    if is_ingested or "run" not in table.columns:  # the ingest's column `run` has values of its own
        if len(runs) != 1:
            refuse(f"{path}: the contents of one run, but there are {len(runs)} runs")
        table = table.withColumn("run", F.lit(runs[0]))
    wanted = ("run", "topic", "partition", "offset", "value")
    missing = [name for name in wanted if name not in table.columns]
    if missing:
        refuse(f"{path}: no column {missing[0]}; it has {', '.join(table.columns)}")
    return table.select(*wanted[:-1], table["value"].cast("string"))


def _total(row: Row) -> str:
    counts = "  ".join(
        f"{name.replace('_', ' ')} {row[name]:,}"
        for name in ("sent", "acked", "lost", "duplicated", "reordered", "aborted_read", "late")
    )
    return f"{row['run']}: {row['topic']}-{row['partition']}: {counts}"


def _finding(row: Row) -> str:
    where = f"{row['topic']}-{row['partition']}"
    if row["epoch"] is not None:
        where += f", epoch {row['epoch']}"
    if row["first"] is not None:
        where += f", offsets {row['first']} to {row['last']}"
    allowed = f" ({row['allowed']})" if row["allowed"] else ""
    fate = row["fate"].replace("_", " ")
    return (
        f"  {fate} {row['records']:,} of {row['producer']} in {row['run']}: {where}:"
        f" {row['cause']}{allowed}"
    )
