"""Leader-epoch cache.  Kafka's tests of it: LeaderEpochFileCacheTest."""

from __future__ import annotations

import pytest

from kcluster.partition.epochs import EpochCache


def cache(*entries: tuple[int, int]) -> EpochCache:
    made = EpochCache()
    for epoch, start_offset in entries:
        made.assign(epoch, start_offset)
    return made


def test_assign__the_first_start_of_an_epoch_counts() -> None:
    epochs = cache((2, 10))
    assert not epochs.assign(2, 12)
    assert epochs.entries == [(2, 10)]
    assert (epochs.latest, epochs.starts[-1]) == (2, 10)


@pytest.mark.parametrize(
    ("new", "left"),
    [
        ((4, 20), [(1, 5), (2, 10), (4, 20)]),
        ((3, 10), [(1, 5), (3, 10)]),
        ((3, 7), [(1, 5), (3, 7)]),
        ((2, 8), [(1, 5), (2, 8)]),
        ((1, 12), [(1, 12)]),
        ((0, 0), [(0, 0)]),
    ],
)
def test_assign__entries_that_contradict_the_new_one_are_removed(
    new: tuple[int, int], left: list[tuple[int, int]]
) -> None:
    epochs = cache((1, 5), (2, 10))
    assert epochs.assign(*new)
    assert epochs.entries == left
    assert epochs.latest == new[0]


@pytest.mark.parametrize(
    ("requested", "answer"),
    [
        (-1, (-1, -1)),
        (1, (1, 5)),  # before all known epochs: the start of the oldest
        (2, (2, 9)),
        (3, (2, 9)),  # unknown: the epoch before it, and where that ended
        (4, (4, 20)),
        (6, (6, 33)),  # the newest ends at the log end
        (7, (-1, -1)),
    ],
)
def test_end_offset__of_the_greatest_epoch_not_above_the_requested(
    requested: int, answer: tuple[int, int]
) -> None:
    assert cache((2, 5), (4, 9), (6, 20)).end_offset_for(requested, 33) == answer


def test_end_offset__of_an_empty_cache_is_undefined() -> None:
    assert EpochCache().end_offset_for(0, 10) == (-1, -1)
    assert EpochCache().end_offset_for(-1, 10) == (-1, -1)


@pytest.mark.parametrize(
    ("offset", "epoch"), [(4, -1), (5, 2), (8, 2), (9, 4), (19, 4), (20, 6), (99, 6)]
)
def test_epoch_for_offset(offset: int, epoch: int) -> None:
    assert cache((2, 5), (4, 9), (6, 20)).epoch_for_offset(offset) == epoch


@pytest.mark.parametrize(
    ("end_offset", "left"),
    [
        (21, [(2, 5), (4, 9), (6, 20)]),
        (20, [(2, 5), (4, 9)]),
        (10, [(2, 5), (4, 9)]),
        (9, [(2, 5)]),
        (0, []),
    ],
)
def test_truncate_from_end__drops_epochs_that_start_there_or_later(
    end_offset: int, left: list[tuple[int, int]]
) -> None:
    epochs = cache((2, 5), (4, 9), (6, 20))
    epochs.truncate_from_end(end_offset)
    assert epochs.entries == left
    assert epochs.latest == (left[-1][0] if left else -1)


@pytest.mark.parametrize(
    ("start_offset", "left"),
    [
        (3, [(2, 5), (4, 9), (6, 20)]),
        (5, [(2, 5), (4, 9), (6, 20)]),
        (7, [(2, 7), (4, 9), (6, 20)]),
        (9, [(4, 9), (6, 20)]),
        (15, [(4, 15), (6, 20)]),
        (99, [(6, 99)]),
    ],
)
def test_truncate_from_start__the_epoch_of_the_new_start_starts_there(
    start_offset: int, left: list[tuple[int, int]]
) -> None:
    epochs = cache((2, 5), (4, 9), (6, 20))
    epochs.truncate_from_start(start_offset)
    assert epochs.entries == left
