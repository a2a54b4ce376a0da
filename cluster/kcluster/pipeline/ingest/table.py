"""The table of ingested records and the table of lost ranges: their files, and the reading of them.

Owns: the directory's layout and version, columns, the list of batches in the table.  Never: reads
topics.
Kafka: no counterpart; Spark's FileStreamSink keeps a log, _spark_metadata, instead.

    OUT/ingest.json                                          format and version
    OUT/records/run=R/batch=N/topic=T/date=D/*.parquet       the table
    OUT/losses/run=R/batch=N/*.parquet                       lost ranges
    OUT/runs/R/ OUT/checkpoint/R/ OUT/staging/               internal to the job

A batch is written to staging/ and enters the table by one rename of its directory, under its
number.  A job that was killed repeats its unfinished batch from the same offsets, and skips a batch
that the table has.  So every Parquet reader sees complete batches, each once.  (Spark's own file
sink leaves the files of failed attempts, which only readers of its _spark_metadata can ignore.)  In
a Delta or Iceberg table the last step is a commit that names the batch (formats.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from kcluster.pipeline.ingest.formats import append, check_format, read
from kcluster.pipeline.ingest.options import BadInput
from kcluster.pipeline.ingest.storage import SparkStorage
from kcluster.pipeline.source.losses import Lost

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

VERSION: Final = 1
PARQUET: Final = "parquet"
INFO: Final = "ingest.json"
RECORDS: Final = "records"
LOSSES: Final = "losses"
IN_FILES: Final = (
    "key binary, value binary, headers array<struct<key: string, value: binary>>,"
    " partition int, offset bigint, timestamp timestamp, timestamp_type int"
)
RECORD: Final = f"{IN_FILES}, run string, batch bigint, topic string, date date"
"""The columns of a record.  `date`: the date of the record's timestamp in UTC."""
_LOSS_IN_FILES: Final = (
    "topic string, partition int, first bigint, last bigint, why string, seen_at timestamp"
)
LOSS: Final = f"{_LOSS_IN_FILES}, run string, batch bigint"
"""The columns of a lost range: `first` to `last`, both included; `last` null: the end of the log is
unknown."""
_KEPT_STATES: Final = 100
"""The number of kept states, equal to Spark's
(spark.sql.streaming.minBatchesToRetain)."""


class TableInfo(msgspec.Struct, frozen=True):
    """The content of ingest.json."""

    version: int
    format: str


class RunState(msgspec.Struct):
    """The state of a run besides Spark's checkpoint.  `query`: the checkpoint's query id, "" before
    there is one; `starts`: the first offset of each partition."""

    source: str
    query: str
    starts: dict[str, dict[int, int]]


class IngestTable:
    """The directory of an ingested table.  Raises BadInput for a directory with other content."""

    def __init__(self, spark: SparkSession, out: str, format_: str) -> None:
        self.spark = spark
        self.format = format_
        self.storage = SparkStorage(spark, out)
        text = self.storage.read(INFO)
        if text is None and self.storage.exists() and not self.storage.is_directory():
            raise BadInput(f"{out}: it is a file, but a table is a directory")
        if text is None and self.storage.names():
            raise BadInput(
                f"{out}: the directory is not empty and has no {INFO}, so it is not a table"
            )
        if text is not None:
            _check(out, text, format_)
        check_format(spark, format_)
        if text is not None:
            return
        self.storage.make("")
        self.storage.write(INFO, msgspec.json.encode(TableInfo(VERSION, format_)).decode())

    def batch_path(self, kind: str, run: str, batch: int | str) -> str:
        """The path of a batch of a run."""
        return f"{kind}/run={run}/batch={batch}"

    def has(self, run: str, batch: int) -> bool:
        """Whether the table has a batch."""
        return self.storage.exists(self._mark(run, batch))

    def batches(self, run: str) -> int:
        """The number of a run's batches in the table."""
        return len(self.storage.names(self._mark(run, 0).rpartition("/")[0]))

    def _mark(self, run: str, batch: int) -> str:
        """The path that exists exactly if the table has a batch."""
        if self.format == PARQUET:
            return self.batch_path(RECORDS, run, batch)
        return f"runs/{run}/done/{batch}"

    def stage(self, records: DataFrame, run: str, batch: int) -> int:
        """Write a batch (columns of RECORD) to staging; returns the number of rows."""
        from pyspark.sql import Observation
        from pyspark.sql import functions as F

        path = f"staging/{run}/{self.batch_path(RECORDS, run, batch)}"
        self.storage.delete(f"staging/{run}/{RECORDS}")
        self.storage.make(path)
        observation = Observation()
        watched = records.drop("run", "batch").observe(observation, F.count(F.lit(1)).alias("rows"))
        writer = watched.write.mode("overwrite").partitionBy("topic", "date")
        writer = writer.option("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false")
        writer.parquet(self.storage.url(path))
        return int(observation.get["rows"])

    def staged(self, run: str) -> DataFrame:
        """The staged batch."""
        return self.spark.read.schema(RECORD).parquet(self.storage.url(f"staging/{run}/{RECORDS}"))

    def commit(self, run: str, batch: int, rows: int) -> None:
        """Move the staged batch into the table."""
        path = self.batch_path(RECORDS, run, batch)
        if self.format == PARQUET:
            self.storage.rename(f"staging/{run}/{path}", path)
            return
        if rows:
            append(self.spark, self.format, self.storage, self.staged(run), (run, batch))
        self.storage.write(self._mark(run, batch), "")

    def keep_losses(
        self, run: str, batch: int, part: str, lost: tuple[Lost, ...], seen_ms: int
    ) -> None:
        """Record lost ranges; replaces the record of an earlier attempt."""
        file = f"{self.batch_path(LOSSES, run, batch)}/{part}.parquet"
        if not lost:
            self.storage.delete(file)
            return
        from pyspark.sql import functions as F

        rows = [(x.topic, x.partition, x.first, x.last, x.why, seen_ms) for x in lost]
        names = "topic string, partition int, first bigint, last bigint, why string, ms bigint"
        frame = self.spark.createDataFrame(rows, names)
        frame = frame.withColumn("seen_at", F.timestamp_millis("ms")).drop("ms").coalesce(1)
        staged = f"staging/{run}/{LOSSES}"
        frame.write.mode("overwrite").parquet(self.storage.url(staged))
        written = next(name for name in self.storage.names(staged) if name.endswith(".parquet"))
        self.storage.delete(file)
        self.storage.rename(f"{staged}/{written}", file)

    # ------------------------------------------------------------------------- state of the job

    def run_state(self, run: str) -> RunState | None:
        text = self.storage.read(f"runs/{run}/run.json")
        return None if text is None else msgspec.json.decode(text, type=RunState)

    def keep_run(self, run: str, state: RunState) -> None:
        self.storage.write(f"runs/{run}/run.json", msgspec.json.encode(state).decode())

    def known(self, run: str, batch: int) -> str | None:
        """The state recorded at the end of a batch."""
        return self.storage.read(f"runs/{run}/{batch}.json")

    def keep_known(self, run: str, batch: int, text: str) -> None:
        self.storage.write(f"runs/{run}/{batch}.json", text)
        self.storage.delete(f"runs/{run}/{batch - _KEPT_STATES}.json")


def _check(out: str, text: str, format_: str) -> None:
    try:
        info = msgspec.json.decode(text, type=TableInfo)
    except msgspec.DecodeError as error:
        raise BadInput(f"{out}/{INFO}: {error}") from None
    if info.version != VERSION:
        text = f"a table of version {info.version}; this kcluster writes version {VERSION}"
        raise BadInput(f"{out}: {text}")
    if info.format != format_:
        raise BadInput(f"{out}: a {info.format} table, not {format_}")


def read_records(spark: SparkSession, out: str) -> DataFrame:
    """The records of all runs of a table, in the columns of RECORD. Raises BadInput."""
    storage = SparkStorage(spark, out)
    text = storage.read(INFO)
    if text is None:
        raise BadInput(f"{out}: not a table of `kcluster pipeline ingest`: it has no {INFO}")
    info = msgspec.json.decode(text, type=TableInfo)
    _check(out, text, info.format)
    if info.format != PARQUET:
        return read(spark, info.format, storage)
    storage.make(RECORDS)
    return spark.read.schema(RECORD).parquet(storage.url(RECORDS))


def read_losses(spark: SparkSession, out: str) -> DataFrame:
    """The lost ranges of all runs, in the columns of LOSS."""
    storage = SparkStorage(spark, out)
    storage.make(LOSSES)
    return spark.read.schema(LOSS).parquet(storage.url(LOSSES))
