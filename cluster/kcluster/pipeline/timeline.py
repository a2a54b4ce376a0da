"""Tables over many runs: windows, failovers, errors, ISR churn, latencies, requests.

Owns: the tables and their columns, writing and reading them.  Never: draws (charts.py), judges a
run (verdict.json has the verdict).
Kafka: no counterpart; the contents of dashboards of its metrics (IsrShrinksPerSec).

All times are ms; a row's `run` is the name of its directory.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from kcluster.contract import CONTROLLER_ID
from kcluster.events.brokers import (
    BrokerDown,
    BrokerFenced,
    BrokerPaused,
    BrokerResumed,
    BrokerUnfenced,
)
from kcluster.events.network import LinkCut, LinkHealed
from kcluster.events.partitions import IsrExpanded, IsrShrunk, LeaderElected, PartitionOffline
from kcluster.pipeline.notes import field, is_a, partition_of_note
from kcluster.pipeline.tables import PARTITION, Tables
from kcluster.protocol.names import INTERNAL_PREFIX

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

PERCENTS: Final = (50, 95, 99)


class Timeline(Struct):
    """The tables.  `windows`, `failovers` and `isr` have a row per item; the others are sums."""

    windows: DataFrame
    failovers: DataFrame
    failover_times: DataFrame
    errors: DataFrame
    isr: DataFrame
    latencies: DataFrame
    requests: DataFrame

    def tables(self) -> dict[str, DataFrame]:
        """All tables by name."""
        return {name: getattr(self, name) for name in self.__struct_fields__}


def timeline(tables: Tables) -> Timeline:
    """The tables of these runs."""
    tables.load("notes", "errors", "requests", "sends")
    failovers = tables.keep(failovers_of(tables["notes"], tables["sends"]))
    return Timeline(
        windows_of(tables),
        failovers,
        failover_times(failovers),
        errors_of(tables),
        isr_churn(tables["notes"]),
        latencies_of(tables["sends"]),
        requests_of(tables["requests"]),
    )


def write(tables: Timeline, out: str | os.PathLike[str]) -> list[Path]:
    """Each table as Parquet below `out`; returns their directories."""
    places = []
    for name, table in tables.tables().items():
        place = Path(out) / name
        table.write.mode("overwrite").parquet(str(place))
        places.append(place)
    return places


def read(spark: SparkSession, out: str | os.PathLike[str]) -> Timeline:
    """The tables that `write` has written to `out`."""
    names = Timeline.__struct_fields__
    return Timeline(*(spark.read.parquet(str(Path(out) / name)) for name in names))


def windows_of(tables: Tables) -> DataFrame:
    """(run, topic, partition, kind, from_ms, to_ms, duration_ms, is_over, clients, errors, cause):
    as in verdict.json; `cause` is a window's first reason."""
    rows = [
        (
            run.name,
            *each.partition,
            each.kind,
            each.from_ms - run.info.began_ms,
            each.to_ms - run.info.began_ms,
            each.to_ms - each.from_ms,
            each.is_over,
            each.clients,
            each.errors,
            each.reasons[0]["text"] if each.reasons else "unknown",
        )
        for run in tables.runs
        for each in run.windows
    ]
    schema = (
        "run string, topic string, partition bigint, kind string, from_ms bigint, to_ms bigint,"
        " duration_ms bigint, is_over boolean, clients array<string>, errors array<string>,"
        " cause string"
    )
    return tables.spark.createDataFrame(rows, schema)


def failovers_of(notes: DataFrame, sends: DataFrame) -> DataFrame:
    """(run, topic, partition, epoch, old, new, clean, down_ms, noticed_ms, elected_ms, acked_ms):
    elections after a leader became unreachable: it was killed, paused, or cut off from the
    controller.  `down_ms` is a time of the cluster's clock, the other times are relative to it.
    `noticed_ms` (fenced) is null if the broker was back before.  `acked_ms` is the time of the
    first ack of a record that waited for the new leader, null if none waited, because a later write
    says nothing about the failover.  Internal topics are left out."""
    from pyspark.sql import functions as F

    timed = _changes_of_leader(notes).join(F.broadcast(_absences(notes)), ["run", "old"])
    since = F.array_max(F.filter("back", lambda at: at <= F.col("left_ms")))
    begun = F.filter("gone", lambda at: (at < F.col("left_ms")) & (since.isNull() | (at >= since)))
    timed = timed.withColumn("down_ms", F.array_min(begun)).where(
        (F.col("new") >= 0) & F.col("down_ms").isNotNull()
    )
    fencings = F.filter("fenced", lambda at: at.between(F.col("down_ms"), F.col("left_ms")))
    keys = [*PARTITION, "epoch", "at_ms"]
    acks = sends.where("outcome = 'acked'").select(*PARTITION, "sent_ms", "ended_ms")
    first = (
        acks.join(F.broadcast(timed.select(*keys)), list(PARTITION))
        .where(F.col("at_ms").between(F.col("sent_ms"), F.col("ended_ms")))
        .groupBy(*keys)
        .agg(F.min("ended_ms").alias("first_ms"))
    )
    return (
        timed.join(first, keys, "left")
        .select(
            *PARTITION,
            "epoch",
            "old",
            "new",
            "clean",
            "down_ms",
            (F.array_min(fencings) - F.col("down_ms")).alias("noticed_ms"),
            (F.col("at_ms") - F.col("down_ms")).alias("elected_ms"),
            (F.col("first_ms") - F.col("down_ms")).alias("acked_ms"),
        )
        .orderBy(*PARTITION, "epoch")
    )


def _changes_of_leader(notes: DataFrame) -> DataFrame:
    """(run, topic, partition, epoch, old, new, clean, at_ms, left_ms): `old`: the previous leader,
    which led until `left_ms`, when the controller took the lead from it."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    changes = notes.where(is_a(LeaderElected, PartitionOffline))
    elections = changes.select(
        *partition_of_note(),
        field("leader_epoch").alias("epoch"),
        field("old_leader").alias("old"),
        field("new_leader").alias("new"),
        "at_ms",
        field("clean"),
    )
    of_client_topics = elections.where(
        ~F.col("topic").startswith(INTERNAL_PREFIX) & (F.col("old") != F.col("new"))
    )
    before = Window.partitionBy(*PARTITION).orderBy("at_ms", "epoch")
    had_none = F.col("old") < 0
    return of_client_topics.select(
        *PARTITION,
        "epoch",
        "new",
        "clean",
        "at_ms",
        F.when(had_none, F.lag("old").over(before)).otherwise(F.col("old")).alias("old"),
        F.when(had_none, F.lag("at_ms").over(before)).otherwise(F.col("at_ms")).alias("left_ms"),
    )


def _absences(notes: DataFrame) -> DataFrame:
    """(run, old, gone, back, fenced): arrays of the times in ms at which each broker became
    unreachable, became reachable again, and was fenced.  A restarted broker is back when the
    controller unfences it."""
    from pyspark.sql import functions as F

    link = F.when(field("destination") == CONTROLLER_ID, field("source"))
    unreachable = is_a(BrokerDown, BrokerPaused, LinkCut)
    back = is_a(BrokerUnfenced, BrokerResumed, LinkHealed)
    fenced = is_a(BrokerFenced)
    broker = F.when(is_a(LinkCut, LinkHealed), link).otherwise(field("broker"))
    about = notes.where(unreachable | back | fenced).withColumn("old", broker)
    when = {"gone": unreachable, "back": back, "fenced": fenced}
    return (
        about.where(F.col("old").isNotNull())
        .groupBy("run", "old")
        .agg(
            *(
                F.collect_list(F.when(is_one, F.col("at_ms"))).alias(name)
                for name, is_one in when.items()
            )
        )
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
    return (
        tables["errors"]
        .groupBy("api", "client", "error")
        .agg(
            F.count("*").alias("times"),
            F.count_distinct("run").alias("runs"),
            (F.count("*") / F.lit(max(seconds, 0.001))).alias("per_second"),
        )
        .orderBy(F.desc("times"), "api", "client", "error")
    )


def isr_churn(notes: DataFrame) -> DataFrame:
    """(run, topic, partition, shrinks, expands): Kafka's own topics too."""
    from pyspark.sql import functions as F

    changed = notes.where(is_a(IsrShrunk, IsrExpanded))
    return (
        changed.groupBy(*partition_of_note())
        .agg(
            F.count_if(is_a(IsrShrunk)).alias("shrinks"),
            F.count_if(is_a(IsrExpanded)).alias("expands"),
        )
        .orderBy("run", "topic", "partition")
    )


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


def requests_of(requests: DataFrame) -> DataFrame:
    """(api, client, requests, runs, p50, p95, p99, max): from a request's arrival at a broker to
    its answer; `client`: its client.id.  For a Fetch this includes the wait for records."""
    from pyspark.sql import functions as F

    return (
        requests.groupBy("api", "client")
        .agg(
            F.sum("count").alias("requests"),
            F.count_distinct("run").alias("runs"),
            *_percentiles("took_ms", "count"),
        )
        .orderBy("api", "client")
    )


def _percentiles(name: str, count: str | None = None) -> list[Column]:
    """Columns p50, p95, p99 and max.  `count`: the column with the frequency of each value."""
    from pyspark.sql import functions as F

    often = F.lit(1) if count is None else F.col(count)
    percentiles = [F.percentile(name, each / 100, often).alias(f"p{each}") for each in PERCENTS]
    return [*percentiles, F.max(name).alias("max")]
