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
    LISTED = "listed end"
    GENERATION = "generation"
    MEMBER_EPOCH = "member epoch"
    BROKER_EPOCH = "broker epoch"
    CLEANED_TO = "cleaned up to"
    PRODUCER_EPOCH = "producer epoch"
    COORDINATOR_EPOCH = "coordinator epoch"
    SHARE_START = "start offset of the share partition"
    DELIVERIES = "count of deliveries"
    IN_SYNC = "members of the ISR"
    MIN_ISR = "min.insync.replicas"
    RECORDS = "records"
    MAX_RECORDS = "max_records"
    MAX_LOCKS = "share.partition.max.record.locks"
    LOCK_MS = "lock duration"


class Fault(StrEnum):
    """The reason why brokers should not be where they are."""

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
    """A quantity that was named, and its value at that time."""

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
    """The leader epoch at an offset by a log's epoch cache, and the right one."""

    offset: int
    in_cache: int
    leader_epoch: int


class ProgressKept(Observed, frozen=True):
    """A leader knows a follower's log end although the follower has not fetched in its epoch."""

    follower: int
    log_end: int


class HeldBack(Observed, frozen=True):
    """A broker may not shut down, although all active brokers know the metadata up to an offset,
    by which it leads nothing."""

    metadata_offset: int


class Silent(Observed, frozen=True):
    """A broker that is not fenced has sent the controller nothing since its last heartbeat, or
    since the controller is active."""

    since_ms: int
    until_ms: int


class LogLeft(Observed, frozen=True):
    """A broker has the log of a partition of which it has no replica."""

    topic_id: bytes
    partition: int


class BatchAltered(Observed, frozen=True):
    """A batch that compaction has rebuilt with something else than fewer records."""

    offset: int
    what: str


class ProducerEnd(Struct, frozen=True):
    """The newest batch of a producer: its last sequence and offset, -1 without batches."""

    epoch: int
    sequence: int = -1
    offset: int = -1


class TimeDiffers(Observed, frozen=True):
    """A segment's greatest timestamp, as it is held and as its records give it."""

    base_offset: int
    held: int
    newest: int


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


class SequenceRemoved(Observed, frozen=True):
    """The last batch of a producer, which a log's table has and the log has not; `sequence`: its
    first one."""

    producer_id: int
    sequence: int
    offset: int


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


class StaleRequest(Observed, frozen=True):
    """A request of a member was served that is of an older generation or epoch; `newest`: the one
    that had begun, -1 if the member had left."""

    request: str
    member: str
    what: Measure
    own: int
    newest: int


class ToldUncommitted(Observed, frozen=True):
    """A member was told more than its coordinator has `committed`; 0: nothing of the member."""

    request: str
    member: str
    what: Measure
    told: int
    committed: int


class GivenAway(Observed, frozen=True):
    """A commit with an older member epoch was accepted for a partition that another member was
    given."""

    member: str
    epoch: int
    partition: int
    owner: str
    since: int


class StateKept(Observed, frozen=True):
    """A state of records that was not written since the share partition's state was
    initialized."""

    first_offset: int
    last_offset: int


class HeldBy(Observed, frozen=True):
    """A record of a share group was acknowledged by, or given to, `member`, while `holder` held
    it."""

    member: str
    holder: str
    offset: int


class Locked(Observed, frozen=True):
    """A record of a share group whose lock lasts until `until_ms`: its member lost the lock before
    that; or it is locked for longer (`member` "")."""

    offset: int
    until_ms: int
    at_ms: int
    member: str = ""


class StatePruned(Observed, frozen=True):
    """The last snapshot of a share partition's state is not in the log any more."""

    group: str
    partition: int
    snapshot_offset: int
    log_start: int


class PassedUnsettled(Observed, frozen=True):
    """The start offset of a share partition has passed a record that was not settled."""

    group: str
    partition: int
    offset: int


class Idle(Observed, frozen=True):
    """A member of a share group that has no partition, by the target of an epoch."""

    member: str
    epoch: int


class SegmentDiffers(Observed, frozen=True):
    """A property of a segment that is not the one of its batches."""

    base_offset: int
    what: str
    kept: int
    given: int


class CleanedTooYoung(Observed, frozen=True):
    """A batch was cleaned that is younger than min.compaction.lag.ms."""

    offset: int
    age_ms: int
    lag_ms: int


class NotAsked(Observed, frozen=True):
    """A member got records from an offset on, of a partition that it does not fetch."""

    member: str
    offset: int


class NotLoaded(Observed, frozen=True):
    """Records of a share partition from an offset on were delivered by a leader that had lost the
    partition before, and has not loaded its state since."""

    leader_epoch: int
    offset: int


class ReadOfAborted(Observed, frozen=True):
    """A record of a transaction that the marker at an offset has aborted was delivered."""

    offset: int
    producer_id: int
    marker_offset: int


class PlaceLost(Observed, frozen=True):
    """A member lost its place in its group, though nothing had happened to it."""

    member: str


class Duty(StrEnum):
    """What a member must do before its rebalance timeout ends."""

    SYNC = "had not synced"
    REVOCATION = "had not given up its partitions"


class Overdue(Observed, frozen=True):
    """A request of a member was served although the member `late`, maybe itself, had not done its
    duty since `since_ms`."""

    request: str
    member: str
    late: str
    duty: Duty
    since_ms: int
    at_ms: int


class Rejoined(StrEnum):
    """How a member joined its group again."""

    CHANGED = "with another subscription"
    LEADS = "as the leader of a group with an assignment"
    RETURNED = "under a new id before there was an assignment"


class NoRebalance(Observed, frozen=True):
    """A member joined again in a way that makes a group rebalance, and was answered in the
    generation that was there already."""

    member: str
    how: Rejoined
    generation: int


class FencedAlone(Observed, frozen=True):
    """A producer got an error of fenced producers; `error`: Kafka's name of it."""

    producer_id: int
    producer_epoch: int
    error: str


class ProducerWentBack(Observed, frozen=True):
    """A batch of a producer, at `offset`, has a smaller epoch than one before it."""

    producer_id: int
    what: Measure
    before: int
    after: int
    offset: int


class MarkerStrays(Observed, frozen=True):
    """A marker that comes from no decision, or from that of an earlier transaction."""

    producer_id: int
    producer_epoch: int
    is_commit: bool
    coordinator_epoch: int
    offset: int


class EarlyMarker(Observed, frozen=True):
    """A marker that was confirmed before it was committed."""

    producer_id: int
    producer_epoch: int
    is_commit: bool
    committed_end: int


class UnverifiedBatch(Observed, frozen=True):
    """A batch that begins a transaction in a log; `state`: that of its transactional id then, ""
    for none."""

    producer_id: int
    producer_epoch: int
    offset: int
    state: str


class HeldDiffers(Observed, frozen=True):
    """A field that a coordinator holds otherwise than its log has it; `field` "": all of it.  An
    empty value: it is not there."""

    what: str
    field: str
    held: str
    logged: str


class OtherwiseEnded(Observed, frozen=True):
    """An answer that confirms the end of a transaction which its coordinator did not decide so;
    `state`: the transaction's."""

    is_commit: bool
    producer_epoch: int
    state: str


class RefusedProducer(Observed, frozen=True):
    """A refusal of a producer without a reason.  `state`, `epoch`: of its transaction at its
    coordinator."""

    request: str
    producer_id: int
    producer_epoch: int
    error: str
    state: str
    epoch: int


class UnstableRead(Observed, frozen=True):
    """An offset that was given to a member although an open transaction may change it."""

    group: str
    topic: str
    partition: int
    offset: int


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
    """A member of an ISR that lacked the records from `log_end` on for all this time."""

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
    """A preferred leader that could lead for all this time, while `leader` did."""

    preferred: int
    leader: int
    since_ms: int
    until_ms: int


class GivenTwice(Observed, frozen=True):
    """A producer id that was given to two clients."""

    producer_id: int
    first: str
    second: str


class KeptSegment(Observed, frozen=True):
    """The oldest segment of a log, which was due to be deleted for all this time."""

    base_offset: int
    since_ms: int
    until_ms: int


class HeldDeletion(Observed, frozen=True):
    """A deletion of the records before an offset, which all live replicas have deleted."""

    before: int


class OutlivedElr(Observed, frozen=True):
    """A last known leader that was elected although `eligible` may come back, or is remembered
    although there is a leader again."""

    last_known: int
    eligible: Brokers
    leader: int = -1


class OffsetGiven(Observed, frozen=True):
    """An offset that was given to a group, which nobody has committed, or which was deleted."""

    group: str
    topic: str
    partition: int
    offset: int
    leader_epoch: int
    metadata: str
    is_deleted: bool


class OffsetLeft(Observed, frozen=True):
    """An offset of a topic that is deleted."""

    group: str
    topic: str
    partition: int
    offset: int


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
