"""Causes of losses and late acks: elections, lost disks, power failures.

Owns: causes from notes and from the movements of replicas, and the setting that allows a loss, with
the verdict's names (checks/settings.py).  Never: finds a loss (audit.py).
Kafka: no counterpart; operators read causes from controller.log and the brokers' logs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from kcluster.checks.settings import Setting
from kcluster.deaths import DeathKind
from kcluster.events.brokers import BrokerDown, RecordsLost
from kcluster.events.partitions import BecameLeader, LeaderElected, PartitionOffline
from kcluster.events.topics import TopicDeleted
from kcluster.events.words import text_of
from kcluster.pipeline.contents import KEYS, PARTITION
from kcluster.pipeline.notes import events_of, field, is_a
from kcluster.pipeline.tables import Tables

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


_Place = tuple[str, str, int]
"""Run, topic, partition."""
_ELECTIONS: Final = (
    "run string, topic string, partition bigint, elections array<struct<epoch: bigint,"
    " end: bigint, by_setting: boolean, by_request: boolean, text: string, at_ms: bigint>>"
)


def elections_of(notes: DataFrame) -> DataFrame:
    """(run, topic, partition, elections): structs of epoch, end (the log end with which the leader
    began, null if none began), by_setting (only unclean.leader.election.enable allows it),
    by_request (unclean, as the operator requested), text (for display), at_ms; oldest first.
    Topics that were deleted since are left out."""
    since_ms: dict[tuple[str, str], int] = {}
    changes: list[tuple[_Place, int, LeaderElected | PartitionOffline]] = []
    began: list[tuple[_Place, int, BecameLeader]] = []
    for run, at_ms, event in events_of(
        notes, LeaderElected, PartitionOffline, BecameLeader, TopicDeleted
    ):
        match event:
            case TopicDeleted(topic=topic):
                since_ms[run, topic] = max(at_ms, since_ms.get((run, topic), at_ms))
            case BecameLeader():
                began.append(((run, event.topic, event.partition), at_ms, event))
            case LeaderElected() | PartitionOffline():
                changes.append(((run, event.topic, event.partition), at_ms, event))

    def is_of_last_topic(place: _Place, at_ms: int) -> bool:
        return at_ms >= since_ms.get(place[:2], at_ms)

    ends: dict[tuple[_Place, int, int], int] = {}
    for place, at_ms, start in began:
        if is_of_last_topic(place, at_ms):
            key = (place, start.leader_epoch, start.broker)
            ends[key] = max(start.start_offset, ends.get(key, start.start_offset))
    elections: dict[_Place, list[tuple[int, int | None, bool, bool, str, int]]] = {}
    for place, at_ms, change in sorted(changes, key=lambda each: (each[2].leader_epoch, each[1])):
        if is_of_last_topic(place, at_ms):
            elections.setdefault(place, []).append(
                (
                    change.leader_epoch,
                    ends.get((place, change.leader_epoch, change.new_leader)),
                    change.is_allowed_by_setting,
                    change.is_requested_unclean,
                    text_of(change),
                    at_ms,
                )
            )
    rows = [(*place, each) for place, each in elections.items()]
    return notes.sparkSession.createDataFrame(rows, _ELECTIONS)


def disk_losses_of(notes: DataFrame) -> DataFrame:
    """(run, broker, taken_ms, disk, lost): data losses of brokers.  A lost disk has `lost` null;
    a power failure has one row per log with unflushed records: (topic, partition, from_offset,
    to_offset)."""
    from pyspark.sql import functions as F

    is_wipe = is_a(BrokerDown) & (field("how") == DeathKind.WIPE)
    lost = F.explode_outer(field("ranges")).alias("lost")
    return notes.where(is_wipe | is_a(RecordsLost)).select(
        "run",
        field("broker"),
        F.col("at_ms").alias("taken_ms"),
        F.when(is_wipe, Setting.DISK_LOST).otherwise(Setting.UNFLUSHED).alias("disk"),
        lost,
    )


def with_disks(cut: DataFrame, tables: Tables, runs: Iterable[str]) -> DataFrame:
    """Truncated rows with `disk`: Setting.DISK_LOST or Setting.UNFLUSHED if a replica that had them
    later lost its disk or its power; of several replicas the first in their order.  `runs`: the
    names of those with such losses; the moves of others, the largest table, are not read."""
    from pyspark.sql import functions as F

    is_taken = F.col("lost").isNull() | (
        (F.col("lost.topic") == F.col("topic"))
        & (F.col("lost.partition") == F.col("partition"))
        & (F.col("lost.from_offset") < F.col("offset") + F.col("count"))
        & (F.col("offset") < F.col("lost.to_offset"))
    )
    later = cut.join(F.broadcast(disk_losses_of(tables["notes"])), "run").where(
        (F.col("taken_ms") >= F.col("at_ms")) & is_taken
    )
    moves = (
        tables.of_runs("moves", runs)
        .where("not is_bad")
        .select(*PARTITION, "broker", F.col("at_ms").alias("moved_ms"), "log_end_offset")
    )
    reached = later.join(moves, [*PARTITION, "broker"]).where(
        F.col("moved_ms").between(F.col("at_ms"), F.col("taken_ms"))
        & (F.col("log_end_offset") >= F.col("offset") + F.col("count"))
    )
    rows = [*KEYS, "number"]
    disk_losses = reached.select(*rows, "at_ms", "broker", "taken_ms", "disk").distinct()
    places = tables["leaders"].select(*PARTITION, F.col("at_ms").alias("since_ms"), "replicas")
    known = disk_losses.join(F.broadcast(places), list(PARTITION)).where("since_ms <= at_ms")
    last = known.groupBy(*rows, "broker", "taken_ms", "disk").agg(
        F.max_by("replicas", "since_ms").alias("replicas")
    )
    order = F.struct(F.array_position("replicas", F.col("broker")), "taken_ms")
    disks = last.groupBy(*rows).agg(F.min_by("disk", order).alias("disk"))
    return cut.join(F.broadcast(disks), rows, "left")


def loss_columns(epoch: Column, offset: Column, disk: Column) -> tuple[Column, Column]:
    """(cause, setting that allows it) of the loss of a record that was appended in `epoch` at
    `offset`; the cause is the text of the election that truncated it.  Needs `elections`."""
    from pyspark.sql import functions as F

    def cuts(each: Column) -> Column:
        return (each["epoch"] > epoch) & (each["end"] <= offset)

    cutter = F.get(F.filter("elections", cuts), F.lit(0))
    last = F.coalesce(cutter["epoch"], F.lit(2**62))

    def is_unclean(by: str) -> Column:
        def is_concerned(each: Column) -> Column:
            return (each["epoch"] > epoch) & (each["epoch"] <= last) & each[by]

        return F.coalesce(F.exists("elections", is_concerned), F.lit(False))

    text = F.coalesce(cutter["text"], F.lit("no later leader is known"))
    by = F.when(epoch.isNull(), F.lit("no broker has appended it")).otherwise(text)
    allowed_by = (
        F.when(is_unclean("by_setting"), Setting.UNCLEAN)
        .when(is_unclean("by_request"), Setting.UNCLEAN_REQUESTED)
        .otherwise(F.coalesce(disk, F.lit("")))
    )
    return by, allowed_by


def election_within() -> Column:
    """The text of the first election between a send and its ack; null if there was none."""
    from pyspark.sql import functions as F

    def is_within(each: Column) -> Column:
        return each["at_ms"].between(F.col("sent_ms"), F.col("ended_ms"))

    return F.get(F.filter("elections", is_within), F.lit(0))["text"]
