from __future__ import annotations

import itertools
from typing import Any

import pytest
from msgspec.structs import replace

from kcluster.controller.partitions.elections import ElectionMode, clear_elr, elect, move_leader
from kcluster.events.reasons import ElectionKind
from kcluster.metadata.records import NO_LEADER, PartitionRegistration

ONLINE, PREFERRED, UNCLEAN = ElectionMode.ONLINE, ElectionMode.PREFERRED, ElectionMode.UNCLEAN


def partition(
    isr: tuple[int, ...] = (1, 2, 3),
    leader: int = 1,
    elr: tuple[int, ...] = (),
    last_known: tuple[int, ...] = (),
    recovering: bool = False,
) -> PartitionRegistration:
    return PartitionRegistration(
        bytes(16), 0, (1, 2, 3), isr, leader, 5, 10, elr, last_known, recovering
    )


# before, active, min ISR, mode, target ISR, unclean shutdown
# -> leader, ISR, ELR, last known leader, leader epoch bumped, clean
TABLE = {
    "leader leaves, next replica of the ISR": (
        partition(), (2, 3), 1, ONLINE, (2, 3), None, 2, (2, 3), (), (), True, True),
    "follower leaves, leader stays, no leader epoch bump": (
        partition(), (1, 2), 1, ONLINE, (1, 2), None, 1, (1, 2), (), (), False, True),
    "below min ISR, who left becomes eligible": (
        partition((1, 2)), (1,), 2, ONLINE, (1,), None, 1, (1,), (2,), (), False, True),
    "last one leaves: ISR empty, both eligible, last leader kept": (
        partition((1,), 1, (2,)), (), 2, ONLINE, (), None, NO_LEADER, (), (1, 2), (1,), True, True),
    "min ISR 1: even then the last one is eligible": (
        partition((1,)), (), 1, ONLINE, (), None, NO_LEADER, (), (1,), (1,), True, True),
    "eligible replica comes back and leads alone": (
        partition((), NO_LEADER, (1, 2), (1,)), (2,), 2, ONLINE, None, None,
        2, (2,), (1,), (), True, True),
    "order of replicas decides among the eligible": (
        partition((), NO_LEADER, (2, 3), (3,)), (2, 3), 2, ONLINE, None, None,
        2, (2,), (3,), (), True, True),
    "a replica that is neither waits": (
        partition((), NO_LEADER, (1, 2), (1,)), (3,), 2, ONLINE, None, None, None),
    "unclean restart ends eligibility": (
        partition((), NO_LEADER, (1, 2), (1,)), (), 2, ONLINE, None, 1,
        NO_LEADER, (), (2,), (1,), False, True),
    "ISR and ELR empty: the last known leader, unclean": (
        partition((), NO_LEADER, (), (1,)), (1, 2), 2, ONLINE, None, None,
        1, (1,), (), (), True, False),
    "the last known leader must be active": (
        partition((), NO_LEADER, (), (1,)), (2,), 2, ONLINE, None, None, None),
    "unclean: any active replica when none is eligible": (
        partition((), NO_LEADER, (1,), (1,)), (2, 3), 2, UNCLEAN, None, None,
        2, (2,), (), (), True, False),
    "unclean allowed, but a clean one is possible": (
        partition((), NO_LEADER, (3,), (3,)), (2, 3), 2, UNCLEAN, None, None,
        3, (3,), (), (), True, True),
    "preferred leader is back in the ISR": (
        partition((2, 1), 2), (1, 2), 1, PREFERRED, None, None, 1, (2, 1), (), (), True, True),
    "preferred leader is not in the ISR": (
        partition((2,), 2), (1, 2), 1, PREFERRED, None, None, None),
    "preferred leader is down": (
        partition((2, 1), 2), (2,), 1, PREFERRED, None, None, None),
    "ISR back at min ISR clears the ELR": (
        partition((2,), 2, (1, 3)), (1, 2), 2, ONLINE, (2, 1), None,
        2, (2, 1), (), (), False, True),
    "ISR grows but stays below min ISR": (
        partition((2,), 2, (1, 3)), (1, 2), 3, ONLINE, (2, 1), None,
        2, (2, 1), (3,), (), False, True),
    "unclean shutdown of a follower in the ISR": (
        partition((1, 2)), (1,), 2, ONLINE, (1,), 2, 1, (1,), (), (), False, True),
    "nothing to do": (partition(), (1, 2, 3), 2, ONLINE, None, None, None),
}  # fmt: skip


@pytest.mark.parametrize("case", TABLE.values(), ids=TABLE.keys())
def test_elections__table(case: tuple[Any, ...]) -> None:
    before, active, min_isr, mode, isr, unclean_shutdown, *expected = case
    election = elect(
        before, active.__contains__, min_isr, mode, isr=isr, unclean_shutdown=unclean_shutdown
    )
    if expected == [None]:
        assert election is None
        return
    assert election is not None
    after = election.registration
    bumped = after.leader_epoch == before.leader_epoch + 1
    assert [after.leader, after.isr, after.elr, after.last_known_elr, bumped, election.clean] == (
        expected
    )
    assert after.partition_epoch == before.partition_epoch + 1
    assert (after.leader != before.leader) == bumped
    assert (election.kind is not ElectionKind.NONE) == (bumped and after.leader >= 0)


def test_elections__without_elr_the_last_isr_member_stays() -> None:
    election = elect(partition((1,)), {}.__contains__, 1, isr=(), elr_enabled=False)
    assert election is not None
    after = election.registration
    assert (after.leader, after.isr, after.elr, after.last_known_elr) == (NO_LEADER, (1,), (), ())


def test_elections__unclean_leader_recovers_first() -> None:
    election = elect(partition((3,), NO_LEADER), (2,).__contains__, 1, UNCLEAN)
    assert election is not None
    assert election.registration.recovering
    recovered = elect(election.registration, (2,).__contains__, 1, recovering=False)
    assert recovered is not None
    assert not recovered.registration.recovering
    assert recovered.registration.leader_epoch == election.registration.leader_epoch


def test_elections__move_leader_needs_an_active_isr_member() -> None:
    active = (1, 2).__contains__
    moved = move_leader(partition(), 2, active)
    assert moved is not None
    assert (moved.registration.leader, moved.registration.leader_epoch) == (2, 6)
    assert move_leader(partition(), 3, active) is None, "fenced"
    assert move_leader(partition((1,)), 2, active) is None, "not in the ISR"
    assert move_leader(partition(), 1, active) is None, "leads already"


def test_elections__clear_elr_bumps_only_the_partition_epoch() -> None:
    before = partition((), NO_LEADER, (1, 2), (1,))
    cleared = clear_elr(before)
    assert cleared is not None
    assert cleared.registration == replace(
        before, elr=(), last_known_elr=(), partition_epoch=before.partition_epoch + 1
    )
    assert clear_elr(partition()) is None


def test_elections__invariants_hold_for_every_small_case() -> None:
    """The leader is active or unchanged; clean leaders were in ISR or ELR; sets do not overlap."""
    members = [(), (1,), (2,), (1, 2), (1, 2, 3)]
    for isr, elr, active, target, mode in itertools.product(
        members, [(), (3,), (2, 3)], members, [None, (), (2,), (3,)], ElectionMode
    ):
        if set(isr) & set(elr):
            continue
        before = partition(isr, isr[0] if isr else NO_LEADER, elr, () if isr else (1,))
        election = elect(before, active.__contains__, 2, mode, isr=target)
        if election is None:
            continue
        after = election.registration
        assert not set(after.isr) & set(after.elr)
        if after.leader != before.leader:
            assert after.leader == NO_LEADER or after.leader in active
            if election.clean and after.leader != NO_LEADER:
                known = (target if target is not None else isr) or (*isr, *elr)
                assert after.leader in known
        assert (
            after.leader == NO_LEADER
            or after.leader in after.isr
            or (after.leader == before.leader and target is not None)
        )
