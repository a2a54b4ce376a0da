"""A run as its clients saw it: records sent and read, commits, and errors.

Owns: the values of a run's ledger.  Never: judges them (checks/), looks into a node.
Kafka: no counterpart; the three outcomes of a send are Jepsen's.

The application sends each value once, so the value identifies the record.  A send ends as one of
  acked    the response reported success, with an offset
  failed   no attempt can have been appended
  unknown  no response, or an ambiguous one: the record may be in the log or not
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple

from msgspec import Struct

Partition = tuple[str, int]
"""(topic, partition)."""


class Outcome(StrEnum):
    """What a producer knows about a send."""

    ACKED = "acked"
    FAILED = "failed"
    UNKNOWN = "unknown"


_NOT_STORED: Final = ("INVALID_RECORD_STATE", "INVALID_REQUEST")
"""Errors of an acknowledgement with which a leader refuses it before it stores anything."""


class TransactionOutcome(StrEnum):
    """What a producer knows about a transaction."""

    OPEN = "open"
    COMMITTED = "committed"
    ABORTED = "aborted"
    """It was aborted, or a commit was never requested."""
    UNKNOWN = "unknown"
    """A commit was requested, and no answer came."""


class TransactionOffsets(Struct, frozen=True):
    """Offsets that are committed with a transaction: (offset, leader epoch) by partition.
    `generation`: or the epoch of a member of a consumer group."""

    group: str
    offsets: dict[Partition, tuple[int, int]]
    generation: int = -1
    member: str = ""
    instance: str = ""


class ClientTransaction(Struct):
    """One transaction of an application.  `number`: of the producer's, from 1.  `version`: of the
    protocol.  `error`: why it was not committed, by Kafka's name."""

    producer: str
    transactional_id: str
    number: int
    version: int
    outcome: TransactionOutcome = TransactionOutcome.OPEN
    producer_id: int = -1
    producer_epoch: int = -1
    began_ms: int = -1
    ended_ms: int = -1
    error: str = ""
    offsets: TransactionOffsets | None = None


class SentRecord(Struct):
    """One record that an application sent.  `offset` is known once acked, unless acks=0.

    `attempts`: Produce requests that carried it.  `error`: Kafka's name of the last error, whatever
    the outcome.  Times are in ms, -1 until they are known."""

    producer: str
    partition: Partition
    value: bytes
    acks: int
    idempotent: bool
    outcome: Outcome = Outcome.UNKNOWN
    offset: int = -1
    sent_ms: int = -1
    ended_ms: int = -1
    attempts: int = 0
    error: str = ""
    transaction: ClientTransaction | None = None
    source: tuple[Partition, int] | None = None
    """The record that it was made from, in a processor."""

    @property
    def is_promised(self) -> bool:
        """Whether the client may rely on it: acked, and its transaction, if any, is committed."""
        transaction = self.transaction
        return self.outcome is Outcome.ACKED and (
            transaction is None or transaction.outcome is TransactionOutcome.COMMITTED
        )

    @property
    def is_refused(self) -> bool:
        """Whether the client knows that nobody may read it."""
        transaction = self.transaction
        return self.outcome is Outcome.FAILED or (
            transaction is not None and transaction.outcome is TransactionOutcome.ABORTED
        )


class ReadRecord(Struct, frozen=True):
    """One record that a consumer's application received.  `restarted`: the first one after the
    consumer's position was set: to a committed offset, by a reset, or after a truncation."""

    consumer: str
    partition: Partition
    offset: int
    value: bytes | None
    restarted: bool = False
    at_ms: int = -1


class SharedRecord(Struct):
    """One record that a share consumer's application received.  `count`: the delivery count that
    the leader gave.  `is_accepted`: the application accepts it; else it releases it.
    `is_acknowledged`: the leader has answered that it took the acceptance.  `ended_ms`: when the
    acknowledgement was answered, -1 for never."""

    group: str
    consumer: str
    partition: Partition
    offset: int
    value: bytes | None
    count: int
    is_accepted: bool
    at_ms: int = -1
    is_acknowledged: bool = False
    ended_ms: int = -1
    is_sent: bool = False
    """Its acknowledgement was sent, whether it arrived or not."""
    broker: int = -1
    """The leader that gave it, and that gets the acknowledgement."""
    asked_ms: int = -1
    asked: int = 0
    """When the fetch was sent that brought it; as a step of the ledger, which orders what happened
    within a millisecond."""
    sent: int = 0
    """When its acknowledgement was sent, as a step of the ledger."""
    ended: int = 0
    """When the acknowledgement was answered, as a step of the ledger."""
    error: str = ""
    """Kafka's name of the error with which the acknowledgement was refused."""

    @property
    def may_be_acknowledged(self) -> bool:
        """An acceptance was sent that may have been stored: it has no answer, or an error that does
        not exclude it."""
        return self.is_accepted and self.is_sent and self.error not in _NOT_STORED

    def is_behind(self, settled: SharedRecord) -> bool:
        """Whether the leader had settled that delivery of the record before it made this one: the
        fetch was sent after the answer, or brought the acknowledgement itself."""
        return settled.ended < self.asked or settled.sent == self.asked

    @property
    def is_released(self) -> bool:
        """The leader has answered that it took the release."""
        return not self.is_accepted and self.ended_ms >= 0 and not self.error


class ShareLeadership(NamedTuple):
    """A broker leads a partition for a share group from now on, in this leader epoch."""

    group: str
    partition: Partition
    broker: int
    leader_epoch: int
    at_ms: int


class GroupOffset(NamedTuple):
    """An offset of a group as a client knows it: an acked commit, or the answer to an OffsetFetch
    (`offset` -1: there is none).  `known`: the offset of the last commit that had been acked when
    the fetch was sent, -1 for none: commits that were acked later may be in the answer or not."""

    group: str
    partition: Partition
    offset: int
    is_commit: bool
    known: int = -1


class ClientError(Struct, frozen=True):
    """An error that a client received: `api` and `error` are Kafka's names.  If no response came,
    the client's own `DISCONNECTED` or `REQUEST_TIMED_OUT`."""

    at_ms: int
    client: str
    api: str
    error: str
    partition: Partition | None = None


class DeliveryLimits(NamedTuple):
    """How often a record may be delivered to a share group: the lowest and the highest limit that
    were in force during the run (share.delivery.count.limit)."""

    lowest: int = 5
    highest: int = 5


UNCHANGED_LIMITS: Final = DeliveryLimits()


class Ledger:
    """All sends and reads of a run, in order."""

    def __init__(self) -> None:
        self.sends: list[SentRecord] = []
        self.reads: list[ReadRecord] = []
        self.commits: list[GroupOffset] = []
        """Acked commits and fetched offsets; `add_commit` and `add_fetched` append to it."""
        self._acked: dict[tuple[str, Partition], int] = {}
        """By group and partition, the offset of the last acked commit."""
        self.transactions: list[ClientTransaction] = []
        self.read_committed: dict[str, None] = {}
        """The consumers with isolation level read_committed."""
        self.deliveries: list[SharedRecord] = []
        """What share consumers received, in order."""
        self.delivery_limits: dict[str, DeliveryLimits] = {}
        """By share group."""
        self.lock_duration_ms = 30_000
        """How long a member of a share group may keep a record."""
        self.share_leaderships: list[ShareLeadership] = []
        """Those of all share groups, in order of time."""
        self.present_share_groups: dict[str, None] = {}
        """Share groups that had members when the run should have come to rest."""
        self.unowned: list[tuple[str, Partition]] = []
        """(group, partition) that no member of the group owned when the run should have come to
        rest."""
        self.errors: list[ClientError] = []
        """Errors that clients received."""
        self._step = 0

    def next_step(self) -> int:
        """Number what happens now, behind all that happened before."""
        self._step += 1
        return self._step

    def add_commit(self, group: str, partition: Partition, offset: int) -> None:
        """A commit was acked."""
        self._acked[group, partition] = offset
        self.commits.append(GroupOffset(group, partition, offset, True))

    def acked_offset(self, group: str, partition: Partition) -> int:
        """The offset of the last acked commit, -1 for none."""
        return self._acked.get((group, partition), -1)

    def add_fetched(self, group: str, partition: Partition, offset: int, known: int) -> None:
        """An OffsetFetch was answered; `known`: `acked_offset` when it was sent."""
        self.commits.append(GroupOffset(group, partition, offset, False, known))

    def without_records(self) -> Ledger:
        """A ledger of the same clients and transactions, without what they sent and read."""
        other = Ledger()
        other.transactions = self.transactions
        other.read_committed = dict(self.read_committed)
        other.unowned = self.unowned
        other.deliveries = self.deliveries
        other.delivery_limits = self.delivery_limits
        other.lock_duration_ms = self.lock_duration_ms
        other.share_leaderships = self.share_leaderships
        other.present_share_groups = self.present_share_groups
        return other
