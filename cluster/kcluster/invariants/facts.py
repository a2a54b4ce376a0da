"""Observed facts that break an invariant, as values.

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
    LISTED = "listed end"
    GENERATION = "generation"
    MEMBER_EPOCH = "member epoch"
    BROKER_EPOCH = "broker epoch"
    CLEANED_TO = "cleaned up to"
    PRODUCER_EPOCH = "producer epoch"
    STATE_EPOCH = "state epoch"
    COORDINATOR_EPOCH = "coordinator epoch"
    SHARE_START = "start offset of the share partition"
    DELIVERIES = "count of deliveries"
    IN_SYNC = "members of the ISR"
    MIN_ISR = "min.insync.replicas"
    RECORDS = "records"
    MAX_RECORDS = "max_records"
    BYTES = "bytes"
    MAX_BYTES = "max_bytes"
    MAX_LOCKS = "share.partition.max.record.locks"
    LOCK_MS = "lock duration"
    MAX_DELIVERIES = "share.delivery.count.limit"
    SETTLED = "records counted as settled"
    UNHELD = "records from the start offset on that nobody holds"
    LAST_STABLE = "last stable offset"
    OLDEST_OPEN = "oldest open transaction begins at"
    SEGMENT_SPAN = "time between the first and the last batch of a segment"
    SEGMENT_MS = "segment.ms"
    SEGMENT_SIZE = "bytes in a segment"
    SEGMENT_BYTES = "segment.bytes"
    UNFLUSHED = "records that are not flushed"
    FLUSH_MESSAGES = "flush.messages"


class Fault(StrEnum):
    """The reason why brokers should not be in the ISR or the ELR."""

    NO_REPLICA = "are not among"
    IN_ELR = "are in the ELR, too; the ISR is"
    FENCED = "are fenced, the ISR is"
    NOT_IN_SYNC = "were needed in the ISR, which is"
    NEWCOMER = "were no replicas before; the replicas were"
    NEEDLESS = "are in the ELR, though enough are in the ISR:"


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


class Outdated(Observed, frozen=True):
    """A quantity as it was named, and its actual value at that time."""

    what: Measure
    named: int
    current: int


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


class EpochDiffers(Observed, frozen=True):
    """The leader epoch at an offset in a log's epoch cache, and in the log itself."""

    offset: int
    in_cache: int
    leader_epoch: int


class ProgressKept(Observed, frozen=True):
    """A leader knows a follower's log end although the follower has not fetched in its epoch."""

    follower: int
    log_end: int


class HeldBack(Observed, frozen=True):
    """A broker was not allowed to shut down, although it leads nothing as of a metadata offset that
    all active brokers have applied."""

    metadata_offset: int


class Silent(Observed, frozen=True):
    """A broker that is not fenced has sent the controller nothing since its last heartbeat, or
    since the controller became active."""

    since_ms: int
    until_ms: int


class LogLeft(Observed, frozen=True):
    """A broker has the log of a partition of which it has no replica."""

    topic_id: bytes
    partition: int


class BatchAltered(Observed, frozen=True):
    """A batch in which compaction has changed something besides dropping records."""

    offset: int
    what: str


class TimeDiffers(Observed, frozen=True):
    """A segment's greatest timestamp as stored, and as its batches give it."""

    base_offset: int
    held: int
    newest: int


class NewestRemoved(Observed, frozen=True):
    """Records that a compacted log lacks although each is the newest of its key; `offset`: of the
    first."""

    offset: int
    count: int


class OlderKept(Observed, frozen=True):
    """Records in the cleaned part of a compacted log beside a newer one of their key; `offset`: of
    the first."""

    offset: int
    count: int


class SegmentDiffers(Observed, frozen=True):
    """A property of a segment that differs from what its batches give."""

    base_offset: int
    what: str
    kept: int
    given: int


class CleanedTooYoung(Observed, frozen=True):
    """A batch was cleaned that is younger than min.compaction.lag.ms."""

    offset: int
    age_ms: int
    lag_ms: int


class HeldDiffers(Observed, frozen=True):
    """A field that a node holds differently from the log; `field` "": the whole entry.  An empty
    value: it is missing."""

    what: str
    field: str
    held: str
    logged: str


class AnswerDiffers(Observed, frozen=True):
    """A part of a broker's answer, as given and as due."""

    what: str
    given: str
    due: str


class LeftInSync(Observed, frozen=True):
    """A member that its leader proposed to take out of the ISR at `at_ms`, though it had all
    records at its last fetch."""

    broker: int
    isr: Brokers
    fetched_ms: int
    at_ms: int


class KeptLaggard(Observed, frozen=True):
    """A member that stayed in the ISR although it lacked the records from `log_end` on all the time
    from `since_ms` to `until_ms`."""

    broker: int
    isr: Brokers
    log_end: int
    since_ms: int
    until_ms: int


class Muted(Observed, frozen=True):
    """A request that was answered while its connection was to be muted."""

    request: str
    connection_id: int
    until_ms: int


class NotPreferred(Observed, frozen=True):
    """A preferred leader that could lead from `since_ms` to `until_ms`, while `leader` led."""

    preferred: int
    leader: int
    since_ms: int
    until_ms: int


class DeletedEarly(Observed, frozen=True):
    """A batch that retention deleted at an age of `age_ms`, of a log of which `left_bytes` are
    left from the next batch on.  `retention_ms`, `retention_bytes`: its topic's; -1: no limit."""

    offset: int
    age_ms: int
    left_bytes: int
    retention_ms: int
    retention_bytes: int


class DeletedAgain(Observed, frozen=True):
    """A log that begins at `start_offset`, although the deletion of all records before a later
    offset was confirmed while its replica was in sync."""

    before: int
    start_offset: int


class RegisteredEarly(Observed, frozen=True):
    """A broker's new process that was registered at `at_ms`, although the session of its previous
    process, which sent its last heartbeat at `heartbeat_ms`, had not ended."""

    heartbeat_ms: int
    at_ms: int
    timeout_ms: int


class LeaderDenied(Observed, frozen=True):
    """A consumer's fetch that a leader refused as if it did not lead; `error`: Kafka's name of the
    refusal."""

    error: str
    leader_epoch: int


class SentOutside(Observed, frozen=True):
    """A consumer that a leader sent to a broker outside its ISR."""

    broker: int
    isr: Brokers


class UnexpectedError(Observed, frozen=True):
    """An error in an answer that has no meaning there; `error`: its name in Kafka."""

    request: str
    error: str


class EndCompacted(Observed, frozen=True):
    """The batch that ended at the high watermark, which compaction has removed."""

    offset: int
    high_watermark: int


class NotCleaned(Observed, frozen=True):
    """A batch at `offset` that has not been cleaned, though it is older than `lag_ms`."""

    offset: int
    age_ms: int
    lag_ms: int


class KeptSegment(Observed, frozen=True):
    """The oldest segment of a log, which was due for deletion from `since_ms` to `until_ms`."""

    base_offset: int
    since_ms: int
    until_ms: int


class HeldDeletion(Observed, frozen=True):
    """A DeleteRecords request that still waits although all live replicas have deleted the
    records."""

    before: int


class OutlivedElr(Observed, frozen=True):
    """A last known leader that was elected although `eligible` may come back, or is remembered
    although there is a leader again."""

    last_known: int
    eligible: Brokers
    leader: int = -1


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


class KeptBack(Observed, frozen=True):
    """A consumer's fetch from `offset` on that got no record, although the broker could give those
    before `readable_end`."""

    offset: int
    readable_end: int


class StoppedUnfenced(Observed, frozen=True):
    """A broker that was told to shut down, and is not fenced in this `epoch` of it."""

    epoch: int


class StartBehind(Observed, frozen=True):
    """The log start of a follower in the ISR, which has fetched again and again since its leader's
    log began at `due`."""

    follower: int
    log_start: int
    due: int


class TimeStoodStill(Observed, frozen=True):
    """Time stood still; `steps`: the steps that were repeated, as the run's error reports them."""

    steps: str
