"""The files from which a history is read, each recognised by its content.

Owns: the recognition of a file's format, the merging of several files into one history, JSON lines
of operations, the problems in them.  Never: judges.  Kafka: no counterpart.

Formats: a run directory of kcluster; JSON lines of operations (history.py); the output of Kafka's
VerifiableProducer and VerifiableConsumer (verifiable.py); a history of Jepsen's Kafka workload in
EDN (jepsen.py).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import Final

import msgspec

from kcluster.config.files.problems import Problem, ProblemsError, show, unknown
from kcluster.judge.history import (
    AnyOperation,
    History,
    IncompleteOperation,
    Operation,
    OperationPlace,
    history_of,
)
from kcluster.judge.jepsen import jepsen_operations
from kcluster.judge.proxied import AppendedBatches, EndedTransactions, received, sent
from kcluster.judge.reading import CUT_OFF, STDIN, Report, lines_of, name_of, repeated
from kcluster.judge.run_directory import run_operations
from kcluster.judge.verifiable import VERIFIABLE_EVENTS, verifiable_operations
from kcluster.runs.directory import find_run, read_run, rows_in
from kcluster.runs.proxied_rows import (
    FETCHED,
    INCOMPLETE,
    PRODUCED,
    PROXY_CLOCK,
    TRANSACTION_REQUESTS,
    FetchedRow,
    ProducedRow,
    TransactionRequestRow,
)

Located = Iterator[tuple[OperationPlace, AnyOperation]]

JEPSEN_HISTORY: Final = "history.edn"
"""The history in the directory of a test of Jepsen."""
MAX_LINE_SHOWN: Final = 60
MAX_HEAD_BYTES: Final = 16 << 20
"""The bytes within which a file must show its format."""
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
    """The history in these files and directories, together; `-` is stdin.  ProblemsError with every
    problem in them; RunError for a run directory that cannot be read."""
    names = [os.fspath(path) for path in paths]
    problems = [*repeated(names)]
    operations: list[tuple[OperationPlace, AnyOperation]] = []
    for name in names if not problems else ():
        path = Path(name)
        if name == STDIN or not path.is_dir():
            operations += _file_operations(name, problems.append)
        elif (path / JEPSEN_HISTORY).exists():
            operations += _file_operations(str(path / JEPSEN_HISTORY), problems.append)
        else:
            operations += _run_operations(path, problems.append)
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
    if (path / INCOMPLETE).exists():
        reason = f"{path}: rows were dropped, as they could not be written"
        yield OperationPlace(str(path), 0), IncompleteOperation(reason)


def _file_operations(path: str, report: Report) -> Located:
    source = name_of(path)
    problems: list[Problem] = []
    lines = lines_of(path, problems.append)
    suffix = Path(path.removesuffix(".gz")).suffix
    found, head = _format_of(lines, suffix)
    match found:
        case HistoryFormat.OPERATIONS:
            yield from _json_operations(source, chain(head, lines), report)
        case HistoryFormat.VERIFIABLE:
            yield from verifiable_operations(source, chain(head, lines), report)
        case HistoryFormat.JEPSEN:
            yield from jepsen_operations(source, b"".join(chain(head, lines)), report)
        case None if not problems:
            formats = "; ".join(HistoryFormat)
            what = "no history" if head else "the file is empty"
            report(Problem(source, 1, 1, "", f"{what}; a history is one of: {formats}"))
    for problem in problems:
        report(problem)


def _format_of(lines: Iterator[bytes], suffix: str) -> tuple[HistoryFormat | None, list[bytes]]:
    """The format of a file, by its first line that begins like a JSON object or an EDN map; and the
    lines that were read for that.  A file without such a line may be an empty one of operations."""
    head: list[bytes] = []
    if suffix == ".edn":
        return HistoryFormat.JEPSEN, head
    size = 0
    for line in lines:
        head.append(line)
        size += len(line)
        text = line.strip()
        if text.startswith((b"{:", b"#jepsen", b"[{:", b"[#jepsen")):
            return HistoryFormat.JEPSEN, head
        if text.startswith(b"{"):
            return _format_of_object(text, suffix), head
        if size > MAX_HEAD_BYTES:
            return None, head
    is_empty = suffix == ".jsonl" and not b"".join(head).strip()
    return HistoryFormat.OPERATIONS if is_empty else None, head


def _format_of_object(text: bytes, suffix: str) -> HistoryFormat | None:
    try:
        kind = msgspec.json.decode(text, type=_Kind)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return HistoryFormat.OPERATIONS if suffix == ".jsonl" else None
    if isinstance(kind.name, str) and kind.name in VERIFIABLE_EVENTS:
        return HistoryFormat.VERIFIABLE
    return HistoryFormat.OPERATIONS


def _json_operations(source: str, lines: Iterable[bytes], report: Report) -> Located:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        operation = operation_of(line, is_unfinished=not line.endswith(b"\n"))
        if isinstance(operation, str):
            report(Problem(source, number, 1, "", operation))
        elif operation is not None:
            yield OperationPlace(source, number), operation


_DECODER: Final[msgspec.json.Decoder[AnyOperation]] = msgspec.json.Decoder(AnyOperation)


def operation_of(line: bytes, *, is_unfinished: bool = False) -> AnyOperation | str | None:
    """The operation of a line of JSON, or the problem of the line.  `is_unfinished`: the line has
    no end; None if it was cut off, by the death of the program that wrote it."""
    try:
        return _DECODER.decode(line)
    except msgspec.ValidationError as error:
        return _wrong_operation(line, str(error))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        if is_unfinished and str(error) == CUT_OFF:
            return None
        text = show(line.strip()[:MAX_LINE_SHOWN].decode(errors="replace"))
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
