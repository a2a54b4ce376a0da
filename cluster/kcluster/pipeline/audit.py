"""The fate of every record of many runs (lost, duplicated, aborted read, …) with its cause.

Owns: the fate of each send from the files of run directories, as DataFrames.  Never: reads
verdict.json; collects anything but counts.
Kafka: no counterpart; the words are Jepsen's.

A run directory has the final logs (contents.jsonl, by the numbers of sends).  A record is lost if
it was acked or read, and the final log does not hold it; an ack in a transaction counts once the
transaction is committed.  A record of an aborted transaction is neither lost nor duplicated; if
a read_committed consumer can read it, or has read it, that is its fate.  A table of the topics'
records, such as an ingested one, replaces the logs if it is passed.

The audit reads sends once and reads once; all other tables are small and broadcast (contents.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from kcluster.checks.settings import ACKS_ALL, ACKS_PREFIX, Setting
from kcluster.pipeline.causes import (
    disk_losses_of,
    election_within,
    elections_of,
    loss_columns,
    with_disks,
)
from kcluster.pipeline.contents import (
    KEYS,
    PARTITION,
    SMALL_ROWS,
    bucket_of,
    copies_of,
    first_held,
    first_of,
    held_by_table,
    with_rows,
)
from kcluster.pipeline.tables import IS_BAD, Tables
from kcluster.pipeline.transactions import with_transactions
from kcluster.runs.record import CUT, DELETED, HELD, HIDDEN

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

LATE_MS: Final = 1_000
"""An ack that takes longer is late."""
FATES: Final = ("lost", "duplicated", "reordered", "aborted_read", "late")
_COUNTED: Final = ("duplicated", "aborted_read")
"""A record can have these fates more than once."""
ANOMALY_OF: Final = {
    "lost": "lost-write",
    "duplicated": "duplicate",
    "reordered": "nonmonotonic-send",
    "aborted_read": "aborted-read",
}
"""The name of each fate in the simulator's own verdict."""
_NO_ERROR: Final = "no error was reported"
_OUTCOMES: Final = ("acked", "failed", "unknown")


class AuditShape(Struct):
    """Numbers of rows: of contents.jsonl by kind, of held rows that overtook others, of
    transactions, and of reads where a log was truncated or has hidden records.  A table without
    rows is not joined.  `disk_losses`: the runs with disk losses."""

    held: int = 0
    more: int = 0
    hidden: int = 0
    cut: int = 0
    deleted: int = 0
    overtaking: int = 0
    transactions: int = 0
    reads: int = 0
    disk_losses: tuple[str, ...] = ()

    @property
    def is_small(self) -> bool:
        """Whether the rows can be broadcast."""
        return max(self.held, self.more, self.hidden, self.cut, self.deleted) <= SMALL_ROWS


class Audit(Struct):
    """`fates`: one row per send, computed lazily.  `summary`: counts by run, partition, epoch,
    producer, fate, cause and the setting that allows it.  `totals`: counts by run and
    partition."""

    fates: DataFrame
    summary: DataFrame
    totals: DataFrame
    _kept: list[DataFrame]

    def close(self) -> None:
        """Release the cached tables."""
        for table in self._kept:
            table.unpersist()


def audit(tables: Tables, late_ms: int = LATE_MS, contents: DataFrame | None = None) -> Audit:
    """The fate of every record of these runs; reads the ledger once.  `late_ms`: an ack that takes
    longer is late.  `contents`: the records of the topics, (run, topic, partition, offset, value),
    instead of the logs.  Problems of the files are added to `tables.problems`."""
    from pyspark.sql import functions as F

    tables.load("notes", "logs", "contents", "leaders", "transactions")
    shape = shape_of(tables["contents"], tables["notes"], tables["transactions"])
    read = lost_reads(tables, shape).persist()
    shape.reads = _report(tables, "reads", read)
    fates = _fates(tables, shape, read, late_ms, contents)
    counts = _counts(fates).persist()
    _report(tables, "sends", counts)
    known = counts.where(F.col("topic").isNotNull())
    fates = fates.where(~F.col(IS_BAD)).drop(IS_BAD)
    return Audit(fates, summary_of(known), totals_of(known), [counts, read])


def _report(tables: Tables, field: str, table: DataFrame) -> int:
    """Report the runs with bad lines (their topic is null); returns the count of good rows."""
    from pyspark.sql import functions as F

    is_bad = F.col("topic").isNull()
    rows = table.groupBy(F.when(is_bad, F.col("run")).alias("run")).count().collect()
    tables.report(field, (row["run"] for row in rows if row["run"] is not None))
    return sum(row["count"] for row in rows if row["run"] is None)


def shape_of(contents: DataFrame, notes: DataFrame, transactions: DataFrame) -> AuditShape:
    """The counts of the small tables."""
    from pyspark.sql import functions as F

    first = F.col("copy") == 0
    held_kind = F.when(first, "held").otherwise("more")
    kind = F.when(F.col("state") == HELD, held_kind).when(first, F.col("state"))
    overtaking = first_held(contents).where(F.col("ahead.offset") > F.col("offset"))
    no_run = F.lit(None).cast("string").alias("run")
    each = (
        contents.select(kind.alias("kind"), no_run)
        .unionAll(overtaking.select(F.lit("overtaking"), no_run))
        .unionAll(disk_losses_of(notes).select(F.lit("disk_losses"), "run"))
        .unionAll(transactions.select(F.lit("transactions"), no_run))
    )
    rows = each.where("kind is not null").groupBy("kind", "run").count().collect()
    counts = {row["kind"]: row["count"] for row in rows if row["run"] is None}
    return AuditShape(**counts, disk_losses=tuple(row["run"] for row in rows if row["run"]))


def lost_reads(tables: Tables, shape: AuditShape) -> DataFrame:
    """(run, topic, partition, value, read_by, hidden_reads): records that were read from truncated
    parts of a log, with the first reader, and those that read_committed consumers read although
    they are hidden, with the number of these reads.  A run whose reads have bad lines has a row
    with only `run`."""
    from pyspark.sql import functions as F

    first = (F.col("state") == HIDDEN) & (F.col("copy") == 0)
    cut = tables["contents"].where((F.col("state") == CUT) | first)
    begin, end = F.col("offset"), F.col("offset") + F.col("count") - 1
    spans = cut.select(
        *(F.col(name).alias(f"cut_{name}") for name in PARTITION),
        begin.alias("cut_first"),
        end.alias("cut_last"),
        (F.col("state") == HIDDEN).alias("is_hidden"),
        F.explode(F.sequence(bucket_of(begin), bucket_of(end))).alias("cut_bucket"),
    )
    is_there = F.col("offset").between(F.col("cut_first"), F.col("cut_last"))
    is_there = is_there & (bucket_of(F.col("offset")) == F.col("cut_bucket"))
    for name in PARTITION:
        is_there = is_there & (F.col(name) == F.col(f"cut_{name}"))
    reads = tables.whole("reads")
    if shape.cut or shape.hidden:
        right = F.broadcast(spans) if shape.is_small else spans
        reads = reads.join(right, is_there, "left")
        logs = F.broadcast(_kept_from(tables))
        reads = reads.join(logs, list(PARTITION), "left")
        is_cut = ~F.col("is_hidden") & (F.col("offset") >= F.col("kept_from"))
        is_one = is_cut | (F.col("is_hidden") & F.coalesce("read_committed", F.lit(False)))
        reads = reads.where(F.col(IS_BAD) | is_one)
    else:
        reads = reads.where(IS_BAD).withColumn("is_hidden", F.lit(False))
    by = F.when(~F.col("is_hidden"), F.col("consumer"))
    return reads.groupBy(*PARTITION, "value").agg(
        F.min_by(by, F.when(by.isNotNull(), F.col("at_ms"))).alias("read_by"),
        F.count_if("is_hidden").alias("hidden_reads"),
    )


def _kept_from(tables: Tables) -> DataFrame:
    """(run, topic, partition, kept_from): records below `kept_from` were deleted intentionally."""
    from pyspark.sql import functions as F

    kept_from = F.greatest("start_offset", "clean_offset").alias("kept_from")
    return tables["logs"].select(*PARTITION, kept_from)


def _fates(
    tables: Tables, shape: AuditShape, read: DataFrame, late_ms: int, table: DataFrame | None
) -> DataFrame:
    """One row per send, and per line that is not a send (`is_bad`)."""
    from pyspark.sql import functions as F

    contents = tables["contents"]
    sends = tables.whole("sends")
    held_rows = first_held(contents)
    if shape.overtaking:
        held_rows = _with_errors(held_rows, tables.narrow("sends", *KEYS[1:], "number", "error"))
    else:
        held_rows = held_rows.withColumn("error", F.lit(""))
    placed = with_rows(sends, held_rows, "held", shape.is_small)
    if table is None:
        rows = copies_of(contents) if shape.more else None
        placed = with_rows(placed, rows, "more", shape.is_small, "copies int")
        shift = F.col("number") - F.col("held_number")
        placed = placed.withColumns(
            {
                "at": F.col("held_offset") + shift,
                "copies": F.coalesce("more_copies", F.lit(0)),
                "ahead": F.struct("held_ahead.offset", F.col("held_error").alias("error")),
            }
        )
    else:
        placed = held_by_table(placed, table)
    cut = None
    if shape.cut:
        cut = first_of(contents, CUT)
        if shape.disk_losses:
            cut = with_disks(cut, tables, shape.disk_losses)
        else:
            cut = cut.withColumn("disk", F.lit(None))
    columns = "number bigint, epoch bigint, offset bigint, disk string"
    placed = with_rows(placed, cut, "cut", shape.is_small, columns)
    hidden = first_of(contents, HIDDEN) if shape.hidden else None
    placed = with_rows(placed, hidden, "hidden", shape.is_small, "number bigint, offset bigint")
    deleted = first_of(contents, DELETED) if shape.deleted else None
    placed = with_rows(placed, deleted, "deleted", shape.is_small, "number bigint")
    placed = placed.join(F.broadcast(_kept_from(tables)), list(PARTITION), "left")
    if shape.reads:
        known = read.where(F.col("topic").isNotNull())
        known = F.broadcast(known) if shape.reads <= SMALL_ROWS else known
        placed = placed.join(known, [*PARTITION, "value"], "left")
    else:
        nulls = {"read_by": "string", "hidden_reads": "bigint"}
        placed = placed.withColumns({name: F.lit(None).cast(t) for name, t in nulls.items()})
    placed = with_transactions(placed, tables, shape.transactions)
    return _with_causes(_judged(placed, late_ms), elections_of(tables["notes"]))


def _with_errors(held_rows: DataFrame, sends: DataFrame) -> DataFrame:
    """Held rows with `error`: the error of the record that they overtook."""
    from pyspark.sql import functions as F

    overtaking = held_rows.where(F.col("ahead.offset") > F.col("offset"))
    wanted = overtaking.select(*KEYS, F.col("ahead.number").alias("number")).distinct()
    errors = sends.join(F.broadcast(wanted), [*KEYS, "number"]).select(
        *KEYS, F.col("number").alias("ahead_number"), "error"
    )
    named = held_rows.withColumn("ahead_number", F.col("ahead.number"))
    return named.join(F.broadcast(errors), [*KEYS, "ahead_number"], "left").drop("ahead_number")


def _judged(placed: DataFrame, late_ms: int) -> DataFrame:
    """Sends with a column for each fate, and the columns that its cause needs."""
    from pyspark.sql import functions as F

    is_acked = F.col("outcome") == "acked"
    transaction = F.coalesce("transaction_outcome", F.lit("committed"))
    is_promised = is_acked & (transaction == "committed")
    is_refused = (F.col("outcome") == "failed") | (transaction == "aborted")
    hidden_reads = F.when(F.col("hidden_number").isNotNull(), F.col("hidden_reads"))
    aborted_reads = F.when(F.col("at").isNotNull(), F.lit(1)).otherwise(hidden_reads)
    # Records of a deleted topic, or written to one, do not count as lost.
    is_owed = F.col("kept_from").isNotNull() & F.col("deleted_number").isNull()
    was_deleted = is_acked & F.col("offset").between(0, F.col("kept_from") - 1)
    is_there = F.col("at").isNotNull() | F.col("hidden_number").isNotNull()
    is_gone = ~is_there & (is_promised | F.col("read_by").isNotNull())
    took_ms = F.when(F.col("ended_ms") >= 0, F.col("ended_ms") - F.col("sent_ms"))
    is_here = F.col("at").isNotNull() & is_owed
    is_behind = F.col("at") < F.col("ahead.offset")
    return placed.select(
        *KEYS,
        "number",
        "value",
        "acks",
        "outcome",
        "offset",
        "sent_ms",
        "ended_ms",
        "attempts",
        "error",
        "at",
        F.coalesce("held_epoch", "cut_epoch").alias("epoch"),
        took_ms.alias("took_ms"),
        F.when(is_here, F.col("copies")).otherwise(0).alias("duplicated"),
        F.coalesce(is_here & is_behind, F.lit(False)).alias("reordered"),
        F.coalesce(is_acked & (took_ms > late_ms), F.lit(False)).alias("late"),
        F.coalesce(is_gone & is_owed & ~was_deleted, F.lit(False)).alias("lost"),
        F.coalesce(F.when(is_refused, aborted_reads), F.lit(0)).alias("aborted_read"),
        F.when(~is_promised, F.col("read_by")).alias("read_by"),
        is_promised.alias("promised"),
        "transaction_error",
        "ended_late",
        "idempotent",
        "ahead",
        "cut_epoch",
        "cut_disk",
        (F.col("cut_offset") + F.col("number") - F.col("cut_number")).alias("cut_at"),
        F.col("held_epoch").isNotNull().alias("in_log"),
        IS_BAD,
    )


def _with_causes(judged: DataFrame, elections: DataFrame) -> DataFrame:
    """Fates with their causes.  Only lost and late sends get their partition's elections: a copy in
    every row is slow."""
    from pyspark.sql import functions as F

    internal = (
        "promised",
        "transaction_error",
        "ended_late",
        "idempotent",
        "ahead",
        "elections",
        "cut_epoch",
        "cut_disk",
        "cut_at",
        "in_log",
    )
    keys = [f"elections_{name}" for name in PARTITION]
    needed = F.col("lost") | F.col("late")
    for name, key in zip(PARTITION, keys, strict=True):
        needed = needed & (F.col(name) == F.col(key))
    elections = elections.withColumnsRenamed(dict(zip(PARTITION, keys, strict=True)))
    known = judged.join(F.broadcast(elections), needed, "left")
    return known.withColumns(_causes()).drop(*internal, *keys)


def _causes() -> dict[str, Column]:
    """For each fate the columns `<fate>_by` (its cause) and `<fate>_setting` (the setting that
    allows it); null for records without that fate."""
    from pyspark.sql import functions as F

    by, allowed_by = loss_columns(F.col("cut_epoch"), F.col("cut_at"), F.col("cut_disk"))
    missing = F.lit("the log holds it, the table does not")
    acks = F.when(
        F.col("promised") & (F.col("acks") != ACKS_ALL),
        F.concat(F.lit(ACKS_PREFIX), F.col("acks").cast("string")),
    )
    error = F.when(F.col("error") != "", F.col("error"))
    refused = F.when(F.col("ahead.error") != "", F.col("ahead.error"))
    none = F.lit(_NO_ERROR)
    retried = F.when(F.col("idempotent"), Setting.NONE).otherwise(Setting.NOT_IDEMPOTENT)
    is_doubled = F.col("duplicated") > 0
    is_aborted_read = F.col("aborted_read") > 0
    ended = F.when(F.col("transaction_error") != "", F.col("transaction_error"))
    late_end = F.when(F.col("ended_late"), Setting.TRANSACTIONS_V1).otherwise(Setting.NONE)
    return {
        "lost_by": F.when(F.col("lost"), F.when(F.col("in_log"), missing).otherwise(by)),
        "lost_setting": F.when(
            F.col("lost"), F.when(F.col("in_log"), "").otherwise(F.coalesce(acks, allowed_by))
        ),
        "duplicated_by": F.when(is_doubled, F.coalesce(error, none)),
        "duplicated_setting": F.when(is_doubled, retried),
        "reordered_by": F.when(F.col("reordered"), F.coalesce(refused, error, none)),
        "reordered_setting": F.when(F.col("reordered"), retried),
        "aborted_read_by": F.when(is_aborted_read, F.coalesce(ended, error, none)),
        "aborted_read_setting": F.when(is_aborted_read, late_end),
        "late_by": F.when(F.col("late"), F.coalesce(election_within(), error, none)),
    }


_GROUPS: Final = (
    *PARTITION, "epoch", "producer", "outcome", "lost_by", "lost_setting", "duplicated_by",
    "duplicated_setting", "reordered_by", "reordered_setting", "aborted_read_by",
    "aborted_read_setting", "late_by",
)  # fmt: skip


def _counts(fates: DataFrame) -> DataFrame:
    """Counts of sends with equal fates: the only pass over sends ends here in a few rows."""
    from pyspark.sql import functions as F

    place = F.coalesce(F.when(F.col("offset") >= 0, F.col("offset")), F.col("at"))
    return fates.groupBy(*_GROUPS).agg(
        F.count("*").alias("sent"),
        *(F.sum(name).alias(name) for name in _COUNTED),
        F.min(place).alias("first"),
        F.max(place).alias("last"),
    )


def summary_of(counts: DataFrame) -> DataFrame:
    """(run, topic, partition, epoch, producer, fate, cause, allowed, records, first, last): `epoch`
    of the append, null if there was none; `allowed`: the setting that allows the fate, as in the
    verdict."""
    from pyspark.sql import functions as F

    def fate(name: str) -> Column:
        records = F.col(name if name in _COUNTED else "sent")
        allowed_by = F.lit("") if name == "late" else F.col(f"{name}_setting")
        return F.struct(
            F.lit(name).alias("fate"),
            F.col(f"{name}_by").alias("cause"),
            allowed_by.alias("allowed"),
            records.alias("records"),
        )

    each = F.explode(F.array(*map(fate, FATES))).alias("each")
    return (
        counts.select(*PARTITION, "epoch", "producer", "first", "last", each)
        .where(F.col("each.cause").isNotNull())
        .groupBy(*PARTITION, "epoch", "producer", "each.fate", "each.cause", "each.allowed")
        .agg(
            F.sum("each.records").alias("records"),
            F.min("first").alias("first"),
            F.max("last").alias("last"),
        )
        .orderBy(*PARTITION, "first", "fate")
    )


def totals_of(counts: DataFrame) -> DataFrame:
    """(run, topic, partition, sent, acked, failed, unknown, lost, duplicated, reordered,
    aborted_read, late)."""
    from pyspark.sql import functions as F

    def where(condition: Column) -> Column:
        return F.sum(F.when(condition, F.col("sent")).otherwise(0))

    outcomes = [where(F.col("outcome") == name).alias(name) for name in _OUTCOMES]
    flagged = [
        where(F.col(f"{name}_by").isNotNull()).alias(name) for name in FATES if name not in _COUNTED
    ]
    totals = counts.groupBy(*PARTITION).agg(
        F.sum("sent").alias("sent"),
        *outcomes,
        *(F.sum(name).alias(name) for name in _COUNTED),
        *flagged,
    )
    return totals.select(*PARTITION, "sent", *_OUTCOMES, *FATES).orderBy(*PARTITION)
