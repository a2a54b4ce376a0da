"""The clients' side of a run directory as operations: the truth from inside is not read.

Owns: the translation of the rows of sends, transactions, reads and positions.  Never: reads a
broker's rows, such as appends or final logs.  Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec
from msgspec import Struct

from kcluster.clients.ledger import Outcome, TransactionOutcome
from kcluster.judge.history import (
    AnyOperation,
    AssignOperation,
    Isolation,
    OperationPlace,
    PollOperation,
    PositionOperation,
    ReadFromStartOperation,
    ReadToEndOperation,
    Received,
    SendOperation,
    TopicOperation,
    TransactionOperation,
)
from kcluster.runs.record import TABLES, ReadRow, RunRecord, SendRow, TransactionRow

COMPACT: Final = "compact"
CLEANUP_POLICY: Final = "cleanup.policy"


class _TopicOfRun(Struct):
    """The part of a topology's topic that the judge needs."""

    config: dict[str, str] = {}


class _TopologyOfRun(Struct):
    """The part of run.json's topology that the judge needs."""

    topics: dict[str, _TopicOfRun] = {}


def run_operations(source: str, record: RunRecord) -> Iterator[tuple[OperationPlace, AnyOperation]]:
    """The operations of the clients of a run.  `source`: the path of its directory.  ValueError if
    a row or the topology is none of kcluster's."""
    run = OperationPlace(source, 0)
    for topic in _compacted(record):
        yield run, TopicOperation(topic, is_compacted=True)
    for number, transaction in enumerate(record.transactions, 1):
        yield _origin(source, "transactions", number), _transaction(transaction)
    for number, send in enumerate(record.sends, 1):
        yield _origin(source, "sends", number), _send(send)
    for number, read in enumerate(record.reads, 1):
        origin = _origin(source, "reads", number)
        if read.restarted:
            yield (
                origin,
                AssignOperation(read.consumer, ((read.topic, read.partition),), read.at_ms),
            )
        yield origin, _poll(read)
    for number, at in enumerate(record.positions, 1):
        reached = PositionOperation(at.consumer, at.topic, at.partition, at.offset, at.at_ms)
        yield _origin(source, "positions", number), reached
    if record.info.read_from_start:
        yield run, ReadFromStartOperation()
    if record.info.outcome != "unknown":
        yield run, ReadToEndOperation(record.info.ended_ms)


def _origin(source: str, table: str, line: int) -> OperationPlace:
    return OperationPlace(f"{source}/{TABLES[table].file}", line)


def _compacted(record: RunRecord) -> Iterator[str]:
    """The topics of the topology whose cleanup.policy compacts."""
    for name, topic in msgspec.convert(record.info.topology, _TopologyOfRun).topics.items():
        if COMPACT in topic.config.get(CLEANUP_POLICY, ""):
            yield name


def _send(row: SendRow) -> SendOperation:
    return SendOperation(
        client=row.producer,
        topic=row.topic,
        partition=row.partition,
        value=row.value,
        outcome=Outcome(row.outcome),
        offset=row.offset,
        acks=row.acks,
        idempotent=row.idempotent,
        transaction=row.transaction,
        sent_ms=row.sent_ms,
        ended_ms=row.ended_ms,
        error=row.error,
        life=row.life,
    )


def _transaction(row: TransactionRow) -> TransactionOperation:
    outcome = TransactionOutcome(row.outcome)
    return TransactionOperation(row.producer, row.number, outcome, row.began_ms, row.ended_ms)


def _poll(row: ReadRow) -> PollOperation:
    return PollOperation(
        client=row.consumer,
        records=(Received(row.topic, row.partition, row.offset, row.value),),
        isolation=Isolation.READ_COMMITTED if row.read_committed else Isolation.READ_UNCOMMITTED,
        at_ms=row.at_ms,
    )
