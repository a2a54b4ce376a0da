"""One run of a sweep as a row.

Owns: the row's columns, what is taken from a run.  Never: knows Spark; judges (checks/ do).
Kafka: no counterpart.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from typing import Final

from msgspec import Struct

from kcluster.checks.verdict import Verdict
from kcluster.clients.ledger import Outcome, Partition, SentRecord
from kcluster.contract import Note
from kcluster.events.brokers import BrokerDown, BrokerFenced, BrokerPaused, BrokerUnfenced
from kcluster.events.partitions import LeaderElected, PartitionOffline
from kcluster.pipeline.sweep.cells import PRODUCER, scenario_of
from kcluster.pipeline.sweep.columns import Cell
from kcluster.scenario.play.running import RunResult, run_scenario

ERROR: Final = "error"
"""The outcome of a run that ended with an error of the program itself."""
FORMAT: Final = 1
SCHEMA: Final = (
    "format int, cell string, seed long, outcome string, error string, sent long, acked long,"
    " lost long, failed long, unknown long, duplicated long, failures long, ran_ms long,"
    " writes_unavailable_ms double, reads_unavailable_ms double, noticed_ms array<long>,"
    " elected_ms array<long>, acked_ms array<long>, ack_p50_ms double, ack_p99_ms double,"
    " trace_hash string, wall_ms double"
)
"""Of the table, as Spark's DDL; the fields of RunRow in order."""


class RunRow(Struct):
    """One (cell, seed).  `lost`: acked records that are not in the log at the end."""

    format: int
    cell: str
    seed: int
    outcome: str
    error: str = ""
    sent: int = 0
    acked: int = 0
    lost: int = 0
    failed: int = 0
    unknown: int = 0
    duplicated: int = 0
    failures: int = 0
    """Brokers that went down, or were paused."""
    ran_ms: int = 0
    """In virtual time, from the first client's beginning to the end of the calm."""
    writes_unavailable_ms: float = 0
    """Mean of the partitions."""
    reads_unavailable_ms: float = 0
    noticed_ms: list[int] = []
    """Of each leader that went down or was paused: until the controller fenced its broker."""
    elected_ms: list[int] = []
    """The same, until the partition had a leader again."""
    acked_ms: list[int] = []
    """The same, until the first ack by that one."""
    ack_p50_ms: float | None = None
    ack_p99_ms: float | None = None
    trace_hash: str = ""
    wall_ms: float = 0


def play(cell: Cell, seed: int) -> RunRow:
    """Run it."""
    began_s = time.perf_counter()
    row = row_of(cell, seed, run_scenario(scenario_of(cell, seed), "virtual", seed))
    row.wall_ms = (time.perf_counter() - began_s) * 1_000
    return row


def row_of(cell: Cell, seed: int, result: RunResult) -> RunRow:
    """What a sweep keeps of a run."""
    verdict, sends = result.verdict, result.ledger.sends
    notes = result.notes[result.first_note :]
    latencies = sorted(
        send.ended_ms - send.sent_ms for send in sends if send.outcome is Outcome.ACKED
    )
    noticed, elected, acked = failovers(notes, sends)
    told = "; ".join(result.failures) if result.has_problems else ""
    lost = [x for x in verdict.anomalies if x.name == "lost-write" and x.client == PRODUCER]
    return RunRow(
        FORMAT,
        cell.key,
        seed,
        ERROR if told else verdict.outcome,
        told,
        verdict.sent,
        verdict.acked,
        sum(anomaly.count for anomaly in lost),
        verdict.failed,
        verdict.unknown,
        verdict.counts().get("duplicate", 0),
        sum(isinstance(note.event, BrokerDown | BrokerPaused) for note in notes),
        verdict.ended_ms - verdict.began_ms,
        _unavailable(verdict, "writes", cell),
        _unavailable(verdict, "reads", cell),
        noticed,
        elected,
        acked,
        _quantile(latencies, 0.5),
        _quantile(latencies, 0.99),
        result.trace_hash,
    )


def failovers(notes: list[Note], sends: list[SentRecord]) -> tuple[list[int], list[int], list[int]]:
    """In ms after a leader's broker went down: the controller fences it (not where the broker was
    back before); the election that ends it, of another or, where nobody else could be, of the same;
    the first ack of a record after that."""
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
    """When records were acked, by partition, in order."""
    acks: dict[Partition, list[int]] = {}
    for send in sends:
        if send.outcome is Outcome.ACKED and send.partition is not None:
            acks.setdefault(send.partition, []).append(send.ended_ms)
    for times in acks.values():
        times.sort()
    return acks


def _unavailable(verdict: Verdict, kind: str, cell: Cell) -> float:
    """Mean of the partitions; records that no partition was known for have windows of their own,
    of partition -1, which others' cover."""
    windows = (x for x in verdict.windows if x.kind == kind and x.partition[1] >= 0)
    return sum(window.duration_ms for window in windows) / cell.partitions


def _quantile(ordered: list[int], share: float) -> float | None:
    return float(ordered[int(share * (len(ordered) - 1))]) if ordered else None
