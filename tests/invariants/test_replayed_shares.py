"""What a share coordinator holds, beside what its log says."""

from __future__ import annotations

from msgspec.structs import replace

from kcluster.broker.coordinator.records import encode_records
from kcluster.broker.coordinator.share_state.share_state_log import (
    SnapshotRecord,
    StateRecord,
    UpdateRecord,
)
from kcluster.broker.coordinator.share_state.state import SharePartition, ShareState, StateBatch
from kcluster.invariants.facts import HeldDiffers, Measure, Observed, WentBack
from kcluster.invariants.group_facts import StatePruned
from kcluster.invariants.replayed_shares import ReplayedShares
from kcluster.partition.log.log import Log
from kcluster.protocol.records.batches import parse_batches

PARTITION = SharePartition("packing", bytes(16), 0)
AVAILABLE, ACKNOWLEDGED, ARCHIVED = 0, 2, 4
NAME = "partition 0 of share group packing"


def state(start_offset: int, *batches: StateBatch) -> ShareState:
    return ShareState(0, 1, 0, start_offset, 0, batches, 0, 0)


def led(start_offset: int, *batches: StateBatch) -> ShareState:
    """A state that a leader of epoch 3 has written."""
    return replace(state(start_offset, *batches), leader_epoch=3)


class Coordinator:
    """A log of states, and what is held beside it."""

    def __init__(self) -> None:
        self.replayed = ReplayedShares()
        self._log = Log(bytes(16), 0)

    def log(self, record: StateRecord) -> None:
        (batch,) = parse_batches(encode_records([record], 0))
        batch.base_offset = batch.last_offset = self._log.log_end_offset
        batch.leader_epoch = 0
        self._log.append_as_follower([batch])
        self.replayed.follow(self._log, self._log.log_end_offset)

    def update(self, start_offset: int, *batches: StateBatch) -> None:
        self.log(UpdateRecord(PARTITION, 0, -1, start_offset, 0, batches))

    def differing(self, held: ShareState | None) -> list[Observed]:
        return list(self.replayed.differing({PARTITION: held}.get))


def test_progress__the_greatest_counts() -> None:
    coordinator = Coordinator()
    coordinator.log(SnapshotRecord(PARTITION, state(5)))
    coordinator.update(-1, StateBatch(5, 6, ACKNOWLEDGED, 2), StateBatch(8, 9, AVAILABLE, 1))
    coordinator.update(6, StateBatch(6, 7, AVAILABLE, 1))
    held = (StateBatch(6, 6, ACKNOWLEDGED, 2), StateBatch(7, 9, AVAILABLE, 1))
    assert coordinator.differing(state(6, *held)) == []
    coordinator.update(6, StateBatch(6, 7, AVAILABLE, 1))
    assert coordinator.differing(state(6, StateBatch(6, 9, AVAILABLE, 1))) == [
        HeldDiffers(NAME, "offset 6", "delivery count 1, state 0", "delivery count 2, state 2")
    ]
    assert coordinator.differing(None) == []  # it was compared since the last record


def test_state__that_is_missing_or_should_be() -> None:
    coordinator = Coordinator()
    coordinator.update(3)  # its snapshot is gone
    assert coordinator.differing(None) == []
    coordinator.log(SnapshotRecord(PARTITION, state(5)))
    assert coordinator.differing(None) == [HeldDiffers(NAME, "", "", "5")]
    coordinator.update(7, StateBatch(8, 8, ACKNOWLEDGED, 1))
    assert coordinator.differing(state(6)) == [HeldDiffers(NAME, "start offset", "6", "7")]
    coordinator.update(-1, StateBatch(8, 8, ACKNOWLEDGED, 1))
    lacking = HeldDiffers(NAME, "offset 8", "", "delivery count 1, state 2")
    assert coordinator.differing(state(7)) == [lacking]
    coordinator.log(SnapshotRecord(PARTITION, None))
    assert coordinator.differing(state(7)) == [HeldDiffers(NAME, "", "7", "")]


def test_start_offset__of_an_update_goes_back_and_that_of_a_new_state_may() -> None:
    coordinator = Coordinator()
    coordinator.log(SnapshotRecord(PARTITION, state(5)))
    coordinator.update(9)
    coordinator.log(SnapshotRecord(PARTITION, state(2)))
    coordinator.update(4)
    assert coordinator.replayed.start_offsets_back() == []
    coordinator.update(3)
    back = [WentBack(Measure.SHARE_START, 4, 3)]
    assert coordinator.replayed.start_offsets_back() == back
    assert coordinator.replayed.start_offsets_back() == []


def test_state__of_a_stranger_is_not_followed_up_to_the_next_snapshot() -> None:
    """Any client may write states, of any size: nothing is counted one by one then."""
    coordinator = Coordinator()
    coordinator.log(SnapshotRecord(PARTITION, state(5)))
    coordinator.update(-1, StateBatch(5, 1 << 62, AVAILABLE, 1))
    assert coordinator.differing(state(5)) == []
    coordinator.log(SnapshotRecord(PARTITION, state(5)))
    coordinator.update(-1, StateBatch(6, 6, AVAILABLE, 1))
    lacking = HeldDiffers(NAME, "offset 6", "", "delivery count 1, state 0")
    assert coordinator.differing(state(5)) == [lacking]


def test_state__of_a_stranger_with_many_batches_that_overlap_is_not_followed() -> None:
    coordinator = Coordinator()
    coordinator.log(SnapshotRecord(PARTITION, state(5)))
    coordinator.update(-1, *[StateBatch(5, 9_999, AVAILABLE, 1)] * 20_000)
    assert coordinator.replayed.states[PARTITION].progress == {}
    assert coordinator.differing(state(5)) == []


def test_snapshot__it_has_the_progress_of_all_before_it() -> None:
    coordinator = Coordinator()
    coordinator.log(SnapshotRecord(PARTITION, led(5)))
    coordinator.update(-1, StateBatch(5, 6, ACKNOWLEDGED, 2), StateBatch(8, 9, AVAILABLE, 1))
    coordinator.log(SnapshotRecord(PARTITION, led(7, StateBatch(8, 9, AVAILABLE, 1))))
    assert coordinator.replayed.progress_taken_back() == []
    coordinator.log(SnapshotRecord(PARTITION, led(7, StateBatch(8, 8, AVAILABLE, 1))))
    assert coordinator.replayed.progress_taken_back() == [WentBack(Measure.DELIVERIES, 1, 0)]
    assert coordinator.replayed.progress_taken_back() == []


def test_snapshot__of_a_cold_state() -> None:
    """Its time shows that it is no initialization, though no leader has written it."""
    coordinator = Coordinator()
    first = replace(state(5, StateBatch(5, 6, AVAILABLE, 1)), write_timestamp_ms=900)
    coordinator.log(SnapshotRecord(PARTITION, first))
    coordinator.log(SnapshotRecord(PARTITION, replace(first, write_timestamp_ms=1_900)))
    assert coordinator.replayed.progress_taken_back() == []
    coordinator.log(SnapshotRecord(PARTITION, replace(first, batches=())))
    assert coordinator.replayed.progress_taken_back() == [WentBack(Measure.DELIVERIES, 1, 0)]


def test_snapshot__an_initialization_begins_without_progress() -> None:
    coordinator = Coordinator()
    coordinator.log(SnapshotRecord(PARTITION, state(5, StateBatch(5, 6, ACKNOWLEDGED, 2))))
    coordinator.log(SnapshotRecord(PARTITION, state(0)))  # with the same state epoch
    coordinator.log(SnapshotRecord(PARTITION, replace(state(0), state_epoch=2)))
    assert coordinator.replayed.progress_taken_back() == []
    kept = replace(state(0, StateBatch(5, 6, ACKNOWLEDGED, 2)), state_epoch=3)
    coordinator.log(SnapshotRecord(PARTITION, kept))
    assert coordinator.replayed.progress_taken_back() == [WentBack(Measure.DELIVERIES, 2, 0)]


def test_log__it_begins_at_the_oldest_last_snapshot() -> None:
    coordinator = Coordinator()
    other = PARTITION._replace(partition=1)
    coordinator.log(SnapshotRecord(PARTITION, state(5)))
    coordinator.log(SnapshotRecord(other, state(0)))
    coordinator.update(6, StateBatch(6, 7, AVAILABLE, 1))
    coordinator.log(SnapshotRecord(PARTITION, state(6)))
    assert list(coordinator.replayed.pruned(1)) == []
    assert list(coordinator.replayed.pruned(3)) == [StatePruned("packing", 1, 1, 3)]
    coordinator.log(SnapshotRecord(other, None))
    assert list(coordinator.replayed.pruned(3)) == []


def test_start_offset__it_passes_what_was_settled() -> None:
    coordinator = Coordinator()
    coordinator.log(SnapshotRecord(PARTITION, led(5)))
    coordinator.update(-1, StateBatch(5, 6, ACKNOWLEDGED, 2), StateBatch(8, 9, AVAILABLE, 1))
    coordinator.update(8, StateBatch(7, 8, ARCHIVED, 1))
    assert coordinator.replayed.passed_over() == []
    coordinator.update(10, StateBatch(8, 8, ACKNOWLEDGED, 1))
    assert coordinator.replayed.passed_over() == [(PARTITION, [9])]
    coordinator.log(SnapshotRecord(PARTITION, led(12)))
    assert coordinator.replayed.passed_over() == [(PARTITION, [10, 11])]
    coordinator.log(SnapshotRecord(PARTITION, state(20)))  # an initialization
    assert coordinator.replayed.passed_over() == []


def test_start_offset__a_leader_that_is_not_fenced_goes_on_after_the_state_was_put_back() -> None:
    """An administrator resets the offsets twice, and the second request is late."""
    coordinator = Coordinator()
    coordinator.log(SnapshotRecord(PARTITION, state(5)))
    coordinator.update(8, StateBatch(5, 7, ACKNOWLEDGED, 1))
    coordinator.log(SnapshotRecord(PARTITION, state(5)))
    coordinator.update(9)
    assert coordinator.replayed.passed_over() == []
    coordinator.log(SnapshotRecord(PARTITION, replace(state(5), state_epoch=2)))
    coordinator.update(7)
    assert coordinator.replayed.passed_over() == [(PARTITION, [5, 6])]


def test_start_offset__a_leader_of_a_deleted_state_may_go_on_in_the_next() -> None:
    coordinator = Coordinator()
    coordinator.log(SnapshotRecord(PARTITION, led(5)))
    coordinator.log(SnapshotRecord(PARTITION, None))
    coordinator.log(SnapshotRecord(PARTITION, state(0)))
    coordinator.update(7)
    assert coordinator.replayed.passed_over() == []
