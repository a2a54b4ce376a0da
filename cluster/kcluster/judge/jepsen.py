"""Histories of Jepsen's Kafka workload, in EDN, as operations.

Owns: the meaning of the workload's operations and micro-operations.  Never: judges.
Kafka: no counterpart; jepsen.tests.kafka.

A key of the workload is a partition: key 3 is partition 3 of the topic `k`.  A process is a client
with a producer and a consumer.  `txn` operations are transactions of their process; in a history
with such operations consumers read with read_committed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from kcluster.clients.ledger import Outcome, TransactionOutcome
from kcluster.config.files.problems import Problem, show
from kcluster.extras import how_to_install
from kcluster.judge.history import (
    AnyOperation,
    AssignOperation,
    Isolation,
    OperationPlace,
    PollOperation,
    Received,
    SendOperation,
    TransactionOperation,
)

TOPIC: Final = "k"
_OUTCOMES: Final = {"ok": Outcome.ACKED, "fail": Outcome.FAILED, "info": Outcome.UNKNOWN}
_ENDS: Final = {
    "ok": TransactionOutcome.COMMITTED,
    "fail": TransactionOutcome.ABORTED,
    "info": TransactionOutcome.UNKNOWN,
}
Values = Mapping[str, Any]
"""An operation, by the words of its keywords."""
_MOVES: Final = ("assign", "subscribe", "crash")
"""Operations after which a consumer's next read need not follow its last one."""
_OTHERS: Final = ("send", "poll", "txn")
MAX_SHOWN: Final = 60


def jepsen_operations(
    source: str, content: bytes, report: Callable[[Problem], None]
) -> Iterator[tuple[OperationPlace, AnyOperation]]:
    """The operations of a history: one map per line, or one vector of maps."""
    try:
        import edn_format  # an extra
    except ImportError:
        text = f"to read EDN: {how_to_install('jepsen')}"
        report(Problem(source, 0, 0, "", text))
        return
    completed: list[tuple[OperationPlace, Values]] = []
    for number, text in _forms(content.decode(errors="replace")):
        try:
            value = edn_format.loads(text)
        except (edn_format.EDNDecodeError, ValueError) as error:
            report(Problem(source, number, 1, "", f"not EDN: {error}"))
            continue
        if isinstance(value, Mapping):
            completed.append((OperationPlace(source, number), _named(value)))
        else:
            report(Problem(source, number, 1, "", f"no operation: {show(text[:MAX_SHOWN])}"))
    if any("valid?" in values for _, values in completed):
        text = "Jepsen's own results; the history is in history.edn beside them"
        report(Problem(source, 1, 1, "", text))
        return
    yield from _translated(source, completed, report)


_TOKENS: Final = re.compile(
    r"""
    (?P<string>"(?:\\.|[^"\\])*")
    | (?P<comment>;[^\n]*)
    | (?P<character>\\.)
    | (?P<tag>\#[A-Za-z][^\s"{}()\[\]]*\s*)
    | (?P<open>\#?[\[({])
    | (?P<close>[\])}])
    | (?P<line>\n)
    | (?P<atom>[^\s"{}()\[\],;\\]+)
    """,
    re.VERBOSE,
)
"""What decides where a form ends; a tag, such as that of Jepsen's operations, is left out."""


def _forms(text: str) -> Iterator[tuple[int, str]]:
    """The top forms of a text, each with its line; those of a vector or a list around all of
    them."""
    line = begin_line = 1
    parts: list[str] = []
    depth = 0
    for token in _TOKENS.finditer(text):
        kind, found = token.lastgroup, token.group()
        line += found.count("\n")
        if kind in ("comment", "tag"):
            continue
        is_around = depth == 0 and found in ("[", "(", "]", ")")
        if is_around or (kind == "line" and not depth):
            continue
        if not parts:
            begin_line = line - found.count("\n")
        parts.append(found)
        depth += (kind == "open") - (kind == "close")
        if depth <= 0:
            depth = 0
            yield begin_line, " ".join(parts)
            parts = []
    if parts:
        yield begin_line, " ".join(parts)


def _named(values: Mapping[object, object]) -> dict[str, object]:
    """A map with its keywords as words."""
    return {str(getattr(key, "name", key)).lstrip(":"): value for key, value in values.items()}


def _translated(
    source: str, found: Sequence[tuple[OperationPlace, Values]], report: Callable[[Problem], None]
) -> Iterator[tuple[OperationPlace, AnyOperation]]:
    ends = [(origin, each) for origin, each in found if _word(each.get("type")) != "invoke"]
    is_transactional = any(_word(each.get("f")) == "txn" for _, each in ends)
    began_ms: dict[object, int] = {}
    number = 0
    for origin, operation in found:
        process = operation.get("process")
        if not isinstance(process, int):
            continue  # Jepsen's nemesis
        try:
            time_ms = int(operation.get("time") or 0) // 1_000_000
            if _word(operation.get("type")) == "invoke":
                began_ms[process] = time_ms
                continue
            number += 1
            began = began_ms.get(process, -1)
            for each in _operations(operation, number, began, time_ms, is_transactional):
                yield origin, each
        except (TypeError, ValueError, KeyError, IndexError):
            text = "not an operation of Jepsen's Kafka workload"
            report(Problem(source, origin.line, 1, "", text))


def _operations(
    operation: Values, number: int, began_ms: int, ended_ms: int, is_transactional: bool
) -> Iterator[AnyOperation]:
    kind, end = _word(operation["f"]), _word(operation["type"])
    client = f"process-{operation['process']}"
    if kind in _MOVES:
        yield AssignOperation(client=client)
        return
    if kind not in _OTHERS:
        return  # such as debug-topic-partitions
    transaction = number if kind == "txn" else 0
    if transaction:
        yield TransactionOperation(client, number, _ENDS[end], began_ms, ended_ms)
    steps = operation["value"] or ()
    if end != "ok" and any(_word(step[0]) == "poll" for step in steps):
        yield AssignOperation(client=client)  # it may have read what the history does not have
    for step in steps:
        word = _word(step[0])
        if word == "send":
            yield _send(client, step, _OUTCOMES[end], transaction, (began_ms, ended_ms))
        elif word == "poll" and end == "ok" and len(step) > 1 and step[1]:
            records = tuple(
                Received(TOPIC, int(key), int(offset), str(value))
                for key, pairs in step[1].items()
                for offset, value in pairs
            )
            isolation = Isolation.READ_COMMITTED if is_transactional else Isolation.READ_UNCOMMITTED
            yield PollOperation(client, records, isolation, ended_ms, transaction)


def _send(
    client: str, step: Sequence[Any], outcome: Outcome, transaction: int, times_ms: tuple[int, int]
) -> SendOperation:
    """A send; its value is [offset value] once it is done, and the value alone before."""
    offset, value = step[2] if isinstance(step[2], Sequence) else (None, step[2])
    is_in_open_transaction = transaction and outcome is Outcome.UNKNOWN
    return SendOperation(
        client=client,
        topic=TOPIC,
        partition=int(step[1]),
        value=str(value),
        outcome=Outcome.ACKED if is_in_open_transaction and offset is not None else outcome,
        offset=-1 if offset is None else int(offset),
        transaction=transaction,
        sent_ms=times_ms[0],
        ended_ms=times_ms[1],
    )


def _word(value: object) -> str:
    """A keyword or a string as a word."""
    return str(getattr(value, "name", value)).lstrip(":")
