"""What the wrapped clients of all libraries have in common.

Owns: WrappedClient, the numbers of transactions, the operations that are written.  Never: knows a
library.  Kafka: no counterpart.

A send that fails after it was begun may have been stored, and is written as unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Protocol

from kcluster.clients.ledger import Outcome, TransactionOutcome
from kcluster.judge.history import (
    AssignOperation,
    Isolation,
    LogEndOperation,
    PollOperation,
    PositionOperation,
    Received,
    SendOperation,
    TransactionOperation,
)
from kcluster.record.history_file import HistoryFile, now_ms, value_text

ACKS: Final[Mapping[object, int]] = {0: 0, "0": 0, 1: 1, "1": 1}
"""The values of `acks` in settings that do not mean all."""


class TopicPartition(Protocol):
    """A partition in the words of a library."""

    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...


class AckedRecord(Protocol):
    """The place of a record that was acked, in the words of a library."""

    @property
    def partition(self) -> int: ...
    @property
    def offset(self) -> int: ...


class ReceivedRecord(Protocol):
    """A record that was read, in the words of a library."""

    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def value(self) -> object: ...


class WrappedClient:
    """A client whose other attributes are those of the client it wraps."""

    def __init__(self, client: object, history: HistoryFile, name: str, isolation: str) -> None:
        self._client = client
        self._history = history
        self._name = name
        self._isolation = Isolation(isolation) if isolation else self._own_isolation()

    def __getattr__(self, name: str) -> object:
        return getattr(self._client, name)

    def _own_isolation(self) -> Isolation:
        """The isolation level in the client's settings."""
        return Isolation.READ_UNCOMMITTED


class PendingSend:
    """A record on its way.  Its outcome is written once."""

    def __init__(
        self, producer: RecordedProducerBase, topic: str, partition: int | None, value: object
    ) -> None:
        self._producer = producer
        self._topic = topic
        self._partition = -1 if partition is None else partition
        self._value = value_text(value)
        self._sent_ms = now_ms()
        self._transaction = producer.open_transaction

    def acked(self, partition: int, offset: int) -> None:
        """The record was acked."""
        self._write(Outcome.ACKED, partition, offset, "")

    def ended(self, error: object) -> None:
        """The record's fate is unknown."""
        self._write(Outcome.UNKNOWN, self._partition, -1, type(error).__name__)

    def __enter__(self) -> None:
        """Begin the call that takes the record."""

    def __exit__(self, kind: type[BaseException] | None, *_error: object) -> None:
        """End the call; a record that it refused was not sent."""
        if kind is not None:
            self._write(Outcome.FAILED, self._partition, -1, kind.__name__)

    def _write(self, outcome: Outcome, partition: int, offset: int, error: str) -> None:
        self._producer.write_send(
            SendOperation(
                client=self._producer.name,
                topic=self._topic,
                partition=partition,
                value=self._value,
                outcome=outcome,
                offset=offset,
                acks=self._producer.acks,
                transaction=self._transaction,
                sent_ms=self._sent_ms,
                ended_ms=now_ms(),
                error=error,
            )
        )


class RecordedProducerBase(WrappedClient):
    """A producer.  `open_transaction`: the number of its open transaction, 0 for none."""

    acks = -1

    def __init__(self, client: object, history: HistoryFile, name: str, isolation: str) -> None:
        super().__init__(client, history, name, isolation)
        self.name = name
        self.open_transaction = 0
        self._began = 0
        self._began_ms = -1

    def write_send(self, operation: SendOperation) -> None:
        """Write a send."""
        self._history.write(operation)

    def began(self) -> None:
        """A transaction has begun."""
        self._began += 1
        self.open_transaction, self._began_ms = self._began, now_ms()

    def committing(self) -> Committing:
        """The call that commits the open transaction."""
        return Committing(self)

    def committed(self) -> None:
        """The open transaction was committed."""
        self._end(TransactionOutcome.COMMITTED)

    def aborted(self) -> None:
        """The open transaction was aborted."""
        self._end(TransactionOutcome.ABORTED)

    def doubtful(self) -> None:
        """The commit of the open transaction failed; an abort may follow."""
        if self.open_transaction:
            self._write_end(TransactionOutcome.UNKNOWN)

    def _end(self, outcome: TransactionOutcome) -> None:
        if self.open_transaction:
            self._write_end(outcome)
            self.open_transaction = 0

    def _write_end(self, outcome: TransactionOutcome) -> None:
        self._history.write(
            TransactionOperation(
                self.name, self.open_transaction, outcome, self._began_ms, now_ms()
            )
        )


class Committing:
    """The call that commits a producer's open transaction."""

    def __init__(self, producer: RecordedProducerBase) -> None:
        self._producer = producer

    def __enter__(self) -> None:
        """Begin the call."""

    def __exit__(self, kind: type[BaseException] | None, *_error: object) -> None:
        if kind is None:
            self._producer.committed()
        else:
            self._producer.doubtful()


class RecordedConsumerBase(WrappedClient):
    """A consumer."""

    def write_reads(self, records: Iterable[ReceivedRecord]) -> None:
        """Write the records of one poll."""
        read = tuple(
            Received(record.topic, record.partition, record.offset, value_text(record.value))
            for record in records
        )
        if read:
            self._history.write(PollOperation(self._name, read, self._isolation, now_ms()))

    def write_position(self, place: TopicPartition, offset: int | None) -> None:
        """Write the consumer's next offset in a partition, if it has one."""
        if offset is not None and offset >= 0:
            self._history.write(
                PositionOperation(self._name, place.topic, place.partition, offset, now_ms())
            )

    def write_ends(self, ends: Mapping[TopicPartition, int], asked_ms: int) -> None:
        """Write the end offsets of partitions.  A read_committed consumer gets the end of what is
        stable, behind which there may be records."""
        if self._isolation is Isolation.READ_UNCOMMITTED:
            for each, offset in ends.items():
                self._history.write(LogEndOperation(each.topic, each.partition, offset, asked_ms))

    def moved(self, partitions: Iterable[TopicPartition] = ()) -> None:
        """The consumer's positions in these partitions, or in all, were set."""
        pairs = tuple((each.topic, each.partition) for each in partitions)
        self._history.write(AssignOperation(self._name, pairs, now_ms()))
