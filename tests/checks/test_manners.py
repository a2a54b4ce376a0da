"""Habits of clients, found in exchanges that were recorded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest
from msgspec.structs import replace

from kcluster.checks.manners import Habit, Manner, find_manners
from kcluster.checks.manners_words import BadMannersError, manner_lines, require_good_manners
from kcluster.evidence.rows import ExchangeRow, GroupRow
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.library import LibraryKind, library_path
from kcluster.scenario.play.running import run_scenario


def rows(api: str, times_ms: Iterable[int], **values: object) -> list[ExchangeRow]:
    row = ExchangeRow(0, "shop", 1, api, 0, 0, topic="orders", partition=0, partitions=1)
    return [replace(row, at_ms=at, asked_ms=at, answered_ms=at, **values) for at in times_ms]


def fetched(times_ms: Iterable[int], first: int, last: int) -> list[ExchangeRow]:
    return rows("Fetch", times_ms, first=first, last=last)


def generations(count: int, every_ms: int) -> Iterator[GroupRow]:
    for number in range(count):
        for state in ("PreparingRebalance", "Stable"):
            yield GroupRow("billing", "classic", state, number, 1, (), number * every_ms)


def produced(times_ms: Iterable[int]) -> list[ExchangeRow]:
    return [row for at in times_ms for row in rows("Produce", [at], first=at, last=at)]


BAD: dict[Habit, list[ExchangeRow]] = {
    Habit.PRODUCER_PER_REQUEST: [
        *rows("InitProducerId", range(0, 1_000, 100)),
        *rows("Produce", range(0, 1_000, 100)),
    ],
    Habit.COMMIT_PER_RECORD: [*fetched([0], 0, 99), *rows("OffsetCommit", range(0, 10_000, 100))],
    Habit.METADATA_STORM: rows("Metadata", range(0, 5_000, 10)),
    Habit.COORDINATOR_STORM: rows("FindCoordinator", range(0, 5_000, 10)),
    Habit.RECONNECT_STORM: rows("ApiVersions", range(0, 5_000, 10)),
    Habit.SINGLE_RECORD_REQUESTS: produced(range(0, 4_000, 5)),
    Habit.STALE_LEADER: rows("Produce", range(0, 1_000, 100), error="NOT_LEADER_OR_FOLLOWER"),
    Habit.STUCK_FETCH: fetched(range(0, 1_000, 100), 7, 9),
}
GOOD: dict[Habit, list[ExchangeRow]] = {
    Habit.PRODUCER_PER_REQUEST: [
        *rows("InitProducerId", range(0, 1_000, 100)),
        *rows("Produce", range(0, 10_000, 100)),
    ],
    Habit.COMMIT_PER_RECORD: [*fetched([0], 0, 999), *rows("OffsetCommit", range(0, 10_000, 100))],
    # Ten requests a second: what retry.backoff.ms=100 allows.
    Habit.METADATA_STORM: rows("Metadata", range(0, 60_000, 100)),
    Habit.COORDINATOR_STORM: rows("FindCoordinator", range(0, 60_000, 100)),
    # Fifty clients of one name come at once.
    Habit.RECONNECT_STORM: rows("ApiVersions", range(50)),
    Habit.SINGLE_RECORD_REQUESTS: produced(range(0, 40_000, 50)),
    Habit.STALE_LEADER: [
        row
        for at in range(0, 1_000, 100)
        for row in (
            *rows("Produce", [at], error="NOT_LEADER_OR_FOLLOWER"),
            *rows("Metadata", [at + 50]),
        )
    ],
    Habit.STUCK_FETCH: [row for at in range(50) for row in fetched([at], at, at)],
}


def habits(found: Iterable[Manner]) -> list[Habit]:
    return [manner.habit for manner in found]


@pytest.mark.parametrize("habit", BAD)
def test_manners__a_habit_and_its_good_neighbour(habit: Habit) -> None:
    (manner,) = find_manners(BAD[habit])
    assert (manner.habit, manner.client) == (habit, "shop")
    assert manner.figure >= manner.threshold
    assert find_manners(GOOD[habit]) == []


def test_manners__a_group_that_rebalances_without_end() -> None:
    (manner,) = find_manners([], generations(20, 2_000))
    assert (manner.habit, manner.client, manner.count) == (Habit.REBALANCE_LOOP, "billing", 20)
    assert find_manners([], generations(20, 10_000)) == []


def test_manners__fewer_acks_than_the_topic_promises() -> None:
    weak = [*rows("Produce", [5, 9], acks=1), *rows("Produce", [7], acks=-1)]
    (manner,) = find_manners(weak, min_insync={"orders": 2})
    assert list(manner_lines([manner])) == [
        "weak-acks: client shop: acks=1 to orders, with min.insync.replicas > 1: 2 requests",
        "    use acks=all: with fewer acks min.insync.replicas protects nothing",
    ]
    assert find_manners(weak, min_insync={"orders": 1}) == find_manners(weak) == []


def test_manners__in_words() -> None:
    found = [*find_manners(BAD[Habit.METADATA_STORM]), *find_manners([], generations(20, 2_000))]
    with pytest.raises(BadMannersError) as raised:
        require_good_manners(found)
    assert str(raised.value).splitlines() == [
        "metadata-storm: client shop: 100 Metadata requests a second, 500 in all (from 30 a second"
        " on)",
        "    wait between requests: retry.backoff.ms, metadata.max.age.ms",
        "rebalance-loop: group billing: 20 generations within 60 s (from 12 generations on)",
        "    poll within max.poll.interval.ms, close consumers, or use static members"
        " (group.instance.id) or group.protocol=consumer",
    ]
    require_good_manners([])


@pytest.mark.parametrize("name", ["rolling_restart", "safe_settings"])
def test_manners__own_clients_have_good_ones_through_failures(name: str) -> None:
    path = library_path(LibraryKind.SCENARIO, name)
    assert path is not None
    recorder = run_scenario(Scenario.load(path), "virtual").recorder
    found = find_manners(recorder.exchanges().rows, recorder.states.groups.rows)
    assert [x for x in found if x.habit is not Habit.SINGLE_RECORD_REQUESTS] == []
