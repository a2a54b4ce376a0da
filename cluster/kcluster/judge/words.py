"""The words of a judgement.

Owns: its lines for a terminal, its JSON.  Never: judges; words an anomaly
(checks/anomalies/words.py).  Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import to_builtins

from kcluster.checks.verdict_facts import INVALID, UNKNOWN
from kcluster.clients.ledger import SentRecord
from kcluster.events.words.base import counted
from kcluster.evidence.history import shown
from kcluster.json_types import JsonObject
from kcluster.judge.cycles import CycleStep, TransactionKey, WriteCycle
from kcluster.judge.history import LogEnd, Passed
from kcluster.judge.judgment import Judgment, Proof, Proven, Undecided

MAX_SHOWN: Final = 10
"""The most findings of one kind that a screen shows."""


def judgment_lines(judgment: Judgment, *, verbose: bool = False) -> Iterator[str]:
    """The lines for a terminal: findings with their proofs, what is undecided, the answer last."""
    limit = None if verbose else MAX_SHOWN
    for proven in judgment.proven[:limit]:
        yield str(proven.anomaly)
        for proof in proven.proofs:
            yield f"    {proof_text(proof)}"
    if limit is not None and len(judgment.proven) > limit:
        yield f"{counted(len(judgment.proven) - limit, 'more anomaly')}: -v"
    for cycle in judgment.cycles[:limit]:
        yield f"{cycle.name}: {cycle_text(cycle)}"
        for step in cycle.steps:
            yield f"    {step_text(step)}"
    for undecided in judgment.undecided[:limit]:
        yield f"undecided: {undecided_text(undecided)}"
    for reason in judgment.missing:
        yield f"incomplete: {reason}"
    yield answer_text(judgment)


def answer_text(judgment: Judgment) -> str:
    """The outcome, its reason, and the counts, in one line."""
    counts = (
        f"{counted(judgment.sent, 'record')} sent, {judgment.acked:,} acked, {judgment.read:,} read"
    )
    return f"{judgment.outcome}: {_reason(judgment)}; {counts}"


def _reason(judgment: Judgment) -> str:
    if judgment.outcome == INVALID:
        count = len(judgment.proven) + sum(not cycle.is_allowed for cycle in judgment.cycles)
        return counted(count, "anomaly")
    if judgment.outcome == UNKNOWN:
        if judgment.missing:
            return "parts of the history are missing"
        if not judgment.undecided:
            return "the history has neither sends nor reads"
        count = sum(each.count for each in judgment.undecided)
        return f"the history does not show whether {counted(count, 'acked record')} are kept"
    return "no anomaly"


def undecided_text(undecided: Undecided) -> str:
    """Why the fate of a partition's records is unknown."""
    topic, number = undecided.partition
    records = counted(undecided.count, "acked record")
    place = f" (offsets {undecided.first} to {undecided.last})" if undecided.first >= 0 else ""
    if undecided.read_to < 0:
        return f"{topic}-{number}: {records}{place}: no consumer has read the partition"
    read_to = f"consumers have read up to {undecided.read_to}"
    return (
        f"{topic}-{number}: {records}{place}: no consumer passed them after their acks; {read_to}"
    )


def proof_text(proof: Proof) -> str:
    """An operation, with its place and its time."""
    operation = proof.operation
    if isinstance(operation, SentRecord):
        told = "acked" if operation.is_promised else str(operation.outcome)
        at = f" at offset {operation.offset}" if operation.offset >= 0 else ""
        what = f"{operation.producer} sent {shown(operation.value)}: {told}{at}"
        at_ms = operation.ended_ms
    elif isinstance(operation, LogEnd):
        topic, number = operation.partition
        what, at_ms = f"{topic}-{number} ended at offset {operation.offset}", operation.at_ms
    elif isinstance(operation, Passed):
        topic, number = operation.partition
        what = f"{operation.consumer} was at offset {operation.until} of {topic}-{number}"
        at_ms = operation.at_ms
    else:
        what = f"{operation.consumer} read {shown(operation.value)} at offset {operation.offset}"
        at_ms = operation.at_ms
    when = f"{at_ms} ms: " if at_ms >= 0 else ""
    return f"{when}{what} ({proof.origin})"


def cycle_text(cycle: WriteCycle) -> str:
    """The cycle in one sentence."""
    names = " -> ".join(transaction_text(step.earlier) for step in cycle.steps)
    allowed = " (Kafka's transactions allow it)" if cycle.is_allowed else ""
    return f"{names} -> {transaction_text(cycle.steps[0].earlier)}{allowed}"


def step_text(step: CycleStep) -> str:
    """One dependency between two transactions."""
    topic, number = step.partition
    record = f"{shown(step.value)} of {transaction_text(step.earlier)}"
    how = "was read by" if step.is_read else "stands before a record of"
    place = f"at offset {step.offset} of {topic}-{number}"
    return f"{record}, {place}, {how} {transaction_text(step.later)}"


def transaction_text(transaction: TransactionKey) -> str:
    """A transaction's name."""
    client, number = transaction
    return f"transaction {number} of {client}"


def judgment_values(judgment: Judgment) -> JsonObject:
    """The judgement as values for JSON, with its texts."""
    return {
        "outcome": judgment.outcome,
        "answer": answer_text(judgment),
        "sent": judgment.sent,
        "acked": judgment.acked,
        "read": judgment.read,
        "anomalies": [_proven_values(proven) for proven in judgment.proven],
        "cycles": [
            {
                "name": str(cycle.name),
                "is_allowed": cycle.is_allowed,
                "text": cycle_text(cycle),
                "steps": [step_text(step) for step in cycle.steps],
            }
            for cycle in judgment.cycles
        ],
        "undecided": [
            {**to_builtins(each), "text": undecided_text(each)} for each in judgment.undecided
        ],
        "missing": list(judgment.missing),
    }


def _proven_values(proven: Proven) -> JsonObject:
    anomaly = proven.anomaly
    topic, partition = anomaly.partition
    return {
        "name": anomaly.name,
        "topic": topic,
        "partition": partition,
        "count": anomaly.count,
        "first": anomaly.first,
        "last": anomaly.last,
        "client": anomaly.client,
        "values": [shown(value) for value in anomaly.values],
        "allowed": str(anomaly.allowed),
        "text": anomaly.text,
        "proofs": [
            {"text": proof_text(proof), "source": proof.origin.source, "line": proof.origin.line}
            for proof in proven.proofs
        ],
    }
