"""Acquisition: the choice of the fetched records that a member gets.

Owns: the growth of a window by fetched batches, and the choice of available records to deliver: the
limits, the two acquire modes (KIP-1206), isolation of records near the delivery limit, aborted
transactions.  Never: reads a log, or changes a window in other ways (window.py does).  Kafka:
SharePartition.acquire (4.3.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct

from kcluster.broker.share.in_flight import (
    ACQUIRED,
    AVAILABLE,
    NO_MEMBER,
    InFlightBatch,
    InFlightRun,
)
from kcluster.broker.share.window import InFlightWindow, ShareLimits
from kcluster.partition.producers import AbortedTransaction
from kcluster.protocol.records.batches import Batch
from kcluster.protocol.records.markers import read_marker


class Acquired(NamedTuple):
    """Records that a member now holds, with their delivery count, this delivery included."""

    first_offset: int
    last_offset: int
    delivery_count: int


class Acquirer(Struct, frozen=True):
    """A member that wants records, with its limits."""

    member_id: str
    max_records: int
    batch_size: int
    """The number of records per in-flight batch, so that a client can acknowledge a whole batch at
    once."""
    is_record_limit: bool = False
    """Whether `max_records` is never exceeded; otherwise a batch of the log is not divided."""


def acquire(
    window: InFlightWindow,
    acquirer: Acquirer,
    limits: ShareLimits,
    fetch_offset: int,
    fetched: Sequence[Batch],
    now_ms: int,
) -> list[Acquired]:
    """Acquire records from the batches that were read at `fetch_offset`, in order of offset."""
    if not fetched or acquirer.max_records <= 0 or fetched[-1].last_offset < window.start_offset:
        return []
    last_offset = fetched[-1].last_offset
    max_records = min(acquirer.max_records, limits.record_locks - window.in_flight_records)
    if max_records <= 0:
        if fetch_offset > window.end_offset:
            return []
        # The window is full, but some records within it were released.
        max_records = min(acquirer.max_records, window.end_offset - fetch_offset + 1)
        last_offset = min(last_offset, window.end_offset)
    if fetch_offset < fetched[0].base_offset:
        # Compaction has removed records that were to be delivered again.
        window.archive(fetch_offset, fetched[0].base_offset - 1, AVAILABLE)
    acquisition = _Acquisition(window, acquirer, limits, fetched, max_records, last_offset, now_ms)
    acquisition.run()
    return acquisition.acquired


class _Acquisition:
    """One call of `acquire`."""

    def __init__(
        self,
        window: InFlightWindow,
        acquirer: Acquirer,
        limits: ShareLimits,
        fetched: Sequence[Batch],
        max_records: int,
        last_offset: int,
        now_ms: int,
    ) -> None:
        self.window = window
        self.acquirer = acquirer
        self.limits = limits
        self.fetched = fetched
        self.first_offset = fetched[0].base_offset
        self.last_offset = last_offset
        self.left = max_records
        """The number of records that may still be acquired; the last batch may exceed it."""
        self.deadline_ms = now_ms + limits.lock_duration_ms
        self.acquired: list[Acquired] = []

    def run(self) -> None:
        window, first = self.window, self.first_offset
        at = window.index_of(first)
        if at >= 0 and window.batches[at].last_offset >= first:
            first = window.batches[at].first_offset
        else:
            at += 1
            if not at:
                first = max(first, window.start_offset)
        known = window.batches[at : window.index_of(self.last_offset) + 1]
        next_offset = first
        for batch in known:
            if self.left <= 0:
                break
            if window.may_have_gaps and next_offset < batch.first_offset:
                self._acquire_new(next_offset, batch.first_offset - 1)
                if self.left <= 0:
                    break
            if not self._acquire_again(batch):
                self.left = 0
            next_offset = batch.last_offset + 1
        if known:
            next_offset = known[-1].last_offset + 1
        if self.left > 0 and next_offset <= self.last_offset:
            self._acquire_new(next_offset, self.last_offset)
        if known and self.acquired:
            window.close_gaps_before(self.acquired[-1].last_offset + 1)

    # ------------------------------------------------------------------------- delivered before

    def _acquire_again(self, batch: InFlightBatch) -> bool:
        """Acquire the available records of a batch in flight.  False: no batch may give further
        records."""
        limit = self.limits.delivery_count
        first = max(self.first_offset, self.window.start_offset)
        available = [run for run in batch.overlapping(first, self.last_offset) if run.is_available]
        if not available:
            return True
        throttled_from = max(2, -(-limit // 2))
        is_throttled = max(run.delivery_count for run in available) >= throttled_from
        if is_throttled and self.acquired:
            return False
        taken = 0
        before = len(self.acquired)
        most = self.left if self.acquirer.is_record_limit else batch.last_offset + 1
        throttled_most = 0
        for run in batch.within(first, self.last_offset):
            if not run.is_available:
                continue
            is_last_delivery = limit > 2 and run.delivery_count == limit - 1
            if is_last_delivery and taken:
                break
            if run.delivery_count >= throttled_from and not throttled_most:
                size = batch.last_offset - batch.first_offset + 1
                throttled_most = max(1, size >> (run.delivery_count - throttled_from + 1))
                if throttled_most > taken:
                    most = min(most, throttled_most)
            wanted = 1 if is_last_delivery else most - taken
            taken += self._take(batch, run, wanted, len(self.acquired) > before)
            if is_last_delivery or taken >= most:
                break
        batch.join()
        self.left -= taken
        return not (is_throttled and taken)

    def _take(self, batch: InFlightBatch, run: InFlightRun, wanted: int, may_join: bool) -> int:
        """Acquire the first `wanted` records of an available run; returns their number."""
        last = min(run.last_offset, run.first_offset + wanted - 1)
        for part in batch.within(run.first_offset, last):
            part.state = ACQUIRED
            part.delivery_count += 1
            part.member_id = self.acquirer.member_id
            part.lock_deadline_ms = self.deadline_ms
            self._add(Acquired(part.first_offset, last, part.delivery_count), may_join)
        return last - run.first_offset + 1

    def _add(self, acquired: Acquired, may_join: bool) -> None:
        before = self.acquired[-1] if may_join else None
        if (
            before is not None
            and before.last_offset + 1 == acquired.first_offset
            and before.delivery_count == acquired.delivery_count
        ):
            acquired = Acquired(before.first_offset, acquired.last_offset, acquired.delivery_count)
            self.acquired.pop()
        self.acquired.append(acquired)

    # ------------------------------------------------------------------------ fetched first

    def _acquire_new(self, first: int, last: int) -> None:
        """Put the records of these offsets into the window, and acquire them."""
        window = self.window
        if not window.batches:
            first = max(first, window.end_offset)
        if self.left < last - first + 1:
            # A batch of the log is not divided, unless loaded batches lie within it.
            cut = self._end_of_batch_with(first + self.left - 1)
            last = min(cut, last) if window.may_have_gaps else cut
        at = window.index_of(first) + 1
        if at < len(window.batches):
            last = min(last, window.batches[at].first_offset - 1)
        pieces = self._pieces(first, last)
        if not at:
            window.start_offset = first
        window.batches[at:at] = pieces
        window.end_offset = max(window.end_offset, last)
        self.acquired += (
            Acquired(run.first_offset, run.last_offset, run.delivery_count)
            for piece in pieces
            for run in piece.runs
            if run.state is ACQUIRED
        )
        acquired_to = self.acquired[-1].last_offset
        self.left -= acquired_to - first + 1
        window.close_gaps_before(acquired_to + 1)

    def _pieces(self, first: int, last: int) -> list[InFlightBatch]:
        """The new batches in flight; they end where batches of the log do."""
        if self.acquirer.is_record_limit:
            batch = self._held(first, last)
            if self.left < last - first + 1:
                for run in batch.within(first + self.left, last):
                    run.state = AVAILABLE
                    run.delivery_count = 0
                    run.member_id = NO_MEMBER
                    run.lock_deadline_ms = 0
                self.window.has_available = True
            return [batch]
        pieces = []
        if last - first + 1 > self.acquirer.batch_size:
            for base_offset in (fetched.base_offset for fetched in self.fetched):
                if base_offset > last:
                    break
                if base_offset - first >= self.acquirer.batch_size:
                    pieces.append(self._held(first, base_offset - 1))
                    first = base_offset
        pieces.append(self._held(first, last))
        return pieces

    def _held(self, first: int, last: int) -> InFlightBatch:
        run = InFlightRun(first, last, ACQUIRED, 1, self.acquirer.member_id, self.deadline_ms)
        return InFlightBatch(run)

    def _end_of_batch_with(self, offset: int) -> int:
        for batch in self.fetched:
            if batch.base_offset <= offset <= batch.last_offset:
                return batch.last_offset
        return offset


# --------------------------------------------------------------------- aborted transactions


def without_aborted(
    window: InFlightWindow,
    acquired: list[Acquired],
    fetched: Sequence[Batch],
    aborted: Sequence[AbortedTransaction],
) -> list[Acquired]:
    """For a read_committed group: archive the records of aborted transactions among the records
    just acquired, and return the others."""
    for batch in _aborted_batches(fetched, aborted):
        window.archive(batch.base_offset, batch.last_offset, ACQUIRED)
        acquired = [
            part
            for whole in acquired
            for part in _without(whole, batch.base_offset, batch.last_offset)
        ]
    return acquired


def _without(acquired: Acquired, first: int, last: int) -> list[Acquired]:
    count = acquired.delivery_count
    parts = (
        Acquired(acquired.first_offset, min(acquired.last_offset, first - 1), count),
        Acquired(max(acquired.first_offset, last + 1), acquired.last_offset, count),
    )
    return [part for part in parts if part.first_offset <= part.last_offset]


def _aborted_batches(
    fetched: Sequence[Batch], aborted: Sequence[AbortedTransaction]
) -> list[Batch]:
    """The batches of aborted transactions, found in the way in which a consumer finds them: an
    aborted transaction begins at its first offset, and ends with its marker."""
    found: list[Batch] = []
    ahead = sorted(aborted, key=lambda transaction: transaction.first_offset, reverse=True)
    open_producers: set[int] = set()
    for batch in fetched:
        while ahead and ahead[-1].first_offset <= batch.last_offset:
            open_producers.add(ahead.pop().producer_id)
        if batch.is_control:
            marker = read_marker(batch)
            if marker is not None and not marker.is_commit:
                open_producers.discard(batch.producer_id)
        elif batch.is_transactional and batch.producer_id in open_producers:
            found.append(batch)
    return found
