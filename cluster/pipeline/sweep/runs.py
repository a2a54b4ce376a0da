"""One run of a sweep as a row.

Owns: the row's columns, what is taken from a run.  Never: knows Spark; judges (checkers/ do).
Kafka: no counterpart.
"""

from __future__ import annotations

import time
from typing import Final

from msgspec import Struct

from cluster.checkers.verdict import Verdict
from cluster.clients.ledger import Outcome, Partition, Send
from cluster.contract import Note
from cluster.pipeline.sweep.cells import PRODUCER, scenario_of
from cluster.pipeline.sweep.grid import Cell
from cluster.scenario.running import RunResult, run_scenario
from cluster.trace import kinds

ERROR: Final = "error"
"""The outcome of a run that ended with an error of the program itself."""
_BUGS: Final = (
    ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, TypeError,
    ValueError, OSError,
)  # fmt: skip

FORMAT: Final = 1
SCHEMA: Final = (
    "format int, cell string, seed long, outcome string, error string, sent long, acked long,"
    " lost long, failed long, unknown long, duplicated long, failures long, ran_ms long,"
    " writes_unavailable_ms double, reads_unavailable_ms double, elected_ms array<long>,"
    " acked_ms array<long>, ack_p50_ms double, ack_p99_ms double, trace_hash string, wall_ms double"
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
    elected_ms: list[int] = []
    """Of each leader that went down: until another was elected."""
    acked_ms: list[int] = []
    """The same, until the first ack by the new one."""
    ack_p50_ms: float | None = None
    ack_p99_ms: float | None = None
    trace_hash: str = ""
    wall_ms: float = 0


def play(cell: Cell, seed: int) -> RunRow:
    """Run it.  An error of the program itself is a row too: it must not take other runs along."""
    began_s = time.perf_counter()
    try:
        row = row_of(cell, seed, run_scenario(scenario_of(cell, seed), "virtual", seed))
    except _BUGS as error:
        row = RunRow(FORMAT, cell.key, seed, ERROR, f"{type(error).__name__}: {error}")
    row.wall_ms = (time.perf_counter() - began_s) * 1_000
    return row


def row_of(cell: Cell, seed: int, result: RunResult) -> RunRow:
    """What a sweep keeps of a run."""
    verdict, sends = result.verdict, result.ledger.sends
    notes = result.notes[result.first_note :]
    latencies = sorted(
        send.ended_ms - send.sent_ms for send in sends if send.outcome is Outcome.ACKED
    )
    elected, acked = failovers(notes, sends)
    told = "; ".join(result.failures) if result.has_problems else ""
    lost = [x for x in verdict.anomalies if x.name == "lost-write" and x.client == PRODUCER]
    return RunRow(
        FORMAT, cell.key, seed, ERROR if told else verdict.outcome, told, verdict.sent,
        verdict.acked, sum(anomaly.count for anomaly in lost), verdict.failed, verdict.unknown,
        verdict.counts().get("duplicate", 0),
        sum(note.kind in (kinds.BROKER_DOWN, kinds.BROKER_PAUSED) for note in notes),
        verdict.ended_ms - verdict.began_ms,
        _unavailable(verdict, "writes", cell), _unavailable(verdict, "reads", cell),
        elected, acked, _quantile(latencies, 0.5), _quantile(latencies, 0.99), result.trace_hash,
    )  # fmt: skip


def failovers(notes: list[Note], sends: list[Send]) -> tuple[list[int], list[int]]:
    """In ms after a leader's broker went down: its successor's election; the first ack of a record
    after that."""
    down: dict[int, int] = {}
    elections: list[tuple[Partition, int, int]] = []
    for note in notes:
        data = note.data
        if note.kind == kinds.BROKER_DOWN:
            down[int(data["broker"])] = note.at_ms
        elif note.kind == kinds.BROKER_UNFENCED:
            down.pop(int(data["broker"]), None)
        elif note.kind == kinds.LEADER_ELECTED:
            old, new = int(data["old"]), int(data["new"])
            if old in down and new >= 0 and new != old and not note.subject.startswith("__"):
                partition = (str(data["topic"]), int(data["partition"]))
                elections.append((partition, down[old], note.at_ms))
    first = [_first_ack(sends, partition, at_ms) for partition, _, at_ms in elections]
    return (
        [at_ms - down_ms for _, down_ms, at_ms in elections],
        [
            acked_ms - down_ms
            for (_, down_ms, _), acked_ms in zip(elections, first, strict=True)
            if acked_ms is not None
        ],
    )


def _first_ack(sends: list[Send], partition: Partition, from_ms: int) -> int | None:
    return min(
        (
            send.ended_ms
            for send in sends
            if send.ended_ms >= from_ms
            and send.partition == partition
            and send.outcome is Outcome.ACKED
        ),
        default=None,
    )


def _unavailable(verdict: Verdict, kind: str, cell: Cell) -> float:
    whole = sum(window.duration_ms for window in verdict.windows if window.kind == kind)
    return whole / cell.partitions


def _quantile(ordered: list[int], share: float) -> float | None:
    return float(ordered[int(share * (len(ordered) - 1))]) if ordered else None
