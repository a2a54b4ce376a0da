"""Partitions and replicas as observed at the brokers: appends, committed records, logs.

Owns: a partition's observed history over a run, and the last observed state of each replica. Never:
finds a violation (rules.py, invariants.py do), changes a node.  Kafka: no counterpart; the
partition as an omniscient observer knows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kcluster.contract import Request
from kcluster.invariants.replayed import ReplayedLog
from kcluster.metadata.records import PartitionRegistration
from kcluster.partition.log.log import Log
from kcluster.partition.replica import Replica, Role
from kcluster.protocol.records.batches import Batch
from kcluster.structs import Untracked

PartitionKey = tuple[bytes, int]
"""(topic id, partition)."""

NO_EPOCH: Final = -1


def effective_min_isr(replica: Replica) -> int:
    """min.insync.replicas, but not above the number of replicas that there are now."""
    return min(replica.config.min_insync_replicas, len(replica.registration.replicas))


class Append(Untracked):
    """One batch appended by a leader.  `request`: the Produce request that carried it, None if the
    broker wrote it itself.  `isr`: the leader's ISR at that time.  `seen_ms`: the time of
    recording, which may be after `at_ms`; the appends of a partition are in this order."""

    at_ms: int
    broker: int
    epoch: int
    base_offset: int
    last_offset: int
    batch: Batch
    request: Request | None
    isr: tuple[int, ...]
    seen_ms: int


class Move(Untracked):
    """A replica's log end or high watermark as of `at_ms`, after one of them moved.
    `last_stable_offset`: known for a leader, else -1."""

    at_ms: int
    broker: int
    log_end_offset: int
    high_watermark: int
    last_stable_offset: int = -1


class EpochRuns(Untracked):
    """The leader epochs in a replica's log as of `at_ms`, after they changed: (leader epoch, its
    first offset), oldest first.  `start_offset`: the start of the log."""

    at_ms: int
    broker: int
    start_offset: int
    epochs: tuple[tuple[int, int], ...]


class Committed:
    """The committed prefix of one partition: batches by base offset in order, up to `end`."""

    __slots__ = ("batches", "end")

    def __init__(self) -> None:
        self.batches: dict[int, Batch] = {}
        self.end = 0

    def cut(self, end: int) -> None:
        """Forget the records from `end` on, which were lost."""
        self.end = end
        self.batches = {base: batch for base, batch in self.batches.items() if base < end}


class ObservedReplica:
    """The last observed state of a replica.  `log` is the live log itself."""

    __slots__ = (
        "broker", "epoch_starts", "first_dirty_offset", "high_watermark", "horizons",
        "leader_epoch", "life", "log", "log_end_offset", "log_start_offset",
        "min_compaction_lag_ms", "partition", "partition_epoch", "registration", "role",
    )  # fmt: skip

    def __init__(self, partition: ObservedPartition, broker: int, life: int) -> None:
        self.partition = partition
        self.broker = broker
        self.life = life
        self.log: Log
        self.role: Role
        self.registration: PartitionRegistration
        self.leader_epoch = NO_EPOCH
        self.partition_epoch = NO_EPOCH
        self.high_watermark = 0
        self.log_end_offset = 0
        self.log_start_offset = 0
        self.epoch_starts: tuple[int, ...] = ()
        """The starts of the log's leader epochs, as the object that the log had."""
        self.first_dirty_offset = 0
        self.min_compaction_lag_ms = -1
        """The config in force when the log was cleaned last; -1: not known."""
        self.horizons: dict[tuple[int, int], int] = {}
        """The delete horizons in the part of the log that was cleaned, by the base offset and the
        leader epoch of the batch."""

    def record_cleaning(self, replica: Replica) -> int:
        """Record how far the log is cleaned.  Returns the age in ms that records must have had: a
        step may first clean, and then apply a change of configs."""
        before_ms = self.min_compaction_lag_ms
        self.first_dirty_offset = replica.log.first_dirty_offset
        self.min_compaction_lag_ms = lag_ms = replica.config.min_compaction_lag_ms
        return lag_ms if before_ms < 0 else min(before_ms, lag_ms)

    def record_move(self, now_ms: int, replica: Replica) -> None:
        """Record the log end and the high watermark, and the leader epochs if they have changed."""
        log, observed = replica.log, self.partition
        stable = replica.last_stable_offset if replica.is_leader else -1
        end, watermark = log.log_end_offset, replica.high_watermark
        observed.moves.append(Move(now_ms, self.broker, end, watermark, stable))
        starts = log.epochs.starts
        if starts is not self.epoch_starts:
            self.epoch_starts = starts
            observed.observe_epochs(now_ms, self.broker, log)


class ObservedPartition:
    """One partition of one topic id, over a whole run.

    `appends`: leaders' appends in order of time, including appends that were lost later.
    `registrations`: the registrations at the controller, each with the time at which it was first
    seen.
    `moves`, `epoch_runs`: the changes of all replicas.
    """

    __slots__ = (
        "appends", "cleaned_to", "committed", "delete_retention_ms", "deleted", "deleted_ms",
        "deleted_to",
        "epoch_runs", "have_led", "key", "known_from", "leaders", "lost", "min_isr", "moves",
        "newest_epoch", "partition", "registration", "registrations", "replayed", "replicas",
        "topic", "unclean_applied", "unclean_epoch",
    )  # fmt: skip

    def __init__(self, topic: str, key: PartitionKey) -> None:
        self.topic = topic
        self.key = key
        self.partition = key[1]
        self.committed = Committed()
        self.appends: list[Append] = []
        self.moves: list[Move] = []
        self.epoch_runs: list[EpochRuns] = []
        self.registration: PartitionRegistration | None = None
        self.registrations: list[tuple[int, PartitionRegistration]] = []
        self.replicas: dict[int, ObservedReplica] = {}
        """The last observed state of each replica, by broker."""
        self.leaders: dict[int, tuple[int, int]] = {}
        """(broker, its life) by leader epoch."""
        self.newest_epoch = NO_EPOCH
        self.have_led: dict[int, None] = {}
        """The brokers in `leaders`."""
        self.cleaned_to = 0
        """The last result of `clean_offset`."""
        self.deleted_to = 0
        """The highest log start of a leader by then."""
        self.unclean_epoch = NO_EPOCH
        """The newest leader epoch that an unclean election began."""
        self.unclean_applied = NO_EPOCH
        """The newest unclean leader epoch whose losses no longer count as committed."""
        self.lost: dict[int, int] = {}
        """The newest broker epoch before a disk's loss of records, by broker."""
        self.min_isr = 1
        """The effective min.insync.replicas of the last observed replica."""
        self.delete_retention_ms = 0
        """The value of delete.retention.ms of the last observed replica."""
        self.known_from = 0
        """The offset below which appends are missing: they precede the recorder, or are too old to
        be kept."""
        self.replayed: ReplayedLog | None = None
        """The log of a coordinator, as far as it is committed; None for other partitions."""
        self.deleted: tuple[int, tuple[int, ...]] = (0, ())
        """The offset before which an administrator's deletion of records was confirmed, and the ISR
        at that time."""
        self.deleted_ms = -1
        """The time at which the partition's topic was deleted."""

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"

    def appended_after(self, at_ms: int) -> int:
        """The offset from which on every record was appended after a time, as far as is known."""
        before = (one.last_offset + 1 for one in self.appends if one.at_ms <= at_ms)
        return max(self.known_from, max(before, default=0))

    def clean_offset(self) -> int:
        """The offset below which a leader's log was compacted, so that replicas may hold smaller
        batches than were committed, or none.  A follower copies the compacted batches, without a
        trace of it in its own log."""
        for broker in self.have_led:
            replica = self.replicas.get(broker)
            if replica is not None:
                self.cleaned_to = max(self.cleaned_to, replica.log.first_dirty_offset)
                self.deleted_to = max(self.deleted_to, replica.log.log_start_offset)
        return self.cleaned_to

    def clean_elsewhere(self, broker: int) -> int:
        """The offset below which the log of another broker that has led was compacted: this broker
        may have copied it so."""
        others = (self.replicas.get(other) for other in self.have_led if other != broker)
        return max((one.log.first_dirty_offset for one in others if one is not None), default=0)

    def whole_offset(self) -> int:
        """The offset below which a leader's log was compacted, or its records deleted.  With these
        the leader forgets their epochs: it then takes a follower's uncommitted records at the same
        offsets for its own.  The follower deletes them when it has the answer with the log
        start."""
        return max(self.clean_offset(), self.deleted_to)

    def observe_loss(self, now_ms: int, broker: int, log_end_offset: int) -> None:
        """Record that a power loss has shortened the log of a broker that is down."""
        for move in reversed(self.moves):
            if move.broker == broker:
                watermark = min(move.high_watermark, log_end_offset)
                self.moves.append(Move(now_ms, broker, log_end_offset, watermark))
                return

    def observe_appends(
        self, now_ms: int, leader: Replica, from_offset: int, request: Request | None
    ) -> Sequence[Batch]:
        """Record the batches that a leader has appended since `from_offset`; returns them.
        `request`: the Produce request that it handled in this step."""
        log = leader.log
        if log.log_end_offset <= from_offset:
            return ()
        last = log.segments[-1].batches[-1]
        batches = [last] if last.base_offset == from_offset else log.batches_from(from_offset)
        for batch in batches:
            self.appends.append(
                Append(
                    now_ms,
                    leader.broker_id,
                    leader.leader_epoch,
                    batch.base_offset,
                    batch.last_offset,
                    batch,
                    request,
                    leader.isr,
                    now_ms,
                )
            )
        return batches

    def observe_epochs(self, now_ms: int, broker: int, log: Log) -> None:
        """Record the leader epochs of a log, which have changed or are seen for the first time."""
        entries = tuple(log.epochs.entries)
        self.epoch_runs.append(EpochRuns(now_ms, broker, log.log_start_offset, entries))
