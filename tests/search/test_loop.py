"""The search: equal for equal seeds, guided by what runs reach, grouped by what they find."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from kcluster.search.findings import FindingKind, SearchFinding
from kcluster.search.loop import ScheduleSearch
from kcluster.search.schedule import FIXED, SWARMS, Schedule, draw
from kcluster.search.trial import Trial
from tests.search.spaces import FAULTS, LOSING, space


def trial(
    schedule: Schedule, signatures: Sequence[int], findings: Sequence[SearchFinding] = ()
) -> Trial:
    return Trial(schedule, tuple(findings), dict.fromkeys(signatures, 2_000), {}, "valid")


def test_search__equal_trials_lead_to_equal_schedules() -> None:
    searches = [ScheduleSearch([space(FAULTS)], 3) for _ in range(2)]
    for turn in range(3):
        batches = [search.batch() for search in searches]
        assert batches[0] == batches[1]
        for search, batch in zip(searches, batches, strict=True):
            search.learn(trial(one, [turn, at]) for at, one in enumerate(batch))


def test_search__a_schedule_that_reaches_nothing_new_is_not_varied() -> None:
    search = ScheduleSearch([space(FAULTS)], 1)
    first, second, *_ = search.batch()
    search.learn([trial(first, [1, 2]), trial(second, [2])])
    assert [entry.schedule for entry in search.corpus] == [first]


def test_search__the_rarer_and_the_less_varied_schedule_is_worth_more() -> None:
    search = ScheduleSearch([space(FAULTS)], 1)
    batch = search.batch()
    search.learn(trial(one, [at, 100]) for at, one in enumerate(batch))
    search.learn(trial(one, [0]) for one in search.batch())
    often, *rare = search.corpus
    weights = [search._weight(entry) for entry in search.corpus]
    assert next(iter(often.novel)) == 0
    assert weights[0] < max(weights[1:])
    rare[0].chosen += 100
    assert search._weight(rare[0]) < weights[1]


def test_search__equal_findings_are_one_group_and_what_a_setting_allows_is_another() -> None:
    search = ScheduleSearch([space(FAULTS)], 1)
    lost = SearchFinding(FindingKind.ANOMALY, "lost-write", "orders-0")
    allowed = SearchFinding(FindingKind.ANOMALY, "lost-write", "orders-1", allowed="acks=1")
    first, second, third, *_ = search.batch()
    new = search.learn(
        [trial(first, [], [allowed, lost]), trial(second, [], [lost]), trial(third, [], [allowed])]
    )
    assert [(found.finding.group, found.run) for found in new] == [
        ("lost-write", 1),
        ("lost-write (acks=1)", 3),
    ]
    assert search.found["lost-write"].times == 2


def test_search__by_chance_nothing_is_varied() -> None:
    search = ScheduleSearch([space(FAULTS)], 5, guided=False)
    search.learn(trial(one, [at]) for at, one in enumerate(search.batch()))
    assert [schedule.seed for schedule in search.batch()] == list(range(13, 21))


def test_search__a_swarm_whose_runs_reach_more_is_drawn_more_often() -> None:
    search = ScheduleSearch([space(FAULTS)], 1)
    good = 3
    for turn in range(200):
        swarm = turn % len(SWARMS)
        schedule = draw(search.spaces[0], turn, swarm)
        reached = range(turn * 10, turn * 10 + (9 if swarm == good else 1))
        search.learn([trial(schedule, list(reached))])
    drawn = [search._swarm(Random(at)) for at in range(300)]
    assert drawn.count(good) > 100


def test_search__runs_that_all_fail_at_once_do_not_end_it() -> None:
    search = ScheduleSearch([space(FAULTS)], 1)
    for _ in range(3):
        search.learn(trial(one, []) for one in search.batch())
    assert len(search.batch()) > 0


def test_search__goes_on_from_a_kept_schedule() -> None:
    search = ScheduleSearch([space(FAULTS)], 1)
    search.learn(trial(one, [at]) for at, one in enumerate(search.batch()))
    kept = {entry.schedule.seed: entry.schedule for entry in search.corpus}
    later = [one for _ in range(4) for one in search.batch() if one.seed in kept]
    same = [
        sum(step in kept[one.seed].steps for step in one.steps if step.kind != FIXED)
        for one in later
    ]
    assert sum(same) > len(later)


def test_search__several_spaces_take_turns_and_variations_stay_in_theirs() -> None:
    spaces = [space(FAULTS), space(LOSING)]
    search = ScheduleSearch(spaces, 1)
    assert [one.space for one in search.batch(4)] == [0, 1, 0, 1]
    for turn in range(6):
        schedules = search.batch()
        search.learn(trial(one, [turn, 10 + at]) for at, one in enumerate(schedules))
        for one in schedules:
            fixed = [step.step.verb for step in one.steps if step.kind == FIXED]
            assert fixed == [["move"], ["pause", "slow", "kill"]][one.space]
    assert {one.schedule.space for one in search.corpus} == {0, 1}
