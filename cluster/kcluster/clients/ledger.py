"""A run from its clients' view: records sent and read, commits, and errors.

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

from kcluster.protocol.names import GROUP_METADATA_TOPIC

Partition = tuple[str, int]
"""(topic, partition)."""


class Outcome(StrEnum):
    """A producer's knowledge of a send."""

    ACKED = "acked"
    FAILED = "failed"
    UNKNOWN = "unknown"


_NOT_STORED: Final = ("INVALID_RECORD_STATE", "INVALID_REQUEST")
"""Errors with which a leader refuses an acknowledgement before storing anything."""


class TransactionOutcome(StrEnum):
    """A producer's knowledge of a transaction."""

    OPEN = "open"
    COMMITTED = "committed"
    ABORTED = "aborted"
    """The transaction was aborted, or no commit was requested."""
    UNKNOWN = "unknown"
    """A commit was requested, and no answer arrived."""


class TransactionOffsets(Struct, frozen=True):
    """Offsets that are committed with a transaction: (offset, leader epoch) by partition.
    `generation`: the generation of a classic group, or the member's epoch in a consumer group."""

    group: str
    offsets: dict[Partition, tuple[int, int]]
    generation: int = -1
    member: str = ""
    instance: str = ""


class ClientTransaction(Struct):
    """One transaction of an application.  `number`: its place among the producer's transactions,
    from 1.  `version`: the protocol's version.  `error`: Kafka's name of the error that kept the
    transaction from being committed."""

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
    the outcome.  `life`: the number of the producer's process, from 1.  Times are in ms, -1 until
    they are known."""

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
    """The input record from which a processor made this record."""
    life: int = 1

    @property
    def is_promised(self) -> bool:
        """Whether the client may rely on the record: acked, and its transaction, if any,
        committed."""
        transaction = self.transaction
        return self.outcome is Outcome.ACKED and (
            transaction is None or transaction.outcome is TransactionOutcome.COMMITTED
        )

    @property
    def is_refused(self) -> bool:
        """Whether the client knows that no consumer may read it."""
        transaction = self.transaction
        return self.outcome is Outcome.FAILED or (
            transaction is not None and transaction.outcome is TransactionOutcome.ABORTED
        )


class ReadRecord(Struct, frozen=True):
    """One record that a consumer's application received.  `restarted`: the first record after the
    consumer's position was set: to a committed offset, by a reset, or after a truncation.
    `rewound_after`: an id of its poll or transaction if the consumer was set back afterwards to
    where it had been before; 0 if it was not."""

    consumer: str
    partition: Partition
    offset: int
    value: bytes | None
    restarted: bool = False
    at_ms: int = -1
    rewound_after: int = 0


class ReachedPosition(NamedTuple):
    """A consumer's next offset in a partition at a time: it has received or skipped all below."""

    consumer: str
    partition: Partition
    offset: int
    at_ms: int


class SharedRecord(Struct):
    """One record that a share consumer's application received.  `count`: the delivery count that
    the leader gave.  `is_accepted`: whether the application accepts the record; otherwise it
    releases the record.  `is_acknowledged`: whether the leader confirmed the acceptance.
    `ended_ms`: the time of the answer to the acknowledgement, -1 for none."""

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
    """Whether the record's acknowledgement was sent, even if it did not arrive."""
    broker: int = -1
    """The leader that delivered the record, and that receives the acknowledgement."""
    asked_ms: int = -1
    asked: int = 0
    """The step of the ledger at which the record's fetch was sent; steps order the events of one
    millisecond."""
    sent: int = 0
    """The step of the ledger at which the record's acknowledgement was sent."""
    ended: int = 0
    """The step of the ledger at which the record's acknowledgement was answered."""
    error: str = ""
    """Kafka's name of the error with which the acknowledgement was refused."""
    lock_ms: int = -1
    """How long the leader said that it keeps the record for the member; -1 if it is not known."""
    needs_renewal: bool = False
    """Whether the application still has to renew the record's lock, which is too short for it."""
    renewed_ms: int = -1
    """The time of the answer that renewed the lock; -1 if none has."""

    @property
    def busy_until_ms(self) -> int:
        """The time until which the application works on the record before it sends anything about
        it.  It renews a lock half-way, and then takes three quarters of it: longer than the first
        lock lasts, and not as long as the second one."""
        if self.renewed_ms >= 0:
            return self.renewed_ms + self.lock_ms * 3 // 4
        return self.at_ms + self.lock_ms // 2 if self.needs_renewal else self.at_ms

    @property
    def may_be_acknowledged(self) -> bool:
        """Whether an acceptance may have been stored: an acceptance was sent and got no answer, or
        an error that leaves it possible."""
        return self.is_accepted and self.is_sent and self.error not in _NOT_STORED

    def is_behind(self, settled: SharedRecord) -> bool:
        """Whether the leader had settled an earlier delivery of the record before this one: this
        fetch was sent after that answer, or carried the acknowledgement itself."""
        return settled.ended < self.asked or settled.sent == self.asked

    @property
    def is_released(self) -> bool:
        """Whether the leader confirmed the release."""
        return not self.is_accepted and self.ended_ms >= 0 and not self.error


class ShareLeadership(NamedTuple):
    """The beginning of a broker's leadership of a partition for a share group, in this leader
    epoch."""

    group: str
    partition: Partition
    broker: int
    leader_epoch: int
    at_ms: int


class GroupOffset(NamedTuple):
    """A group's offset in a client's view: an acked commit, or the answer to an OffsetFetch
    (`offset` -1: there is none).  `known`: the offset of the last commit that had been acked when
    the fetch was sent, -1 for none; the answer need not include later commits."""

    group: str
    partition: Partition
    offset: int
    is_commit: bool
    known: int = -1


class ClientError(Struct, frozen=True):
    """An error that a client received: `api` and `error` are Kafka's names.  Without a response,
    `error` is the client's own `DISCONNECTED` or `REQUEST_TIMED_OUT`."""

    at_ms: int
    client: str
    api: str
    error: str
    partition: Partition | None = None


class DeliveryLimits(NamedTuple):
    """The limits on the deliveries of a record to a share group: the lowest and the highest limit
    that were in force during the run (share.delivery.count.limit)."""

    lowest: int = 5
    highest: int = 5


UNCHANGED_LIMITS: Final = DeliveryLimits()


class Unowned(NamedTuple):
    """A partition that no member of its group owned at the time when the run should have settled.
    `needs`: the internal topics without which the members are not served."""

    group: str
    partition: Partition
    at_ms: int
    needs: tuple[str, ...] = (GROUP_METADATA_TOPIC,)


class Ledger:
    """All sends and reads of a run, in order."""

    def __init__(self) -> None:
        self.sends: list[SentRecord] = []
        self.reads: list[ReadRecord] = []
        self.positions: list[ReachedPosition] = []
        """The positions of consumers when they were closed."""
        self.late_starts: dict[str, None] = {}
        """The consumers that may have begun behind records that nobody had received."""
        self.commits: list[GroupOffset] = []
        """Acked commits and fetched offsets; `add_commit` and `add_fetched` append to it."""
        self._acked: dict[tuple[str, Partition], int] = {}
        """The offset of the last acked commit, by group and partition."""
        self.transactions: list[ClientTransaction] = []
        self.read_committed: dict[str, None] = {}
        """The consumers with isolation level read_committed."""
        self.deliveries: list[SharedRecord] = []
        """The deliveries to share consumers, in order."""
        self.delivery_limits: dict[str, DeliveryLimits] = {}
        """The limits on deliveries, by share group."""
        self.lock_duration_ms = 30_000
        """The time for which a member of a share group may hold a record, in ms."""
        self.share_leaderships: list[ShareLeadership] = []
        """The share leaderships of all groups, in order of time."""
        self.present_share_groups: dict[str, None] = {}
        """The share groups that had members at the time when the run should have settled."""
        self.unowned: list[Unowned] = []
        self.principals: dict[str, str] = {}
        """The principals of the clients that log in, such as `User:alice`, by client."""
        self.errors: list[ClientError] = []
        """Errors that clients received."""
        self._step = 0

    def next_step(self) -> int:
        """The number of the next step, greater than all earlier numbers."""
        self._step += 1
        return self._step

    def add_commit(self, group: str, partition: Partition, offset: int) -> None:
        """Add an acked commit."""
        self._acked[group, partition] = offset
        self.commits.append(GroupOffset(group, partition, offset, True))

    def acked_offset(self, group: str, partition: Partition) -> int:
        """The offset of the last acked commit, -1 for none."""
        return self._acked.get((group, partition), -1)

    def add_fetched(self, group: str, partition: Partition, offset: int, known: int) -> None:
        """Add the answer to an OffsetFetch; `known`: the value of `acked_offset` at the time of the
        request."""
        self.commits.append(GroupOffset(group, partition, offset, False, known))

    def without_records(self) -> Ledger:
        """A ledger with these clients and transactions, without sends and reads."""
        other = Ledger()
        other.transactions = self.transactions
        other.read_committed = dict(self.read_committed)
        other.late_starts = dict(self.late_starts)
        other.unowned = self.unowned
        other.deliveries = self.deliveries
        other.principals = self.principals
        other.delivery_limits = self.delivery_limits
        other.lock_duration_ms = self.lock_duration_ms
        other.share_leaderships = self.share_leaderships
        other.present_share_groups = self.present_share_groups
        return other
