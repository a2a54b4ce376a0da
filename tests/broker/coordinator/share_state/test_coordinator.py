"""Share state: what a share coordinator keeps, whom it fences, and what a failover leaves."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from kcluster.broker.coordinator.share_state.state import StateBatch, combine, is_share_key
from tests.broker.coordinator.share_state.share_state_rig import (
    ACKNOWLEDGED,
    ARCHIVED,
    AVAILABLE,
    Persisting,
    ShareStateRig,
)

OFTEN = {
    "share.coordinator.state.topic.prune.interval.ms": 4_000,
    "share.coordinator.cold.partition.snapshot.interval.ms": 10_000,
}

# ------------------------------------------------------------------------------------- batches


@pytest.mark.parametrize(
    ("known", "new", "start", "combined"),
    [
        ([], [(0, 9, 0, 1)], -1, [(0, 9, 0, 1)]),
        ([(0, 9, 0, 1)], [(10, 19, 0, 1)], -1, [(0, 19, 0, 1)]),
        ([(0, 9, 0, 1)], [(10, 19, 2, 1)], -1, [(0, 9, 0, 1), (10, 19, 2, 1)]),
        ([(0, 9, 0, 1)], [(3, 5, 2, 1)], -1, [(0, 2, 0, 1), (3, 5, 2, 1), (6, 9, 0, 1)]),
        ([(0, 9, 2, 1)], [(3, 5, 0, 1)], -1, [(0, 9, 2, 1)]),
        ([(3, 5, 2, 1)], [(0, 9, 0, 1)], -1, [(0, 2, 0, 1), (3, 5, 2, 1), (6, 9, 0, 1)]),
        ([(0, 4, 0, 1), (5, 9, 0, 2)], [(3, 6, 0, 2)], -1, [(0, 2, 0, 1), (3, 9, 0, 2)]),
        ([(0, 9, 0, 1)], [(5, 14, 2, 1)], 7, [(7, 14, 2, 1)]),
        ([(0, 9, 0, 1)], [], 4, [(4, 9, 0, 1)]),
        ([(0, 9, 0, 1)], [], 10, []),
        ([(0, 9, 0, 1)], [(12, 11, 2, 1)], -1, [(0, 9, 0, 1)]),
    ],
)
def test_combine__the_batch_with_more_progress_wins(
    known: list[tuple[int, int, int, int]],
    new: list[tuple[int, int, int, int]],
    start: int,
    combined: list[tuple[int, int, int, int]],
) -> None:
    batches = combine([StateBatch(*one) for one in known], [StateBatch(*one) for one in new], start)
    assert list(batches) == combined


def test_combine__is_what_each_offset_says() -> None:
    rng = random.Random(7)
    for _ in range(300):
        known: tuple[StateBatch, ...] = ()
        by_offset: dict[int, tuple[int, int]] = {}
        for _ in range(rng.randrange(1, 8)):
            first = rng.randrange(20)
            last = first + rng.randrange(6)
            batch = StateBatch(first, last, rng.choice([0, 2, 4]), rng.randrange(1, 4))
            known = combine(known, [batch], -1)
            for offset in range(first, last + 1):
                by_offset[offset] = max(by_offset.get(offset, (0, -1)), batch.progress)
        found = {
            offset: batch.progress
            for batch in known
            for offset in range(batch.first_offset, batch.last_offset + 1)
        }
        assert found == by_offset
        for one, following in pairwise(known):
            assert one.last_offset < following.first_offset
            is_adjacent = one.last_offset + 1 == following.first_offset
            assert not is_adjacent or one.progress != following.progress


@pytest.mark.parametrize(
    ("key", "is_one"),
    [
        ("g:AAAAAAAAAAAAAAAAAAAAAQ:0", True),
        ("a:b:AAAAAAAAAAAAAAAAAAAAAQ:12", True),
        ("AAAAAAAAAAAAAAAAAAAAAQ:0", False),
        (" :AAAAAAAAAAAAAAAAAAAAAQ:0", False),
        ("g:short:0", False),
        ("g:AAAAAAAAAAAAAAAAAAAAAQ:x", False),
        ("", False),
    ],
)
def test_is_share_key(key: str, is_one: bool) -> None:
    assert is_share_key(key) == is_one


# --------------------------------------------------------------------------------- the coordinator


def test_state__is_initialized_written_read_and_deleted() -> None:
    rig = ShareStateRig()
    assert rig.read() == "INVALID_REQUEST"
    assert rig.write((0, 4, ACKNOWLEDGED, 1)) == "INVALID_REQUEST"
    assert rig.summary() == (0, 0, -1, -1)
    assert rig.initialize(1, 10) == "NONE"
    assert rig.read() == (1, 10, [])
    assert (
        rig.write((10, 14, ACKNOWLEDGED, 1), (16, 19, AVAILABLE, 1), start=10, complete=5) == "NONE"
    )
    assert rig.read() == (1, 10, [(10, 14, ACKNOWLEDGED, 1), (16, 19, AVAILABLE, 1)])
    assert rig.summary() == (1, 0, 10, 5)
    assert rig.write(start=15, complete=0) == "NONE"
    assert rig.read() == (1, 15, [(16, 19, AVAILABLE, 1)])
    assert rig.delete() == "NONE"
    assert rig.read() == "INVALID_REQUEST"
    assert rig.delete() == "NONE"


def test_fencing__a_newer_leader_has_read() -> None:
    rig = ShareStateRig()
    rig.initialize(1, 0)
    assert rig.read(leader_epoch=5) == (1, 0, [])
    assert rig.write((0, 1, ACKNOWLEDGED, 1), leader_epoch=4) == "FENCED_LEADER_EPOCH"
    assert rig.read(leader_epoch=4) == "FENCED_LEADER_EPOCH"
    assert rig.write((0, 1, ACKNOWLEDGED, 1), leader_epoch=5) == "NONE"
    assert rig.summary() == (1, 5, 0, 0)


def test_state__there_is_no_way_back_and_no_missing_epoch() -> None:
    rig = ShareStateRig()
    rig.initialize(1, 10)
    assert rig.write(start=20, complete=3) == "NONE"
    assert rig.write(start=15, complete=7) == "NONE"
    assert rig.summary() == (1, 0, 20, 3), "an older write that came later"
    assert rig.write(start=20, complete=2) == "NONE"
    assert rig.summary() == (1, 0, 20, 3)
    assert rig.read(leader_epoch=-1) == "INVALID_REQUEST"
    assert rig.write(leader_epoch=-1) == rig.write(state_epoch=-1) == "INVALID_REQUEST"
    assert rig.initialize(-1, 0) == "INVALID_REQUEST"


def test_fencing__a_later_initialization() -> None:
    rig = ShareStateRig()
    rig.initialize(2, 0)
    rig.write((0, 1, ACKNOWLEDGED, 1), state_epoch=2)
    assert rig.initialize(1, 7) == "FENCED_STATE_EPOCH"
    assert rig.initialize(3, 7) == "NONE"
    assert rig.write((7, 8, ACKNOWLEDGED, 1), state_epoch=2) == "FENCED_STATE_EPOCH"
    assert rig.read() == (3, 7, [])


def test_initialize__of_what_does_not_exist() -> None:
    rig = ShareStateRig()
    assert rig.initialize(1, 0, partition=9) == "UNKNOWN_TOPIC_OR_PARTITION"
    assert rig.initialize(1, 0, partition=-1) == "INVALID_REQUEST"
    assert rig.initialize(1, 0, topic_id=b"x" * 16) == "UNKNOWN_TOPIC_OR_PARTITION"


def test_state__survives_its_coordinator() -> None:
    rig = ShareStateRig()
    rig.initialize(1, 0)
    rig.read(leader_epoch=3)
    rig.write((0, 4, ACKNOWLEDGED, 1), (5, 9, ARCHIVED, 2), leader_epoch=3, complete=10)
    before = rig.stored
    rig.kill(2)
    rig.run_for(30_000)
    assert rig.coordinator != 2
    assert rig.stored == before
    assert rig.write(leader_epoch=2) == "FENCED_LEADER_EPOCH"


def test_state__is_stored_compressed_and_loaded_in_small_pieces() -> None:
    rig = ShareStateRig(
        of_brokers={
            "share.coordinator.state.topic.compression.codec": 4,
            "share.coordinator.load.buffer.size": 1,
        }
    )
    rig.initialize(1, 0)
    rig.write((0, 4, ACKNOWLEDGED, 1))
    assert rig.shard.replica is not None
    log = rig.shard.replica.log
    batches = log.read(0, 1 << 20, log.log_end_offset, True)
    assert [one.codec for one in batches] == [4, 4]
    before = rig.stored
    rig.kill(2)
    rig.run_for(30_000)
    assert rig.stored == before


def test_state__an_answer_means_that_all_replicas_have_it() -> None:
    rig = ShareStateRig()
    rig.initialize(1, 0)
    rig.pause(1)
    assert rig.write((0, 4, ACKNOWLEDGED, 1)) == "COORDINATOR_NOT_AVAILABLE"
    rig.resume(1)
    rig.run_for(1_000)
    assert rig.read() == (1, 0, [(0, 4, ACKNOWLEDGED, 1)])  # it was in the log all the time


def test_snapshots__after_so_many_updates() -> None:
    rig = ShareStateRig(of_brokers={"share.coordinator.snapshot.update.records.per.snapshot": 3})
    rig.initialize(1, 0)
    for offset in range(3):
        rig.write((offset, offset, ACKNOWLEDGED, 1))
    assert rig.stored.snapshot_epoch == 0
    rig.write((3, 3, ACKNOWLEDGED, 1))
    assert rig.stored.snapshot_epoch == 1
    assert rig.read() == (1, 0, [(0, 3, ACKNOWLEDGED, 1)])


def test_log__is_pruned_up_to_the_oldest_snapshot() -> None:
    rig = ShareStateRig(
        of_brokers={"share.coordinator.snapshot.update.records.per.snapshot": 2} | OFTEN
    )
    rig.initialize(1, 0)
    for offset in range(6):
        rig.write((offset, offset, ACKNOWLEDGED, 1))
    rig.run_for(4_000)
    assert rig.log_start == 6  # one initialization, 2 updates, a snapshot, 2 updates; a snapshot
    rig.kill(2)
    rig.run_for(30_000)
    assert rig.read() == (1, 0, [(0, 5, ACKNOWLEDGED, 1)])


def test_log__is_not_pruned_up_to_a_snapshot_that_may_be_lost() -> None:
    """The next coordinator would have neither it nor what it replaces."""
    rig = ShareStateRig(
        of_brokers={"share.coordinator.snapshot.update.records.per.snapshot": 2} | OFTEN
    )
    rig.initialize(1, 0)
    for offset in range(2):
        rig.write((offset, offset, ACKNOWLEDGED, 1))
    rig.cut(1, 2)
    persisting = Persisting(rig, broker=2)
    persisting.write((2, 2, ACKNOWLEDGED, 1))  # the snapshot
    rig.run_for(4_500)
    assert (persisting.answers, rig.log_start) == ([], 0)
    rig.heal()
    rig.run_for(4_500)
    assert (persisting.answers, rig.log_start) == (["NONE"], 3)


def test_snapshots__a_cold_share_partition_does_not_hold_back_pruning() -> None:
    rig = ShareStateRig(of_brokers=OFTEN)
    rig.initialize(1, 0)
    rig.write((0, 0, ACKNOWLEDGED, 1))
    rig.run_for(26_000)
    assert rig.stored.snapshot_epoch == 1
    assert rig.stored.write_timestamp_ms > rig.stored.create_timestamp_ms
    assert rig.log_start == 2


def test_topic_deleted__its_state_is_deleted() -> None:
    rig = ShareStateRig()
    partition = rig.share_partition
    rig.initialize(1, 0)
    rig.delete_orders(via=1)
    rig.run_for(1_000)
    assert rig.shard.states.state(partition) is None


# ----------------------------------------------------------------------------------- the persister


def test_persister__writes_and_reads_on_another_broker() -> None:
    rig = ShareStateRig()
    rig.initialize(1, 0)
    persisting = Persisting(rig)
    persisting.read(leader_epoch=1)
    rig.run_for(3_000)
    persisting.write((0, 4, ACKNOWLEDGED, 1), leader_epoch=1)
    persisting.write((5, 9, ACKNOWLEDGED, 1), leader_epoch=1)
    persisting.write((10, 14, AVAILABLE, 1), start=5, leader_epoch=1)
    rig.run_for(3_000)
    assert persisting.answers[1:] == ["NONE"] * 3
    assert rig.read() == (1, 5, [(5, 9, ACKNOWLEDGED, 1), (10, 14, AVAILABLE, 1)])


def test_persister__a_start_offset_survives_a_write_without_one() -> None:
    rig = ShareStateRig()
    rig.initialize(1, 0)
    persisting = Persisting(rig)
    persisting.write((0, 4, ACKNOWLEDGED, 1))
    persisting.write(start=5)
    persisting.write((5, 5, ACKNOWLEDGED, 1))  # sent together with the one before
    rig.run_for(3_000)
    assert rig.read() == (1, 5, [(5, 5, ACKNOWLEDGED, 1)])


def test_persister__a_write_outlives_the_coordinators_death() -> None:
    rig = ShareStateRig()
    rig.initialize(1, 0)
    persisting = Persisting(rig)
    rig.kill(2)
    persisting.write((0, 4, ACKNOWLEDGED, 1))
    rig.run_for(60_000)
    assert persisting.answers == ["NONE"]
    assert rig.read() == (1, 0, [(0, 4, ACKNOWLEDGED, 1)])


def test_persister__gives_up_after_five_attempts() -> None:
    rig = ShareStateRig(of_brokers={"request.timeout.ms": 3_000})
    rig.initialize(1, 0)
    persisting = Persisting(rig)
    rig.cut(1, 2)
    persisting.write((0, 4, ACKNOWLEDGED, 1))
    rig.run_for(20_000)
    assert persisting.answers == ["NETWORK_EXCEPTION"]


def test_persister__is_fenced_at_once() -> None:
    rig = ShareStateRig()
    rig.initialize(1, 0)
    persisting = Persisting(rig)
    rig.read(leader_epoch=9)
    persisting.write((0, 4, ACKNOWLEDGED, 1), leader_epoch=8)
    rig.run_for(3_000)
    assert persisting.answers == ["FENCED_LEADER_EPOCH"]
