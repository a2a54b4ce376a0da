"""The files from which a history is read, each recognised by its content.

Owns: the recognition of a file's format, the merging of several files into one history, JSON lines
of operations, the problems in them.  Never: judges.  Kafka: no counterpart.

Formats: a run directory of kcluster; JSON lines of operations (history.py); the output of Kafka's
VerifiableProducer and VerifiableConsumer (verifiable.py); a history of Jepsen's Kafka workload in
EDN (jepsen.py).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Final

import msgspec

from kcluster.config.files.problems import Problem, ProblemsError, show, unknown
from kcluster.judge.history import AnyOperation, History, Operation, OperationPlace, history_of
from kcluster.judge.jepsen import jepsen_operations
from kcluster.judge.proxied import AppendedBatches, EndedTransactions, received, sent
from kcluster.judge.run_directory import run_operations
from kcluster.judge.verifiable import VERIFIABLE_EVENTS, verifiable_operations
from kcluster.runs.directory import find_run, read_run, rows_in
from kcluster.runs.proxied_rows import (
    FETCHED,
    PRODUCED,
    PROXY_CLOCK,
    TRANSACTION_REQUESTS,
    FetchedRow,
    ProducedRow,
    TransactionRequestRow,
)

Report = Callable[[Problem], None]
"""Takes note of a problem in a file."""
Located = Iterator[tuple[OperationPlace, AnyOperation]]

JEPSEN_HISTORY: Final = "history.edn"
"""The history in the directory of a test of Jepsen."""
TRUNCATED: Final = "Input data was truncated"
"""msgspec's error for the beginning of a value."""
MAX_LINE_SHOWN: Final = 60
KINDS: Final = tuple(sorted(str(each.__struct_config__.tag) for each in Operation.__subclasses__()))
"""The kinds of operations."""


class HistoryFormat(StrEnum):
    """The format of a file."""

    OPERATIONS = "JSON lines of operations"
    VERIFIABLE = "output of VerifiableProducer or VerifiableConsumer"
    JEPSEN = "a history of Jepsen"


class _Kind(msgspec.Struct):
    """What tells one JSON line from another."""

    op: object = None
    name: object = None


def read_history(paths: Iterable[str | os.PathLike[str]]) -> History:
    """The history in these files and directories, together.  ProblemsError with every problem in
    them; RunError for a run directory that cannot be read."""
    problems: list[Problem] = []
    operations: list[tuple[OperationPlace, AnyOperation]] = []
    for path in map(Path, paths):
        if path.is_dir() and (path / JEPSEN_HISTORY).exists():
            operations += _file_operations(path / JEPSEN_HISTORY, problems.append)
        elif path.is_dir():
            operations += _run_operations(path, problems.append)
        else:
            operations += _file_operations(path, problems.append)
    if problems:
        raise ProblemsError(problems)
    return history_of(operations)


def _run_operations(path: Path, report: Report) -> Located:
    path = find_run(path)
    record, lines = read_run(path)
    operations: list[tuple[OperationPlace, AnyOperation]] = []
    if record.info.clock == PROXY_CLOCK:
        operations += _proxied_operations(path, lines)
    for line in lines:
        report(Problem("", 0, 0, "", line))
    try:
        operations.extend(run_operations(str(path), record))
    except ValueError as error:
        report(Problem(str(path), 0, 0, "", f"its rows are not of a run: {error}"))
    return iter(operations)


def _proxied_operations(path: Path, problems: list[str]) -> Located:
    """The operations in the files that only a proxy's run has."""
    ended = rows_in(path / TRANSACTION_REQUESTS, TransactionRequestRow, problems)
    transactions = EndedTransactions(ended)
    yield from transactions.operations(f"{path}/{TRANSACTION_REQUESTS}")
    produced = rows_in(path / PRODUCED, ProducedRow, problems)
    yield from sent(f"{path}/{PRODUCED}", produced, transactions)
    fetched = rows_in(path / FETCHED, FetchedRow, problems)
    yield from received(f"{path}/{FETCHED}", fetched, AppendedBatches(produced))


def _file_operations(path: Path, report: Report) -> Located:
    try:
        content = path.read_bytes()
    except OSError as error:
        report(Problem(str(path), 0, 0, "", error.strerror or "it cannot be read"))
        return iter(())
    match _format_of(path, content):
        case HistoryFormat.OPERATIONS:
            return _json_operations(path, content, report)
        case HistoryFormat.VERIFIABLE:
            return verifiable_operations(str(path), content, report)
        case HistoryFormat.JEPSEN:
            return jepsen_operations(str(path), content, report)
    formats = "; ".join(HistoryFormat)
    report(Problem(str(path), 1, 1, "", f"no history; a history is one of: {formats}"))
    return iter(())


def _format_of(path: Path, content: bytes) -> HistoryFormat | None:
    """The format of a file, by its first line that is a JSON object, or its first character."""
    if path.suffix == ".edn":
        return HistoryFormat.JEPSEN
    for line in content.splitlines():
        text = line.strip()
        if not text or not text.startswith(b"{"):
            continue
        if text.startswith((b"{:", b"#jepsen", b"[{:")):
            return HistoryFormat.JEPSEN
        try:
            kind = msgspec.json.decode(text, type=_Kind)
        except msgspec.DecodeError:
            return HistoryFormat.OPERATIONS if path.suffix == ".jsonl" else None
        if isinstance(kind.name, str) and kind.name in VERIFIABLE_EVENTS:
            return HistoryFormat.VERIFIABLE
        return HistoryFormat.OPERATIONS
    return HistoryFormat.OPERATIONS if path.suffix == ".jsonl" and not content.strip() else None


def _json_operations(path: Path, content: bytes, report: Report) -> Located:
    lines = content.split(b"\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        operation = operation_of(line, is_unfinished=number == len(lines))
        if isinstance(operation, str):
            report(Problem(str(path), number, 1, "", operation))
        elif operation is not None:
            yield OperationPlace(str(path), number), operation


_DECODER: Final[msgspec.json.Decoder[AnyOperation]] = msgspec.json.Decoder(AnyOperation)


def operation_of(line: bytes, *, is_unfinished: bool = False) -> AnyOperation | str | None:
    """The operation of a line of JSON, or the problem of the line.  `is_unfinished`: the line has
    no end; None if it was cut off, by the death of the program that wrote it."""
    try:
        return _DECODER.decode(line)
    except msgspec.ValidationError as error:
        return _wrong_operation(line, str(error))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        if is_unfinished and str(error) == TRUNCATED:
            return None
        text = show(line[:MAX_LINE_SHOWN].decode(errors="replace"))
        return f"not JSON: {text} ({error})"


def _wrong_operation(line: bytes, reason: str) -> str:
    """The problem of a line that is JSON, but no operation."""
    try:
        op = msgspec.json.decode(line, type=_Kind).op
    except msgspec.ValidationError:
        return "not an operation: an operation is a JSON object with `op`"
    if op is None:
        return f"`op` is missing: one of {', '.join(KINDS)}"
    if op not in KINDS:
        return f"op {show(op)}: {unknown('operation', str(op), KINDS)}"
    return f"{op}: {reason}"
