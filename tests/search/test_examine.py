"""From a search to a sentence and to a file that repeats the finding."""

from __future__ import annotations

from functools import cache

from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.language.writing import text_of_scenario
from kcluster.scenario.play.running import run_scenario
from kcluster.search.examine import examine
from kcluster.search.kept import read_into, text_of
from kcluster.search.loop import FindingGroup, ScheduleSearch
from kcluster.search.report import Report, scenario_to_write
from kcluster.search.trial import run_trial
from kcluster.search.words import report_values, sentence, story
from tests.search.spaces import FAULTS, LOSING, space


@cache
def found() -> tuple[ScheduleSearch, FindingGroup, Report]:
    search = ScheduleSearch([space(LOSING)], 1)
    while not search.found:
        search.learn([run_trial(search.spaces[0], schedule) for schedule in search.batch()])
    (first,) = search.found.values()
    return search, first, examine(search.spaces[0], first, tries=25)


def test_examine__a_lost_write_in_a_sentence_with_the_steps_that_it_needs() -> None:
    report = found()[2]
    assert report.group == "lost-write (acks=1)"
    assert [step.verb for step in report.steps] == ["slow", "kill"]
    text = sentence(report)
    assert text.startswith("lost-write at +")
    assert "acked (acks=1)" in text
    assert "It needs two steps: slow followers(orders-0), latency 400ms at +5s" in text
    assert text.endswith("Without any one of them it does not happen. acks=1 allows it.")


def test_examine__the_file_expects_the_finding_and_repeats_it() -> None:
    report = found()[2]
    text = text_of_scenario(scenario_to_write(report, "lost", story(report)))
    scenario = Scenario.parse(text)
    result = run_scenario(scenario, "virtual")
    assert result.passed, result.failures
    assert {anomaly.name for anomaly in result.verdict.anomalies} == {"lost-write"}
    without = text.replace("  - {at: 5s, slow", "  # - {at: 5s, slow")
    assert not run_scenario(Scenario.parse(without), "virtual").passed


def test_examine__json_has_the_facts_and_the_steps() -> None:
    values = report_values(found()[2], "lost.yaml")
    assert values["finding"] == "lost-write"
    assert [next(key for key in step if key != "at") for step in values["steps"]] == [
        "slow",
        "kill",
    ]


def test_kept__a_search_goes_on_where_it_was() -> None:
    search = found()[0]
    again = ScheduleSearch(search.spaces, 1)
    read_into(again, text_of(search))
    assert text_of(again) == text_of(search)
    assert again.batch() == search.batch()


def test_trial__a_run_without_a_finding_shows_what_it_reached() -> None:
    of = space(FAULTS)
    search = ScheduleSearch([of], 1)
    schedule = search.batch(1)[0]
    first, second = run_trial(of, schedule), run_trial(of, schedule)
    assert first == second
    assert not first.findings
    assert len(first.signatures) > 20
    assert "leader_elected" in first.moments
