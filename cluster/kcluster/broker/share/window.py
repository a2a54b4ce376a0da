"""The window of a share partition: the records from its start offset to the last fetched one, with
their states.

Owns: every change of the window but acquisition: loading, acknowledgement, release, the end of
locks, the start offset.  Never: reads a log or a clock, stores anything, answers a request
(share_partition.py does).  Kafka: SharePartition (4.4.0); KIP-932, KIP-1191, KIP-1222.

    start offset       every earlier record is settled: acknowledged, archived, or gone from the log
    in-flight batches  each record available, acquired, acknowledged, archiving or archived
    end offset         later records have not been fetched yet

A change that must be stored is made at once, as a `Transition`: these records cannot change again
before `complete` reports whether it was stored.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import Final, final

from msgspec import Struct

from kcluster.broker.coordinator.share_state.state import ReadState, StateBatch
from kcluster.broker.share.in_flight import (
    ACKNOWLEDGED,
    ACQUIRED,
    ARCHIVED,
    ARCHIVING,
    AVAILABLE,
    NO_MEMBER,
    AcknowledgeType,
    DeadLetterBatch,
    DeadLetterCause,
    InFlightBatch,
    InFlightRun,
    RecordState,
    Transition,
)
from kcluster.protocol.errors import ErrorCode
from kcluster.timers import NEVER_MS

_STATE_AFTER: Final = {
    AcknowledgeType.GAP: ARCHIVED,
    AcknowledgeType.ACCEPT: ACKNOWLEDGED,
    AcknowledgeType.RELEASE: AVAILABLE,
    AcknowledgeType.REJECT: ARCHIVED,
}
_STORED_STATES: Final = (AVAILABLE, ACKNOWLEDGED, ARCHIVING, ARCHIVED)
NO_GAP: Final = -1


class ShareLimits(Struct, frozen=True):
    """The limits by a group's configs, or else by its broker's."""

    delivery_count: int = 5
    """share.delivery.count.limit: the number of deliveries after which a record is archived instead
    of released."""
    record_locks: int = 2_000
    """share.partition.max.record.locks: the number of records that can be in flight."""
    lock_duration_ms: int = 30_000
    """The value of share.record.lock.duration.ms."""
    is_renewal_enabled: bool = True
    """The value of share.renew.acknowledge.enable."""
    has_dead_letters: bool = False
    """Whether errors.deadletterqueue.topic.name is set, and share.version allows it (KIP-1191)."""


class Acknowledgement(Struct, frozen=True):
    """A member's report on the records `first_offset` to `last_offset`: one type for all of them,
    or one for each."""

    first_offset: int
    last_offset: int
    types: tuple[AcknowledgeType, ...]

    def ranges(self) -> Iterable[tuple[int, int, AcknowledgeType]]:
        """Neighbouring records of one type, as (first offset, last offset, type)."""
        if len(self.types) == 1:
            yield self.first_offset, self.last_offset, self.types[0]
            return
        first = self.first_offset
        for offset in range(self.first_offset, self.last_offset + 1):
            this = self.types[offset - self.first_offset]
            if offset == self.last_offset or this is not self.types[offset + 1 - self.first_offset]:
                yield first, offset, this
                first = offset + 1


class AcknowledgeOutcome(Struct, frozen=True):
    """The outcome of an acknowledgement: NONE, or the reason why it has no effect."""

    error: ErrorCode
    message: str


_NOT_IN_FLIGHT: Final = AcknowledgeOutcome(
    ErrorCode.INVALID_RECORD_STATE, "These records are not in flight."
)
_BEYOND: Final = AcknowledgeOutcome(
    ErrorCode.INVALID_REQUEST, "These offsets lie behind the acquired records."
)
_NOT_ACQUIRED: Final = AcknowledgeOutcome(
    ErrorCode.INVALID_RECORD_STATE, "The member has not acquired these records."
)
_NO_RENEWAL: Final = AcknowledgeOutcome(
    ErrorCode.INVALID_RECORD_STATE, "The group does not allow acquisition locks to be renewed."
)


@final
class InFlightWindow:
    """The records of a share partition from its start offset to the last fetched one.

    Invariants: batches are in order of offset and do not overlap; `start_offset` never decreases;
    without batches `end_offset` is the next offset to be fetched, otherwise the last one fetched.
    """

    __slots__ = (
        "batches", "end_offset", "gap_end_offset", "gap_start_offset", "has_available",
        "start_offset", "state_epoch",
    )  # fmt: skip

    def __init__(self, state_epoch: int, start_offset: int) -> None:
        self.state_epoch = state_epoch
        self.start_offset = start_offset
        self.end_offset = start_offset
        self.batches: list[InFlightBatch] = []
        self.has_available = False
        """Whether a record within the window may be available, or not fetched yet."""
        self.gap_start_offset = NO_GAP
        """The offset from which to look for records that the last leader delivered without storing
        anything about them (KAFKA-18494)."""
        self.gap_end_offset = NO_GAP
        """The end of the loaded window; such gaps can only be before it."""

    def __repr__(self) -> str:
        return f"<InFlightWindow {self.start_offset} {self.batches} {self.end_offset}>"

    @classmethod
    def load(cls, state: ReadState, start_offset: int) -> InFlightWindow | None:
        """The window of a new leader; None if the stored state makes no sense, because any client
        may write one.  `start_offset`: the stored offset, or the choice of share.auto.offset.reset.
        """
        window = cls(state.state_epoch, start_offset)
        expected = start_offset
        for stored in state.batches:
            if (
                not expected <= stored.first_offset <= stored.last_offset
                or stored.delivery_state not in _STORED_STATES
            ):
                return None
            if stored.first_offset > expected and window.gap_start_offset == NO_GAP:
                window.gap_start_offset = expected
            expected = stored.last_offset + 1
            run = InFlightRun(
                stored.first_offset,
                stored.last_offset,
                RecordState(stored.delivery_state),
                stored.delivery_count,
            )
            window.batches.append(InFlightBatch(run))
        if window.batches:
            window.has_available = True
            window.end_offset = window.batches[-1].last_offset
            if window.gap_start_offset != NO_GAP:
                window.gap_end_offset = window.end_offset
            window.advance_start()
        return window

    # -------------------------------------------------------------------------- questions

    @property
    def in_flight_records(self) -> int:
        return self.end_offset - self.start_offset + 1 if self.batches else 0

    @property
    def may_have_gaps(self) -> bool:
        """Whether the window's end has not moved since it was loaded, so that there may be gaps."""
        return self.gap_start_offset != NO_GAP and self.gap_end_offset == self.end_offset

    @property
    def delivery_complete_count(self) -> int:
        """The number of records from the start offset on that need no further delivery; for the
        group's lag."""
        start = self.start_offset
        return sum(
            run.last_offset - max(run.first_offset, start) + 1
            for batch in self.batches
            for run in batch.runs
            if run.is_terminal and run.last_offset >= start
        )

    @property
    def next_deadline_ms(self) -> int:
        """The end of the first lock; NEVER_MS if nothing is acquired."""
        deadlines = [
            run.lock_deadline_ms
            for batch in self.batches
            for run in batch.runs
            if run.state is ACQUIRED
        ]
        return min(deadlines, default=NEVER_MS)

    @property
    def has_unsettled(self) -> bool:
        """Whether a record in flight may be delivered again, or is on its way to the dead letter
        queue, or a change is not stored yet."""
        return any(
            run.transition is not None or run.state in (ACQUIRED, AVAILABLE, ARCHIVING)
            for batch in self.batches
            for run in batch.runs
        )

    def next_fetch_offset(self) -> int:
        """The first offset that is available, or not yet fetched."""
        batches = self.batches
        if not batches or self.start_offset > batches[-1].last_offset:
            self.has_available = False
            return self.end_offset
        if self.has_available:
            offset = self._first_available()
            if offset is not None:
                return offset
            self.has_available = False
        return self.end_offset + 1

    def _first_available(self) -> int | None:
        gap = self.gap_start_offset if self.may_have_gaps else NO_GAP
        for batch in self.batches:
            if gap != NO_GAP:
                if batch.first_offset > gap:
                    return gap
                gap = max(gap, batch.last_offset + 1)
            for run in batch.runs:
                if run.is_available and run.last_offset >= self.start_offset:
                    return max(run.first_offset, self.start_offset)
        return None

    def can_acquire(self, limits: ShareLimits) -> bool:
        """Whether the limit of records in flight allows any fetch."""
        is_behind_end = bool(self.batches) and self.next_fetch_offset() == self.end_offset + 1
        return not is_behind_end or self.in_flight_records < limits.record_locks

    def index_of(self, offset: int) -> int:
        """The index of the last batch that begins at or before `offset`; -1 if no batch does."""
        return bisect_right(self.batches, offset, key=_first_offset_of) - 1

    # ------------------------------------------------------------------------- acknowledgement

    def acknowledge(
        self,
        member_id: str,
        acknowledgements: Iterable[Acknowledgement],
        limits: ShareLimits,
        now_ms: int,
    ) -> Transition | AcknowledgeOutcome:
        """Start the changes of a member's acknowledgement: all of them, or none."""
        transition = Transition()
        for acknowledgement in acknowledgements:
            if acknowledgement.last_offset < self.start_offset:
                continue  # the run was settled before, or is gone from the log
            refused = self._acknowledge(member_id, acknowledgement, limits, now_ms, transition)
            if refused is not None:
                self.complete(transition, False, limits, now_ms)
                return refused
        return transition

    def _acknowledge(
        self,
        member_id: str,
        acknowledgement: Acknowledgement,
        limits: ShareLimits,
        now_ms: int,
        transition: Transition,
    ) -> AcknowledgeOutcome | None:
        first, last = acknowledgement.first_offset, acknowledgement.last_offset
        at = self.index_of(first)
        if at < 0:
            # The start may have moved past the batches in which the request begins.
            at = self.index_of(self.start_offset) if first < self.start_offset else -1
            if at < 0:
                return _NOT_IN_FLIGHT
        touched = self.batches[at : self.index_of(last) + 1]
        if not touched or last > touched[-1].last_offset:
            return _BEYOND
        first = max(first, self.start_offset)
        for batch in touched:
            for run in batch.overlapping(first, last):
                if run.state is not ACQUIRED or run.member_id != member_id:
                    return _NOT_ACQUIRED
        for from_, to, kind in acknowledgement.ranges():
            if to < first:
                continue
            if kind is AcknowledgeType.RENEW and not limits.is_renewal_enabled:
                return _NO_RENEWAL
            at = max(self.index_of(max(from_, first)), 0)
            for batch in self.batches[at : self.index_of(to) + 1]:
                for run in batch.within(max(from_, first), to):
                    if kind is AcknowledgeType.RENEW:
                        run.lock_deadline_ms = now_ms + limits.lock_duration_ms
                    elif kind is AcknowledgeType.REJECT and limits.has_dead_letters:
                        self._begin(run, ARCHIVING, limits, transition, DeadLetterCause.REJECTED)
                    else:
                        self._begin(run, _STATE_AFTER[kind], limits, transition)
        return None

    def release(self, member_id: str, limits: ShareLimits) -> Transition:
        """Start the release of all records of `member_id`, whose session has ended."""
        transition = Transition()
        for batch in self.batches:
            for run in self._from_start(batch):
                if run.state is ACQUIRED and run.member_id == member_id:
                    self._begin(run, AVAILABLE, limits, transition)
        return transition

    def _begin(
        self,
        run: InFlightRun,
        state: RecordState,
        limits: ShareLimits,
        transition: Transition,
        cause: DeadLetterCause = DeadLetterCause.EXHAUSTED,
    ) -> None:
        run.state = self._state_for(run, state, limits)
        run.transition = transition
        transition.runs.append(run)
        stored = StateBatch(run.first_offset, run.last_offset, run.state, run.delivery_count)
        transition.state_batches.append(stored)
        if run.state is ARCHIVING:
            transition.dead_letters.append(_dead_letters(stored, cause))

    def _state_for(self, run: InFlightRun, state: RecordState, limits: ShareLimits) -> RecordState:
        """`state`, or ARCHIVED in its place for a record that may not become available: it was
        delivered often enough, or is gone from the log."""
        if state is not AVAILABLE:
            return state
        if run.last_offset < self.start_offset:
            return ARCHIVED
        if run.delivery_count >= limits.delivery_count:
            return ARCHIVING if limits.has_dead_letters else ARCHIVED
        return AVAILABLE

    def complete(
        self, transition: Transition, is_stored: bool, limits: ShareLimits, now_ms: int
    ) -> bool:
        """End a transition: its changes are final, or undone.  True if the start offset moved."""
        for run in transition.runs:
            if run.transition is not transition:
                continue  # the run was archived in between, and stays archived
            run.transition = None
            if not is_stored:
                run.state = ACQUIRED
                if now_ms < run.lock_deadline_ms:
                    continue  # the member holds it again
                run.state = self._state_for(run, AVAILABLE, limits)
                if run.state is ARCHIVING:
                    run.state = ARCHIVED  # as in Kafka, without the dead letter queue
            run.member_id = NO_MEMBER
            run.lock_deadline_ms = 0
            if run.state is AVAILABLE:
                self.has_available = True
        if transition.runs:
            first = min(run.first_offset for run in transition.runs)
            last = max(run.last_offset for run in transition.runs)
            for batch in self.batches[max(self.index_of(first), 0) : self.index_of(last) + 1]:
                batch.join()
        return is_stored and self.advance_start()

    # ----------------------------------------------------------------------------------- locks

    def expire_locks(self, limits: ShareLimits, now_ms: int) -> list[StateBatch]:
        """Take back the records that members have held for too long; returns the batches to store.

        The locks end even if their end cannot be stored.  Records in a transition wait for its end.
        """
        expired: list[StateBatch] = []
        for batch in self.batches:
            for run in self._from_start(batch):
                if run.state is not ACQUIRED or now_ms < run.lock_deadline_ms:
                    continue
                run.state = self._state_for(run, AVAILABLE, limits)
                run.member_id = NO_MEMBER
                run.lock_deadline_ms = 0
                self.has_available |= run.state is AVAILABLE
                expired.append(
                    StateBatch(run.first_offset, run.last_offset, run.state, run.delivery_count)
                )
            batch.join()
        return expired

    def archiving(self, limits: ShareLimits) -> list[DeadLetterBatch]:
        """The batches that the last leader had not finished, which go to the dead letter queue
        (again)."""
        found = []
        for batch in self.batches:
            for run in batch.runs:
                if run.state is ARCHIVING:
                    stored = StateBatch(
                        run.first_offset, run.last_offset, run.state, run.delivery_count
                    )
                    is_exhausted = run.delivery_count >= limits.delivery_count
                    cause = DeadLetterCause.EXHAUSTED if is_exhausted else DeadLetterCause.REJECTED
                    found.append(_dead_letters(stored, cause))
        return found

    def _from_start(self, batch: InFlightBatch) -> list[InFlightRun]:
        """The runs of a batch, split at the start offset if that is within the batch."""
        if batch.first_offset < self.start_offset <= batch.last_offset:
            return batch.within(batch.first_offset, self.start_offset - 1) + batch.within(
                self.start_offset, batch.last_offset
            )
        return batch.runs

    # ---------------------------------------------------------------------------- start offset

    def archive(self, first_offset: int, last_offset: int, state: RecordState) -> None:
        """Archive for good the records of these offsets that are in `state`."""
        at = max(self.index_of(first_offset), 0)
        for batch in self.batches[at : self.index_of(last_offset) + 1]:
            if not any(run.state is state for run in batch.overlapping(first_offset, last_offset)):
                continue
            for run in batch.within(first_offset, last_offset):
                if run.state is state:
                    run.state = ARCHIVED
                    run.transition = None
                    run.member_id = NO_MEMBER
                    run.lock_deadline_ms = 0
            batch.join()

    def move_log_start(self, log_start_offset: int) -> None:
        """Settle the records before `log_start_offset`, which the log has lost.  Members keep the
        records that they hold until their locks end (KAFKA-19859); the next write stores the new
        start."""
        if log_start_offset <= self.start_offset:
            return
        self.archive(self.start_offset, log_start_offset - 1, AVAILABLE)
        self.start_offset = log_start_offset
        self.end_offset = max(self.end_offset, log_start_offset)
        if self.gap_start_offset != NO_GAP:
            self.gap_start_offset = max(self.gap_start_offset, log_start_offset)
        if not self.batches:
            self.end_offset = log_start_offset
        else:
            self.has_available = True

    def advance_start(self) -> bool:
        """Move the start offset past settled records, and forget them.  Returns whether there were
        any."""
        settled_batches, settled_to = 0, NO_GAP
        for batch in self.batches:
            if self.may_have_gaps and batch.last_offset >= self.gap_start_offset:
                break
            for run in batch.runs:
                if not run.is_settled:
                    break
                settled_to = run.last_offset
            if settled_to != batch.last_offset:
                break
            settled_batches += 1
        if settled_to == NO_GAP:
            return False
        if settled_batches == len(self.batches):
            self.start_offset = self.end_offset = max(self.start_offset, settled_to + 1)
            self.batches = []
            return True
        next_offset = settled_to + 1
        if settled_batches and settled_to == self.batches[settled_batches - 1].last_offset:
            # There may be no records between this batch and the next, because compaction leaves
            # such gaps.
            next_offset = self.batches[settled_batches].first_offset
            if self.may_have_gaps:
                next_offset = min(next_offset, self.gap_start_offset)
        self.start_offset = max(self.start_offset, next_offset)
        del self.batches[:settled_batches]
        return True

    def close_gaps_before(self, offset: int) -> None:
        """Record that everything before `offset` has been fetched."""
        if self.gap_start_offset == NO_GAP:
            return
        if self.may_have_gaps and offset <= self.gap_end_offset:
            self.gap_start_offset = offset
        else:
            self.gap_start_offset = self.gap_end_offset = NO_GAP


def expired_for_good(expired: Iterable[StateBatch]) -> list[DeadLetterBatch]:
    """The records that `expire_locks` took back and that go to the dead letter queue."""
    return [
        _dead_letters(one, DeadLetterCause.EXHAUSTED)
        for one in expired
        if one.delivery_state == ARCHIVING
    ]


def _dead_letters(stored: StateBatch, cause: DeadLetterCause) -> DeadLetterBatch:
    return DeadLetterBatch(stored.first_offset, stored.last_offset, stored.delivery_count, cause)


def _first_offset_of(batch: InFlightBatch) -> int:
    return batch.first_offset
