"""A history: what clients sent, received and were told, each operation with its place in a file.

Owns: History, the operations of JSON lines, and making the former from the latter.  Never: reads a
file (files.py does), judges.  Kafka: no counterpart; Jepsen's histories.

An operation is one JSON object with its kind in `op`; docs/reference/histories.md describes each.
Times are in ms of one clock, -1 for unknown.  A record is identified by its value.  Sends of equal
values are told apart by the offsets of their acks, and otherwise by their order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from enum import StrEnum

from msgspec import Struct, field
from msgspec.structs import replace

from kcluster.checks.settings import ACKS_ALL
from kcluster.clients.ledger import (
    ClientTransaction,
    Ledger,
    Outcome,
    Partition,
    ReadRecord,
    SentRecord,
    TransactionOutcome,
)


class Isolation(StrEnum):
    """The isolation.level of a consumer."""

    READ_UNCOMMITTED = "read_uncommitted"
    READ_COMMITTED = "read_committed"


class Operation(Struct, frozen=True, gc=False, forbid_unknown_fields=True, tag_field="op"):
    """The base of operations."""


class SendOperation(Operation, frozen=True, tag="send"):
    """A record that a producer's application sent, with the outcome that it was told.

    `outcome`: acked, failed (it was certainly not stored) or unknown.  `offset`: the offset in the
    ack, -1 for none.  `transaction`: the number of its producer's transaction, 0 for none.
    `life`: the number of the producer's process, which grows when it is started again: the order
    of sending is promised within a process."""

    client: str
    topic: str
    partition: int
    value: str | None
    outcome: Outcome
    offset: int = -1
    acks: int = ACKS_ALL
    idempotent: bool = True
    transaction: int = 0
    sent_ms: int = -1
    ended_ms: int = -1
    error: str = ""
    life: int = 1


class TransactionOperation(Operation, frozen=True, tag="transaction"):
    """The end of a producer's transaction, as its application was told: committed, aborted, open
    (never ended) or unknown."""

    client: str
    number: int
    outcome: TransactionOutcome
    began_ms: int = -1
    ended_ms: int = -1


class Received(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """One record of a poll."""

    topic: str
    partition: int
    offset: int
    value: str | None


class PollOperation(Operation, frozen=True, tag="poll"):
    """Records that a consumer's application received, in order.  `isolation`: the consumer's
    isolation.level.  `transaction`: the number of the transaction of the producer with the same
    client name in which the records were read, 0 for none.  `is_rewound`: the consumer was set back
    afterwards to where it had been before this transaction, or before this poll if it is in
    none."""

    client: str
    records: tuple[Received, ...]
    isolation: Isolation = Isolation.READ_UNCOMMITTED
    at_ms: int = -1
    transaction: int = 0
    is_rewound: bool = False


class AssignOperation(Operation, frozen=True, tag="assign"):
    """A consumer got a position that does not follow from its reads: by an assignment, a seek or a
    reset.  `partitions`: (topic, partition) pairs; without any, all of the consumer's."""

    client: str
    partitions: tuple[tuple[str, int], ...] = ()
    at_ms: int = -1


class TopicOperation(Operation, frozen=True, tag="topic"):
    """What is known of a topic.  `is_compacted`: a missing record may have been compacted away."""

    topic: str
    is_compacted: bool = False


class LogEndOperation(Operation, frozen=True, tag="log_end"):
    """The end offset of a partition, as a read_uncommitted client got it: no record that all
    in-sync replicas have had this offset or a higher one.  `at_ms`: when it was requested."""

    topic: str
    partition: int
    offset: int
    at_ms: int = -1


class PositionOperation(Operation, frozen=True, tag="position"):
    """A consumer's next offset in a partition: it has received or skipped all below."""

    client: str
    topic: str
    partition: int
    offset: int
    at_ms: int = -1


class ReadFromStartOperation(Operation, frozen=True, tag="read_from_start"):
    """Consumers began at the beginning of the partitions, or where others of their group had been:
    what lies below a read has been received by some of them."""


class ReadToEndOperation(Operation, frozen=True, tag="read_to_end"):
    """All consumers had the time to read to the end of the partitions, after the last send."""

    at_ms: int = -1


class IncompleteOperation(Operation, frozen=True, tag="incomplete"):
    """A part of the history is missing; `reason`: why."""

    reason: str


AnyOperation = (
    SendOperation
    | TransactionOperation
    | PollOperation
    | AssignOperation
    | TopicOperation
    | LogEndOperation
    | PositionOperation
    | ReadFromStartOperation
    | ReadToEndOperation
    | IncompleteOperation
)


class OperationPlace(Struct, frozen=True, gc=False):
    """The place of an operation: a file's name, and its line, from 1; 0: not in a file."""

    source: str
    line: int

    def __str__(self) -> str:
        return f"{self.source}:{self.line}" if self.line else self.source


class ReadInTransaction(Struct, frozen=True, gc=False):
    """A record that a transaction read: the transaction, and the record's place."""

    client: str
    number: int
    partition: Partition
    offset: int
    value: bytes | None


class LogEnd(Struct, frozen=True, gc=False):
    """The end offset of a partition, and when it was requested."""

    partition: Partition
    offset: int
    at_ms: int
    origin: OperationPlace


class Passed(Struct, frozen=True, gc=False):
    """What a consumer passed without a record: from behind its last read, or -1 if it has read
    nothing since it began, to before its position `until`."""

    consumer: str
    partition: Partition
    last_read: int
    until: int
    at_ms: int
    origin: OperationPlace


class PartitionFacts(Struct, frozen=True):
    """What a history tells of the reads of a partition.  `is_compacted`: missing records may have
    been compacted away; `is_read_from_start`: what lies below a read has been received by some
    consumer; `is_drained`: consumers had the time to read to the end; `read_committed`: the
    consumers of this level."""

    is_compacted: bool = False
    is_read_from_start: bool = False
    is_drained: bool = False
    read_committed: Collection[str] = ()


class History(Struct):
    """A history in the form in which it is judged.  `send_origins`, `read_origins`: the places of
    the ledger's sends and reads, in the same order."""

    ledger: Ledger = field(default_factory=Ledger)
    send_origins: list[OperationPlace] = field(default_factory=list)
    read_origins: list[OperationPlace] = field(default_factory=list)
    transaction_reads: list[ReadInTransaction] = field(default_factory=list)
    compacted: set[str] = field(default_factory=set)
    """The topics whose records may be compacted away."""
    log_ends: list[LogEnd] = field(default_factory=list)
    passed: list[Passed] = field(default_factory=list)
    is_read_from_start: bool = False
    """Whether what lies below a read has been received by some consumer."""
    is_drained: bool = False
    """Whether consumers had the time to read to the end."""
    missing: list[str] = field(default_factory=list)
    """Why parts of the history are missing."""

    def facts(self, topic: str) -> PartitionFacts:
        """What the history tells of the reads of a topic's partitions."""
        return PartitionFacts(
            is_compacted=topic in self.compacted,
            is_read_from_start=self.is_read_from_start,
            is_drained=self.is_drained,
            read_committed=self.ledger.read_committed,
        )


def history_of(operations: Iterable[tuple[OperationPlace, AnyOperation]]) -> History:
    """The history of these operations, in their order."""
    builder = _Builder()
    for origin, operation in operations:
        builder.add(origin, operation)
    builder.name_equal_values()
    return builder.history


def history_of_ledger(ledger: Ledger, source: str, is_drained: bool) -> History:
    """The history of the clients of a run, without the run's logs."""
    here = OperationPlace(source, 0)
    last = {(read.consumer, read.partition): read.offset for read in ledger.reads}
    return History(
        ledger=ledger,
        send_origins=[here] * len(ledger.sends),
        read_origins=[here] * len(ledger.reads),
        passed=[
            Passed(who, partition, last.get((who, partition), -1), offset, at_ms, here)
            for who, partition, offset, at_ms in ledger.positions
        ],
        is_drained=is_drained,
    )


class _Builder:
    """Collects operations into a history."""

    def __init__(self) -> None:
        self.history = History()
        self._transactions: dict[tuple[str, int], ClientTransaction] = {}
        self._positions: dict[str, dict[Partition, int]] = {}
        """The last offset that a consumer has read, by consumer, in the partitions in which its
        next read follows that one."""

    def add(self, origin: OperationPlace, operation: AnyOperation) -> None:
        """Add one operation."""
        match operation:
            case SendOperation():
                self._add_send(origin, operation)
            case PollOperation():
                self._add_poll(origin, operation)
            case TransactionOperation():
                ended = self._transaction(operation.client, operation.number)
                ended.outcome = operation.outcome
                ended.began_ms, ended.ended_ms = operation.began_ms, operation.ended_ms
            case AssignOperation(partitions=()):
                self._positions.pop(operation.client, None)
            case AssignOperation():
                for partition in operation.partitions:
                    self._positions.get(operation.client, {}).pop(partition, None)
            case TopicOperation():
                if operation.is_compacted:
                    self.history.compacted.add(operation.topic)
            case LogEndOperation():
                partition = (operation.topic, operation.partition)
                end = LogEnd(partition, operation.offset, operation.at_ms, origin)
                self.history.log_ends.append(end)
            case PositionOperation():
                self._add_position(origin, operation)
            case ReadFromStartOperation():
                self.history.is_read_from_start = True
            case ReadToEndOperation():
                self.history.is_drained = True
            case IncompleteOperation():
                self.history.missing.append(operation.reason)

    def _transaction(self, client: str, number: int) -> ClientTransaction:
        key = (client, number)
        found = self._transactions.get(key)
        if found is None:
            found = ClientTransaction(client, client, number, 0, TransactionOutcome.UNKNOWN)
            self._transactions[key] = found
            self.history.ledger.transactions.append(found)
        return found

    def _add_send(self, origin: OperationPlace, send: SendOperation) -> None:
        transaction = self._transaction(send.client, send.transaction) if send.transaction else None
        self.history.ledger.sends.append(
            SentRecord(
                producer=send.client,
                partition=(send.topic, send.partition),
                value=value_bytes(send.value) or b"",
                acks=send.acks,
                idempotent=send.idempotent,
                outcome=send.outcome,
                offset=send.offset,
                sent_ms=send.sent_ms,
                ended_ms=send.ended_ms,
                error=send.error,
                transaction=transaction,
                life=send.life,
            )
        )
        self.history.send_origins.append(origin)

    def _add_poll(self, origin: OperationPlace, poll: PollOperation) -> None:
        ledger = self.history.ledger
        if poll.isolation is Isolation.READ_COMMITTED:
            ledger.read_committed[poll.client] = None
        known = self._positions.setdefault(poll.client, {})
        rewound_after = poll.transaction or -origin.line if poll.is_rewound else 0
        for record in poll.records:
            partition, value = (record.topic, record.partition), value_bytes(record.value)
            restarted = partition not in known
            if not poll.is_rewound:
                known[partition] = record.offset
            ledger.reads.append(
                ReadRecord(
                    poll.client, partition, record.offset, value, restarted, poll.at_ms,
                    rewound_after,
                )
            )  # fmt: skip
            self.history.read_origins.append(origin)
            if poll.transaction:
                self.history.transaction_reads.append(
                    ReadInTransaction(
                        poll.client, poll.transaction, partition, record.offset, value
                    )
                )

    def _add_position(self, origin: OperationPlace, reached: PositionOperation) -> None:
        partition = (reached.topic, reached.partition)
        last_read = self._positions.get(reached.client, {}).get(partition, -1)
        self.history.passed.append(
            Passed(reached.client, partition, last_read, reached.offset, reached.at_ms, origin)
        )

    def name_equal_values(self) -> None:
        """Give records of equal values names of their own: `a`, `a #2`, `a #3`, in the order of
        their sends.  A read gets the name of the send that was acked with its offset, else of the
        first send of the value without a known offset, else of the last one."""
        ledger = self.history.ledger
        sends_of: dict[tuple[Partition, bytes], list[SentRecord]] = {}
        for send in ledger.sends:
            sends_of.setdefault((send.partition, send.value), []).append(send)
        if all(len(sends) == 1 for sends in sends_of.values()):
            return
        names: dict[tuple[Partition, bytes], _Names] = {
            key: _Names(sends) for key, sends in sends_of.items() if len(sends) > 1
        }
        ledger.reads = list(_renamed(ledger.reads, names))


class _Names:
    """The names of several sends of one value to one partition."""

    def __init__(self, sends: list[SentRecord]) -> None:
        self._by_offset: dict[int, bytes] = {}
        self._free: list[bytes] = []
        """The names of the sends whose offset is not known, last first."""
        self._last = value = sends[0].value
        for number, send in enumerate(sends, 1):
            if number > 1:
                send.value = value + f" #{number}".encode()
            if send.offset >= 0:
                self._by_offset.setdefault(send.offset, send.value)
            elif send.outcome is not Outcome.FAILED:
                self._free.append(send.value)
            self._last = send.value
        self._free.reverse()

    def at(self, offset: int) -> bytes:
        """The name of the record that was read at this offset; always the same."""
        name = self._by_offset.get(offset)
        if name is None:
            name = self._by_offset[offset] = self._free.pop() if self._free else self._last
        return name


def _renamed(
    reads: Iterable[ReadRecord], names: dict[tuple[Partition, bytes], _Names]
) -> Iterator[ReadRecord]:
    for read in reads:
        found = None if read.value is None else names.get((read.partition, read.value))
        if found is None:
            yield read
        else:
            yield replace(read, value=found.at(read.offset))


def value_bytes(value: str | None) -> bytes | None:
    """A record's value as bytes; a value that was no UTF-8 stays as its writer escaped it."""
    return None if value is None else value.encode()
