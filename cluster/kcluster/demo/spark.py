"""The demo's part on Spark: the topic is ingested while the leader dies, then the run is audited.

Owns: the ingest's thread, the run directory, the audit of the table against the run.  Never:
prints, imports pyspark before a session is needed; counts without Spark (demo/count.py does).
Kafka: a sink of Kafka Connect, watched while a broker dies.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from kcluster.checks.verdict import judge
from kcluster.clients.ledger import Ledger
from kcluster.evidence.recorder import Recorder
from kcluster.handle.cluster import Cluster
from kcluster.operations.errors import ClusterError
from kcluster.pipeline.ingest.options import IngestError, IngestOptions
from kcluster.runs.build_record import record_of
from kcluster.runs.directory import write_run
from kcluster.runs.record import RunInfo
from kcluster.version import __version__

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kcluster.pipeline.ingest.job import Counts, Ingested

SPARK_ID: Final = "demo-spark"
BEGIN_TIMEOUT_S: Final = 60.0
END_TIMEOUT_S: Final = 60.0
_COUNTED: Final = ("sent", "acked", "lost", "duplicated", "reordered")


class Audited(Struct, frozen=True):
    """Spark's findings.  `rows`: the number of rows in the table; `sent` and the fields after it:
    numbers of records in the audit."""

    version: str
    table: str
    run: str
    rows: int
    batches: int
    sent: int
    acked: int
    lost: int
    duplicated: int
    reordered: int


class SparkPart:
    """Spark's part of the demo: `attach`, `start`, `wait_for_rows`, `finish`, in this order.
    Raises SessionError, in one line, without Java or pyspark."""

    def __init__(self) -> None:
        from kcluster.pipeline.session import SMALL, open_session

        self.spark = open_session("local[2]", SMALL)
        self._place = Path(mkdtemp(prefix="kcluster-demo-"))  # the result names it

    def attach(self, cluster: Cluster) -> None:
        """Record the cluster's behaviour; called before it starts."""
        self._cluster = cluster
        self._recorder = Recorder(cluster.driver.dispatcher, cluster.plan)

    def start(self, topic: str) -> None:
        """Start reading the topic into a table."""
        options = IngestOptions(
            self._cluster.bootstrap,
            (topic,),
            str(self._place / "table"),
            run=SPARK_ID,
            every_ms=200,
            kafka={"kafka.client.id": SPARK_ID},
        )
        self._ingesting = Ingesting(self.spark, options)
        self._ingesting.start()

    def wait_for_rows(self) -> None:
        """Return when the table has its first rows; ClusterError if it gets none."""
        self._ingesting.wait_for_rows()

    def finish(self, acked: int, lines: Sequence[str]) -> Audited:
        """Wait until every acked record is in the table, and audit every record of the run."""
        ingested = self._ingesting.finish(acked)
        return self._audited(ingested, self._keep_run(), lines)

    def _keep_run(self) -> Path:
        """Write the demo as a run directory, with its clients in the brokers' view."""
        recorder, ledger = self._recorder, Ledger()
        began_ms = recorder.notes[0].at_ms

        def keep() -> Path:
            info = RunInfo(
                "demo",
                "live",
                0,
                began_ms,
                recorder.dispatcher.now_ms,
                version=__version__,
                replay="kcluster demo --spark",
            )
            verdict = judge(recorder, ledger, healed=True, began_ms=began_ms)
            return write_run(self._place, record_of(info, recorder, ledger, verdict))

        return self._cluster.driver.call(keep).result()

    def _audited(self, ingested: Ingested, run: Path, lines: Sequence[str]) -> Audited:
        from kcluster.pipeline.audit import audit
        from kcluster.pipeline.ingest.table import read_records
        from kcluster.pipeline.tables import Tables, find_runs

        runs, _ = find_runs([run])
        tables = Tables(self.spark, runs)
        table = self._ingesting.options.out
        try:
            records = read_records(self.spark, table)
            result = audit(tables, contents=_contents(records, run.name, lines))
            totals = [row.asDict() for row in result.totals.toLocalIterator()]
            result.close()
        finally:
            tables.close()
        sums = {name: sum(row[name] for row in totals) for name in _COUNTED}
        return Audited(
            version=self.spark.version,
            table=table,
            run=str(run),
            rows=ingested.rows,
            batches=ingested.batches,
            **sums,
        )


class Ingesting(threading.Thread):
    """Reads a topic into a table until `finish`."""

    def __init__(self, spark: SparkSession, options: IngestOptions) -> None:
        super().__init__(name=SPARK_ID, daemon=True)
        self.options = options
        self._spark = spark
        self._has_rows = threading.Event()
        self._wanted: int | None = None
        self._ingested: Ingested | None = None
        self._failure = "timed out"

    def run(self) -> None:
        from kcluster.pipeline.ingest.job import ingest

        try:
            self._ingested = ingest(
                self._spark, self.options, on_counts=self._on_counts, is_enough=self._is_enough
            )
        except IngestError as error:
            self._failure = str(error)

    def wait_for_rows(self) -> None:
        """Return when the table has its first rows; ClusterError if it gets none."""
        if not self._has_rows.wait(BEGIN_TIMEOUT_S):
            raise ClusterError(f"Spark has read nothing: {self._failure}")

    def finish(self, rows: int) -> Ingested:
        """End when the table has this many rows; ClusterError if it does not get them."""
        self._wanted = rows
        self.join(END_TIMEOUT_S)
        if self._ingested is None:
            raise ClusterError(f"Spark has not read everything: {self._failure}")
        return self._ingested

    def _on_counts(self, counts: Counts) -> None:
        if counts.rows:
            self._has_rows.set()

    def _is_enough(self, counts: Counts) -> bool:
        return self._wanted is not None and counts.rows >= self._wanted


def _contents(records: DataFrame, run: str, lines: Sequence[str]) -> DataFrame:
    """The table in the form that the audit reads.  Equal lines are numbered as in the run."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    value = F.col("value").cast("string")
    if len(set(lines)) < len(lines):
        own = Window.partitionBy("topic", "partition", "value").orderBy("offset")
        number = F.row_number().over(own)
        value = F.when(number == 1, value).otherwise(F.format_string("%s (%d)", value, number))
    return records.select(
        F.lit(run).alias("run"), "topic", "partition", "offset", value.alias("value")
    )


def audited_lines(audited: Audited) -> list[str]:
    """The audit as the demo prints it."""
    return [
        f"Spark {audited.version} ingested {audited.rows:,} records in {audited.batches} batches"
        " meanwhile, and audited them:",
        "  ".join(f"{name} {getattr(audited, name):,}" for name in _COUNTED),
        f"again: kcluster pipeline audit {audited.run} --table {audited.table}",
    ]
