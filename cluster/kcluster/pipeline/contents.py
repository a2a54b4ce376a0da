"""Joins of sends with the rows of contents.jsonl, which say where each send is in the final logs.

Owns: the join by a send's number without a shuffle of sends, what precedes a send in its log.
Never: interprets a position (audit.py).
Kafka: no counterpart.

A row of contents.jsonl covers `count` sends from `number` on.  It is broadcast once per bucket of
numbers that it overlaps; a send is compared only with the rows of its own bucket.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kcluster.runs.record import CUT, DELETED, HELD, HIDDEN

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

PARTITION: Final = ("run", "topic", "partition")
KEYS: Final = (*PARTITION, "producer")
_BUCKET_BITS: Final = 10
SMALL_ROWS: Final = 500_000
"""Up to this many rows of contents.jsonl are broadcast; more are sort-merged with sends."""


def first_held(contents: DataFrame) -> DataFrame:
    """Held rows, each send at its lowest offset.  `ahead`: (offset, number) of the record with the
    highest offset among those that the producer sent before."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    first = contents.where((F.col("state") == HELD) & (F.col("copy") == 0))
    own = Window.partitionBy(*KEYS).orderBy("number").rowsBetween(Window.unboundedPreceding, -1)
    end = F.col("count") - 1
    last = F.struct(
        (F.col("offset") + end).alias("offset"), (F.col("number") + end).alias("number")
    )
    return first.select(
        *KEYS, "number", "count", "offset", "epoch", F.max(last).over(own).alias("ahead")
    )


def first_of(contents: DataFrame, state: str) -> DataFrame:
    """Rows of a state (CUT, DELETED, HIDDEN), each send once: its first append."""
    from pyspark.sql import functions as F

    assert state in (CUT, DELETED, HIDDEN), state
    return contents.where((F.col("state") == state) & (F.col("copy") == 0))


def copies_of(contents: DataFrame) -> DataFrame:
    """(KEYS, number, count, copies): the number of additional copies of these sends in the log."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    more = contents.where((F.col("state") == HELD) & (F.col("copy") > 0))
    begin = more.select(*KEYS, "number", F.lit(1).alias("step"))
    end = more.select(*KEYS, (F.col("number") + F.col("count")).alias("number"), F.lit(-1))
    own = Window.partitionBy(*KEYS).orderBy("number")
    return (
        begin.union(end)
        .groupBy(*KEYS, "number")
        .agg(F.sum("step").alias("step"))
        .withColumn("copies", F.sum("step").over(own))
        .withColumn("count", F.lead("number").over(own) - F.col("number"))
        .where("copies > 0")
        .drop("step")
    )


def with_rows(
    sends: DataFrame, rows: DataFrame | None, prefix: str, is_small: bool, columns: str = ""
) -> DataFrame:
    """Sends with the row that covers their number; its columns are named `prefix_name`, null if
    there is no row.  At most one row may cover a number.  `rows` None: all of `columns` (such as
    `number bigint`) are null."""
    from pyspark.sql import functions as F

    if rows is None:
        nulls = (column.split() for column in columns.split(", "))
        return sends.withColumns(
            {f"{prefix}_{name}": F.lit(None).cast(type_) for name, type_ in nulls}
        )
    first, last = F.col("number"), F.col("number") + F.col("count") - 1
    buckets = F.explode(F.sequence(bucket_of(first), bucket_of(last)))
    renamed = [F.col(name).alias(f"{prefix}_{name}") for name in rows.columns]
    right = rows.select(*renamed, buckets.alias(f"{prefix}_bucket"))
    is_one = bucket_of(F.col("number")) == F.col(f"{prefix}_bucket")
    for name in KEYS:
        is_one = is_one & (F.col(name) == F.col(f"{prefix}_{name}"))
    begin = F.col(f"{prefix}_number")
    is_one = is_one & (F.col("number") >= begin)
    is_one = is_one & (F.col("number") < begin + F.col(f"{prefix}_count"))
    dropped = [f"{prefix}_{name}" for name in (*KEYS, "bucket")]
    return sends.join(F.broadcast(right) if is_small else right, is_one, "left").drop(*dropped)


def bucket_of(number: Column) -> Column:
    """The bucket of a number or an offset; neighbours share one."""
    from pyspark.sql import functions as F

    return F.shiftright(number, _BUCKET_BITS)


def _named(table: DataFrame, sends: DataFrame) -> DataFrame:
    """The table with the names that outside clients' sends get if their values are equal: the
    second `a` is named `a (2)` if it was sent (evidence/outside.py), else it is a duplicate."""
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


def held_by_table(sends: DataFrame, table: DataFrame) -> DataFrame:
    """Sends with `at`, `copies` and `ahead` (offset, error) from a table of the topics' records,
    (run, topic, partition, offset, value).  Sorts both."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    places = (
        _named(table.where(F.col("value").isNotNull()), sends)
        .groupBy(*PARTITION, "value")
        .agg(F.min("offset").alias("at"), (F.count("*") - 1).alias("copies"))
    )
    own = Window.partitionBy(*KEYS).orderBy("number").rowsBetween(Window.unboundedPreceding, -1)
    here = F.when(F.col("at").isNotNull(), F.struct(F.col("at").alias("offset"), "error"))
    placed = sends.join(places, [*PARTITION, "value"], "left")
    return placed.withColumn("ahead", F.max(here).over(own))
