"""The ingest job: each batch of a stream goes into a table once; lost ranges are recorded.

Owns: the order of steps in a batch, the checks between batches, when the job ends.  Never: reads a
source (sources.py), knows the layout of files (table.py), decides what is lost (losses.py).
Kafka: no counterpart; Spark's ForeachBatchSink, MicroBatchExecution.

The steps of a batch: view the logs; read and stage the batch; view the logs again; record the lost
ranges; record the state of the logs; commit the batch to the table.  A job that was killed at any
step repeats the batch from the same offsets and overwrites what it had staged.  A batch that the
table has is skipped.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct

from kcluster.pipeline.ingest.losses import (
    IngestBatch,
    Known,
    KnownTopic,
    Offsets,
    learn,
    learn_ends,
)
from kcluster.pipeline.ingest.options import BadInput, IngestDataLoss, IngestError, IngestOptions
from kcluster.pipeline.ingest.sources import Source, offsets_of, source_of
from kcluster.pipeline.ingest.storage import SparkStorage
from kcluster.pipeline.ingest.table import IngestTable, RunState
from kcluster.pipeline.ingest.view import ClusterView
from kcluster.pipeline.session import why
from kcluster.pipeline.source.losses import Lost

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_POLL_S: Final = 0.1
_CHECK_MS: Final = 1_000
"""Interval of the checks for losses while no records arrive."""


class Ingested(Struct, frozen=True):
    """The outcome of an ingest: the numbers of added rows and batches, and the lost ranges."""

    rows: int
    batches: int
    losses: tuple[Lost, ...]
    seconds: float


class Counts(Struct, frozen=True):
    """Progress of an ingest."""

    rows: int
    batches: int
    seconds: float


OnCounts = Callable[[Counts], None]
IsEnough = Callable[[Counts], bool]
OnLoss = Callable[[Lost], None]


def ingest(
    spark: SparkSession,
    options: IngestOptions,
    on_counts: OnCounts | None = None,
    on_loss: OnLoss | None = None,
    is_enough: IsEnough | None = None,
) -> Ingested:
    """Read topics into a table until `options.until` holds or `is_enough` returns True.

    `on_counts` and `is_enough` are called in the caller's thread several times a second, and
    `on_counts` at the end.  `on_loss` is called for each lost range, in any thread, one at a time.

    BadInput: the job cannot begin.  IngestDataLoss: a range is lost and options.fail_on_data_loss
    is on; the batches before are in the table.  IngestError: any other failure.  After
    IngestDataLoss and IngestError, the job can be started again with these options.
    """
    options.check()
    job = _Job(spark, options, on_counts, on_loss, is_enough)
    try:
        return job.run()
    finally:
        job.cluster.close()


class _Job:
    def __init__(
        self,
        spark: SparkSession,
        options: IngestOptions,
        on_counts: OnCounts | None,
        on_loss: OnLoss | None,
        is_enough: IsEnough | None,
    ) -> None:
        self.spark, self.options = spark, options
        self.on_counts, self.on_loss, self.is_enough = on_counts, on_loss, is_enough
        self.cluster = ClusterView(options.bootstrap, options.unique_topics)
        self.table = IngestTable(spark, options.out, options.format)
        self.source: Source = source_of(spark, options, self.table.storage)
        place = options.checkpoint or self.table.storage.url(f"checkpoint/{options.run}")
        self.checkpoint = SparkStorage(spark, place)
        self.lock = threading.Lock()
        self.known: Known = {}
        self.last = -1
        """The number of the last batch in the table."""
        self.positions: Offsets = {}
        self.rests = 0
        self.rows = self.batches = 0
        self.lost: list[Lost] = []
        self.failure: IngestError | None = None
        self.began = self.moved = time.monotonic()

    def run(self) -> Ingested:
        self.starts = self._begin()
        query = self._start()
        try:
            self._wait(query)
        finally:
            query.stop()
        self._raise(query)
        with self.lock:
            self._check_at_rest()
        self._raise(None)
        self._count()
        seconds = time.monotonic() - self.began
        return Ingested(self.rows, self.batches, tuple(self.lost), seconds)

    def _start(self) -> StreamingQuery:
        from pyspark.errors import PySparkException

        options = self.options
        try:
            stream = self.source.stream(self.spark, options, self.starts)
            writer = stream.writeStream.foreachBatch(self._on_batch)
            writer = writer.option("checkpointLocation", self.checkpoint.url())
            if options.until == "once":
                writer = writer.trigger(availableNow=True)
            else:
                writer = writer.trigger(processingTime=f"{options.every_ms} milliseconds")
            return writer.start()
        except PySparkException as error:
            raise IngestError(why(error)) from None

    # ---------------------------------------------------------------------------- begin

    def _begin(self) -> Offsets:
        """The offsets from which the run first began, which never change."""
        options, table = self.options, self.table
        state = table.run_state(options.run)
        query = self._query_id()
        if state is None:
            if query:
                text = (
                    f"{self.checkpoint.root}: the checkpoint does not belong to run {options.run}"
                )
                raise BadInput(f"{text} in {options.out}")
            self.cluster.check()
            now = self.cluster.look()
            is_first = options.starting == "earliest"
            starts = {
                name: {p: log.start if is_first else log.end for p, log in there.partitions.items()}
                for name, there in now.items()
            }
            learn(self.known, now, options.unique_topics)
            self._keep_known(-1)
            table.keep_run(options.run, RunState(options.source, "", starts))
            return starts
        if state.query != query and (state.query or table.batches(options.run)):
            text = f"run {options.run} used another checkpoint than {self.checkpoint.root}"
            raise BadInput(f"{options.out}: {text}; choose another --run, or that --checkpoint")
        if state.source != options.source:
            text = f"run {options.run} was started with --source {state.source}"
            raise BadInput(f"{options.out}: {text}, whose offsets are not {options.source}'s")
        self._find_last()
        self._check_at_rest()
        self._raise(None)
        return state.starts

    def _query_id(self) -> str:
        """The query id of the checkpoint; "" if there is no checkpoint yet."""
        text = self.checkpoint.read("metadata")
        return "" if text is None else str(msgspec.json.decode(text)["id"])

    def _find_last(self) -> None:
        """Find the last batch in the table; batches are committed in order."""
        numbers = [int(name) for name in self.checkpoint.names("offsets") if name.isdigit()]
        there = [number for number in numbers if self.table.has(self.options.run, number)]
        self.last = max(there, default=-1)
        self._restore(self.last)

    def _restore(self, batch: int) -> None:
        text = self.table.known(self.options.run, batch)
        state = msgspec.json.decode(text or b"{}", type=_LogState)
        self.known, self.rests = state.known, state.rests
        self.last, self.positions = batch, self._ends(batch)

    def _keep_known(self, batch: int) -> None:
        text = msgspec.json.encode(_LogState(self.known, self.rests)).decode()
        self.table.keep_known(self.options.run, batch, text)

    def _ends(self, batch: int) -> Offsets:
        """The end offsets of a batch, from the checkpoint."""
        if batch < 0:
            state = self.table.run_state(self.options.run)
            return {} if state is None else state.starts
        text = self.checkpoint.read(f"offsets/{batch}")
        if text is None:
            raise IngestError(f"{self.checkpoint.root}: offsets/{batch} is missing")
        return offsets_of(text.splitlines()[2])

    # -------------------------------------------------------------------------- batches

    def _on_batch(self, frame: DataFrame, batch: int) -> None:
        with self.lock:
            if self.failure is not None:
                raise self.failure
            try:
                self._process(frame, batch)
            except IngestError as error:
                self.failure = error
                raise

    def _process(self, frame: DataFrame, batch: int) -> None:
        run, table = self.options.run, self.table
        if table.has(run, batch):
            self._restore(batch)
            self.source.committed()
            return
        if self.last != batch - 1:
            self._restore(batch - 1)
        self._claim_checkpoint(batch)
        ends = self._ends(batch)
        before = self.cluster.look(self.known)
        rows = table.stage(table_rows(frame, run, batch), run, batch)
        after = self.cluster.look(self.known)
        span = IngestBatch(self.positions, ends, before, after)
        lost = self.source.losses(span, self.known, lambda *at: gaps(table.staged(run), *at))
        self._record_losses(tuple(lost), batch, "of")
        learn(self.known, after, self.options.unique_topics)
        self.rests = 0
        self._keep_known(batch)
        table.commit(run, batch, rows)
        self.source.committed()
        self.last, self.positions = batch, ends
        self.rows, self.batches = self.rows + rows, self.batches + 1
        if rows:
            self.moved = time.monotonic()

    def _claim_checkpoint(self, batch: int) -> None:
        """Before the first batch, record the checkpoint's query id in the state of the run."""
        state = self.table.run_state(self.options.run)
        if state is not None and not state.query:
            state.query = self._query_id()
            self.table.keep_run(self.options.run, state)

    def _record_losses(self, lost: tuple[Lost, ...], batch: int, part: str) -> None:
        """Record and report lost ranges.  IngestDataLoss if fail_on_data_loss is on."""
        self.table.keep_losses(self.options.run, batch, part, lost, round(time.time() * 1000))
        for each in lost:
            self.lost.append(each)
            if self.on_loss is not None:
                self.on_loss(each)
        if lost and self.options.fail_on_data_loss:
            raise IngestDataLoss(lost)

    def _check_at_rest(self) -> None:
        """Check the logs for losses while no batch is being made."""
        numbers = [int(name) for name in self.checkpoint.names("offsets") if name.isdigit()]
        if max(numbers, default=-1) > self.last:
            return  # a batch is in progress and will report its losses
        now = self.cluster.look(self.known)
        lost = tuple(self.source.at_rest(self.positions, self.known, now))
        learn_ends(self.known, now)
        if not lost:
            return
        try:
            self._record_losses(lost, self.last, f"after-{self.rests}")
        except IngestDataLoss as error:
            self.failure = error
            return
        self.rests += 1
        self._keep_known(self.last)

    # ------------------------------------------------------------------------------ end

    def _wait(self, query: Any) -> None:
        from pyspark.errors import StreamingQueryException

        looked = time.monotonic()
        while query.isActive and self.failure is None:
            try:
                query.awaitTermination(_POLL_S)
            except StreamingQueryException:
                return  # `_raise` reports it
            now = time.monotonic()
            self._count()
            if (now - max(looked, self.moved)) * 1000 >= _CHECK_MS and self.lock.acquire(False):
                try:
                    self._check_at_rest()
                finally:
                    self.lock.release()
                looked = time.monotonic()
            if self._is_over(query, now):
                return

    def _is_over(self, query: StreamingQuery, now: float) -> bool:
        options = self.options
        if options.for_ms is not None and (now - self.began) * 1000 >= options.for_ms:
            return True
        if self.is_enough is not None and self.is_enough(self._counts(now)):
            return True
        is_idle = options.until == "idle" and (now - self.moved) * 1000 >= options.idle_ms
        return is_idle and not query.status["isDataAvailable"] and query.lastProgress is not None

    def _count(self) -> None:
        if self.on_counts is not None:
            self.on_counts(self._counts(time.monotonic()))

    def _counts(self, now: float) -> Counts:
        return Counts(self.rows, self.batches, now - self.began)

    def _raise(self, query: StreamingQuery | None) -> None:
        if self.failure is not None:
            raise self.failure
        error = None if query is None else query.exception()
        if error is not None:
            raise IngestError(why(error)) from None


class _LogState(Struct):
    """The state of the logs at the end of a batch; `rests`: the number of times that losses were
    recorded since then, between batches."""

    known: dict[str, KnownTopic] = {}
    rests: int = 0


def table_rows(frame: DataFrame, run: str, batch: int) -> DataFrame:
    """Rows in Kafka's schema as rows of the table."""
    from pyspark.sql import functions as F

    day = F.floor(F.unix_micros("timestamp") / 86_400_000_000).cast("int")
    return frame.select(
        "key",
        "value",
        "headers",
        "partition",
        "offset",
        "timestamp",
        F.col("timestampType").alias("timestamp_type"),
        F.lit(run).alias("run"),
        F.lit(batch).cast("bigint").alias("batch"),
        "topic",
        F.date_from_unix_date(day).alias("date"),
    )


def gaps(
    staged: DataFrame, topic: str, partition: int, first: int, last: int
) -> list[tuple[int, int]]:
    """The ranges within [first, last] of which no record was staged; both ends are included."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    here = staged.where((F.col("topic") == topic) & (F.col("partition") == partition))
    here = here.where(F.col("offset").between(first, last)).select("offset")
    before = F.lag("offset", 1, first - 1).over(Window.orderBy("offset"))
    holes = here.withColumn("before", before).where(F.col("offset") > F.col("before") + 1)
    ranges = [(row["before"] + 1, row["offset"] - 1) for row in holes.orderBy("offset").collect()]
    end = here.agg(F.max("offset")).first()
    at = first - 1 if end is None or end[0] is None else int(end[0])
    return [*ranges, (at + 1, last)] if at < last else ranges
