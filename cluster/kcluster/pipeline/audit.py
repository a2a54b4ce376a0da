"""The fate of every record of many runs (lost, duplicated, aborted read, …) with its cause.

Owns: counts of the fates that the verdict gave to each send (`anomalies` in sends.jsonl), and of
late sends, which a verdict does not judge.  Never: judges: a run without fates is refused; collects
anything but counts.
Kafka: no counterpart; the words are Jepsen's.

The audit reads sends once.  A table of the topics' records, such as an ingested one, replaces the
final logs if it is passed (table_audit.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from kcluster.events.partitions import LeaderElected, PartitionOffline
from kcluster.events.topics import TopicDeleted
from kcluster.events.words import text_of
from kcluster.evidence.causes import Unexplained
from kcluster.pipeline.notes import events_of
from kcluster.pipeline.table_audit import judged_by_table
from kcluster.pipeline.tables import IS_BAD, PARTITION, RunDirectory, Tables
from kcluster.runs.directory import INFO, other_format
from kcluster.runs.record import FORMAT

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

LATE_MS: Final = 1_000
"""The time of an ack beyond which it is late, in ms."""
FATES: Final = ("lost", "duplicated", "reordered", "aborted_read", "late")
_COUNTED: Final = ("duplicated", "aborted_read")
"""The fates that a record can have more than once."""
ANOMALY_OF: Final = {
    "lost": "lost-write",
    "duplicated": "duplicate",
    "reordered": "nonmonotonic-send",
    "aborted_read": "aborted-read",
}
"""The name of each fate in the simulator's own verdict."""
_OUTCOMES: Final = ("acked", "failed", "unknown")
_ELECTIONS: Final = (
    "run string, topic string, partition bigint, elections array<struct<at_ms: bigint,"
    " text: string>>"
)


class Audit(Struct):
    """The result of an audit.  `fates`: one row per send, computed lazily.  `summary`: counts by
    run, partition, epoch, producer, fate, cause and the setting that allows it.  `totals`: counts
    by run and partition."""

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
    instead of the logs.  Problems of the files are added to `tables.problems`.  RunError if a run
    is of a format without fates."""
    from pyspark.sql import functions as F

    _check_formats(tables.runs)
    sends = tables.whole("sends")
    if contents is not None:
        sends = judged_by_table(sends, contents)
    fates = _with_fates(sends, _elections_of(tables["notes"]), late_ms)
    counts = _counts(fates).persist()
    _report(tables, counts)
    known = counts.where(F.col("topic").isNotNull())
    fates = fates.where(~F.col(IS_BAD)).drop(IS_BAD)
    return Audit(fates, summary_of(known), totals_of(known), [counts])


def _check_formats(runs: Iterable[RunDirectory]) -> None:
    for run in runs:
        if run.info.format != FORMAT:
            raise other_format(run.path / INFO, run.info, f"the audit needs format {FORMAT}")


def _report(tables: Tables, counts: DataFrame) -> None:
    """Report bad lines (their topic is null), and sends that no verdict has judged."""
    from pyspark.sql import functions as F

    is_bad = F.col("topic").isNull()
    wrong = counts.where(is_bad | (F.col("fate") == "")).groupBy("run", is_bad.alias("is_bad"))
    rows = wrong.agg(F.sum("sent").alias("sent")).collect()
    tables.report("sends", (row["run"] for row in rows if row["is_bad"]))
    tables.problems += [
        f"{row['run']}: {row['sent']:,} sends have no fate: the run was not judged"
        for row in sorted(rows, key=lambda row: str(row["run"]))
        if not row["is_bad"]
    ]


def _elections_of(notes: DataFrame) -> DataFrame:
    """(run, topic, partition, elections): the text and the time of each change of leader, oldest
    first.  Deleted topics are left out."""
    deleted_ms: dict[tuple[str, str], int] = {}
    changes: dict[tuple[str, str, int], list[tuple[int, str]]] = {}
    for run, at_ms, event in events_of(notes, LeaderElected, PartitionOffline, TopicDeleted):
        match event:
            case TopicDeleted(topic=topic):
                deleted_ms[run, topic] = max(at_ms, deleted_ms.get((run, topic), at_ms))
            case LeaderElected() | PartitionOffline():
                place = (run, event.topic, event.partition)
                changes.setdefault(place, []).append((at_ms, text_of(event)))
    rows = [
        (*place, sorted(each for each in found if each[0] >= deleted_ms.get(place[:2], 0)))
        for place, found in changes.items()
    ]
    return notes.sparkSession.createDataFrame(rows, _ELECTIONS)


def _with_fates(sends: DataFrame, elections: DataFrame, late_ms: int) -> DataFrame:
    """Sends with `late` and a column for each of the verdict's fates; for each fate the columns
    `<fate>_by` (its cause) and `<fate>_setting` (the setting that allows it), null without the
    fate."""
    from pyspark.sql import functions as F

    def found(fate: str) -> Column:
        return F.get(F.filter("anomalies", lambda each: each["name"] == ANOMALY_OF[fate]), F.lit(0))

    took_ms = F.when(F.col("ended_ms") >= 0, F.col("ended_ms") - F.col("sent_ms"))
    is_late = F.coalesce((F.col("outcome") == "acked") & (took_ms > late_ms), F.lit(False))
    columns: dict[str, Column] = {
        "fate": F.coalesce("fate", F.lit("")),
        "at": F.when(F.col("at") >= 0, F.col("at")),
        "epoch": F.when(F.col("epoch") >= 0, F.col("epoch")),
        "took_ms": took_ms,
        "late": is_late,
        "read_by": found("lost")["reader"],
    }
    for fate in ANOMALY_OF:
        records = F.coalesce(found(fate)["records"], F.lit(0))
        columns[fate] = records if fate in _COUNTED else records > 0
        columns[f"{fate}_by"] = found(fate)["cause"]
        columns[f"{fate}_setting"] = found(fate)["allowed"]
    judged = sends.withColumns(columns).drop("anomalies")
    # Only late sends get the elections of their partition, because a copy in every row is slow.
    keys = {name: f"elections_{name}" for name in PARTITION}
    needed = F.col("late")
    for name, key in keys.items():
        needed = needed & (F.col(name) == F.col(key))
    known = judged.join(F.broadcast(elections.withColumnsRenamed(keys)), needed, "left")

    def is_within(each: Column) -> Column:
        return each["at_ms"].between(F.col("sent_ms"), F.col("ended_ms"))

    election = F.get(F.filter("elections", is_within), F.lit(0))["text"]
    error = F.when(F.col("error") != "", F.col("error"))
    late_by = F.when(F.col("late"), F.coalesce(election, error, F.lit(Unexplained.NO_ERROR.value)))
    return known.withColumn("late_by", late_by).drop("elections", *keys.values())


_GROUPS: Final = (
    *PARTITION, "epoch", "producer", "outcome", "fate", "lost_by", "lost_setting", "duplicated_by",
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
