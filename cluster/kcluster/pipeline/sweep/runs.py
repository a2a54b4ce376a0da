"""One run of a sweep as a row.

Owns: the row's columns, and how each is computed from a run.  Never: knows Spark; judges (checks/
does).
Kafka: no counterpart.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from typing import Annotated, Final

from msgspec import Meta, Struct

from kcluster.checks.asked import Asked
from kcluster.checks.verdict import Verdict
from kcluster.clients.ledger import Outcome, Partition, SentRecord
from kcluster.contract import Note
from kcluster.events.brokers import BrokerDown, BrokerFenced, BrokerPaused, BrokerUnfenced
from kcluster.events.partitions import LeaderElected, PartitionOffline
from kcluster.pipeline.sweep.cells import PRODUCER, scenario_of
from kcluster.pipeline.sweep.columns import Cell
from kcluster.scenario.play.phases import RunResult
from kcluster.scenario.play.running import run_scenario

ERROR: Final = "error"
"""The outcome of a run that ended with an error of the program itself."""
FORMAT: Final = 1


COLUMNS: Final = Asked(degraded=False, reasons=False, states=False)
"""What the columns are computed from."""


class RunRow(Struct):
    """One (cell, seed); the fields are the columns of the table of runs (job.py)."""

    format: Annotated[int, Meta(le=(1 << 31) - 1)]
    """The format of the row.  The column is an `int`; other whole numbers are `bigint`."""
    cell: str
    seed: int
    outcome: str
    error: str = ""
    sent: int = 0
    acked: int = 0
    lost: int = 0
    """The number of acked records that the log does not hold at the end."""
    failed: int = 0
    unknown: int = 0
    duplicated: int = 0
    failures: int = 0
    """The number of brokers that went down, or were paused."""
    ran_ms: int = 0
    """The virtual time from the start of the first client to the end of the quiet period."""
    writes_unavailable_ms: float = 0
    """The unavailable time, as the mean over the partitions."""
    reads_unavailable_ms: float = 0
    noticed_ms: list[int] = []
    """The time from a leader's failure (down or paused) until the controller fenced its broker, for
    each failure."""
    elected_ms: list[int] = []
    """The time until the partition had a leader again."""
    acked_ms: list[int] = []
    """The time until the new leader acked its first record."""
    ack_p50_ms: float | None = None
    ack_p99_ms: float | None = None
    trace_hash: str = ""
    wall_ms: float = 0


def play(cell: Cell, seed: int) -> RunRow:
    """Run one (cell, seed) in virtual time."""
    began_s = time.perf_counter()
    scenario = scenario_of(cell, seed)
    row = row_of(cell, seed, run_scenario(scenario, "virtual", seed, asked=COLUMNS))
    row.wall_ms = (time.perf_counter() - began_s) * 1_000
    return row


def row_of(cell: Cell, seed: int, result: RunResult) -> RunRow:
    """The row of a finished run."""
    verdict, sends = result.verdict, result.ledger.sends
    notes = result.notes[result.first_note :]
    latencies = sorted(
        send.ended_ms - send.sent_ms for send in sends if send.outcome is Outcome.ACKED
    )
    noticed, elected, acked = failovers(notes, sends)
    error = "; ".join(result.failures) if result.has_problems else ""
    lost = [x for x in verdict.anomalies if x.name == "lost-write" and x.client == PRODUCER]
    return RunRow(
        format=FORMAT,
        cell=cell.key,
        seed=seed,
        outcome=ERROR if error else verdict.outcome,
        error=error,
        sent=verdict.sent,
        acked=verdict.acked,
        lost=sum(anomaly.count for anomaly in lost),
        failed=verdict.failed,
        unknown=verdict.unknown,
        duplicated=verdict.counts().get("duplicate", 0),
        failures=sum(isinstance(note.event, BrokerDown | BrokerPaused) for note in notes),
        ran_ms=verdict.ended_ms - verdict.began_ms,
        writes_unavailable_ms=_unavailable(verdict, "writes", cell),
        reads_unavailable_ms=_unavailable(verdict, "reads", cell),
        noticed_ms=noticed,
        elected_ms=elected,
        acked_ms=acked,
        ack_p50_ms=_quantile(latencies, 0.5),
        ack_p99_ms=_quantile(latencies, 0.99),
        trace_hash=result.trace_hash,
    )


def failovers(notes: list[Note], sends: list[SentRecord]) -> tuple[list[int], list[int], list[int]]:
    """(noticed, elected, acked) of each failover, in ms since the leader's broker went down.

    Noticed: the controller fenced the broker; missing if the broker was back before that.  Elected:
    the partition had a leader again, another broker or the same one.  Acked: the first ack of a
    record after the election."""
    down: dict[int, int] = {}
    fenced: dict[int, int] = {}
    offline: dict[Partition, int] = {}
    elections: list[tuple[Partition, int, int]] = []
    noticed: list[int] = []
    for note in notes:
        match note.event:
            case BrokerDown(broker=broker) | BrokerPaused(broker=broker):
                down[broker] = note.at_ms
                fenced.pop(broker, None)
            case BrokerFenced(broker=broker):
                fenced.setdefault(broker, note.at_ms)
            case BrokerUnfenced(broker=broker):
                down.pop(broker, None)
            case LeaderElected() | PartitionOffline() as change:
                partition, old = (change.topic, change.partition), change.old_leader
                since_ms = offline.pop(partition, None) if old < 0 else down.get(old)
                if since_ms is None or change.new_leader == old or change.is_internal:
                    continue
                if old in fenced:
                    noticed.append(fenced[old] - since_ms)
                if isinstance(change, PartitionOffline):
                    offline[partition] = since_ms
                else:
                    elections.append((partition, since_ms, note.at_ms))
    acks = _acks_of(sends)
    first = []
    for partition, down_ms, at_ms in elections:
        times = acks.get(partition, [])
        at = bisect_left(times, at_ms)
        first += [time_ms - down_ms for time_ms in times[at : at + 1]]
    return noticed, [at_ms - down_ms for _, down_ms, at_ms in elections], first


def _acks_of(sends: list[SentRecord]) -> dict[Partition, list[int]]:
    """Sorted times of acks by partition."""
    acks: dict[Partition, list[int]] = {}
    for send in sends:
        if send.outcome is Outcome.ACKED and send.partition is not None:
            acks.setdefault(send.partition, []).append(send.ended_ms)
    for times in acks.values():
        times.sort()
    return acks


def _unavailable(verdict: Verdict, kind: str, cell: Cell) -> float:
    """The unavailable time, as the mean over the partitions.  Windows of partition -1 (records
    without a known partition) are left out: the windows of the other partitions cover the same
    time."""
    windows = (x for x in verdict.windows if x.kind == kind and x.partition[1] >= 0)
    return sum(window.duration_ms for window in windows) / cell.partitions


def _quantile(ordered: list[int], share: float) -> float | None:
    return float(ordered[int(share * (len(ordered) - 1))]) if ordered else None
