"""The log of a share coordinator, replayed independently of it: the states of share partitions.

Owns: what the committed records of __share_group_state say of each record in flight, where a
coordinator's memory says something else, the records that take progress back, the offsets that a
start offset passes unsettled, and the states that the log has lost at its beginning.  Never:
uses the state of a coordinator, or its code that puts batches together, to build its own.  Kafka:
ShareCoordinatorShard.replay, PersisterStateBatchCombiner.

A coordinator that has written nothing beyond what is committed holds, for each record, the greatest
progress (delivery count, delivery state) that its log has.  A snapshot takes the place of all that
was written before it, so it has that progress, too; but a new initialization, which the snapshot's
state epoch shows, begins with none.  The log begins at the oldest of the last snapshots, or before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeVar

from msgspec import Struct

from kcluster.broker.coordinator.share_state.share_state_log import (
    SnapshotRecord,
    StateRecord,
    decode_states,
)
from kcluster.broker.coordinator.share_state.state import (
    UNINITIALIZED,
    SharePartition,
    ShareState,
    StateBatch,
)
from kcluster.broker.share.in_flight import RecordState
from kcluster.invariants.facts import HeldDiffers, Measure, Observed, WentBack
from kcluster.invariants.group_facts import StatePruned
from kcluster.invariants.replayed import ReplayedLog
from kcluster.invariants.shares import MAX_HELD, NO_PROGRESS, Progress, progress_at
from kcluster.protocol.records.batches import Batch

T = TypeVar("T")
_NO_EPOCH: Final = -1
_SETTLED: Final = (RecordState.ACKNOWLEDGED, RecordState.ARCHIVED)


class LoggedState(Struct):
    """The state of a share partition by the log.  `progress`: by offset, from the start offset on;
    `is_followed`: whether `progress` is complete, as a client may write a state of any size;
    `goes_on`: whether its leader may know of progress that an initialization has removed."""

    start_offset: int
    progress: dict[int, Progress]
    state_epoch: int
    snapshot_offset: int
    is_followed: bool = True
    goes_on: bool = False


class ReplayedShares(ReplayedLog):
    """The log of one share coordinator."""

    def __init__(self) -> None:
        super().__init__()
        self.states: dict[SharePartition, LoggedState] = {}
        self._changed: dict[SharePartition, dict[int, None]] = {}
        """The share partitions with records since the last comparison, and the offsets in these."""
        self._ended_epochs: dict[SharePartition, int] = {}
        """The state epochs of states that were deleted."""
        self._went_back: list[WentBack] = []
        self._taken_back: list[WentBack] = []
        self._passed: list[tuple[SharePartition, list[int]]] = []

    def _replay(self, batch: Batch) -> None:
        for offset, record in decode_states(batch):
            self._put(record, offset)

    def _put(self, record: StateRecord, at_offset: int) -> None:
        changed = self._changed.setdefault(record.partition, {})
        state = self.states.get(record.partition)
        passed = [] if state is None else _passed(state, record)
        if passed:
            self._passed.append((record.partition, passed))
        start = UNINITIALIZED if state is None else state.start_offset
        if isinstance(record, SnapshotRecord):
            before = self.states.pop(record.partition, None)
            if record.state is None:
                if before is not None:
                    self._ended_epochs[record.partition] = before.state_epoch
                return
            self._taken_back += _taken_back(before, record.state)
            new = record.state
            state = LoggedState(new.start_offset, {}, new.state_epoch, at_offset)
            if before is not None:
                state.goes_on = _goes_on(before, new)
            else:  # a leader may not know yet that the earlier state was deleted
                ended_epoch = self._ended_epochs.get(record.partition, _NO_EPOCH)
                state.goes_on = new.state_epoch <= ended_epoch
            self.states[record.partition] = state
        elif state is None:
            return  # its snapshot was deleted
        elif record.start_offset != UNINITIALIZED:
            if record.start_offset < start:
                went_back = WentBack(Measure.SHARE_START, start, record.start_offset)
                self._went_back.append(went_back)
            state.start_offset = record.start_offset
        if not _may_be_in_flight(record.stored_batches, state.start_offset):
            state.is_followed = False
        for one in record.stored_batches if state.is_followed else ():
            for offset in range(max(one.first_offset, state.start_offset), one.last_offset + 1):
                state.progress[offset] = max(one.progress, state.progress.get(offset, NO_PROGRESS))
                changed[offset] = None
        if state.start_offset > start:
            _drop_before(state.start_offset, state.progress)
            _drop_before(state.start_offset, changed)

    def _forget(self) -> None:
        self.states = {}
        self._ended_epochs = {}
        self._changed = {}
        self._went_back = []
        self._taken_back = []
        self._passed = []

    def start_offsets_back(self) -> list[WentBack]:
        """The updates since the last call that moved a start offset back."""
        went_back, self._went_back = self._went_back, []
        return went_back

    def progress_taken_back(self) -> list[WentBack]:
        """The snapshots since the last call that lack the progress of a record, or begin a new
        state with some."""
        taken_back, self._taken_back = self._taken_back, []
        return taken_back

    def passed_over(self) -> list[tuple[SharePartition, list[int]]]:
        """The offsets that start offsets have passed since the last call although the log does not
        say that their records were settled: there need not be any records."""
        passed, self._passed = self._passed, []
        return passed

    def pruned(self, log_start: int) -> Iterator[StatePruned]:
        """The states whose last snapshot a log that begins at `log_start` no longer has, so that
        the next coordinator will not know them."""
        for partition, state in self.states.items():
            if state.snapshot_offset < log_start:
                which = (partition.group_id, partition.partition)
                yield StatePruned(*which, state.snapshot_offset, log_start)

    def differing(self, held: Callable[[SharePartition], ShareState | None]) -> Iterator[Observed]:
        """The first difference of each changed share partition whose state a coordinator holds
        differently from its log."""
        changed, self._changed = self._changed, {}
        for partition, offsets in changed.items():
            mine, its = held(partition), self.states.get(partition)
            of = f"partition {partition.partition} of share group {partition.group_id}"
            if mine is None or its is None:
                if mine is not None or its is not None:
                    yield HeldDiffers(of, "", _start(mine), _start(its))
            elif mine.start_offset != its.start_offset:
                yield HeldDiffers(of, "start offset", _start(mine), _start(its))
            elif its.is_followed:
                yield from _progress_differs(of, offsets, mine.batches, its)


def _passed(before: LoggedState, record: StateRecord) -> list[int]:
    """The offsets that a record's start offset passes although neither this record nor earlier
    records have settled them.  An initialization may begin at any offset."""
    if isinstance(record, SnapshotRecord):
        if record.state is None or _is_new(before, record.state):
            return []
        start = record.state.start_offset
    else:
        start = record.start_offset
    if before.goes_on or not before.is_followed or before.start_offset < 0:
        return []
    if start - before.start_offset > MAX_HELD:
        return []
    return [
        offset
        for offset in range(before.start_offset, start)
        if before.progress.get(offset, NO_PROGRESS)[1] not in _SETTLED
        and progress_at(record.stored_batches, offset)[1] not in _SETTLED
    ]


def _is_new(before: LoggedState, new: ShareState) -> bool:
    """Whether a snapshot may be an initialization: one with the same state epoch is of no
    leader."""
    is_cold = new.create_timestamp_ms != new.write_timestamp_ms
    return new.state_epoch > before.state_epoch or not (is_cold or new.leader_epoch > 0)


def _goes_on(before: LoggedState, new: ShareState) -> bool:
    """Whether a leader may go on from what it has read, though an initialization has put the state
    back: with the same epoch, which does not fence the leader's writes."""
    if new.state_epoch != before.state_epoch:
        return False
    kept = (progress_at(new.batches, offset) for offset in before.progress)
    is_back = new.start_offset < before.start_offset or any(
        one < progress for one, progress in zip(kept, before.progress.values(), strict=True)
    )
    return before.goes_on or (_is_new(before, new) and is_back)


def _taken_back(before: LoggedState | None, new: ShareState) -> Iterator[WentBack]:
    """The first record whose progress in a snapshot is less than in the log before it, or the first
    record that a new initialization has kept."""
    if before is None or not before.is_followed:
        return
    if new.state_epoch > before.state_epoch:
        if new.batches:
            yield WentBack(Measure.DELIVERIES, new.batches[0].delivery_count, 0)
        return
    for offset, progress in () if _is_new(before, new) else before.progress.items():
        kept = progress_at(new.batches, offset)
        if offset >= new.start_offset and kept < progress:
            yield WentBack(Measure.DELIVERIES, progress[0], max(kept[0], 0))
            return


def _may_be_in_flight(batches: Iterable[StateBatch], start_offset: int) -> bool:
    """Whether a leader may have written these batches: they have no more records than may be in
    flight."""
    count = sum(max(0, one.last_offset - one.first_offset + 1) for one in batches)
    return count <= MAX_HELD and all(one.last_offset - start_offset < MAX_HELD for one in batches)


def _progress_differs(
    of: str, offsets: Iterable[int], batches: tuple[StateBatch, ...], its: LoggedState
) -> Iterator[HeldDiffers]:
    for offset in offsets:
        mine, logged = progress_at(batches, offset), its.progress.get(offset, NO_PROGRESS)
        if mine != logged:
            yield HeldDiffers(of, f"offset {offset}", _shown(mine), _shown(logged))
            return


def _drop_before(start_offset: int, offsets: dict[int, T]) -> None:
    for offset in [one for one in offsets if one < start_offset]:
        del offsets[offset]


def _start(state: ShareState | LoggedState | None) -> str:
    return "" if state is None else str(state.start_offset)


def _shown(progress: Progress) -> str:
    return "" if progress == NO_PROGRESS else f"delivery count {progress[0]}, state {progress[1]}"
