"""The ingest: batches of a stream into a table, each once, and what could not be read, by range.

Owns: the order of steps in a batch, what is looked at between batches, when the job ends.  Never:
how a source reads (sources.py), where files are (table.py), what counts as lost (losses.py).
Kafka: no counterpart; Spark's ForeachBatchSink, MicroBatchExecution.

A batch: look at the logs, read and stage it, look again, keep what is lost, keep what is known of
the logs, and at last let it into the table.  A job that was killed at any point does the same batch
again, from the same offsets, over what it had half done; one that is in the table is left alone.
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

_TURN_S: Final = 0.1
_LOOK_MS: Final = 1_000
"""How often, while nothing comes, logs are looked at."""


class Ingested(Struct, frozen=True):
    """What an ingest did: rows and batches that came into the table, what was lost meanwhile."""

    rows: int
    batches: int
    losses: tuple[Lost, ...]
    seconds: float


class Counts(Struct, frozen=True):
    """How far it is."""

    rows: int
    batches: int
    seconds: float


Told = Callable[[Counts], None]
IsEnough = Callable[[Counts], bool]
ToldLoss = Callable[[Lost], None]


def ingest(
    spark: SparkSession,
    options: IngestOptions,
    on_counts: Told | None = None,
    on_loss: ToldLoss | None = None,
    is_enough: IsEnough | None = None,
) -> Ingested:
    """Read topics into a table until `options.until`, or until it `is_enough`, which is asked some
    times a second.  `on_loss` hears of each lost range.

    BadInput: it cannot begin.  IngestDataLoss: something is lost and options.fail_on_data_loss is
    on; what came before is in the table.  IngestError: anything else that ends it.  After the last
    two it can be started again with the same options.
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
        on_counts: Told | None,
        on_loss: ToldLoss | None,
        is_enough: IsEnough | None,
    ) -> None:
        self.spark, self.options = spark, options
        self.on_counts, self.on_loss, self.is_enough = on_counts, on_loss, is_enough
        self.cluster = ClusterView(options.bootstrap, options.places)
        self.table = IngestTable(spark, options.out, options.format)
        self.source: Source = source_of(spark, options, self.table.storage)
        place = options.checkpoint or self.table.storage.url(f"checkpoint/{options.run}")
        self.checkpoint = SparkStorage(spark, place)
        self.lock = threading.Lock()
        self.known: Known = {}
        self.last = -1
        """The last batch that is in the table."""
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
            self._rest()
        self._raise(None)
        seconds = time.monotonic() - self.began
        return Ingested(self.rows, self.batches, tuple(self.lost), seconds)

    def _start(self) -> Any:
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

    # ------------------------------------------------------------------------ its begin

    def _begin(self) -> Offsets:
        """The offsets from which this run began, once and for all."""
        options, table = self.options, self.table
        kept = table.run_state(options.run)
        query = self._query_id()
        if kept is None:
            if query:
                text = f"{self.checkpoint.root}: a checkpoint that is not of run {options.run}"
                raise BadInput(f"{text} in {options.out}")
            self.cluster.check()
            now = self.cluster.look()
            is_first = options.starting == "earliest"
            starts = {
                name: {p: log.start if is_first else log.end for p, log in there.partitions.items()}
                for name, there in now.items()
            }
            learn(self.known, now, options.places)
            self._keep_known(-1)
            table.keep_run(options.run, RunState(options.source, "", starts))
            return starts
        if kept.query != query and (kept.query or table.batches(options.run)):
            text = f"run {options.run} was made with another checkpoint than {self.checkpoint.root}"
            raise BadInput(f"{options.out}: {text}; name another --run, or that --checkpoint")
        if kept.source != options.source:
            text = f"run {options.run} was begun with --source {kept.source}"
            raise BadInput(f"{options.out}: {text}, whose offsets are not {options.source}'s")
        self._find_last()
        self._rest()
        self._raise(None)
        return kept.starts

    def _query_id(self) -> str:
        """The checkpoint's; "" where there is none yet."""
        text = self.checkpoint.read("metadata")
        return "" if text is None else str(msgspec.json.decode(text)["id"])

    def _find_last(self) -> None:
        """Where the table stands: batches come in one after the other."""
        numbers = [int(name) for name in self.checkpoint.names("offsets") if name.isdigit()]
        there = [number for number in numbers if self.table.has(self.options.run, number)]
        self.last = max(there, default=-1)
        self._recall(self.last)

    def _recall(self, batch: int) -> None:
        text = self.table.known(self.options.run, batch)
        kept = msgspec.json.decode(text or b"{}", type=_Kept)
        self.known, self.rests = kept.known, kept.rests
        self.last, self.positions = batch, self._ends(batch)

    def _keep_known(self, batch: int) -> None:
        text = msgspec.json.encode(_Kept(self.known, self.rests)).decode()
        self.table.keep_known(self.options.run, batch, text)

    def _ends(self, batch: int) -> Offsets:
        """Up to where a batch reads, as its checkpoint has it."""
        if batch < 0:
            state = self.table.run_state(self.options.run)
            return {} if state is None else state.starts
        text = self.checkpoint.read(f"offsets/{batch}")
        if text is None:
            raise IngestError(f"{self.checkpoint.root}: offsets/{batch} is not there")
        return offsets_of(text.splitlines()[2])

    # ------------------------------------------------------------------------ its batches

    def _on_batch(self, frame: DataFrame, batch: int) -> None:
        with self.lock:
            if self.failure is not None:
                raise self.failure
            try:
                self._take(frame, batch)
            except IngestError as error:
                self.failure = error
                raise

    def _take(self, frame: DataFrame, batch: int) -> None:
        run, table = self.options.run, self.table
        if table.has(run, batch):
            self._recall(batch)
            self.source.committed()
            return
        if self.last != batch - 1:
            self._recall(batch - 1)
        self._own(batch)
        ends = self._ends(batch)
        before = self.cluster.look(self.known)
        rows = table.stage(shaped(frame, run, batch), run, batch)
        after = self.cluster.look(self.known)
        span = IngestBatch(self.positions, ends, before, after)
        lost = self.source.losses(span, self.known, lambda *at: gaps(table.staged(run), *at))
        self._lose(tuple(lost), batch, "of")
        learn(self.known, after, self.options.places)
        self.rests = 0
        self._keep_known(batch)
        table.commit(run, batch, rows)
        self.source.committed()
        self.last, self.positions = batch, ends
        self.rows, self.batches = self.rows + rows, self.batches + 1
        if rows:
            self.moved = time.monotonic()
        self._count()

    def _own(self, batch: int) -> None:
        """Before its first batch, the run takes the checkpoint for its own."""
        state = self.table.run_state(self.options.run)
        if state is not None and not state.query:
            state.query = self._query_id()
            self.table.keep_run(self.options.run, state)

    def _lose(self, lost: tuple[Lost, ...], batch: int, part: str) -> None:
        """Tell what is lost, and keep it beside the table; or end the job with it."""
        self.table.keep_losses(self.options.run, batch, part, lost, round(time.time() * 1000))
        for each in lost:
            self.lost.append(each)
            if self.on_loss is not None:
                self.on_loss(each)
        if lost and self.options.fail_on_data_loss:
            raise IngestDataLoss(lost)

    def _rest(self) -> None:
        """Look at the logs while no batch is made."""
        numbers = [int(name) for name in self.checkpoint.names("offsets") if name.isdigit()]
        if max(numbers, default=-1) > self.last:
            return  # one is on its way, and will tell
        now = self.cluster.look(self.known)
        lost = tuple(self.source.at_rest(self.positions, self.known, now))
        learn_ends(self.known, now)
        if not lost:
            return
        try:
            self._lose(lost, self.last, f"after-{self.rests}")
        except IngestDataLoss as error:
            self.failure = error
            return
        self.rests += 1
        self._keep_known(self.last)

    # ---------------------------------------------------------------------------- its end

    def _wait(self, query: Any) -> None:
        from pyspark.errors import StreamingQueryException

        looked = time.monotonic()
        while query.isActive and self.failure is None:
            try:
                query.awaitTermination(_TURN_S)
            except StreamingQueryException:
                return  # `_raise` tells it
            now = time.monotonic()
            self._count()
            if (now - max(looked, self.moved)) * 1000 >= _LOOK_MS and self.lock.acquire(False):
                try:
                    self._rest()
                finally:
                    self.lock.release()
                looked = time.monotonic()
            if self._is_over(query, now):
                return

    def _is_over(self, query: Any, now: float) -> bool:
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

    def _raise(self, query: Any) -> None:
        if self.failure is not None:
            raise self.failure
        error = None if query is None else query.exception()
        if error is not None:
            raise IngestError(why(error)) from None


class _Kept(Struct):
    """Known of the logs at the end of a batch; `rests`: how often something was lost since."""

    known: dict[str, KnownTopic] = {}
    rests: int = 0


def shaped(frame: DataFrame, run: str, batch: int) -> DataFrame:
    """Rows of a source in Kafka's schema -> rows of the table."""
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
    """The ranges of [first, last] of which nothing was staged; both ends included."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    here = staged.where((F.col("topic") == topic) & (F.col("partition") == partition))
    here = here.where(F.col("offset").between(first, last)).select("offset")
    before = F.lag("offset", 1, first - 1).over(Window.orderBy("offset"))
    holes = here.withColumn("before", before).where(F.col("offset") > F.col("before") + 1)
    found = [(row["before"] + 1, row["offset"] - 1) for row in holes.orderBy("offset").collect()]
    end = here.agg(F.max("offset")).first()
    at = first - 1 if end is None or end[0] is None else int(end[0])
    return [*found, (at + 1, last)] if at < last else found
