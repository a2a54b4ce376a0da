"""Variations of a schedule stay within the scenario's bounds, and come near events."""

from __future__ import annotations

from random import Random

from kcluster.search.schedule import FIXED, draw, scenario_of
from kcluster.search.vary import NEAR_MS, go_on, vary
from tests.search.spaces import FAULTS, LOSING, space


def test_vary__nearly_every_variation_is_another_schedule() -> None:
    of = space(FAULTS)
    parent = draw(of, 1)
    varied = {vary(of, parent, {}, Random(f"{at}")) for at in range(50)}
    assert len(varied - {parent}) > 40


def test_vary__the_steps_of_the_scenario_stay_and_can_be_written() -> None:
    of = space(FAULTS)
    for at in range(50):
        varied = vary(of, draw(of, at), {"isr_shrunk": [3_000]}, Random(f"{at}"))
        assert [one.step.verb for one in varied.steps if one.kind == FIXED] == ["move"]
        moments = [step.trigger.at for step in scenario_of(of, varied).steps]
        lows = [moment.low_ms for moment in moments if moment is not None]
        assert lows == sorted(lows)
        assert all(500 <= low < 10_000 for low in lows)


def test_vary__new_moments_are_near_events() -> None:
    of = space(FAULTS)
    parent = draw(of, 1)
    before = {one.at_ms for one in parent.steps}
    near = {5_123 + distance for distance in NEAR_MS}
    varied = [vary(of, parent, {"leader_elected": [5_123]}, Random(f"{at}")) for at in range(100)]
    new = [one.at_ms for each in varied for one in each.steps if one.at_ms not in before]
    assert sum(at_ms in near for at_ms in new) > len(new) / 5


def test_vary__drawn_times_of_a_scenario_are_drawn_again() -> None:
    of = space(LOSING)
    parent = draw(of, 1)
    kills = {vary(of, parent, {}, Random(f"{at}")).steps[-1].at_ms for at in range(50)}
    assert len(kills) > 5
    assert all(5_000 <= at_ms <= 12_000 for at_ms in kills)


def test_go_on__the_run_comes_to_the_same_moment_and_meets_something_else() -> None:
    of = space(FAULTS)
    parent = draw(of, 1)
    before = [one for one in parent.steps if one.at_ms <= 3_000]
    others = {go_on(of, parent, 3_000, Random(f"{at}")) for at in range(20)}
    assert len(others) > 15
    for other in others:
        assert other.seed == parent.seed
        assert [one for one in other.steps if one.at_ms <= 3_000][: len(before)] == before
        assert [one.step.verb for one in other.steps if one.kind == FIXED] == ["move"]
