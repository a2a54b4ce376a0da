"""Builds the record of a finished run.

Owns: the conversion of recorder, ledger and verdict to the rows of record.py.  Never: writes files
(directory.py).
Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

import msgspec

from kcluster.checks.processing import AnyProblem, Processed
from kcluster.checks.processing_words import problem_text
from kcluster.checks.verdict import Verdict
from kcluster.clients.ledger import Ledger
from kcluster.contract import Note
from kcluster.events import AnyEvent
from kcluster.events.base import kind_of
from kcluster.events.render import api_name, plain
from kcluster.evidence.group_history import Commit, commits_of
from kcluster.evidence.recorder import Judged, Recorder
from kcluster.evidence.rows import ExchangeRow
from kcluster.invariants.observed import Append, EpochRuns, Move, ObservedPartition
from kcluster.json_types import JsonObject
from kcluster.metadata.records import PartitionRegistration
from kcluster.runs.record import (
    AppendRow,
    CommitRow,
    EpochsRow,
    ErrorRow,
    LeaderRow,
    LogRow,
    MoveRow,
    NoteRow,
    PositionRow,
    ProblemRow,
    ProcessedRow,
    ReadRow,
    RequestRow,
    RunInfo,
    RunRecord,
    TransactionRow,
)
from kcluster.runs.send_rows import send_rows


def record_of(info: RunInfo, recorder: Recorder, ledger: Ledger, verdict: Verdict) -> RunRecord:
    """The record of a run; sets `info.outcome`, `ground`, `topology` and `read_from_start`.
    `ledger`: the simulated clients' ledger, used if the run has not been judged."""
    judged = recorder.judged or Judged(ledger, {}, {})
    ledger = judged.ledger
    info.outcome = verdict.outcome
    info.topology = topology_values(recorder)
    info.ground = recorder.ground
    info.read_from_start = not ledger.late_starts and all(
        log.start_offset == log.deleted_before == 0 for log in judged.logs.values()
    )
    record = RunRecord(info, notes=note_rows(recorder.notes))
    record.verdict = msgspec.json.decode(verdict.to_json())
    record.sends = list(send_rows(judged, recorder))
    _add_ledger(record, ledger)
    record.errors = [
        ErrorRow(
            error.client,
            error.api,
            error.error,
            error.partition and error.partition[0],
            error.partition and error.partition[1],
            error.at_ms,
        )
        for error in ledger.errors
    ]
    _add_partitions(record, recorder)
    record.logs = [
        LogRow(*partition, log.start_offset, log.clean_offset, log.end_offset)
        for partition, log in judged.logs.items()
    ]
    record.requests = request_rows(recorder)
    record.commits = [commit_row(commit) for commit in commits_of(recorder)]
    exchanges = recorder.exchanges()
    record.exchanges = sorted([*exchanges.rows, *recorder.unanswered()], key=_at_ms)
    record.beliefs = list(exchanges.beliefs.rows)
    record.groups = list(recorder.states.groups.rows)
    record.transaction_states = list(recorder.states.transactions.rows)
    record.logins = list(recorder.security.logins.rows)
    record.credentials = list(recorder.security.credentials.rows)
    return record


def _at_ms(row: ExchangeRow) -> int:
    return row.at_ms


def commit_row(commit: Commit) -> CommitRow:
    """The row of an offset that a client committed."""
    return CommitRow(
        commit.group,
        commit.member,
        commit.generation,
        commit.client,
        *commit.partition,
        commit.offset,
        commit.broker,
        commit.at_ms,
        commit.error,
    )


def add_processing(
    record: RunRecord, processed: Iterable[Processed], problems: Iterable[AnyProblem]
) -> None:
    """Add the records that an application reported as processed, and the problems of its
    processing."""
    record.processed += [
        ProcessedRow(*entry.partition, entry.offset, entry.worker, entry.at_ms)
        for entry in processed
    ]
    record.problems += [problem_row(problem, record.info.began_ms) for problem in problems]


def problem_row(problem: AnyProblem, began_ms: int) -> ProblemRow:
    """The row of a problem of an application, with its words; times count from `began_ms`."""
    return ProblemRow(
        kind_of(type(problem).__name__),
        *problem.partition,
        problem.first,
        problem.last,
        problem.count,
        problem_text(problem, began_ms),
    )


def note_rows(notes: Iterable[Note]) -> list[NoteRow]:
    """Notes as rows."""
    # The type of `Note.event` is a protocol; AnyEvent is the union of all its types.
    return [
        NoteRow(note.note_id, note.at_ms, cast(AnyEvent, note.event), note.cause) for note in notes
    ]


def request_rows(recorder: Recorder) -> list[RequestRow]:
    """The rows on the times that brokers took to answer: one per API, client, broker and
    duration."""
    return [
        RequestRow(api_name(api), client, broker, took_ms, count)
        for (api, client, broker, took_ms), count in sorted(recorder.request_times().items())
    ]


def _add_ledger(record: RunRecord, ledger: Ledger) -> None:
    """Add the clients' transactions, reads and positions."""
    record.transactions = [
        TransactionRow(
            transaction.producer,
            transaction.number,
            transaction.transactional_id,
            transaction.version,
            str(transaction.outcome),
            transaction.began_ms,
            transaction.ended_ms,
            transaction.error,
        )
        for transaction in ledger.transactions
    ]
    record.reads = [
        ReadRow(
            read.consumer,
            *read.partition,
            read.offset,
            _text(read.value),
            read.restarted,
            read.at_ms,
            read.consumer in ledger.read_committed,
        )
        for read in ledger.reads
    ]
    record.positions = [
        PositionRow(at.consumer, *at.partition, at.offset, at.at_ms) for at in ledger.positions
    ]


def _add_partitions(record: RunRecord, recorder: Recorder) -> None:
    for observed in recorder.partitions.values():
        record.appends += [append_row(observed, append) for append in observed.appends]
        record.moves += [move_row(observed, move) for move in observed.moves]
        record.epochs += [epochs_row(observed, runs) for runs in observed.epoch_runs]
        record.leaders += [leader_row(observed, *entry) for entry in observed.registrations]


def append_row(observed: ObservedPartition, append: Append) -> AppendRow:
    """The row of a batch that a leader appended."""
    return AppendRow(
        observed.topic,
        observed.partition,
        append.at_ms,
        append.broker,
        append.epoch,
        append.base_offset,
        append.last_offset,
        "" if append.request is None else append.request.client_id or "",
        append.isr,
    )


def move_row(observed: ObservedPartition, move: Move) -> MoveRow:
    """The row of a replica's log end and high watermark."""
    return MoveRow(
        observed.topic,
        observed.partition,
        move.at_ms,
        move.broker,
        move.log_end_offset,
        move.high_watermark,
        move.last_stable_offset,
    )


def epochs_row(observed: ObservedPartition, runs: EpochRuns) -> EpochsRow:
    """The row of the leader epochs in a replica's log."""
    return EpochsRow(
        observed.topic, observed.partition, runs.broker, runs.at_ms, runs.start_offset, runs.epochs
    )


def leader_row(observed: ObservedPartition, at_ms: int, found: PartitionRegistration) -> LeaderRow:
    """The row of a partition's registration."""
    return LeaderRow(
        observed.topic,
        observed.partition,
        at_ms,
        found.leader,
        found.leader_epoch,
        tuple(found.isr),
        tuple(found.elr),
        tuple(found.replicas),
    )


def topology_values(recorder: Recorder) -> JsonObject:
    """The cluster's topology as values for JSON, without passwords."""
    topology = recorder.plan.topology
    shown = msgspec.structs.replace(topology.without_secrets(), places={})
    values: JsonObject = plain(msgspec.to_builtins(shown))
    return values


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode("utf-8", "backslashreplace")
