"""The output of Kafka's VerifiableProducer and VerifiableConsumer as operations.

Owns: the reading of their JSON lines.  Never: judges.
Kafka: tools/VerifiableProducer, tools/VerifiableConsumer; tests/kafkatest reads them.

A producer is named after its file, as its lines name none.  Other lines between them, such as a
log's, are passed over.  A consumer must have run with --verbose: without it, its lines have the
ranges of offsets, but no record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

import msgspec
from msgspec import Struct

from kcluster.clients.ledger import Outcome
from kcluster.config.files.problems import Problem
from kcluster.judge.history import (
    AnyOperation,
    AssignOperation,
    OperationPlace,
    PollOperation,
    Received,
    SendOperation,
)
from kcluster.judge.reading import CUT_OFF


class _Partition(Struct):
    topic: str
    partition: int


class _Line(Struct):
    """One line of either tool; `name` tells which fields it has."""

    name: str = ""
    op: str = ""
    timestamp: int = -1
    topic: str = ""
    partition: int = -1
    offset: int = -1
    key: str | None = None
    value: str | None = None
    exception: str = ""
    partitions: list[_Partition] = []


SENT: Final = "producer_send_success"
NOT_SENT: Final = "producer_send_error"
RECEIVED: Final = "record_data"
CONSUMED: Final = "records_consumed"
ASSIGNED: Final = ("partitions_assigned", "partitions_revoked")
VERIFIABLE_EVENTS: Final = (
    SENT, NOT_SENT, RECEIVED, CONSUMED, *ASSIGNED, "startup_complete", "shutdown_complete",
    "tool_data", "offsets_committed",
)  # fmt: skip
"""The names of the lines of both tools."""


def verifiable_operations(
    source: str, lines: Iterable[bytes], report: Callable[[Problem], None]
) -> Iterator[tuple[OperationPlace, AnyOperation]]:
    """The operations of one tool's output."""
    client = source.rpartition("/")[2].partition(".")[0]
    has_records = False
    ranges_line = 0
    for number, line in enumerate(lines, 1):
        if not line.startswith(b"{"):
            continue
        try:
            found = msgspec.json.decode(line, type=_Line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            if str(error) == CUT_OFF and not line.endswith(b"\n"):
                break  # the tool was killed
            report(Problem(source, number, 1, "", f"not a line of a verifiable client: {error}"))
            continue
        if found.op:
            text = f"an operation ({found.op}) in a verifiable client's output: use two files"
            report(Problem(source, number, 1, "", text))
            continue
        has_records = has_records or found.name == RECEIVED
        if found.name == CONSUMED:
            ranges_line = ranges_line or number
        operation = _operation(client, found)
        if operation is not None:
            yield OperationPlace(source, number), operation
    if ranges_line and not has_records:
        text = "the consumer's records are missing: run VerifiableConsumer with --verbose"
        report(Problem(source, ranges_line, 1, "", text))


def _operation(client: str, line: _Line) -> AnyOperation | None:
    if line.name in (SENT, NOT_SENT):
        is_acked = line.name == SENT
        return SendOperation(
            client=client,
            topic=line.topic,
            partition=line.partition,
            value=line.value,
            outcome=Outcome.ACKED if is_acked else Outcome.UNKNOWN,
            offset=line.offset,
            ended_ms=line.timestamp,
            error=line.exception,
        )
    if line.name == RECEIVED:
        record = Received(line.topic, line.partition, line.offset, line.value)
        return PollOperation(client=client, records=(record,), at_ms=line.timestamp)
    if line.name in ASSIGNED:
        partitions = tuple((each.topic, each.partition) for each in line.partitions)
        return AssignOperation(client=client, partitions=partitions, at_ms=line.timestamp)
    return None
