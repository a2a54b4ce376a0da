"""The facts that links of a chain hold besides the events of notes.

Owns: a type for each fact.  Never: words for them (words.py); finds them (anomalies/, stories/,
unavailable.py).  Kafka: no counterpart; what a person reads in the logs of all brokers and clients.
"""

from __future__ import annotations

from typing import ClassVar, Final

from msgspec import UNSET, Struct, UnsetType

from kcluster.clients.ledger import TransactionOutcome
from kcluster.contract import Event
from kcluster.events.network import LinkEvent
from kcluster.events.partitions import LeaderElected
from kcluster.evidence.causes import Cause

Value = bytes | UnsetType | None
"""A record's value, or UNKNOWN."""
UNKNOWN: Final = UNSET


class ChainFact(Struct, frozen=True):
    """A fact that no single note holds.  `CAUSES`: the causes that it stands for."""

    CAUSES: ClassVar[tuple[Cause, ...]] = ()


class OfEvent(ChainFact, frozen=True):
    """What the event of a note meant here.  It stands for the event's causes."""

    event: Event


class ClientGot(ChainFact, frozen=True):
    """A client received an error, by Kafka's name."""

    error: str


Fact = Event | ChainFact


# ------------------------------------------------------------------------------- the cluster


class ManyLinks(ChainFact, frozen=True):
    """Many links were cut or healed at once.  `first`: the first of them."""

    first: LinkEvent
    count: int


class FoundAgain(ChainFact, frozen=True):
    """A fact that was found several times."""

    fact: Fact
    times: int


class TopicRemoved(ChainFact, frozen=True):
    """A topic was deleted."""

    topic: str


class DiskLost(OfEvent, frozen=True):
    """A broker went down with its disk, or its disk was replaced while it was down."""

    broker: int


class ElectedFrom(OfEvent, frozen=True):
    """A leader was elected whose log ended at `log_end`."""

    event: LeaderElected
    log_end: int


# ------------------------------------------------------------------- why clients had to wait


class LeaderAway(OfEvent, frozen=True):
    """The leader's process was down or paused."""

    leader: int


class NeverLed(ChainFact, frozen=True):
    """A partition, `orders-0`, had not had a leader so far."""

    partition: str


class Leaderless(OfEvent, frozen=True):
    """A partition has had no leader since this event."""


class NotNoticed(OfEvent, frozen=True):
    """A broker that was away was not fenced before this event."""


class ControllerAway(OfEvent, frozen=True):
    """The controller's process was down or paused."""


class LeaderCutOff(ChainFact, frozen=True):
    """No messages passed between the leader and a client, or the controller ("")."""

    leader: int
    client: str = ""


class TooFewInSync(ChainFact, frozen=True):
    """The ISR was smaller than min.insync.replicas; `event`: since when, if that is known."""

    isr: tuple[int, ...]
    min_isr: int
    event: Event | None = None


class FollowerAway(OfEvent, frozen=True):
    """A follower in the ISR was down or paused."""

    broker: int


class FollowerCutOff(ChainFact, frozen=True):
    """No messages passed between a follower in the ISR and the leader."""

    broker: int
    leader: int


class AllHealthy(ChainFact, frozen=True):
    """No broker was at fault."""


class LeaderUnknown(OfEvent, frozen=True):
    """The clients had not yet learned of an election."""

    event: LeaderElected


# --------------------------------------------------------------------------- appends and acks


class RequestName(Struct, frozen=True):
    """A request as brokers log it."""

    correlation_id: int
    client_id: str | None


class RecordAppended(ChainFact, frozen=True):
    """A record was appended by a leader.  Fields that its story does not need are left out: `epoch`
    -1, `isr` and `request` None.  `is_again`: it was there before; `is_overtaking`: it was sent
    after the record that the story is about."""

    value: Value
    offset: int
    broker: int
    epoch: int = -1
    isr: tuple[int, ...] | None = None
    request: RequestName | None = None
    is_again: bool = False
    is_overtaking: bool = False


class RangeAppended(ChainFact, frozen=True):
    """The records at these offsets were appended by a leader."""

    first: int
    last: int
    broker: int
    epoch: int
    isr: tuple[int, ...]


class RangeAcked(ChainFact, frozen=True):
    """The records at these offsets were acked, or sent with acks=0.  `by`: the broker that
    answered, -1 if unknown; `ends`: (broker, log end) of the other replicas at that time."""

    first: int
    last: int
    acks: int
    by: int
    leader: int
    isr: tuple[int, ...]
    ends: tuple[tuple[int, int], ...]


class AckedAlone(RangeAcked, frozen=True):
    """The leader acked acks=all without another replica, as min.insync.replicas is 1."""

    CAUSES = (Cause.MIN_INSYNC_ONE,)


class RecordSent(ChainFact, frozen=True):
    """A producer sent a record."""

    value: Value


class NeverAppended(ChainFact, frozen=True):
    """A producer sent a record, and no broker has appended it."""

    value: bytes | None
    acks: int


class RecordAcked(ChainFact, frozen=True):
    """A record was acked."""

    value: bytes | None


class ErrorAnswered(ClientGot, frozen=True):
    """A broker answered an append with this error."""


class RequestFailed(ClientGot, frozen=True):
    """A broker answered a request with this error."""

    broker: int
    correlation_id: int


class NeverAnswered(ChainFact, frozen=True):
    """A request was appended, and never answered."""

    CAUSES = (Cause.LOST_RESPONSE,)
    correlation_id: int


class AckLost(ChainFact, frozen=True):
    """A broker acked a request, and the producer did not get the answer."""

    CAUSES = (Cause.LOST_RESPONSE,)
    broker: int
    correlation_id: int


class FirstTaken(ChainFact, frozen=True):
    """A log had no batch of a producer, so its leader took one that does not begin with sequence
    0."""

    broker: int
    client: str
    sequence: int


class SentInNewEpoch(ChainFact, frozen=True):
    """A producer had bumped its epoch, and sent in the new one what it had sent in an older one."""

    CAUSES = (Cause.EPOCH_BUMP,)
    client: str
    older: int
    newer: int


class ErrorOfClient(ClientGot, frozen=True):
    """By its own ledger a client got this error for its requests of one API: `times`, the last
    `span_ms` after the first."""

    client: str
    api: str
    times: int = 1
    span_ms: int = 0


# ------------------------------------------------------------------------- reads and commits


class RecordRead(ChainFact, frozen=True):
    """A consumer's application received a record.  `broker`: the broker that served it, -1 if
    unknown; `is_restart`: the consumer had chosen its position itself."""

    consumer: str
    offset: int
    broker: int
    is_restart: bool = False


class GroupCommitted(ChainFact, frozen=True):
    """A group committed an offset beyond a record that it had not read."""

    CAUSES = (Cause.EARLY_COMMIT,)
    group: str
    offset: int


class CommitAcked(ChainFact, frozen=True):
    """A broker acked a group's commit of an offset."""

    broker: int
    group: str
    offset: int


class CommitWritten(ChainFact, frozen=True):
    """A broker wrote a group's commit of an offset to its log."""

    broker: int
    group: str
    offset: int


class OffsetAnswered(ChainFact, frozen=True):
    """A broker answered a group's OffsetFetch."""

    broker: int
    group: str
    offset: int


class PartitionGiven(ChainFact, frozen=True):
    """A group gave a partition to a member: to its holder, or meanwhile to another member."""

    group: str
    to_another: bool


class GroupMadeClassic(ChainFact, frozen=True):
    """A consumer group became a classic group, in which a member has its target."""

    group: str
    member: str


class TopicNeedsBrokers(ChainFact, frozen=True):
    """An internal topic was not created, because it needs more replicas than there are brokers."""

    topic: str
    replication_factor: int
    brokers: int


class Archived(ChainFact, frozen=True):
    """A share group archived records after this number of deliveries; answers with them were
    lost."""

    group: str
    deliveries: int


# ------------------------------------------------------------------------------ transactions


class TransactionBegan(ChainFact, frozen=True):
    """A producer began a transaction.  `version`: the protocol's version."""

    number: int
    producer: str
    version: int
    producer_id: int
    producer_epoch: int


class TransactionOver(ClientGot, frozen=True):
    """A transaction ended, or the run did, with this outcome.  `error`: "" for none."""

    number: int
    producer: str
    outcome: TransactionOutcome


class EndTxnTaken(ChainFact, frozen=True):
    """A coordinator accepted an EndTxn."""

    broker: int
    committed: bool
    producer_epoch: int
