"""Histories of Jepsen's Kafka workload, in EDN, as operations.

Owns: the meaning of the workload's operations and micro-operations.  Never: judges.
Kafka: no counterpart; jepsen.tests.kafka.

A key of the workload is a partition: key 3 is partition 3 of the topic `k`, key `:x` partition 0 of
the topic `x`.  A process is a client with a producer and a consumer.  `txn` operations, and several
sends in one, are transactions of their process; in a history with transactions consumers read with
read_committed.  After an operation that failed, the workload sets its consumer back.  Consumers
begin at the beginning (auto.offset.reset=earliest).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from kcluster.clients.ledger import Outcome, Partition, TransactionOutcome
from kcluster.config.files.problems import Problem, show
from kcluster.extras import how_to_install
from kcluster.judge.history import (
    AnyOperation,
    AssignOperation,
    Isolation,
    OperationPlace,
    PollOperation,
    ReadFromStartOperation,
    ReadToEndOperation,
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
Step = Sequence[Any]
"""A micro-operation: its name, then what it concerns."""
_ASSIGNMENTS: Final = ("assign", "subscribe")
_OTHERS: Final = ("send", "poll", "txn")
SEEK_TO_BEGINNING: Final = "seek-to-beginning?"
NO_OPERATION: Final = "not an operation of Jepsen's Kafka workload"
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


def _named(values: Mapping[object, object]) -> Values:
    """A map with its keywords as words."""
    return {str(getattr(key, "name", key)).lstrip(":"): value for key, value in values.items()}


def _translated(
    source: str, found: Sequence[tuple[OperationPlace, Values]], report: Callable[[Problem], None]
) -> Iterator[tuple[OperationPlace, AnyOperation]]:
    workload = _JepsenTest()
    ends: list[tuple[OperationPlace, Values, int]] = []
    began_ms: dict[object, int] = {}
    for origin, operation in found:
        process = operation.get("process")
        if not isinstance(process, int):
            continue  # Jepsen's nemesis
        try:
            if _word(operation.get("type")) == "invoke":
                began_ms[process] = _time_ms(operation)
                continue
            workload.learn(operation)
            ends.append((origin, operation, began_ms.get(process, -1)))
        except (AttributeError, TypeError, ValueError, KeyError, IndexError):
            report(Problem(source, origin.line, 1, "", NO_OPERATION))
    if ends:
        yield ends[0][0], ReadFromStartOperation()
    if workload.reads_to_end:
        yield ends[-1][0], ReadToEndOperation()
    for number, (origin, operation, began) in enumerate(ends, 1):
        try:
            for each in workload.operations(operation, number, began):
                yield origin, each
        except (AttributeError, TypeError, ValueError, KeyError, IndexError):
            report(Problem(source, origin.line, 1, "", NO_OPERATION))


class _JepsenTest:
    """The state of a test: its keys, its processes.

    `reads_to_end`: whether its last phase read each key from the beginning until all acked records
    were seen, or the test's time was over."""

    def __init__(self) -> None:
        self.reads_to_end = False
        self._keys: dict[Partition, None] = {}
        self._is_transactional = False
        self._subscribed: set[str] = set()
        """The clients whose keys may be given to others at any time."""

    def learn(self, operation: Values) -> None:
        """Take note of what the meaning of other operations depends on."""
        kind = _word(operation.get("f"))
        if kind not in _OTHERS:
            self.reads_to_end |= bool(operation.get(SEEK_TO_BEGINNING))
            return
        steps = operation.get("value") or ()
        self._is_transactional |= kind == "txn" or _is_several_sends(kind, steps)
        for step in steps:
            if _word(step[0]) == "send":
                self._keys[_partition(step[1])] = None
            elif len(step) > 1:
                self._keys.update((_partition(key), None) for key in step[1] or ())

    def operations(self, operation: Values, number: int, began_ms: int) -> Iterator[AnyOperation]:
        """The operations of one completed operation of the workload."""
        kind, end = _word(operation["f"]), _word(operation["type"])
        client = f"process-{operation['process']}"
        if kind == "crash":
            self._subscribed.discard(client)
            yield AssignOperation(client)
        elif kind in _ASSIGNMENTS and end != "fail":
            yield from self._assigned(client, kind, operation)
        elif kind in _OTHERS:
            yield from self._transaction(client, operation, number, (began_ms, _time_ms(operation)))

    def _assigned(self, client: str, kind: str, operation: Values) -> Iterator[AnyOperation]:
        """A new set of keys: the consumer stays where it is in those that it had."""
        (self._subscribed.add if kind == "subscribe" else self._subscribed.discard)(client)
        kept = {_partition(key) for key in operation.get("value") or ()}
        if operation.get(SEEK_TO_BEGINNING):
            kept = set()
        yield from _moved(client, (key for key in self._keys if key not in kept))

    def _transaction(
        self, client: str, operation: Values, number: int, times_ms: tuple[int, int]
    ) -> Iterator[AnyOperation]:
        kind, end = _word(operation["f"]), _word(operation["type"])
        steps = operation["value"] or ()
        is_transaction = kind == "txn" or (self._is_transactional and kind == "send")
        transaction = number if is_transaction else 0
        if transaction:
            yield TransactionOperation(client, number, _ENDS[end], *times_ms)
        if client in self._subscribed:
            yield AssignOperation(client)
        rebalanced = [
            _partition(key)
            for event in operation.get("rebalance-log") or ()
            for key in _named(event).get("keys") or ()
        ]
        level = Isolation.READ_COMMITTED if self._is_transactional else Isolation.READ_UNCOMMITTED
        for step in steps:
            if _word(step[0]) == "send":
                yield _send(client, step, _OUTCOMES[end], transaction, times_ms)
                continue
            yield from _moved(client, rebalanced)
            records = _records(step)
            if records:
                is_rewound = end != "ok"
                yield PollOperation(
                    client, records, level, times_ms[1], transaction, is_rewound=is_rewound
                )
        if end == "info" and kind != "send":
            yield AssignOperation(client)  # it may have read what the history does not have


def _moved(client: str, partitions: Iterable[Partition]) -> Iterator[AnyOperation]:
    pairs = tuple(partitions)
    if pairs:
        yield AssignOperation(client, pairs)


def _is_several_sends(kind: str, steps: Sequence[Step]) -> bool:
    """Whether an operation of sends has several: then it is a transaction."""
    return kind == "send" and len(steps) > 1


def _partition(key: object) -> Partition:
    """The partition of a key: 3 is partition 3 of the topic `k`, another key a topic of its own."""
    if isinstance(key, int) and key >= 0:
        return (TOPIC, key)
    return (_word(key), 0)


def _records(step: Step) -> tuple[Received, ...]:
    """The records of a poll; a record whose offset is not known is left out."""
    polled = step[1] if len(step) > 1 else None
    return tuple(
        Received(*_partition(key), int(offset), _word(value))
        for key, pairs in (polled or {}).items()
        for offset, value in pairs
        if offset is not None
    )


def _send(
    client: str, step: Step, outcome: Outcome, transaction: int, times_ms: tuple[int, int]
) -> SendOperation:
    """A send; its value is [offset value] once it is done, and the value alone before."""
    is_pair = isinstance(step[2], Sequence) and not isinstance(step[2], str)
    offset, value = step[2] if is_pair else (None, step[2])
    is_in_open_transaction = transaction and outcome is Outcome.UNKNOWN
    topic, partition = _partition(step[1])
    return SendOperation(
        client=client,
        topic=topic,
        partition=partition,
        value=_word(value),
        outcome=Outcome.ACKED if is_in_open_transaction and offset is not None else outcome,
        offset=-1 if offset is None else int(offset),
        transaction=transaction,
        sent_ms=times_ms[0],
        ended_ms=times_ms[1],
    )


def _time_ms(operation: Values) -> int:
    """The time of an operation; -1 if it has none."""
    time_ns = operation.get("time")
    return -1 if time_ns is None else int(time_ns) // 1_000_000


def _word(value: object) -> str:
    """A keyword, a string or a number as a word."""
    return str(getattr(value, "name", value)).lstrip(":")
