"""The audit of a table of the topics' records, such as an ingested one, instead of the final logs.

Owns: the place of each send in the table, and its anomalies.  Never: judges a run: the fate in the
run directory decides whether a record must be in the table.  Kafka: no counterpart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kcluster.checks.settings import Setting
from kcluster.evidence.causes import Unexplained
from kcluster.pipeline.tables import PARTITION
from kcluster.runs.record import SendFate

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

MISSING = "the log holds it, the table does not"


def judged_by_table(sends: DataFrame, table: DataFrame) -> DataFrame:
    """Sends whose `at` and `anomalies` follow from a table instead of the final logs, (run, topic,
    partition, offset, value).  A record of the final log that is not in the table is lost, too."""
    from pyspark.sql import functions as F

    placed = _placed(sends, table)
    at, error = F.col("at"), F.when(F.col("error") != "", F.col("error"))
    lost, read = _anomaly_of("lost-write"), _anomaly_of("aborted-read")
    retried = F.when(F.col("idempotent"), Setting.NONE).otherwise(Setting.NOT_IDEMPOTENT)
    is_kept = (F.col("outcome") == "acked") & (F.col("fate") == SendFate.KEPT)
    is_refused = (F.col("outcome") == "failed") | (F.col("fate") == SendFate.ABORTED)
    refusal = F.when(F.col("ahead.error") != "", F.col("ahead.error"))
    cause = F.coalesce(error, F.lit(Unexplained.NO_ERROR.value))
    each = {
        "lost-write": (
            at.isNull() & (lost.isNotNull() | is_kept),
            F.coalesce(lost["cause"], F.lit(MISSING)),
            F.coalesce(lost["allowed"], F.lit("")),
            F.lit(1),
        ),
        "duplicate": (F.col("copies") > 0, cause, retried, F.col("copies")),
        "nonmonotonic-send": (
            at < F.col("ahead.offset"),
            F.coalesce(refusal, cause),
            retried,
            F.lit(1),
        ),
        "aborted-read": (
            at.isNotNull() & (is_refused | read.isNotNull()),
            F.coalesce(read["cause"], cause),
            F.coalesce(read["allowed"], F.lit("")),
            F.lit(1),
        ),
    }
    found = [
        F.when(
            is_so,
            F.struct(
                F.lit(name).alias("name"),
                cause.alias("cause"),
                allowed.alias("allowed"),
                records.cast("bigint").alias("records"),
                lost["reader"].alias("reader"),
            ),
        )
        for name, (is_so, cause, allowed, records) in each.items()
    ]
    return placed.withColumn("anomalies", F.array_compact(F.array(*found)))


def _anomaly_of(name: str) -> Column:
    """The anomaly of this name in a send's verdict; null if the send does not have it."""
    from pyspark.sql import functions as F

    return F.get(F.filter("anomalies", lambda each: each["name"] == name), F.lit(0))


def _placed(sends: DataFrame, table: DataFrame) -> DataFrame:
    """Sends with three new columns. `at`: the lowest offset in the table, or null; `copies`: the
    number of further places in the table; `ahead`: (offset, error) of the record with the highest
    offset among the earlier sends of the producer's process. Spark sorts both inputs."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    places = (
        _named(table.where(F.col("value").isNotNull()), sends)
        .groupBy(*PARTITION, "value")
        .agg(F.min("offset").alias("at"), (F.count("*") - 1).alias("copies"))
    )
    own = Window.partitionBy(*PARTITION, "producer", "life").orderBy("number")
    before = own.rowsBetween(Window.unboundedPreceding, -1)
    here = F.when(F.col("at").isNotNull(), F.struct(F.col("at").alias("offset"), "error"))
    placed = sends.drop("at").join(places, [*PARTITION, "value"], "left")
    return placed.withColumn("ahead", F.max(here).over(before))


def _named(table: DataFrame, sends: DataFrame) -> DataFrame:
    """The table with the names of outside clients' records.  Of equal values, the second `a` is
    named `a (2)` if it was sent twice (evidence/outside.py); otherwise it is a duplicate."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    numbered = sends.where(F.col("value").rlike(r" \(\d+\)$"))
    names = numbered.select(*PARTITION, F.col("value").alias("name")).distinct()
    own = Window.partitionBy(*PARTITION, "value").orderBy("offset")
    called = F.format_string("%s (%d)", "value", F.row_number().over(own))
    return (
        table.withColumn("name", called)
        .join(names.withColumn("is_name", F.lit(True)), [*PARTITION, "name"], "left")
        .withColumn("value", F.when(F.col("is_name"), F.col("name")).otherwise(F.col("value")))
        .drop("name", "is_name")
    )
