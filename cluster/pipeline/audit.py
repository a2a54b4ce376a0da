"""The fate of every record of many runs: lost, duplicated, reordered, late, and why; set-based.

Owns: what a run directory alone tells of each send, as DataFrames.  Never: knows more than a run
directory or a table of the topic holds; nothing is collected but sums.
Kafka: no counterpart; epochs cut logs as LeaderEpochFileCache has it (KIP-101).

Where a record is: a leader's append of epoch e at an offset outlives the run unless a leader of a
later epoch began at or below that offset.  What an offset holds is told by the ack that named it,
else by who read it there, else by the batches of a producer that nobody claims: those hold, in
order, what it had in flight at that moment.  A table of (run, topic, partition, offset, value),
such as an ingested one, says it for certain, and is believed instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from cluster.pipeline.tables import ORDER, Tables
from cluster.trace import kinds

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

PARTITION: Final = ("run", "topic", "partition")
LATE_MS: Final = 1_000
"""An ack that takes longer is late."""
FATES: Final = ("lost", "duplicated", "reordered", "late")
ANOMALY_OF: Final = {
    "lost": "lost-write",
    "duplicated": "duplicate",
    "reordered": "nonmonotonic-send",
}
"""A fate, and what the simulator's own verdict calls it."""


class Audit(Struct):
    """`fates`: a row for each send.  `summary`: a row for each run, partition, epoch, producer,
    fate and cause, with counts.  `totals`: one for each run, topic and partition."""

    fates: DataFrame
    summary: DataFrame
    totals: DataFrame

    def close(self) -> None:
        """Forget what is kept on disk of them."""
        self.fates.unpersist()


def audit(tables: Tables, late_ms: int = LATE_MS, contents: DataFrame | None = None) -> Audit:
    """The fate of every record of these runs.  `late_ms`: what takes longer until its ack is late;
    `contents`: what the topics hold, (run, topic, partition, offset, value), where known."""
    from pyspark import StorageLevel
    from pyspark.sql import functions as F

    created = _created(tables["notes"])
    sends = with_clients(_standing(tables["sends"], created, "sent_ms"), tables["appends"])
    slots = appended(tables["appends"], tables["notes"])
    is_kept = F.col("cut").isNull() | (F.col("offset") < F.col("cut"))
    if contents is None:
        contents = contents_of(sends, tables["reads"], slots.where(is_kept))
    starts = deleted_below(tables)
    places = (
        contents.where(F.col("value").isNotNull())
        .groupBy(*PARTITION, "value")
        .agg(F.min("offset").alias("at"), F.count("*").alias("copies"))
    )
    fates = _fates(sends, places, starts, late_ms)
    fates = _with_causes(_with_epochs(fates, slots.where(~is_kept)), tables["notes"])
    fates = fates.persist(StorageLevel.DISK_ONLY)  # sums and whoever wants rows use them
    return Audit(fates, summary_of(fates), totals_of(fates))


def epoch_starts(notes: DataFrame) -> DataFrame:
    """(run, topic, partition, epoch, start, began_ms): each leader's log end as it began."""
    from pyspark.sql import functions as F

    return _of_last_topic(notes).where(F.col("kind") == kinds.BECAME_LEADER).select(
        *partition_of_note(), number("epoch").alias("epoch"), number("offset").alias("start"),
        F.col("at_ms").alias("began_ms"),
    )  # fmt: skip


def appended(appends: DataFrame, notes: DataFrame) -> DataFrame:
    """All that leaders appended, a row for each offset: (run, topic, partition, offset,
    base_offset, epoch, append_ms, client, cut); `cut` is where a later leader began, or null: the
    record is in the log at the end if it is below that."""
    from pyspark.sql import functions as F

    starts = epoch_starts(notes).select(
        *PARTITION, F.col("epoch").alias("later"), F.col("start").alias("cut")
    )
    own = _standing(appends, _created(notes), "at_ms")
    epochs = own.select(*PARTITION, "epoch").distinct()
    cuts = (
        epochs.join(F.broadcast(starts), list(PARTITION))
        .where(F.col("later") > F.col("epoch"))
        .groupBy(*PARTITION, "epoch")
        .agg(F.min("cut").alias("cut"))
    )
    return own.join(F.broadcast(cuts), [*PARTITION, "epoch"], "left").select(
        *PARTITION, F.explode(F.sequence("base_offset", "last_offset")).alias("offset"),
        "base_offset", "epoch", F.col("at_ms").alias("append_ms"), "client", "cut",
    )  # fmt: skip


def with_clients(sends: DataFrame, appends: DataFrame) -> DataFrame:
    """With `client`, the client.id that a producer's requests carry: the one whose batches begin,
    while its sends wait, where they are acked, most often."""
    from pyspark.sql import functions as F

    acks = sends.where((F.col("outcome") == "acked") & (F.col("offset") >= 0))
    begun = appends.where(F.col("client") != "").select(
        *PARTITION, F.col("base_offset").alias("offset"), F.col("at_ms").alias("append_ms"),
        "client",
    )  # fmt: skip
    owners = (
        acks.join(begun, [*PARTITION, "offset"])
        .where(F.col("append_ms").between(F.col("sent_ms"), F.col("ended_ms")))
        .groupBy("run", "producer", "client")
        .count()
        .groupBy("run", "producer")
        .agg(F.max_by("client", F.struct("count", "client")).alias("client"))
    )
    return sends.join(F.broadcast(owners), ["run", "producer"], "left")


def contents_of(sends: DataFrame, reads: DataFrame, slots: DataFrame) -> DataFrame:
    """(run, topic, partition, offset, value, told_by) of each offset in the log at the end; value
    is null where nobody knows it."""
    from pyspark.sql import functions as F

    keys = [*PARTITION, "offset"]
    told = slots.join(_acks(sends), *_acked_there()).drop(*_ACK_KEYS)
    newest = reads.groupBy(*keys).agg(
        F.max_by("value", F.struct("at_ms", *ORDER)).alias("read"), F.max("at_ms").alias("read_ms")
    )
    told = told.join(newest, keys, "left").withColumn(
        "read", F.when(F.col("read_ms") >= F.col("append_ms"), F.col("read"))
    )
    told = told.select(
        *keys, "base_offset", "append_ms", "client", F.coalesce("acked", "read").alias("value"),
        F.when(F.col("acked").isNotNull(), "ack").when(F.col("read").isNotNull(), "read")
        .alias("told_by"),
    )  # fmt: skip
    guessed = _unclaimed(told, sends)
    known = told.select(*keys, "value", "told_by")
    return known.where(F.col("value").isNotNull()).unionByName(guessed)


_ACK_KEYS: Final = tuple(f"ack_{name}" for name in (*PARTITION, "offset", "client"))


def _acks(sends: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    named = sends.where((F.col("outcome") == "acked") & (F.col("offset") >= 0))
    keys = (*PARTITION, "offset", "client")
    renamed = (F.col(name).alias(f"ack_{name}") for name in keys)
    return named.select(*renamed, "sent_ms", "ended_ms", F.col("value").alias("acked"))


def _acked_there(how: str = "left") -> tuple[Column, str]:
    """How to join slots with acks: by place and client, appended between send and ack."""
    from pyspark.sql import functions as F

    is_one = F.col("append_ms").between(F.col("sent_ms"), F.col("ended_ms"))
    for name in (*PARTITION, "offset", "client"):
        is_one = is_one & (F.col(name) == F.col(f"ack_{name}"))
    return is_one, how


def _unclaimed(told: DataFrame, sends: DataFrame) -> DataFrame:
    """Batches that no ack and no read names: they hold, in order, what their producer had in flight
    and knows no outcome of, or sent more than once without idempotence."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    batch = [*PARTITION, "client", "base_offset", "append_ms"]
    free = told.where(F.col("value").isNull() & (F.col("client") != ""))
    sizes = free.groupBy(*batch).agg(F.min("offset").alias("first"), F.count("*").alias("size"))
    # What an idempotent producer got acked is there once: a broker knows it when it comes again.
    is_again = (F.col("outcome") == "acked") & (F.col("attempts") > 1) & ~F.col("idempotent")
    doubtful = sends.where(is_again | (F.col("outcome") == "unknown")).select(
        *PARTITION, "client", "value", "sent_ms", "ended_ms", *ORDER
    )
    open_then = (F.col("sent_ms") <= F.col("append_ms")) & (
        (F.col("ended_ms") < 0) | (F.col("ended_ms") >= F.col("append_ms"))
    )
    in_order = Window.partitionBy(*batch).orderBy(*(F.col(name) for name in ORDER))
    ranked = (
        doubtful.join(F.broadcast(sizes), [*PARTITION, "client"])
        .where(open_then)
        .withColumn("rank", F.row_number().over(in_order) - 1)
    )
    return ranked.where(F.col("rank") < F.col("size")).select(
        *PARTITION, (F.col("first") + F.col("rank")).alias("offset"), "value",
        F.lit("order").alias("told_by"),
    )  # fmt: skip


def deleted_below(tables: Tables) -> DataFrame:
    """(run, topic, partition, kept_from): below it the broker deleted on purpose, as the logs'
    starts in verdict.json have it."""
    gone = [
        (run.name, each["partition"][0], each["partition"][1], each["last"] + 1)
        for run in tables.runs
        for each in run.verdict.get("deleted", ())
        if each["how"] != "with their topic"
    ]
    schema = "run string, topic string, partition bigint, kept_from bigint"
    return tables.spark.createDataFrame(gone, schema)


def _fates(sends: DataFrame, places: DataFrame, starts: DataFrame, late_ms: int) -> DataFrame:
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    placed = (
        sends.join(places, [*PARTITION, "value"], "left")
        .join(F.broadcast(starts), list(PARTITION), "left")
        .withColumn("copies", F.coalesce("copies", F.lit(0)))
    )
    own = Window.partitionBy(*PARTITION, "producer").orderBy(*(F.col(name) for name in ORDER))
    before = own.rowsBetween(Window.unboundedPreceding, -1)
    furthest = F.max(F.when(F.col("at").isNotNull(), F.struct("at", "error"))).over(before)
    is_acked = F.col("outcome") == "acked"
    was_deleted = F.col("offset").between(0, F.coalesce(F.col("kept_from"), F.lit(0)) - 1)
    took_ms = F.when(F.col("ended_ms") >= 0, F.col("ended_ms") - F.col("sent_ms"))
    return (
        placed.withColumn("overtaken", furthest)
        .withColumn("lost", is_acked & (F.col("copies") == 0) & ~was_deleted)
        .withColumn("duplicated", F.greatest(F.col("copies") - 1, F.lit(0)))
        .withColumn("reordered", F.coalesce(F.col("at") < F.col("overtaken.at"), F.lit(False)))
        .withColumn("took_ms", took_ms)
        .withColumn("late", F.coalesce(is_acked & (took_ms > late_ms), F.lit(False)))
        .withColumn("overtaken_error", F.col("overtaken.error"))
        .drop("overtaken", "kept_from")
    )


def _with_epochs(fates: DataFrame, gone: DataFrame) -> DataFrame:
    """With the epoch of the append that was acked: of what is lost, the one that was cut off; of
    what is there, the newest that had begun by the ack, and not behind the offset."""
    from pyspark.sql import functions as F

    acks = _acks(fates.where("lost"))
    epochs = gone.join(acks, *_acked_there("inner")).select(
        *PARTITION, F.col("acked").alias("value"), F.col("epoch").alias("lost_epoch")
    )
    epochs = epochs.groupBy(*PARTITION, "value").agg(F.max("lost_epoch").alias("lost_epoch"))
    return fates.join(epochs, [*PARTITION, "value"], "left")


def _with_causes(fates: DataFrame, notes: DataFrame) -> DataFrame:
    """With `epoch`, and `lost_by`: the election of the leader that had less."""
    from pyspark.sql import functions as F

    spans = epoch_starts(notes).groupBy(*PARTITION).agg(
        F.sort_array(F.collect_list(F.struct("epoch", "start", "began_ms"))).alias("spans")
    )  # fmt: skip
    elections = _of_last_topic(notes).where(F.col("kind") == kinds.LEADER_ELECTED).select(
        *partition_of_note(), F.struct(number("epoch").alias("epoch"), "text").alias("election"),
    ).groupBy(*PARTITION).agg(F.collect_list("election").alias("elections"))  # fmt: skip
    joined = fates.join(F.broadcast(spans), list(PARTITION), "left").join(
        F.broadcast(elections), list(PARTITION), "left"
    )
    return (
        joined.withColumn("epoch", F.coalesce("lost_epoch", _epoch_then()))
        .withColumn("cutter", _cutter())
        .withColumn("lost_by", F.when(F.col("lost"), _lost_by()))
        .drop("spans", "elections", "cutter", "lost_epoch")
    )


def _epoch_then() -> Column:
    from pyspark.sql import functions as F

    moment = F.when(F.col("ended_ms") >= 0, F.col("ended_ms")).otherwise(F.col("sent_ms"))
    where = F.when(F.col("offset") >= 0, F.col("offset")).otherwise(F.lit(2**62))
    began = F.filter("spans", lambda span: (span["began_ms"] <= moment) & (span["start"] <= where))
    return F.get(F.reverse(F.transform(began, lambda span: span["epoch"])), F.lit(0))


def _cutter() -> Column:
    """The first later epoch that began at or below the record's offset."""
    from pyspark.sql import functions as F

    cutting = F.filter(
        "spans",
        lambda span: (span["epoch"] > F.col("epoch")) & (span["start"] <= F.col("offset")),
    )
    return F.get(F.transform(cutting, lambda span: span["epoch"]), F.lit(0))


def _lost_by() -> Column:
    from pyspark.sql import functions as F

    found = F.filter("elections", lambda each: each["epoch"] == F.col("cutter"))
    text = F.get(F.transform(found, lambda each: each["text"]), F.lit(0))
    return F.coalesce(text, F.lit("no later leader is known"))


def summary_of(fates: DataFrame) -> DataFrame:
    """(run, topic, partition, epoch, producer, fate, cause, records, first, last, example)."""
    from pyspark.sql import functions as F

    error = F.when(F.col("error") == "", F.lit(None)).otherwise(F.col("error"))
    refused = F.when(F.col("overtaken_error") == "", F.lit(None)).otherwise(
        F.col("overtaken_error")
    )
    each = F.array(
        _fate("lost", F.col("lost").cast("bigint"), F.col("lost_by")),
        _fate("duplicated", F.col("duplicated"), error),
        _fate("reordered", F.col("reordered").cast("bigint"), F.coalesce(refused, error)),
        _fate("late", F.col("late").cast("bigint"), error),
    )
    place = F.coalesce(F.when(F.col("offset") >= 0, F.col("offset")), F.col("at"))
    return (
        fates.where(
            F.col("lost") | (F.col("duplicated") > 0) | F.col("reordered") | F.col("late")
        )
        .select(*PARTITION, "epoch", "producer", "value", place.alias("place"),
                F.explode(each).alias("each"))
        .where(F.col("each.records") > 0)
        .groupBy(*PARTITION, "epoch", "producer", "each.fate", "each.cause")
        .agg(F.sum("each.records").alias("records"), F.min("place").alias("first"),
             F.max("place").alias("last"), F.min_by("value", "place").alias("example"))
        .orderBy(*PARTITION, "first", "fate")
    )  # fmt: skip


def _fate(name: str, records: Column, cause: Column) -> Column:
    from pyspark.sql import functions as F

    cause = F.coalesce(cause, F.lit("no error was told"))
    return F.struct(F.lit(name).alias("fate"), records.alias("records"), cause.alias("cause"))


def totals_of(fates: DataFrame) -> DataFrame:
    """(run, topic, partition, sent, acked, failed, unknown, lost, duplicated, reordered, late)."""
    from pyspark.sql import functions as F

    outcomes = [
        F.count_if(F.col("outcome") == name).alias(name) for name in ("acked", "failed", "unknown")
    ]
    return fates.groupBy(*PARTITION).agg(
        F.count("*").alias("sent"), *outcomes, F.count_if("lost").alias("lost"),
        F.sum("duplicated").alias("duplicated"), F.count_if("reordered").alias("reordered"),
        F.count_if("late").alias("late"),
    ).orderBy(*PARTITION)  # fmt: skip


def partition_of_note() -> list[str | Column]:
    """Columns: `run`, and the partition that a note is about."""
    from pyspark.sql import functions as F

    topic = F.get_json_object("data", "$.topic").alias("topic")
    return ["run", topic, number("partition").alias("partition")]


def number(name: str) -> Column:
    """A whole number of a note's data."""
    from pyspark.sql import functions as F

    return F.get_json_object("data", f"$.{name}").cast("bigint")


def _created(notes: DataFrame) -> DataFrame:
    """(run, topic, since_ms): topics that were deleted, and when last."""
    from pyspark.sql import functions as F

    return notes.where(F.col("kind") == kinds.TOPIC_DELETED).groupBy(
        "run", F.col("subject").alias("topic")
    ).agg(F.max("at_ms").alias("since_ms"))  # fmt: skip


def _standing(rows: DataFrame, created: DataFrame, at: str) -> DataFrame:
    """Without what was done to a topic before it was deleted."""
    from pyspark.sql import functions as F

    return rows.join(F.broadcast(created), ["run", "topic"], "left").where(
        F.col("since_ms").isNull() | (F.col(at) >= F.col("since_ms"))
    ).drop("since_ms")  # fmt: skip


def _of_last_topic(notes: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    about = notes.withColumn("topic", F.get_json_object("data", "$.topic"))
    return _standing(about, _created(notes), "at_ms").drop("topic")
