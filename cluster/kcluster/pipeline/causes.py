"""Why records are gone, set-based: the election of a leader that had less, a disk, a power loss.

Owns: what notes and replicas' moves tell of losses, and the setting that lets one happen, by the
verdict's names (checks/causes_of_losses.py).  Never: finds a loss (audit.py).
Kafka: no counterpart; what a person reads out of controller.log and the brokers' logs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kcluster.checks.causes_of_losses import DISK_LOST, UNCLEAN, UNFLUSHED
from kcluster.controller.partitions.elections import LAST_KNOWN
from kcluster.pipeline.places import KEYS, PARTITION
from kcluster.pipeline.tables import Tables
from kcluster.trace import kinds

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def partition_of_note() -> list[str | Column]:
    """Columns: `run`, and the partition that a note is about."""
    from pyspark.sql import functions as F

    topic = F.get_json_object("data", "$.topic").alias("topic")
    return ["run", topic, number_of("partition").alias("partition")]


def number_of(name: str) -> Column:
    """A whole number of a note's data."""
    from pyspark.sql import functions as F

    return F.get_json_object("data", f"$.{name}").cast("bigint")


def elections_of(notes: DataFrame) -> DataFrame:
    """(run, topic, partition, elections): structs of epoch, end (the log end that its leader began
    with, null where none did), clean, text, at_ms; oldest first, of the topic as it is now."""
    from pyspark.sql import functions as F

    of_leaders = (kinds.LEADER_ELECTED, kinds.PARTITION_OFFLINE)
    about = notes.where(F.col("kind").isin(*of_leaders, kinds.BECAME_LEADER))
    about = _of_last_topic(about, notes)
    leader = F.when(F.col("kind") == kinds.BECAME_LEADER, F.col("id")[0]).otherwise(
        number_of("new")
    )
    end = F.when(F.col("kind") == kinds.BECAME_LEADER, number_of("offset"))
    election = F.col("kind") != kinds.BECAME_LEADER
    is_clean = F.get_json_object("data", "$.clean") == "true"
    told = about.select(
        *partition_of_note(), number_of("epoch").alias("epoch"), leader.alias("leader"),
        end.alias("end"), F.when(election, is_clean).alias("clean"),
        F.when(election, F.col("text")).alias("text"),
        F.when(election, F.col("at_ms")).alias("at_ms"),
    )  # fmt: skip
    each = (
        told.groupBy(*PARTITION, "epoch", "leader")
        .agg(*(F.max(name).alias(name) for name in ("end", "clean", "text", "at_ms")))
        .where(F.col("text").isNotNull())
    )
    entry = F.struct("epoch", "end", "clean", "text", "at_ms")
    return each.groupBy(*PARTITION).agg(F.sort_array(F.collect_list(entry)).alias("elections"))


def _of_last_topic(about: DataFrame, notes: DataFrame) -> DataFrame:
    """Notes of partitions, without those of before their topic was deleted."""
    from pyspark.sql import functions as F

    deleted = (
        notes.where(F.col("kind") == kinds.TOPIC_DELETED)
        .groupBy(F.col("run").alias("gone_run"), F.col("subject").alias("gone_topic"))
        .agg(F.max("at_ms").alias("since_ms"))
    )
    is_of = (F.col("run") == F.col("gone_run")) & (
        F.get_json_object("data", "$.topic") == F.col("gone_topic")
    )
    return about.join(F.broadcast(deleted), is_of, "left").where(
        F.col("since_ms").isNull() | (F.col("at_ms") >= F.col("since_ms"))
    )


def takers_of(notes: DataFrame) -> DataFrame:
    """(run, broker, taken_ms, disk): when a broker lost its disk, or its power with records that
    were not flushed."""
    from pyspark.sql import functions as F

    is_wipe = (F.col("kind") == kinds.BROKER_DOWN) & (F.get_json_object("data", "$.how") == "wipe")
    return notes.where(is_wipe | (F.col("kind") == kinds.RECORDS_LOST)).select(
        "run", number_of("broker").alias("broker"), F.col("at_ms").alias("taken_ms"),
        F.when(is_wipe, DISK_LOST).otherwise(UNFLUSHED).alias("disk"),
    )  # fmt: skip


def with_disks(cut: DataFrame, tables: Tables) -> DataFrame:
    """Rows of what was cut off with `disk`: DISK_LOST or UNFLUSHED where a replica that had them
    lost its disk or its power later; of several the first by the order of the replicas."""
    from pyspark.sql import functions as F

    later = cut.join(F.broadcast(takers_of(tables["notes"])), "run").where(
        F.col("taken_ms") >= F.col("at_ms")
    )
    moves = tables.whole("moves").where("not is_bad").select(
        *PARTITION, "broker", F.col("at_ms").alias("moved_ms"), "log_end_offset"
    )  # fmt: skip
    reached = later.join(moves, [*PARTITION, "broker"]).where(
        F.col("moved_ms").between(F.col("at_ms"), F.col("taken_ms"))
        & (F.col("log_end_offset") >= F.col("offset") + F.col("count"))
    )
    rows = [*KEYS, "number"]
    found = reached.select(*rows, "at_ms", "broker", "taken_ms", "disk").distinct()
    places = tables["leaders"].select(
        *PARTITION, F.col("at_ms").alias("since_ms"), "replicas"
    )  # fmt: skip
    known = found.join(F.broadcast(places), list(PARTITION)).where("since_ms <= at_ms")
    last = known.groupBy(*rows, "broker", "taken_ms", "disk").agg(
        F.max_by("replicas", "since_ms").alias("replicas")
    )
    order = F.struct(F.array_position("replicas", F.col("broker")), "taken_ms")
    disks = last.groupBy(*rows).agg(F.min_by("disk", order).alias("disk"))
    return cut.join(F.broadcast(disks), rows, "left")


def loss_columns(epoch: Column, offset: Column, disk: Column) -> tuple[Column, Column]:
    """(the text of the election that cut it off, the setting that let it) of a record that was
    appended in `epoch` at `offset`; needs `elections`."""
    from pyspark.sql import functions as F

    def cuts(each: Column) -> Column:
        return (each["epoch"] > epoch) & (each["end"] <= offset)

    cutter = F.get(F.filter("elections", cuts), F.lit(0))
    last = F.coalesce(cutter["epoch"], F.lit(2**62))
    is_unclean = F.exists(
        "elections",
        lambda each: (
            (each["epoch"] > epoch) & (each["epoch"] <= last)
            & ~each["clean"] & ~each["text"].contains(LAST_KNOWN)
        ),
    )  # fmt: skip
    text = F.coalesce(cutter["text"], F.lit("no later leader is known"))
    by = F.when(epoch.isNull(), F.lit("no broker has appended it")).otherwise(text)
    let = F.when(F.coalesce(is_unclean, F.lit(False)), UNCLEAN).otherwise(
        F.coalesce(disk, F.lit(""))
    )
    return by, let


def election_within() -> Column:
    """The text of the first change of leader between a send and its ack; null for none."""
    from pyspark.sql import functions as F

    def is_within(each: Column) -> Column:
        return each["at_ms"].between(F.col("sent_ms"), F.col("ended_ms"))

    return F.get(F.filter("elections", is_within), F.lit(0))["text"]
