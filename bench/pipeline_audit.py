"""`python -m bench.pipeline_audit RECORDS DIR`: measures the audit of a large run.

Owns: a generated run directory with known losses, duplicates and reordering; time and memory.
Never: measures a cluster.

There are six partitions, and two producers that send batches of 100 records in turn.  Halfway
through, a leader without the last 1,000 records takes over.  Some batches are appended twice, and
some are swapped.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from kcluster.events.partitions import BecameLeader, LeaderElected
from kcluster.events.reasons import ElectionKind, Requested
from kcluster.evidence.rows import SendAnomaly
from kcluster.pipeline.audit import ANOMALY_OF, audit
from kcluster.pipeline.session import open_session
from kcluster.pipeline.tables import Tables, find_runs
from kcluster.runs.record import TABLES, NoteRow, RunInfo, SendFate, SendRow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TOPIC: Final = "orders"
PARTITIONS: Final = 6
BATCH: Final = 100
TAIL: Final = 10
"""The number of batches that the next leader does not have."""
EVERY: Final = 1_000
"""Of this many batches, one is appended twice, and two are swapped."""
BATCH_MS: Final = 10


class Plan(NamedTuple):
    """A partition's batches in the order of their appends: (batch, epoch, offset, is_held)."""

    partition: int
    appends: list[tuple[int, int, int, bool]]


def plan_of(partition: int, batches: int) -> Plan:
    """The appends of one partition, as described in the module's docstring."""
    order = list(range(batches))
    for at in range(13, batches - 2, EVERY):
        order[at], order[at + 2] = order[at + 2], order[at]
    for at in range(batches - batches % EVERY + 7, 7, -EVERY):
        if at < batches:
            order.insert(at, order[at])
    half = len(order) // 2
    appends = []
    for at, batch in enumerate(order):
        epoch = int(at >= half)
        offset = (at - TAIL * epoch) * BATCH
        appends.append((batch, epoch, offset, not half - TAIL <= at < half))
    return Plan(partition, appends)


def write(path: Path, records: int) -> None:
    """Write the run directory."""
    path.mkdir(parents=True)
    plans = [plan_of(number, records // PARTITIONS // BATCH) for number in range(PARTITIONS)]
    encode = msgspec.json.Encoder().encode
    info = RunInfo(path.name, "virtual", 1, 0, len(plans[0].appends) * BATCH_MS)
    (path / "run.json").write_bytes(encode(info))
    (path / "verdict.json").write_bytes(b"{}")
    made: dict[str, Iterator[Any]] = {"notes": notes(plans), "sends": sends(plans)}
    for field, rows in made.items():
        with open(path / TABLES[field][0], "wb") as out:
            out.writelines(encode(row) + b"\n" for row in rows)


def producer_of(batch: int) -> str:
    """The producer of a batch: both take turns."""
    return f"shop-{batch % 2}"


def number_of(batch: int) -> int:
    """The number of a batch's first record among its producer's records in the partition."""
    return batch // 2 * BATCH + 1


class Outcome(NamedTuple):
    """What became of a batch: its first append and, if the log holds it, how often else, and
    whether it is there before an earlier one of its producer."""

    appended_at: int
    offset: int
    epoch: int
    is_held: bool
    more_copies: int
    is_reordered: bool

    @property
    def anomalies(self) -> tuple[SendAnomaly, ...]:
        """Of each of its records, as a verdict would have them."""
        found = {
            "lost": int(not self.is_held),
            "duplicated": self.more_copies,
            "reordered": int(self.is_reordered),
        }
        return tuple(
            SendAnomaly(ANOMALY_OF[fate], "no error was reported", "acks=1", records)
            for fate, records in found.items()
            if records
        )


def outcomes_of(plan: Plan) -> dict[int, Outcome]:
    """By batch, in the order of their sends."""
    held: dict[int, list[tuple[int, int, int]]] = {}
    lost: dict[int, tuple[int, int, int]] = {}
    for at, (batch, epoch, offset, is_held) in enumerate(plan.appends):
        if is_held:
            held.setdefault(batch, []).append((at, offset, epoch))
        else:
            lost.setdefault(batch, (at, offset, epoch))
    ahead: dict[str, int] = {}
    found: dict[int, Outcome] = {}
    for batch in sorted({**held, **lost}):
        places, producer = held.get(batch, []), producer_of(batch)
        first = places[0] if places else lost[batch]
        is_reordered = bool(places) and first[1] < ahead.get(producer, 0)
        found[batch] = Outcome(*first, bool(places), max(len(places) - 1, 0), is_reordered)
        if places:
            ahead[producer] = max(first[1], ahead.get(producer, 0))
    return found


def sends(plans: list[Plan]) -> Iterator[Any]:
    """A row for each record of each batch."""
    for plan in plans:
        for batch, outcome in outcomes_of(plan).items():
            sent_ms, is_held = outcome.appended_at * BATCH_MS, outcome.is_held
            for index in range(BATCH):
                yield SendRow(
                    producer=producer_of(batch),
                    topic=TOPIC,
                    partition=plan.partition,
                    value=f"{plan.partition}:{batch}:{index}",
                    acks=1,
                    idempotent=False,
                    outcome="acked",
                    offset=outcome.offset + index,
                    sent_ms=sent_ms,
                    ended_ms=sent_ms + 5,
                    attempts=1,
                    error="",
                    number=number_of(batch) + index,
                    fate=SendFate.KEPT if is_held else SendFate.LOST,
                    at=outcome.offset + index if is_held else -1,
                    epoch=outcome.epoch,
                    anomalies=outcome.anomalies,
                )


def notes(plans: list[Plan]) -> Iterator[Any]:
    """The first leader of each partition, and its one leader change."""
    numbers = count()
    for plan in plans:
        half = len(plan.appends) // 2
        for epoch, at in enumerate((0, half)):
            about = (TOPIC, plan.partition)
            elected = LeaderElected(
                *about, epoch, epoch + 1, epoch, True, Requested(), ElectionKind.REQUESTED
            )
            yield NoteRow((0, next(numbers)), at * BATCH_MS, elected)
            began = BecameLeader(*about, epoch + 1, epoch, plan.appends[at][2])
            yield NoteRow((epoch + 1, next(numbers)), at * BATCH_MS, began)


def expected(records: int) -> tuple[int, int, int]:
    """The run's (lost, duplicated, reordered) records, counted batch by batch."""
    counts = [0, 0, 0]
    for number in range(PARTITIONS):
        for outcome in outcomes_of(plan_of(number, records // PARTITIONS // BATCH)).values():
            counts[0] += not outcome.is_held
            counts[1] += outcome.more_copies
            counts[2] += outcome.is_reordered
    lost, duplicated, reordered = (count * BATCH for count in counts)
    return lost, duplicated, reordered


def main() -> None:
    """Write the run directory unless it exists, audit it, print the time and memory."""
    parser = argparse.ArgumentParser("python -m bench.pipeline_audit", description=__doc__)
    parser.add_argument("records", type=int)
    parser.add_argument("path", type=Path)
    parser.add_argument("--heap", default="2g", help="of Spark's driver (2g)")
    options = parser.parse_args()
    if not options.path.exists():
        write(options.path, options.records)
    spark = open_session("local[2]", {"spark.driver.memory": options.heap})
    began_s = time.monotonic()
    tables = Tables(spark, find_runs([options.path])[0])
    found = audit(tables)
    rows = found.totals.collect()
    took_s = time.monotonic() - began_s
    names = ("lost", "duplicated", "reordered")
    counted = tuple(sum(row[name] for row in rows) for name in names)
    sent = sum(row["sent"] for row in rows)
    assert counted == expected(options.records), (counted, expected(options.records))
    assert tables.problems == []
    cpu_s, peak_mb = used_by_java(spark)
    spark.stop()
    own_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{sent:,} sends: {took_s:.1f} s ({cpu_s:.1f} s of CPU with Spark's start), heap"
        f" {options.heap}, peak {peak_mb:,.0f} MB (Java) + {own_mb:,.0f} MB (Python);"
        f" lost, duplicated, reordered: {counted}"
    )


def used_by_java(spark: SparkSession) -> tuple[float, float]:
    """(seconds of CPU, peak of resident memory in MB) of Spark's process so far; Linux only."""
    jvm: Any = spark.sparkContext._jvm
    process = Path("/proc") / str(jvm.java.lang.ProcessHandle.current().pid())
    ticks = process.joinpath("stat").read_text().rpartition(")")[2].split()[11:13]
    peak = re.search(r"VmHWM:\s+(\d+) kB", process.joinpath("status").read_text())
    assert peak is not None
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK"), int(peak[1]) / 1024


if __name__ == "__main__":
    main()
