"""What many runs have in common: windows, failovers, errors, ISR churn, latencies, as tables.

Owns: the five tables, their columns, and that they are written.  Never: draws (charts.py), judges a
run (its verdict.json has).
Kafka: no counterpart; what dashboards of its metrics show (IsrShrinksPerSec).

All times are ms; a row's `run` is the name of its directory.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from cluster.pipeline.causes import number_of, partition_of_note
from cluster.pipeline.tables import Tables
from cluster.trace import kinds

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

PERCENTS: Final = (50, 95, 99)


class Timeline(Struct):
    """`windows`, `failovers`, `isr`: a row each; `failover_times`, `errors`, `latencies`: sums."""

    windows: DataFrame
    failovers: DataFrame
    failover_times: DataFrame
    errors: DataFrame
    isr: DataFrame
    latencies: DataFrame

    def tables(self) -> dict[str, DataFrame]:
        """All of them by name."""
        return {name: getattr(self, name) for name in self.__struct_fields__}


def timeline(tables: Tables) -> Timeline:
    """The tables of these runs."""
    failovers = failovers_of(tables["notes"], tables["sends"])
    return Timeline(
        windows_of(tables), failovers, failover_times(failovers), errors_of(tables),
        isr_churn(tables["notes"]), latencies_of(tables["sends"]),
    )  # fmt: skip


def write(found: Timeline, out: str | os.PathLike[str]) -> list[Path]:
    """Each table as Parquet below `out`; returns their directories."""
    places = []
    for name, table in found.tables().items():
        place = Path(out) / name
        table.write.mode("overwrite").parquet(str(place))
        places.append(place)
    return places


def windows_of(tables: Tables) -> DataFrame:
    """(run, topic, partition, kind, from_ms, to_ms, duration_ms, is_over, clients, errors, cause):
    as verdict.json has them; `cause` is what began each."""
    rows = [
        (
            run.name, *each.partition, each.kind, each.from_ms - run.info.began_ms,
            each.to_ms - run.info.began_ms, each.to_ms - each.from_ms, each.is_over, each.clients,
            each.errors, each.reasons[0]["text"] if each.reasons else "unknown",
        )
        for run in tables.runs
        for each in run.windows
    ]  # fmt: skip
    schema = (
        "run string, topic string, partition bigint, kind string, from_ms bigint, to_ms bigint,"
        " duration_ms bigint, is_over boolean, clients array<string>, errors array<string>,"
        " cause string"
    )
    return tables.spark.createDataFrame(rows, schema)


def failovers_of(notes: DataFrame, sends: DataFrame) -> DataFrame:
    """(run, topic, partition, epoch, old, new, clean, down_ms, noticed_ms, elected_ms, acked_ms):
    elections after a leader went down.  `down_ms` is in the cluster's clock, the others are how
    long after it; `acked_ms` is null where nobody wrote there any more."""
    from pyspark.sql import functions as F

    place = ["run", "topic", "partition"]
    elected = notes.where(F.col("kind") == kinds.LEADER_ELECTED).select(
        *partition_of_note(), number_of("old").alias("old"), number_of("new").alias("new"),
        number_of("epoch").alias("epoch"), F.get_json_object("data", "$.clean").alias("clean"),
        F.col("at_ms").alias("at"),
    )  # fmt: skip
    down = _of_broker(notes, kinds.BROKER_DOWN, "down_at")
    fenced = _of_broker(notes, kinds.BROKER_FENCED, "fenced_at")
    keys = [*place, "epoch", "old", "new", "clean", "at"]
    timed = (
        elected.where("old >= 0 and new >= 0 and old != new")
        .join(down, ["run", "old"])
        .where(F.col("down_at") <= F.col("at"))
        .groupBy(*keys)
        .agg(F.max("down_at").alias("down_at"))
    )
    noticed = (
        timed.join(fenced, ["run", "old"])
        .where(F.col("fenced_at").between(F.col("down_at"), F.col("at")))
        .groupBy(*keys, "down_at")
        .agg(F.min("fenced_at").alias("fenced_at"))
    )
    acks = sends.where("outcome = 'acked'").select(*place, "ended_ms", "sent_ms")
    first = (
        acks.join(F.broadcast(noticed.select(*place, "epoch", "at")), place)
        .where(F.col("ended_ms") >= F.col("at"))
        .groupBy(*place, "epoch", "at")
        .agg(F.min("ended_ms").alias("first_ack"))
    )
    after = {"noticed_ms": "fenced_at", "elected_ms": "at", "acked_ms": "first_ack"}
    return noticed.join(first, [*place, "epoch", "at"], "left").select(
        *place, "epoch", "old", "new", (F.col("clean") == "true").alias("clean"),
        F.col("down_at").alias("down_ms"),
        *((F.col(at) - F.col("down_at")).alias(name) for name, at in after.items()),
    ).orderBy(*place, "epoch")  # fmt: skip


def _of_broker(notes: DataFrame, kind: str, name: str) -> DataFrame:
    from pyspark.sql import functions as F

    return notes.where(F.col("kind") == kind).select(
        "run", number_of("broker").alias("old"), F.col("at_ms").alias(name)
    )


def failover_times(failovers: DataFrame) -> DataFrame:
    """(step, failovers, p50, p95, p99, max): step is noticed, elected or acked."""
    from pyspark.sql import functions as F

    steps = ", ".join(f"'{step}', {step}_ms" for step in ("noticed", "elected", "acked"))
    long = failovers.selectExpr(f"stack(3, {steps}) as (step, ms)").where("ms is not null")
    return long.groupBy("step").agg(F.count("*").alias("failovers"), *_percentiles("ms"))


def errors_of(tables: Tables) -> DataFrame:
    """(api, client, error, times, runs, per_second): per second of the runs' own time."""
    from pyspark.sql import functions as F

    seconds = sum(run.info.ended_ms - run.info.began_ms for run in tables.runs) / 1_000
    return tables["told"].groupBy("api", "client", "error").agg(
        F.count("*").alias("times"), F.count_distinct("run").alias("runs"),
        (F.count("*") / F.lit(max(seconds, 0.001))).alias("per_second"),
    ).orderBy(F.desc("times"), "api", "client", "error")  # fmt: skip


def isr_churn(notes: DataFrame) -> DataFrame:
    """(run, topic, partition, shrinks, expands): Kafka's own topics too."""
    from pyspark.sql import functions as F

    changed = notes.where(F.col("kind").isin(kinds.ISR_SHRUNK, kinds.ISR_EXPANDED))
    return changed.select(*partition_of_note(), "kind").groupBy("run", "topic", "partition").agg(
        F.count_if(F.col("kind") == kinds.ISR_SHRUNK).alias("shrinks"),
        F.count_if(F.col("kind") == kinds.ISR_EXPANDED).alias("expands"),
    ).orderBy("run", "topic", "partition")  # fmt: skip


def latencies_of(sends: DataFrame) -> DataFrame:
    """(run, producer, acks, acked, p50, p95, p99, max): from send to ack."""
    from pyspark.sql import functions as F

    acked = sends.where("outcome = 'acked' and ended_ms >= 0 and sent_ms >= 0")
    timed = acked.withColumn("ms", F.col("ended_ms") - F.col("sent_ms"))
    return (
        timed.groupBy("run", "producer", "acks")
        .agg(F.count("*").alias("acked"), *_percentiles("ms"))
        .orderBy("run", "producer", "acks")
    )


def _percentiles(name: str) -> list[Column]:
    from pyspark.sql import functions as F

    found = [F.percentile(name, percent / 100).alias(f"p{percent}") for percent in PERCENTS]
    return [*found, F.max(name).alias("max")]
