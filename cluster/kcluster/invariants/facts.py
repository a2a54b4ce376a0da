"""What was observed where an invariant is broken, as values.

Owns: these types.  Never: finds a violation (rules.py, invariants.py), words it (words.py).
Kafka: no counterpart.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from kcluster.events.base import kind_of

Brokers = tuple[int, ...]


class Measure(StrEnum):
    """A number that a rule compares."""

    LEADER_EPOCH = "leader epoch"
    PARTITION_EPOCH = "partition epoch"
    METADATA_OFFSET = "metadata offset"
    HIGH_WATERMARK = "watermark"
    LOG_START = "log start"
    LOG_END = "log end"
    COMMITTED_END = "committed up to"
    ACKED = "acked offset"
    READ = "read offset"
    GENERATION = "generation"
    MEMBER_EPOCH = "member epoch"


class Fault(StrEnum):
    """The reason why brokers should not be where they are."""

    NO_REPLICA = "are not among"
    IN_ELR = "are in the ELR, too; the ISR is"
    FENCED = "are fenced, the ISR is"


class Observed(Struct, frozen=True, tag_field="kind", tag=kind_of):
    """What was observed."""


class WentBack(Observed, frozen=True):
    """A quantity became smaller."""

    what: Measure
    before: int
    after: int


class OutOfBounds(Observed, frozen=True):
    """A quantity lies on the wrong side of another one."""

    what: Measure
    value: int
    bound: Measure
    limit: int


class MemberBehind(Observed, frozen=True):
    """The log of a member of the ISR ends below a bound."""

    broker: int
    isr: Brokers
    log_end: int
    bound: Measure
    limit: int


class Misplaced(Observed, frozen=True):
    """Brokers that should not be in the ISR, or in the ELR; `others`: the ISR, or the replicas."""

    brokers: Brokers
    fault: Fault
    others: Brokers


class LeaderOutside(Observed, frozen=True):
    """A leader that is not in the ISR, and was in neither the ISR nor this `elr` before."""

    leader: int
    isr: Brokers
    elr: Brokers | None = None


class LeaderReplaced(Observed, frozen=True):
    """A change of leader."""

    before: int
    after: int
    leader_epoch: int


class LedBefore(Observed, frozen=True):
    """A leader epoch was led by another broker, or by an earlier life of the same broker."""

    leader_epoch: int
    broker: int
    life: int


class BeganWithout(Observed, frozen=True):
    """A leader began without the committed records from an offset on."""

    leader_epoch: int
    offset: int


class RecordDiffers(Observed, frozen=True):
    """The record at an offset has another leader epoch than the committed record.  `leader`: the
    leader whose log has the committed record at the end; None: it was committed earlier."""

    offset: int
    leader_epoch: int
    committed_epoch: int
    leader: int | None = None


class ProducerEnd(Struct, frozen=True):
    """The newest batch of a producer: its last sequence and offset, -1 without batches."""

    epoch: int
    sequence: int = -1
    offset: int = -1


class ProducerDiffers(Observed, frozen=True):
    """The producer's end in the table and in the log; None: it is not there."""

    producer_id: int
    table: ProducerEnd | None
    log: ProducerEnd | None


class TransactionSpan(Struct, frozen=True):
    """A transaction in a log: its first offset, and that of the marker that aborted it; -1 while it
    is open."""

    first_offset: int
    marker_offset: int = -1


class TransactionDiffers(Observed, frozen=True):
    """The producer's transaction, open or aborted, in the table and in the log; None: it is not
    there."""

    producer_id: int
    table: TransactionSpan | None
    log: TransactionSpan | None


class NewestRemoved(Observed, frozen=True):
    """Records that are the newest of their keys, and are not in a compacted log; `offset`: of the
    first."""

    offset: int
    count: int


class OlderKept(Observed, frozen=True):
    """Records in the cleaned part of a compacted log beside a newer one of their key; `offset`: of
    the first."""

    offset: int
    count: int


class GroupWentBack(Observed, frozen=True):
    """A group's generation, or the epoch of its `member`, became smaller."""

    what: Measure
    before: int
    after: int
    member: str = ""


class AssignedTwice(Observed, frozen=True):
    """A member got another assignment in the same generation."""

    member: str
    generation: int


class StaleCommit(Observed, frozen=True):
    """A commit of a generation (or member epoch) was accepted after another member's commit of a
    later one."""

    member: str
    generation: int
    other: str
    later: int


class FencedAlone(Observed, frozen=True):
    """A producer got an error of fenced producers; `error`: Kafka's name of it."""

    producer_id: int
    producer_epoch: int
    error: str


class AnsweredTwice(Observed, frozen=True):
    """A request was answered again."""

    correlation_id: int
    connection_id: int


class Unanswered(Observed, frozen=True):
    """A request that has waited too long."""

    request: str
    asked_ms: int


class Stall(Observed, frozen=True):
    """A high watermark that has not moved from `since_ms` to `until_ms`."""

    topic: str
    leader: int
    leader_epoch: int
    high_watermark: int
    log_end_offset: int
    since_ms: int
    until_ms: int

    @property
    def duration_ms(self) -> int:
        return self.until_ms - self.since_ms


class OverdueTransaction(Observed, frozen=True):
    """A transaction that was not ended from `since_ms` to `until_ms`.  `is_decided`: whether it
    waits for markers."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    coordinator: int
    is_decided: bool
    since_ms: int
    until_ms: int

    @property
    def duration_ms(self) -> int:
        return self.until_ms - self.since_ms


class TimeStoodStill(Observed, frozen=True):
    """Time stood still; `steps`: the steps that were repeated, as the run's error reports them."""

    steps: str
