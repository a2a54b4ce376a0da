from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

import pytest

from kcluster.controller.outcome import ApiError
from kcluster.controller.partitions.placement import UsableBroker, check_manual, place
from kcluster.protocol.errors import ErrorCode


class NoChance:
    """Every random choice is the first."""

    def random(self) -> float:
        return 0.0

    def randrange(self, _stop: int, /) -> int:
        return 0

    def randbytes(self, n: int, /) -> bytes:
        return bytes(n)


def brokers(*racks: str | None, fenced: Sequence[int] = ()) -> list[UsableBroker]:
    return [UsableBroker(i, rack, i in fenced) for i, rack in enumerate(racks)]


def test_placement__stripes_over_racks_and_within_them() -> None:
    nine = brokers(*"AAABBBCCC")
    assert place(nine, 3, 3, NoChance()) == [(0, 3, 6), (4, 7, 1), (8, 2, 5)]


def test_placement__one_rack_takes_its_brokers_in_turn() -> None:
    assert place(brokers(None, None, None), 3, 2, NoChance()) == [(0, 1), (1, 2), (2, 0)]


def test_placement__every_partition_spans_all_racks() -> None:
    placed = place(brokers(*"AABBBC"), 200, 3, random.Random(7))
    assert isinstance(placed, list)
    rack_of = dict(enumerate("AABBBC"))
    for replicas in placed:
        assert len(set(replicas)) == 3
        assert {rack_of[broker] for broker in replicas} == {"A", "B", "C"}
    leaders = Counter(replicas[0] for replicas in placed)
    assert set(leaders) == set(range(6)), "every broker leads some"


def test_placement__fenced_brokers_follow_but_do_not_lead() -> None:
    placed = place(brokers(None, None, None, fenced=[1]), 30, 3, random.Random(1))
    assert isinstance(placed, list)
    assert {replicas[2] for replicas in placed} == {1}


@pytest.mark.parametrize(
    ("fenced", "factor", "text"),
    [
        ((), 4, "target replication factor of 4 cannot be reached because only 3 broker(s)"),
        ((0, 1, 2), 1, "All brokers are currently fenced"),
    ],
)
def test_placement__impossible(fenced: Sequence[int], factor: int, text: str) -> None:
    error = place(brokers(None, None, None, fenced=fenced), 1, factor, NoChance())
    assert isinstance(error, ApiError)
    assert error.code is ErrorCode.INVALID_REPLICATION_FACTOR
    assert text in (error.message or "")


@pytest.mark.parametrize(
    ("replicas", "factor", "text"),
    [
        ([1, 2], None, None),
        ([1, 2], 2, None),
        ([], None, "empty replica list"),
        ([1, 9], None, "broker 9, but no such"),
        ([1, 1], None, "broker 1 more than once"),
        ([1, 2], 3, "not consistent with previous partitions, which have 3"),
    ],
)
def test_placement__manual(replicas: list[int], factor: int | None, text: str | None) -> None:
    error = check_manual(replicas, {1: None, 2: None}, factor)
    if text is None:
        assert error is None
    else:
        assert error is not None
        assert text in (error.message or "")


def test_placement__same_seed_same_replicas() -> None:
    one = place(brokers(*"ABCABC"), 50, 3, random.Random(3))
    two = place(brokers(*"ABCABC"), 50, 3, random.Random(3))
    assert one == two
    assert one != place(brokers(*"ABCABC"), 50, 3, random.Random(4))
