"""One replica's log: append, read, truncate, find by time, flush.

Owns: offsets and batches of one replica, its leader-epoch cache and its producers.  Never: knows
who leads, the high watermark (partition/replica.py), a clock, or another replica; deletes by age or
size (partition/log/retention.py does, through `drop_segments`).
Kafka: UnifiedLog, LocalLog, LogSegments; KIP-98, KIP-101, KIP-107, KIP-734.

Batches are shared: `append_as_leader` returns them in `batches`, `read` returns the same objects on
the leader, and `append_as_follower` takes them on the followers.  An empty log has no segment, no
table of producers and no list: thousands of them are cheap.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as Layout
from typing import Final, final

from mypy_extensions import mypyc_attr

from kcluster.config.kafka.definitions import TopicConfig
from kcluster.partition.epochs import EpochCache
from kcluster.partition.log.append_rules import AppendRules, rules_of
from kcluster.partition.log.lookup import (
    batches_from,
    end_of_batch_with,
    first_not_older,
    newest_by_time,
    read_batches,
)
from kcluster.partition.log.segment import Segment, segment_index
from kcluster.partition.log.validation import Refusal, admit, writable
from kcluster.partition.producers import NO_STATE, AppendedBatch, ProducerStates, SequenceRefusal
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.records.batches import CONTROL_BIT, NO_TIMESTAMP, TRANSACTIONAL_BIT, Batch
from kcluster.protocol.records.compression import Allowance

_BASE_OFFSET: Final = Layout(">q")
_LEADER_EPOCH: Final = Layout(">i")
_LEADER_EPOCH_AT: Final = 12
_put_base_offset: Final = _BASE_OFFSET.pack_into
_put_leader_epoch: Final = _LEADER_EPOCH.pack_into

NO_OFFSET: Final = -1
NO_ERROR: Final = ErrorCode.NONE


@mypyc_attr(free_list_len=1)
@final
class Appended:
    """The outcome of `append_as_leader`: the values that a ProduceResponse needs.

    `log_append_time_ms`: -1 unless the topic has message.timestamp.type=LogAppendTime.
    `record_errors`: (index in the batch, reason). `duplicate`: the batch was appended before.  The
    offsets are the first append's, `batches` is empty, and the error is NONE, so that acks=all
    still waits for `last_offset` to be committed.
    """

    __slots__ = (
        "base_offset", "batches", "duplicate", "error", "error_message", "last_offset",
        "log_append_time_ms", "log_start_offset", "record_errors",
    )  # fmt: skip

    def __init__(
        self,
        error: ErrorCode,
        base_offset: int = NO_OFFSET,
        last_offset: int = NO_OFFSET,
        log_append_time_ms: int = NO_TIMESTAMP,
        log_start_offset: int = NO_OFFSET,
        batches: Sequence[Batch] = (),
        error_message: str | None = None,
        record_errors: tuple[tuple[int, str], ...] = (),
        duplicate: bool = False,
    ) -> None:
        self.error = error
        self.base_offset = base_offset
        self.last_offset = last_offset
        self.log_append_time_ms = log_append_time_ms
        self.log_start_offset = log_start_offset
        self.batches = batches
        self.error_message = error_message
        self.record_errors = record_errors
        self.duplicate = duplicate


class Log:
    """The log of one replica.

    Invariants: `log_start_offset <= flushed_offset <= log_end_offset`; `first_dirty_offset` and
    `high_watermark_checkpoint` are at most `log_end_offset`; segments are adjacent, oldest first.
    """

    __slots__ = (
        "_rules", "epochs", "first_dirty_offset", "flushed_ms", "flushed_offset",
        "high_watermark_checkpoint", "is_uncleanable", "log_end_offset", "log_start_offset",
        "partition", "producer_table", "segments", "size_bytes", "topic_id",
    )  # fmt: skip

    def __init__(self, topic_id: bytes, partition: int) -> None:
        self.topic_id = topic_id
        self.partition = partition
        self.log_start_offset = 0
        self.log_end_offset = 0
        self.size_bytes = 0
        self.flushed_offset = 0
        """The offset up to which records survive a power loss."""
        self.flushed_ms = 0
        self.first_dirty_offset = 0
        """The offset up to which compaction has cleaned the log.  Kafka:
        cleaner-offset-checkpoint."""
        self.is_uncleanable = False
        """Whether compaction has met a batch that it cannot read. Kafka:
        LogCleanerManager.markPartitionUncleanable."""
        self.high_watermark_checkpoint = 0
        """The high watermark at the last checkpoint.  The broker stores it here, because the log
        outlives the process."""
        self.epochs = EpochCache()
        self.segments: list[Segment] = _NO_SEGMENTS
        self.producer_table: ProducerStates | None = None
        """The table behind `producers`; None if no idempotent producer ever wrote here."""
        self._rules: AppendRules | None = None

    def __repr__(self) -> str:
        name = f"{self.topic_id.hex()[:8]}-{self.partition}"
        return f"<Log {name} [{self.log_start_offset}, {self.log_end_offset})>"

    @property
    def producers(self) -> ProducerStates:
        """The idempotent producers of this log; creates the table if there is none."""
        if self.producer_table is None:
            self.producer_table = ProducerStates()
        return self.producer_table

    @property
    def is_blank(self) -> bool:
        """Whether neither a record nor a producer is known here."""
        return not self.segments and self.producer_table is None

    @property
    def has_unflushed(self) -> bool:
        """Whether a power loss would lose records."""
        return self.flushed_offset < self.log_end_offset

    # ------------------------------------------------------------------------------ appending

    def append_as_leader(
        self,
        buffer: bytes | bytearray | memoryview,
        leader_epoch: int,
        now_ms: int,
        config: TopicConfig,
        from_client: bool = True,
        transaction_verified: bool = False,
        allowance: Allowance | None = None,
    ) -> Appended:
        """Append the one batch in `buffer`, at the log end, written in `leader_epoch`.

        Offset and epoch are written into `buffer` itself, which the log keeps; a read-only one is
        copied.  `from_client` False: the broker's own records (offset commits, markers), which have
        no sequence and may be control batches.  `transaction_verified`: the coordinator has
        confirmed that a transactional batch belongs to an open transaction (KIP-890). `allowance`:
        the bytes that its request may still decompress; None: an allowance for this batch alone.
        """
        rules = self._rules = rules_of(config, self._rules)
        batch = admit(buffer, rules, now_ms, from_client, allowance)
        if isinstance(batch, Refusal):
            return self._refused(batch)
        idempotent = batch.producer_id >= 0
        if idempotent:
            answer = (
                self._check_sequence(batch, transaction_verified)
                if from_client
                else self._check_epoch(batch)
            )
            if answer is not None:
                return answer

        base_offset = self.log_end_offset
        last_offset = base_offset + batch.last_offset - batch.base_offset
        batch.base_offset = base_offset
        batch.last_offset = last_offset
        batch.leader_epoch = leader_epoch
        own = batch.buffer
        if type(own) is not memoryview or own.readonly:
            batch.buffer = own = writable(own)
        _put_base_offset(own, 0, base_offset)
        _put_leader_epoch(own, _LEADER_EPOCH_AT, leader_epoch)
        self._append(batch, now_ms, rules)
        if idempotent:
            self.producers.update(batch)
        log_append_time_ms = now_ms if batch.timestamp_type else NO_TIMESTAMP
        return Appended(
            NO_ERROR, base_offset, last_offset, log_append_time_ms, self.log_start_offset, (batch,)
        )

    def append_as_follower(
        self,
        batches: list[Batch],
        leader_epoch_hint: int = -1,
        now_ms: int = 0,
        config: TopicConfig | None = None,
    ) -> None:
        """Append batches fetched from the leader, which has checked and numbered them.

        Nothing is copied or checked again.  `leader_epoch_hint`: the epoch in which the fetch was
        made; batches of a later epoch are left for the next fetch (KAFKA-17754); -1 takes all
        batches.  Offsets may skip removed records, but never go back.  In an empty log the first
        batch may begin before the log start, which DeleteRecords may have put inside of it.
        Without `config` no segment is rolled and nothing is flushed.
        """
        rules = None
        if config is not None:
            rules = self._rules = rules_of(config, self._rules)
        for batch in batches:
            if batch.leader_epoch > leader_epoch_hint >= 0:
                return
            assert batch.base_offset >= self.log_end_offset or (
                self.log_start_offset == self.log_end_offset <= batch.last_offset
            ), (batch.base_offset, batch.last_offset, self.log_end_offset)
            self._append(batch, now_ms, rules)
            if batch.producer_id >= 0:
                self.producers.update(batch)

    def _append(self, batch: Batch, now_ms: int, rules: AppendRules | None) -> None:
        if batch.leader_epoch != self.epochs.latest and batch.leader_epoch >= 0:
            # A batch that straddles the log start begins before it.
            start_offset = max(batch.base_offset, self.log_end_offset)
            self.epochs.assign(batch.leader_epoch, start_offset)
        size = batch.size_bytes
        if not self.segments:
            self.segments = [Segment(batch.base_offset, now_ms)]
        segment = self.segments[-1]
        if rules is not None and segment.full(batch, now_ms, rules):
            segment = self.roll(batch.base_offset, now_ms)
        segment.batches.append(batch)
        segment.size_bytes += size
        segment.appended_ms = now_ms
        if batch.max_timestamp > segment.max_timestamp:
            segment.max_timestamp = batch.max_timestamp
        self.size_bytes += size
        self.log_end_offset = batch.last_offset + 1
        if rules is not None and (
            self.log_end_offset - self.flushed_offset >= rules.flush_messages
        ):
            self.flush(now_ms)

    def _check_sequence(self, batch: Batch, transaction_verified: bool) -> Appended | None:
        producers = self.producers
        outcome = producers.check(batch)
        if outcome is None:
            if batch.attributes & TRANSACTIONAL_BIT and not producers.has_transaction(
                batch.producer_id
            ):
                if not transaction_verified:
                    return self._refused(
                        Refusal(ErrorCode.INVALID_TXN_STATE, "batch is of no ongoing transaction")
                    )
                refusal = producers.check_first(batch)
                if refusal is not None:
                    return self._refused(Refusal(refusal.error, refusal.text))
            return None
        if isinstance(outcome, SequenceRefusal):
            return self._refused(Refusal(outcome.error, outcome.text))
        assert isinstance(outcome, AppendedBatch)
        return Appended(
            NO_ERROR,
            outcome.first_offset,
            outcome.last_offset,
            outcome.timestamp,
            self.log_start_offset,
            duplicate=True,
        )

    def _check_epoch(self, batch: Batch) -> Appended | None:
        """Check the producer epoch of the broker's own records, which have no sequence."""
        if batch.attributes & CONTROL_BIT:
            return None  # Replica.append_marker has checked it
        known_epoch = self.producers.states.get(batch.producer_id, NO_STATE).producer_epoch
        if batch.producer_epoch >= known_epoch:
            return None
        text = f"producer {batch.producer_id} has epoch {batch.producer_epoch}, not {known_epoch}"
        return self._refused(Refusal(ErrorCode.INVALID_PRODUCER_EPOCH, text))

    def _refused(self, refusal: Refusal) -> Appended:
        return Appended(
            refusal.error,
            log_start_offset=self.log_start_offset if refusal.shows_log_start else NO_OFFSET,
            error_message=refusal.text,
            record_errors=refusal.record_errors,
        )

    def roll(self, base_offset: int, now_ms: int) -> Segment:
        """Start a new segment at `base_offset`, and flush the old ones."""
        segment = Segment(base_offset, now_ms)
        self.segments.append(segment)
        self.flushed_offset = max(self.flushed_offset, self.log_end_offset)
        self.flushed_ms = now_ms
        if self.producer_table is not None:
            self.producer_table.take_snapshot(self.log_end_offset)
        return segment

    # -------------------------------------------------------------------------------- reading

    def read(
        self, offset: int, max_bytes: int, end_offset: int, at_least_one: bool = True
    ) -> list[Batch]:
        """Return whole batches from the one that holds `offset` on, all below `end_offset`.

        At most `max_bytes`, but with `at_least_one` the first batch of any size (KIP-74).
        `offset` must lie within log start and log end: the caller checks that.
        """
        assert self.log_start_offset <= offset <= self.log_end_offset, (self, offset)
        if offset >= end_offset or offset >= self.log_end_offset:
            return []
        batches = self.segments[-1].batches
        if batches and batches[-1].base_offset <= offset:
            last = batches[-1]
            if last.last_offset < end_offset and (last.size_bytes <= max_bytes or at_least_one):
                return [last]
            return []
        return read_batches(self.segments, offset, max_bytes, end_offset, at_least_one)

    def end_of_batch_with(self, offset: int) -> int:
        """The offset after the batch that holds `offset`, or after the next batch."""
        return end_of_batch_with(self.segments, offset)

    def batches_from(self, offset: int) -> list[Batch]:
        """Every batch from the one that holds `offset` on."""
        return batches_from(self.segments, offset)

    def offset_for_timestamp(
        self, timestamp_ms: int, record_max: int = 0
    ) -> tuple[int, int, int] | None:
        """Return (timestamp, offset, leader epoch) of the first record with a timestamp of at least
        `timestamp_ms`; None if there is none.  `record_max`: see lookup.py."""
        return first_not_older(self.segments, timestamp_ms, self.log_start_offset, record_max)

    def offset_of_max_timestamp(self, record_max: int = 0) -> tuple[int, int, int] | None:
        """Return (timestamp, offset, leader epoch) of the first record with the greatest timestamp
        (KIP-734); None for an empty log.  `record_max`: see lookup.py."""
        return newest_by_time(self.segments, record_max)

    # ------------------------------------------------------------------------------- shortening

    def truncate_to(self, offset: int) -> None:
        """Drop the batch that holds `offset`, and all later batches.

        The log then ends at `offset`, or at the start of the batch that held it.
        """
        if offset >= self.log_end_offset:
            # An epoch that this replica led without appending anything is dropped, too.
            self.epochs.truncate_from_end(self.log_end_offset)
            return
        if offset <= self.log_start_offset:
            self.truncate_fully_and_start_at(offset)
            return
        at = segment_index(self.segments, offset)
        segment = self.segments[at]
        index = segment.index_of(offset)
        if index < len(segment.batches):
            offset = max(self.log_start_offset, min(offset, segment.batches[index].base_offset))
        del self.segments[at + 1 :]
        segment.replace(segment.batches[:index])
        self.log_end_offset = offset
        self.size_bytes = sum(segment.size_bytes for segment in self.segments)
        self.flushed_offset = min(self.flushed_offset, offset)
        self.first_dirty_offset = min(self.first_dirty_offset, offset)
        self.high_watermark_checkpoint = min(self.high_watermark_checkpoint, offset)
        self.epochs.truncate_from_end(offset)
        if self.producer_table is not None:
            replay_from = self.producer_table.rewind(offset)
            start = self.log_start_offset if replay_from is None else replay_from
            for batch in self.batches_from(start):
                if batch.producer_id >= 0:
                    self.producer_table.update(batch)

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Drop everything; the log is empty and starts at `offset`."""
        self.is_uncleanable = False
        self.segments = _NO_SEGMENTS
        self.size_bytes = 0
        self.log_start_offset = self.log_end_offset = self.flushed_offset = offset
        self.first_dirty_offset = self.high_watermark_checkpoint = offset
        self.epochs.clear()
        if self.producer_table is not None:
            self.producer_table.clear()

    def advance_log_start_offset(self, offset: int) -> bool:
        """Delete records below `offset` (DeleteRecords, or the leader's log start); True if the
        log start moved.  The caller keeps it at or below the high watermark."""
        assert offset <= self.log_end_offset, (offset, self.log_end_offset)
        if offset <= self.log_start_offset:
            return False
        self.log_start_offset = offset
        self.flushed_offset = max(self.flushed_offset, offset)
        self.epochs.truncate_from_start(offset)
        if self.producer_table is not None:
            self.producer_table.forget_snapshots_before(offset)
        return True

    def drop_segments(self, count: int) -> None:
        """Drop the `count` oldest segments, but never the newest."""
        assert count < len(self.segments), (count, len(self.segments))
        self.size_bytes -= sum(segment.size_bytes for segment in self.segments[:count])
        del self.segments[:count]
        self.advance_log_start_offset(self.segments[0].base_offset)

    def replace_segments(self, count: int, segments: list[Segment]) -> None:
        """Replace the `count` oldest segments by `segments`, which compaction has cleaned."""
        self.segments[:count] = segments
        self.size_bytes = sum(segment.size_bytes for segment in self.segments)

    # --------------------------------------------------------------------------------- flushing

    def flush(self, now_ms: int | None = None) -> None:
        """Write everything appended so far to the disk, so that it survives a power loss."""
        self.flushed_offset = self.log_end_offset
        if now_ms is not None:
            self.flushed_ms = now_ms

    def flush_if_due(self, now_ms: int, config: TopicConfig) -> None:
        """Flush if flush.ms has passed since the last flush; called every
        log.flush.scheduler.interval.ms, as by Kafka's scheduler."""
        self.flush_if_older(now_ms, config.flush_ms)

    def flush_if_older(self, now_ms: int, age_ms: int) -> None:
        """Flush if there are unflushed records and the last flush is at least this old."""
        if self.flushed_offset < self.log_end_offset and now_ms - self.flushed_ms >= age_ms:
            self.flush(now_ms)

    def lose_unflushed(self) -> int:
        """Lose power: drop all unflushed records; return the number of offsets lost."""
        before = self.log_end_offset
        self.truncate_to(self.flushed_offset)
        return before - self.log_end_offset


_NO_SEGMENTS: list[Segment] = []
"""The segments of every log without records.  The list is never changed in place; `_append`
replaces it."""
