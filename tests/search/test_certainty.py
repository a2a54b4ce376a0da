"""From which moment on a finding was sure."""

from __future__ import annotations

import pytest

from kcluster.chance import Anew, Chance
from kcluster.contract import CONTROLLER_ID
from kcluster.scenario.language.scenario import Scenario
from kcluster.search.certainty import MAX_MOMENTS, Certainty, Odds, certainty_of, moments_of
from kcluster.search.examine import examine_scenario
from kcluster.search.findings import lead
from kcluster.search.report import Report
from kcluster.search.trial import SearchRun, play
from kcluster.search.words import certainty_text, report_values

RETRIES = """\
topology: {brokers: 3, topics: {orders: {replication_factor: 3}}}
workload:
  producers: {topic: orders, name: shop, rate: 20/s, config: {acks: 1}}
duration: 20s
steps:
  - {at: 10s, kill: leader(orders-0), for: 5s}
"""
"""Retries change places, or do not: their pauses are drawn."""


def odds_that_rise(sure_from_ms: int, tried: list[int]) -> Certainty:
    def odds_at(at_ms: int) -> Odds:
        tried.append(at_ms)
        return Odds(at_ms, 8 if at_ms >= sure_from_ms else at_ms * 8 // sure_from_ms, 8)

    moments = moments_of([], 60_000)
    return certainty_of(moments, odds_at, lambda at_ms: None, others=0, seeds=8)


@pytest.mark.parametrize("sure_from_ms", [500, 30_000, 59_500, 60_000])
def test_certainty__the_moment_is_found_in_a_few_tries(sure_from_ms: int) -> None:
    tried: list[int] = []
    certainty = odds_that_rise(sure_from_ms, tried)
    assert certainty.sure_from_ms == sure_from_ms
    assert [odds.at_ms for odds in certainty.odds] == sorted(tried)
    assert len(tried) <= 8
    assert all(odds.are_sure == (odds.at_ms >= sure_from_ms) for odds in certainty.odds)


def test_certainty__what_all_other_seeds_show_is_sure_without_a_run() -> None:
    certainty = certainty_of([0], lambda at_ms: pytest.fail("a run"), lambda at_ms: None, 8, 8)
    assert certainty == Certainty(8, 8, (), 0)


def test_certainty__what_the_end_does_not_decide_was_never_sure() -> None:
    tried: list[int] = []
    certainty = odds_that_rise(60_001, tried)
    assert certainty.sure_from_ms is None
    assert certainty.odds == (Odds(60_000, 7, 8),)
    assert tried == [60_000]


def test_moments__are_close_to_each_other_and_not_too_many() -> None:
    assert moments_of([700, 5, 900, -1], 900) == [0, 5, 500, 700, 900]
    moments = moments_of(range(0, 60_000, 7), 60_000)
    assert len(moments) == MAX_MOMENTS
    assert moments == sorted(set(moments))
    assert moments[-1] == 60_000


def test_chance__is_the_same_until_it_is_drawn_anew() -> None:
    def drawn(seed: int | None) -> tuple[list[float], list[float], float]:
        chance = Chance(1)
        node = chance.stream(str(CONTROLLER_ID))
        before = [node.random() for _ in range(3)]
        if seed is not None:
            chance.draw_anew(seed)
        return before, [node.random() for _ in range(3)], chance.stream("client shop").random()

    same, again, other = drawn(None), drawn(None), drawn(2)
    assert same == again
    assert other[0] == same[0]
    assert other[1] != same[1]
    assert other[2] != same[2]
    assert drawn(2) == other


def first_that_shows(scenario: Scenario) -> tuple[int, SearchRun]:
    runs = ((seed, play(scenario, seed)) for seed in range(1, 30))
    return next((seed, played) for seed, played in runs if played.findings)


def test_play__from_its_end_on_nothing_is_left_to_be_drawn() -> None:
    scenario = Scenario.parse(RETRIES)
    seed, played = first_that_shows(scenario)
    late = play(scenario, seed, Anew(scenario.duration_ms, 99))
    assert late.findings == played.findings
    early = [play(scenario, seed, Anew(9_000, other)).findings for other in (101, 102, 103)]
    assert any(findings != played.findings for findings in early)


def test_examine__retries_that_change_places_are_sure_once_the_pauses_are_drawn() -> None:
    scenario = Scenario.parse(RETRIES)
    seed, played = first_that_shows(scenario)
    finding = lead(played.findings)
    assert finding is not None
    report: Report = examine_scenario(scenario, seed, finding, tries=0, other_seeds=4)
    certainty = report.certainty
    assert certainty is not None
    assert 0 < certainty.others < certainty.seeds == 4
    assert certainty.sure_from_ms is not None
    assert certainty.sure_from_ms > 9_000
    text = certainty_text(certainty)
    assert text.startswith(f"{certainty.others} of 4 other seeds show it; with chance drawn anew")
    assert ": it was sure from then on" in text
    values = report_values(report, "")
    assert values["sure_from_ms"] == certainty.sure_from_ms
    assert values["odds"]
